"""Addresses of model servers: canonical URLs, the HTTP client and its headers.

Not here: the protocols (`providers/openai.py`, `providers/llamacpp.py`) and errors (`failures.py`).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

import httpx

from codeagent_lsp.errors import ModelRejected, ModelUnreachable

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 60.0
KEEP_SECONDS = 600.0
"""How long an idle connection is kept for the next call, which may come after a long command."""

_NO_USER = "a user name or password does not belong there, use model.apiKey"
_ENDINGS = ("/chat/completions", "/completions", "/models", "/messages", "/responses")


@dataclass(frozen=True)
class TimeLimits:
    """Time limits of one exchange, in seconds: to connect, to the first token, of silence after it."""

    connect: float = CONNECT_SECONDS
    first: float = 300.0
    silence: float = SILENCE_SECONDS


@dataclass(frozen=True)
class Endpoint:
    """The address of a server: `root` for llama.cpp's own paths, `api` for the OpenAI-compatible part below it.

    `key_header` is the header of the key: with '' it is sent as a bearer token.
    """

    root: str
    api: str
    key: str = field(default="", repr=False)
    key_header: str = ""
    extra: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    @property
    def loopback(self) -> bool:
        """Return whether the server is on this machine."""
        return is_loopback(urlsplit(self.root).hostname or "")

    @property
    def private(self) -> bool:
        """Return whether the server is on this machine or at an address of a private network."""
        host = urlsplit(self.root).hostname or ""
        try:
            return ipaddress.ip_address(host).is_private
        except ValueError:
            return is_loopback(host) or host.endswith((".local", ".lan", ".internal", ".home.arpa"))

    def headers(self) -> dict[str, str]:
        """Return the headers of every request; no compression is requested, as streams gain nothing by it."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "codeagent-lsp"}
        named = {self.key_header: self.key} if self.key_header else {"Authorization": f"Bearer {self.key}"}
        return {**headers, **named, **self.extra} if self.key else {**headers, **self.extra}

    def redact(self, text: str) -> str:
        """Return `text` without the key, in case a server echoes it."""
        clean = re.sub(r"(?i)\b(bearer|basic)\s+[^\s\"',;]+", r"\1 ***", text)
        return clean.replace(self.key, "***") if self.key else clean


def endpoint(base_url: str, key: str | None = None) -> Endpoint:
    """Parse `base_url`, with or without `/v1`, a trailing slash or a full path.

    Raises ModelRejected if it is no URL.
    """
    parts = _split(base_url.strip())
    path = parts.path.rstrip("/")
    for ending in _ENDINGS:
        path = path.removesuffix(ending)
    host = f"{parts.scheme}://{parts.netloc}"
    if re.search(r"/v\d", path):
        return Endpoint(host + re.sub(r"/v\d\w*$", "", path), host + path, _header_safe(key))
    return Endpoint(host + path, f"{host}{path}/v1", _header_safe(key))


def open_client(where: Endpoint, limits: TimeLimits) -> httpx.AsyncClient:
    """Return a client that follows no redirects and, for loopback, ignores proxy settings.

    httpx itself gets no read timeout: first token and silence are watched where the stream is read.
    """
    try:
        return httpx.AsyncClient(
            headers=where.headers(),
            timeout=httpx.Timeout(None, connect=limits.connect, pool=limits.connect),
            limits=httpx.Limits(keepalive_expiry=KEEP_SECONDS),
            follow_redirects=False,
            trust_env=not where.loopback,
            verify=where.root.startswith("https:"),  # loading the certificates is slow, and http does not need them
        )
    except (ImportError, ValueError) as error:  # an unusable proxy setting in the environment
        raise ModelUnreachable("model.unreachable", url=where.root, reason=error) from error


def shown(url: str) -> str:
    """Return a URL without its possibly secret parts: user, password, query, fragment."""
    return re.split(r"[?#]", re.sub(r"//.*@", "//***@", url))[0][:200]


def is_loopback(host: str) -> bool:
    """Return whether `host` is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _split(url: str) -> SplitResult:
    if "://" not in url and is_loopback(re.split(r"[:/]", url)[0]):
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
        port_is_number = parts.port is None or parts.port > 0
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL) as error:
        reason = _NO_USER if "@" in url else str(error)
        raise ModelRejected("model.bad_url", url=shown(url), reason=reason) from error
    reason = _objection(parts) or ("" if port_is_number else "the port is 0")
    if reason:
        raise ModelRejected("model.bad_url", url=shown(url), reason=reason)
    return parts


def _objection(parts: SplitResult) -> str:
    if parts.scheme not in ("http", "https"):
        return "it must begin with http:// or https://"
    if not parts.hostname:
        return "it names no host"
    if "@" in parts.netloc:
        return _NO_USER
    return "it must end before ? and #" if parts.query or parts.fragment else ""


def _header_safe(key: str | None) -> str:
    key = (key or "").strip()
    if not key.isascii() or not key.isprintable():
        raise ModelRejected(
            "model.bad_url", url="(API key)", reason="the key holds characters that no header can carry"
        )
    return key
