"""The check whether an IP address is public, and which are this machine's own.

It builds on Python's `is_global` (the IANA special-purpose registries) and refuses more: tunnels and translations
(IPv4-mapped, NAT64, 6to4, Teredo, ISATAP) could reach any IPv4 address and are refused entirely. Not here: names and
how they are resolved (`dialing.py`).
"""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path

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


def is_public(address: str) -> bool:
    """Return whether `address` is a valid and publicly reachable IP address."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return _is_public_4(found) if isinstance(found, IPv4Address) else _is_public_6(found)


def own_addresses(routes: Path = ROUTES_4, interfaces: Path = INTERFACES_6) -> frozenset[str]:
    """Return the addresses of this machine, public ones too: from the kernel's tables, and those that it sends from."""
    found = set(_LOCAL_4.findall(_read(routes)))
    found.update(str(IPv6Address(int(line.split()[0], 16))) for line in _read(interfaces).splitlines() if line)
    for target, family in _ELSEWHERE:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, 9))  # sends nothing; it only chooses a route
            found.add(probe.getsockname()[0])
    return frozenset(found)


def is_own(address: str, own: Collection[str]) -> bool:
    """Return whether an address, in any spelling, is among this machine's."""
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
