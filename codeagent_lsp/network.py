"""How connections to other machines are made: certificates that are trusted, client certificate, proxy, and refusals.

Every part that opens such a connection asks here, with the settings `network.*`; no HTTP library is imported. Not here:
the connections themselves (`llm/endpoint.py`, `tools/web/http.py`, `tools/mcp/transports.py`).
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import SettingError, UserError

PROXY_AWAY = "network.proxy.unreachable"
"""The key of the one failure here that may pass."""

PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")
DEFAULTS = NetworkSettings()
PROXY_LOGIN = 407
"""The status by which a proxy asks for a password."""

_UNKNOWN = "?"
_REASONS: Mapping[int, str] = MappingProxyType(  # by X509_V_ERR_… of OpenSSL
    {
        **dict.fromkeys((2, 19, 20, 21), "unknown"),
        9: "early",
        10: "expired",
        18: "self_signed",
        **dict.fromkeys((62, 64), "host"),
    }
)
_WANTS_OURS = ("CERTIFICATE_REQUIRED",)
_REFUSES_OURS = ("ALERT_BAD_CERTIFICATE", "ALERT_UNKNOWN_CA", "ALERT_CERTIFICATE_", "ALERT_UNSUPPORTED_CERTIFICATE")


class CertificateRefused(ssl.SSLCertVerificationError):
    """A server's certificate was not accepted. `subject`, `issuer` and `until` (its last day) are what it says of
    itself.
    """

    subject = issuer = until = _UNKNOWN


class Way(NamedTuple):
    """How to reach a server: the TLS context for it, the proxy's URL ('' for none), and the TLS context for that. A
    context is None if no TLS is needed, as loading the certificates is slow.
    """

    trust: ssl.SSLContext | None
    proxy: str
    proxy_trust: ssl.SSLContext | None


def is_loopback(host: str) -> bool:
    """Return whether a host, a name or an address without brackets, is this machine: `localhost`, a name below it, or a
    loopback address. Names are not resolved.
    """
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def tls_context(network: NetworkSettings) -> ssl.SSLContext:
    """Return a new context that trusts the system's certificates and those in `network.caFile`, and presents
    `network.clientCert`. SettingError if one of the files cannot be used. Blocks while reading them.
    """
    from truststore import SSLContext  # late: only https needs it

    context = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    paths = ssl.get_default_verify_paths()
    if not (paths.cafile or paths.capath):
        import certifi  # late: only for a system without certificates of its own

        context.load_verify_locations(certifi.where())
    if network.ca_file:
        _load("caFile", "network.ca_file.unusable", network.ca_file, context.load_verify_locations)
    if network.client_cert:
        load = partial(context.load_cert_chain, password=_no_word)
        _load("clientCert", "network.client_cert.unusable", network.client_cert, load)
    setattr(context, "wrap_bio", _telling(context.wrap_bio))  # noqa: B010 - a method of this one object
    return context


def proxy_for(url: str, network: NetworkSettings) -> str:
    """Return the URL of the proxy for a request to a URL: the setting's, else the environment's (`HTTPS_PROXY` and the
    like); '' for none, as for this machine and hosts in `NO_PROXY`. SettingError if the proxy's URL cannot be used.
    """
    from urllib.request import getproxies, proxy_bypass  # late: an HTTP client, which an idle server does not need

    parts = urlsplit(url)
    host = parts.hostname or ""
    if not host or is_loopback(host) or proxy_bypass(f"{host}:{parts.port}" if parts.port else host):
        return ""
    scheme = {"ws": "http", "wss": "https"}.get(parts.scheme, parts.scheme)
    known = {} if network.proxy else getproxies()
    found = network.proxy or known.get(scheme) or known.get("all") or ""
    return _checked_proxy(found) if found else ""


def way_to(url: str, network: NetworkSettings) -> Way:
    """Return how to reach the server of a URL; blocks while reading certificates. SettingError as `proxy_for` and
    `tls_context`.
    """
    proxy = proxy_for(url, network)
    return Way(
        tls_context(network) if url.startswith(("https:", "wss:")) else None,
        proxy,
        tls_context(network) if proxy.startswith("https:") else None,
    )


def secrets_of(network: NetworkSettings) -> tuple[str, ...]:
    """Return the password in the proxy's URL as written and decoded, each once, to be masked; () if there is none."""
    words = _password(network.proxy or "")
    return tuple(dict.fromkeys((words, unquote(words)))) if words else ()


def redact_url(url: str) -> str:
    """Return a URL without its possibly secret parts: user and password become `***`, query and fragment are left out;
    at most 200 characters.
    """
    # Up to the last `@`, as a password may have some.
    return re.split(r"[?#]", re.sub(r"//.*@", "//***@", url))[0][:200]


def refusal(error: BaseException, url: str, network: NetworkSettings) -> UserError | None:
    """Return the error for the user, with what to set, if a failed request failed because of certificates or the proxy;
    None for other failures.
    """
    chain = tuple(_chain(error))
    for link in chain:
        if isinstance(link, ssl.SSLCertVerificationError):
            return _certificate(link, redact_url(url))
        if isinstance(link, ssl.SSLError) and any(word in _alert(link) for word in _WANTS_OURS):
            return UserError("network.client_cert.wanted", url=redact_url(url))
        if isinstance(link, ssl.SSLError) and any(word in _alert(link) for word in _REFUSES_OURS):
            return UserError("network.client_cert.refused", url=redact_url(url))
    if any(isinstance(link, ssl.SSLError) for link in chain):
        return None
    return _of_proxy(chain, url, network)


def proxy_refused(url: str, network: NetworkSettings) -> UserError | None:
    """Return, without raising it, the error about a proxy that wants another user or password (HTTP 407); None if the
    URL is reached without a proxy. SettingError as `proxy_for`.
    """
    proxy = proxy_for(url, network)
    return UserError("network.proxy.login", url=redact_url(url), proxy=redact_url(proxy)) if proxy else None


def client_refused(url: str, status: int, reason: str) -> UserError | None:
    """Return, without raising it, the error for nginx's page about client certificates, which it sends with status 400
    after the handshake (`ngx_http_special_response.c`, 495 and 496). None for other answers.
    """
    if status != 400 or "SSL certificate" not in reason:
        return None
    if "No required" in reason:
        return UserError("network.client_cert.wanted", url=redact_url(url))
    return UserError("network.client_cert.refused", url=redact_url(url))


def bundle(network: NetworkSettings, folder: Path) -> Path | None:
    """Write the system's certificates and those of `network.caFile` into the file `trusted.pem` in `folder` and return
    its path, for programs that take only one file; None if the setting is empty. SettingError if they cannot be used,
    OSError if the file cannot be written.
    """
    if not network.ca_file:
        return None
    tls_context(network)
    system = ssl.get_default_verify_paths().cafile
    files = filter(None, (system, network.ca_file))
    made = folder / "trusted.pem"
    made.write_bytes(b"\n".join(Path(file).expanduser().read_bytes() for file in files))
    return made


def describe_settings(network: NetworkSettings) -> str:
    """Return the settings that are set as `network.NAME VALUE`, with commas between them, on one line for the doctor,
    without passwords; '' if none is.
    """
    named = (
        ("caFile", network.ca_file),
        ("clientCert", network.client_cert),
        ("proxy", redact_url(network.proxy or "")),
    )
    return ", ".join(f"network.{name} {value}" for name, value in named if value)


def check(network: NetworkSettings) -> None:
    """Raise SettingError if one of the settings cannot be used; nothing is connected to. Blocks while reading
    certificates.
    """
    if network.ca_file or network.client_cert:
        tls_context(network)
    if network.proxy:
        _checked_proxy(network.proxy)


def _load(name: str, unusable: str, written: str, load: Callable[[str], object]) -> None:
    path = os.path.expanduser(written)  # noqa: PTH111 - what OpenSSL takes is a text
    try:
        load(path)
    except (ssl.SSLError, ValueError) as error:
        raise SettingError(unusable, path=path, reason=_reason(error)) from error
    except OSError as error:
        raise SettingError("network.unreadable", key=f"network.{name}", path=path, reason=error.strerror) from error


def _no_word() -> str:
    """Return no password: OpenSSL would ask for one on the terminal."""
    return ""


def _checked_proxy(url: str) -> str:
    """Return the URL with a scheme."""
    whole = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(whole)
        # `port` raises ValueError for what is no number.
        usable = parts.scheme in PROXY_SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise SettingError("network.proxy.bad", proxy=redact_url(whole), schemes=", ".join(PROXY_SCHEMES))
    return whole


def _password(url: str) -> str:
    user, at, _ = _split(url).netloc.rpartition("@")
    return user.partition(":")[2] if at else ""


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url if "://" in url else f"http://{url}")
    except ValueError:
        return SplitResult("", "", "", "", "")


def _telling(wrap: Callable[..., ssl.SSLObject]) -> Callable[..., ssl.SSLObject]:
    """Return `wrap_bio` of a context such that failed handshakes raise CertificateRefused."""

    def wrapped(*arguments: Any, **options: Any) -> ssl.SSLObject:
        made = wrap(*arguments, **options)
        shake = made.do_handshake

        def do_handshake() -> None:
            try:
                shake()
            except ssl.SSLCertVerificationError as error:
                raise _certificate_refusal(error, made) from error

        setattr(made, "do_handshake", do_handshake)  # noqa: B010 - a method of this one object
        return made

    return wrapped


def _certificate_refusal(error: ssl.SSLCertVerificationError, made: ssl.SSLObject) -> CertificateRefused:
    """Return the error with what the certificate says; Python gives it by a method that is public since 3.13 only."""
    refused = CertificateRefused(*error.args)
    refused.verify_code = getattr(error, "verify_code", 0)
    refused.verify_message = getattr(error, "verify_message", "")
    try:
        chain = made._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
        told = chain[0].get_info()
        refused.subject, refused.issuer = _name(told["subject"]), _name(told["issuer"])
        refused.until = told["notAfter"]
    except (AttributeError, LookupError, TypeError, ValueError, ssl.SSLError):  # then it stays unknown
        pass
    return refused


def _name(parts: Any) -> str:
    """Return a distinguished name as `CN=…, O=…`."""
    short = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU", "countryName": "C"}
    pairs = [f"{short.get(key, key)}={value}" for part in parts for key, value in part]
    line = "".join(letter if letter.isprintable() else "?" for letter in ", ".join(reversed(pairs)))
    return line[:200] or _UNKNOWN


def _alert(error: ssl.SSLError) -> str:
    """Return the name of what OpenSSL got from the other side; an error that was made without it has none."""
    return str(getattr(error, "reason", ""))


def _certificate(error: ssl.SSLCertVerificationError, url: str) -> UserError:
    code = getattr(error, "verify_code", 0)
    return UserError(
        f"network.certificate.{_REASONS.get(code, 'other')}",
        url=url,
        subject=getattr(error, "subject", _UNKNOWN),
        issuer=getattr(error, "issuer", _UNKNOWN),
        until=getattr(error, "until", _UNKNOWN),
        reason=getattr(error, "verify_message", "") or _reason(error),
    )


def _of_proxy(chain: tuple[BaseException, ...], url: str, network: NetworkSettings) -> UserError | None:
    """Return what went wrong between us and the proxy. Libraries differ, the names of their errors do not."""
    try:
        proxy = proxy_for(url, network)
    except SettingError as error:
        return error
    if not proxy:
        return None
    names = {cls.__name__: link for link in chain for cls in type(link).__mro__}
    if (said := names.get("ProxyError")) is not None:
        if str(PROXY_LOGIN) in str(said):
            return proxy_refused(url, network)
        # An empty password stands between all letters, so the stars would too.
        reason = str(said).replace(_password(proxy) or "\0", "***")[:200]
        return UserError("network.proxy.refused", url=redact_url(url), proxy=redact_url(proxy), reason=reason)
    if names.keys() & {"ConnectError", "ConnectTimeout", "gaierror", "ConnectionRefusedError"}:
        return UserError(PROXY_AWAY, url=redact_url(url), proxy=redact_url(proxy))
    return None


def _reason(error: Exception) -> str:
    """Return OpenSSL's words without its codes and places in its source."""
    return re.sub(r"^\[[^]]*\]\s*|\s*\(_ssl\.c:\d+\)$", "", str(error.args[-1] if error.args else error))[:200]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, what it was raised from, and what groups of them hold."""
    pending, seen = [error], set[int]()
    while pending:
        link = pending.pop(0)
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        pending += [*getattr(link, "exceptions", ()), link.__cause__, link.__context__]
