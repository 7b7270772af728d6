"""Strict parsing of web addresses, so that no later program can interpret an address differently, and which are public.

Ambiguous forms are refused: user names, backslashes, blanks and percent signs in the host, odd spellings of IPv4
addresses. International names become their ASCII form (`xn--`, IDNA), so that look-alikes are visible. Which IP
addresses are public builds on Python's `is_global` (the IANA special-purpose registries) and refuses more: tunnels and
translations (IPv4-mapped, NAT64, 6to4, Teredo, ISATAP) could reach any IPv4 address and are refused entirely. Not here:
what a name resolves to (`dialing.py`).
"""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from urllib.parse import quote, urljoin

from codeagent_lsp.errors import ErrorCode, NotAccepted, ToolFailed

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

ROUTES_4 = Path("/proc/net/fib_trie")
INTERFACES_6 = Path("/proc/net/if_inet6")
_ELSEWHERE = (("192.0.2.1", socket.AF_INET), ("2001:db8::1", socket.AF_INET6))
_LOCAL_4 = re.compile(r"\|-- ([0-9.]+)\n\s*/32 host LOCAL")

_CLOSED_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # shared by customers of a provider; one cloud has its metadata here
            "127.0.0.0/8",
            "168.63.129.16/32",  # metadata of a cloud, although the address is a public one
            "169.254.0.0/16",  # link-local, and the metadata of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    )
)
_OPEN_6 = IPv6Network("2000::/3")
_CLOSED_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocols, Teredo and ORCHID among them
            "2001:db8::/32",
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",
            "3fff::/20",
        ),
    )
)
_ISATAP = (0x00005EFE, 0x02005EFE)


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
        """Host and port as in an address; the default port is left out, IPv6 addresses have brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The normalised address, without a fragment."""
        return f"{self.scheme}://{self.authority}{self.rest}"


def parse_url(url: str, base: Target | None = None) -> Target:
    """Return the target of `url`, which may be relative to `base`, as in a redirect; its fragment is dropped. Nothing
    is resolved. BadUrl with the reason, also for a host that cannot be public by its form.
    """
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
    """Return (host, port) of the authority of a URL: the normalised host, IPv6 without brackets, and the port, None if
    not given. BadUrl if the host cannot be public by its form.
    """
    if "@" in authority:
        raise BadUrl("an address with a user name before the host is not fetched")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None or "%" in authority or any(char.isspace() for char in authority):
        raise BadUrl("the host cannot be read")
    port = None if parts["port"] is None else int(parts["port"])
    if port is not None and not 0 < port < 65536:
        raise BadUrl("there is no such port")
    host = parts["host"]
    return (_literal(host[1:-1]) if host.startswith("[") else _host_name(host)), port


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


def _host_name(host: str) -> str:
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


class WebRefused(ToolFailed):
    """Raised for an address that is never fetched, whatever the user allows."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ErrorCode.PERMISSION_DENIED)


def unreachable(host: str, reason: str) -> ToolFailed:
    """Return, without raising it, the error about a server that does not answer, with the reason."""
    return ToolFailed(f"{host} cannot be reached: {reason}", ErrorCode.NETWORK_ERROR)


def not_installed(what: str) -> ToolFailed:
    """Return, without raising it, the error about a library of the extra `web` that is not installed."""
    message = f"{what} is not installed here. The user can add it: pip install 'codeagent-lsp[web]'"
    return ToolFailed(message, ErrorCode.NOT_FOUND)


def is_public(address: str) -> bool:
    """Return whether `address` is a valid IP address that is publicly reachable (IANA's special-purpose registries, and
    no tunnels or translations to IPv4); False for anything else.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return _is_public_4(found) if isinstance(found, IPv4Address) else _is_public_6(found)


def own_addresses(routes: Path = ROUTES_4, interfaces: Path = INTERFACES_6) -> frozenset[str]:
    """Return the IP addresses of this machine, public ones too: from the kernel's tables, and those that it sends from.
    Reads files, so it blocks, and sends nothing.
    """
    found = set(_LOCAL_4.findall(_read(routes)))
    found.update(str(IPv6Address(int(line.split()[0], 16))) for line in _read(interfaces).splitlines() if line)
    for target, family in _ELSEWHERE:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, 9))  # sends nothing; it only chooses a route
            found.add(probe.getsockname()[0])
    return frozenset(found)


def is_own(address: str, own: Collection[str]) -> bool:
    """Return whether an IP address, in any spelling, is among those in `own`; False if it is none."""
    try:
        return str(ip_address(address)) in own
    except ValueError:
        return False


def _read(table: Path) -> str:
    try:
        return table.read_text("ascii")
    except (OSError, ValueError):
        return ""


def _is_public_4(address: IPv4Address) -> bool:
    return address.is_global and not any(address in network for network in _CLOSED_4)


def _is_public_6(address: IPv6Address) -> bool:
    if address.scope_id is not None or address not in _OPEN_6:
        return False
    if any(address in network for network in _CLOSED_6) or not address.is_global:
        return False
    return int(address) >> 32 & 0xFFFFFFFF not in _ISATAP
