"""Strict parsing of web addresses, so that no later program can interpret an address differently. Pure functions.

Ambiguous forms are refused: user names, backslashes, blanks and percent signs in the host, odd spellings of IPv4
addresses. International names become their ASCII form (`xn--`, IDNA), so that look-alikes are visible. Not here: what a
name resolves to (`dialing.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote, urljoin

from codeagent_lsp.errors import NotAccepted
from codeagent_lsp.tools.web.addresses import is_public

MAX_LENGTH = 4096
PORTS = {"http": 80, "https": 443}

_PARTS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<slashes>//)?(?P<authority>[^/?#]*)(?P<rest>.*)", re.DOTALL
)
_AUTHORITY = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>[0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_CLOSED_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "onion")
_IN_PATH = "/?#[]@!$&'()*+,;=:%-._~|"


class BadUrl(NotAccepted):
    """Raised for an address that is not fetched; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a request. `host` is an ASCII name or a public address without brackets; `rest` begins with `/`."""

    scheme: str
    host: str
    port: int
    rest: str

    @property
    def authority(self) -> str:
        """Return host and port as in an address; the default port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """Return the normalised address."""
        return f"{self.scheme}://{self.authority}{self.rest}"


def parsed(url: str, base: Target | None = None) -> Target:
    """Parse `url`, which may be relative to `base`, as in a redirect. BadUrl with the reason."""
    url = url.strip(" ")
    if len(url) > MAX_LENGTH:
        raise BadUrl(f"the address is longer than {MAX_LENGTH} characters")
    if "\\" in url or any(not char.isprintable() for char in url):
        raise BadUrl("the address holds a backslash or an unprintable character")
    parts = _PARTS.fullmatch(urljoin(base.url, url) if base else url)
    if parts is None or not parts["slashes"] or parts["scheme"].lower() not in PORTS:
        raise BadUrl("only whole addresses that begin with https:// or http:// are fetched")
    scheme = parts["scheme"].lower()
    host, port = split_authority(parts["authority"])
    rest = quote(parts["rest"].partition("#")[0], safe=_IN_PATH)
    return Target(scheme, host, PORTS[scheme] if port is None else port, rest if rest[:1] == "/" else f"/{rest}")


def split_authority(authority: str) -> tuple[str, int | None]:
    """Return the normalised host and the port, None if not given. BadUrl if the host cannot be public by its form."""
    if "@" in authority:
        raise BadUrl("an address with a user name before the host is not fetched")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None or "%" in authority or any(char.isspace() for char in authority):
        raise BadUrl("the host cannot be read")
    port = None if parts["port"] is None else int(parts["port"])
    if port is not None and not 0 < port < 65536:
        raise BadUrl("there is no such port")
    host = parts["host"]
    return (_literal(host[1:-1]) if host.startswith("[") else _named(host)), port


def on_usual_port(target: Target) -> bool:
    """Return whether the port is a default port of web servers (80, 443)."""
    return target.port in PORTS.values()


def covers(hosts: Iterable[str], target: Target) -> bool:
    """Return whether one of `hosts` covers the target's host: `docs.example.org`, `*.example.org`, `example.org:8443`.

    An entry without a port covers the default ports; one with `*.` covers every name below it, not the name itself.
    """
    return any(_covers(entry.strip().lower(), target) for entry in hosts)


def same_site(one: Target, other: Target) -> bool:
    """Return whether a redirect stays within what the user allowed: the same host, with or without `www.`, and no step
    from https to http.
    """
    if one.scheme == "https" and other.scheme != "https":
        return False
    if one.host.removeprefix("www.") != other.host.removeprefix("www."):
        return False
    return one.port == other.port or (on_usual_port(one) and on_usual_port(other))


def _covers(entry: str, target: Target) -> bool:
    wild = entry.startswith("*.")
    try:
        host, port = split_authority(entry.removeprefix("*."))
    except BadUrl:
        return False
    if port != target.port and not (port is None and on_usual_port(target)):
        return False
    return target.host.endswith(f".{host}") if wild else target.host == host


def _literal(host: str) -> str:
    try:
        address = str(IPv6Address(host))
    except ValueError:
        raise BadUrl("the host cannot be read") from None
    return _public(address)


def _named(host: str) -> str:
    # A name with a final dot is the same host.
    name = _in_ascii(host).removesuffix(".")
    labels = name.split(".")
    # A host whose last label is a number is an IPv4 address to browsers, whatever the rest is.
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return _public(str(IPv4Address(name)))
        except ValueError as error:
            raise (error if isinstance(error, BadUrl) else BadUrl("the host is an oddly spelt number")) from None
    if len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise BadUrl("the host cannot be read")
    if len(labels) < 2 or any(name == closed or name.endswith(f".{closed}") for closed in _CLOSED_NAMES):
        raise BadUrl(f"{name} is a name of this machine or of a local network, which is never fetched")
    return name


def _in_ascii(host: str) -> str:
    if host.isascii():
        return host.lower()
    import idna  # only here: few hosts need its tables

    try:
        return idna.encode(host, uts46=True, std3_rules=True).decode("ascii").lower()
    except idna.IDNAError:
        raise BadUrl("the host cannot be read") from None


def _public(address: str) -> str:
    if not is_public(address):
        raise BadUrl(f"{address} is no public address, and others are never fetched")
    return address
