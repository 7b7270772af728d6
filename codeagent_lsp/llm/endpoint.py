"""Addresses of model servers: canonical URLs, the HTTP client and its headers.

Not here: the protocols (`providers/openai.py`, `providers/llamacpp.py`) and errors (`failures.py`).
"""

from __future__ import annotations

import ipaddress
import logging
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from urllib.parse import SplitResult, urlsplit

import httpx

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import ModelRejected, ModelUnreachable, SettingError
from codeagent_lsp.network import PROXY_SCHEMES, is_loopback, redact_url, secrets_of, way_to

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 60.0
KEEP_SECONDS = 600.0
"""The time for which an idle connection is kept for the next call, which may come after a long command."""

TROUBLE = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, ssl.SSLError)
"""The exceptions that a request can end with; httpx 0.28 passes on a TLS alert after the handshake as it is."""

_NO_USER = "a user name or password does not belong there, use model.apiKey"
_ENDINGS = ("/chat/completions", "/completions", "/models", "/messages", "/responses")
_LEAST_SECRET = 4  # characters; shorter values are in every text


@dataclass(frozen=True)
class TimeLimits:
    """Time limits of one exchange, in seconds: to connect, to the first token, of silence after it."""

    connect: float = CONNECT_SECONDS
    first: float = 300.0
    silence: float = SILENCE_SECONDS


@dataclass(frozen=True)
class Endpoint:
    """The address of a server: `root` for llama.cpp's own paths, `api` for the OpenAI-compatible part below it.

    `extra` are headers and `query` parameters that the user adds to every request, `network` is how it is reached;
    `key_header` is the header of the key: with '' it is sent as a bearer token.
    """

    root: str
    api: str
    key: str = field(default="", repr=False)
    extra: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    network: NetworkSettings = field(default_factory=NetworkSettings, repr=False)
    key_header: str = ""

    @cached_property
    def loopback(self) -> bool:
        """Whether the server is on this machine, by the host in its address."""
        return is_loopback(urlsplit(self.root).hostname or "")

    @cached_property
    def private(self) -> bool:
        """Whether the server is on this machine or in a private network, by the host in its address; names are not
        resolved.
        """
        host = urlsplit(self.root).hostname or ""
        try:
            return ipaddress.ip_address(host).is_private
        except ValueError:
            return is_loopback(host) or host.endswith((".local", ".lan", ".internal", ".home.arpa"))

    def is_of(self, host: str) -> bool:
        """Return whether the server's host is `host` (in lower case), or a name below it; ports are not compared."""
        named = (urlsplit(self.root).hostname or "").lower()
        return named == host or named.endswith(f".{host}")

    def headers(self) -> dict[str, str]:
        """Return the headers of every request: `User-Agent`, the key, and those of the user; no compression is
        requested, as streams gain nothing by it.
        """
        headers = {"Accept-Encoding": "identity", "User-Agent": "codeagent-lsp"}
        named = {self.key_header: self.key} if self.key_header else {"Authorization": f"Bearer {self.key}"}
        return self.with_extra({**headers, **named} if self.key else headers)

    def with_extra(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return headers with those of the user added; a header of the user replaces ours of the same name, whatever
        its case.
        """
        theirs = {name.lower() for name in self.extra}
        return {**{name: value for name, value in headers.items() if name.lower() not in theirs}, **self.extra}

    def redact(self, text: str) -> str:
        """Return `text` with `***` for the key, the user's headers and parameters of at least 4 characters, the proxy's
        password and whatever follows `Bearer` or `Basic`, in case a server echoes them.
        """
        clean = re.sub(r"(?i)\b(bearer|basic)\s+[^\s\"',;]+", r"\1 ***", text)
        values = [*self.extra.values(), *self.query.values(), *secrets_of(self.network)]
        # The key whatever its length; short headers such as `1` would be cut out of every text.
        for secret in filter(None, (self.key, *(value for value in values if len(value) >= _LEAST_SECRET))):
            clean = clean.replace(secret, "***")
        return clean


def endpoint(
    base_url: str,
    key: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    network: NetworkSettings | None = None,
) -> Endpoint:
    """Parse `base_url`, with or without `/v1`, a trailing slash or a full path such as `/v1/chat/completions`, and
    return the address; nothing is connected.

    ModelRejected if it is not an HTTP URL or holds a user, `?` or `#`, or the key or a header cannot be sent.
    """
    parts = _split(base_url.strip())
    path = parts.path.rstrip("/")
    # People paste the whole address from a provider's example.
    for ending in _ENDINGS:
        path = path.removesuffix(ending)
    host = f"{parts.scheme}://{parts.netloc}"
    versioned = re.search(r"/v\d", path)
    return Endpoint(
        host + (re.sub(r"/v\d\w*$", "", path) if versioned else path),
        host + path + ("" if versioned else "/v1"),
        _header_safe(key),
        _sendable(headers or {}),
        dict(query or {}),
        network or NetworkSettings(),
    )


def open_client(where: Endpoint, limits: TimeLimits) -> httpx.AsyncClient:
    """Return a client with the certificates and the proxy for this address, which follows no redirects; the caller
    closes it. It has no read timeout, as callers limit the first token and silence themselves. ModelUnreachable if a
    setting of the network cannot be used.
    """
    logging.getLogger("httpx").setLevel(logging.WARNING)  # below that it logs URLs with their parameters
    try:
        trust, proxy, proxy_trust = way_to(where.root, where.network)
        return httpx.AsyncClient(
            headers=where.headers(),
            event_hooks={"request": [partial(_ask_with, where.query)]},  # `params` would replace a URL's own
            timeout=httpx.Timeout(None, connect=limits.connect, pool=limits.connect),
            limits=httpx.Limits(keepalive_expiry=KEEP_SECONDS),
            follow_redirects=False,
            # The environment's proxies and certificates are read by `network`, with the settings above them.
            trust_env=False,
            verify=trust or False,
            proxy=httpx.Proxy(proxy, ssl_context=proxy_trust) if proxy else None,
        )
    except SettingError as error:
        raise ModelUnreachable(error.key, **error.values) from error
    except (ImportError, ValueError) as error:  # socks without its library
        raise ModelUnreachable(
            "network.proxy.bad", proxy=redact_url(proxy), schemes=", ".join(PROXY_SCHEMES)
        ) from error


async def _ask_with(query: Mapping[str, str], request: httpx.Request) -> None:
    if query:
        request.url = request.url.copy_merge_params(dict(query))


def _split(url: str) -> SplitResult:
    # `localhost:8080`, as people type it; a name of another machine has to say whether it is encrypted.
    if "://" not in url and is_loopback(re.split(r"[:/]", url)[0]):
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
        port_is_number = parts.port is None or parts.port > 0
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL) as error:
        # The error of the parser would repeat the password.
        reason = _NO_USER if "@" in url else str(error)
        raise ModelRejected("model.bad_url", url=redact_url(url), reason=reason) from error
    reason = _objection(parts) or ("" if port_is_number else "the port is 0")
    if reason:
        raise ModelRejected("model.bad_url", url=redact_url(url), reason=reason)
    return parts


def _objection(parts: SplitResult) -> str:
    if parts.scheme not in ("http", "https"):
        return "it must begin with http:// or https://"
    if not parts.hostname:
        return "it names no host"
    if "@" in parts.netloc:
        return _NO_USER
    return "it must end before ? and #; parameters belong into model.query" if parts.query or parts.fragment else ""


def _sendable(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not re.fullmatch(r"[\t -~]*", value):
            raise ModelRejected("model.bad_header", name=repr(name)[:80])
    return dict(headers)


def _header_safe(key: str | None) -> str:
    key = (key or "").strip()
    if not key.isascii() or not key.isprintable():
        raise ModelRejected(
            "model.bad_url", url="(API key)", reason="the key holds characters that no header can carry"
        )
    return key
