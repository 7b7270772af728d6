"""Connections to hosts by checked addresses: the address that is checked is the one that is connected to.

A name is resolved once for each connection. If any of its addresses is not public, no connection is made, so DNS
rebinding gains nothing. With the setting `network.proxy`, the proxy connects: what a name means here must then be
public, or nothing; what it means to the proxy is the proxy's to judge. Not here: what is a public address
(`addresses.py`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.network import DEFAULTS, proxy_for
from codeagent_lsp.tools.web.addresses import is_own, is_public, own_addresses
from codeagent_lsp.tools.web.problems import WebRefused, unreachable
from codeagent_lsp.tools.web.tunnel import tunnel

RESOLVE_SECONDS = 10.0
CONNECT_SECONDS = 5.0
MAX_ADDRESSES = 4

SocketAddress = tuple[str, int]
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host and port. OSError if there are none."""

Route = Callable[[SocketAddress], SocketAddress]
"""Maps a checked address and port to the actual target; tests use it for a simulated public network."""


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses from the system's resolver."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def direct(place: SocketAddress) -> SocketAddress:
    """Return the address unchanged: the route in production."""
    return place


class Dialer:
    """Resolves hosts to checked addresses and connects to them, over the proxy of `network` if it names one."""

    def __init__(
        self,
        resolve: Resolve = system_resolve,
        route: Route = direct,
        own: Callable[[], Collection[str]] = own_addresses,
        network: NetworkSettings = DEFAULTS,
    ) -> None:
        self.network = network
        self._own = own
        self._resolve = resolve
        self._route = route

    async def places(self, host: str, port: int) -> tuple[SocketAddress, ...]:
        """Return the checked addresses and ports of a host, best first. WebRefused if one is not public, ToolFailed if
        none.
        """
        addresses = (host,) if _is_number(host) else await self._addresses(host, port)
        own = await asyncio.to_thread(self._own)  # each time: a machine changes its network
        if not all(map(is_public, addresses)) or any(is_own(address, own) for address in addresses):
            raise WebRefused(f"{host} leads to an address that is not public, so nothing is fetched from it.")
        return tuple(self._route((address, port)) for address in addresses[:MAX_ADDRESSES])

    def proxy_for(self, host: str, port: int) -> str:
        """Return the proxy for a host; '' for none. The environment's proxy is none of ours: it was not meant for what
        models ask for.
        """
        shown = f"[{host}]" if ":" in host else host
        return proxy_for(f"https://{shown}:{port}", self.network) if self.network.proxy else ""

    async def admit(self, host: str, port: int) -> None:
        """Raise WebRefused for a host that is not public as far as this machine knows; one that it does not know is
        left to the proxy.
        """
        try:
            await self.places(host, port)
        except WebRefused:
            raise
        except ToolFailed:
            pass

    async def connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection to the first address that accepts one. Errors as in `places`;
        ToolFailed if none accepts.
        """
        if proxy := self.proxy_for(host, port):
            await self.admit(host, port)
            return await tunnel(proxy, host, port, self.network)
        for place in await self.places(host, port):
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await asyncio.open_connection(*place)
            except OSError:  # TimeoutError too
                continue
        raise unreachable(host, "nobody answers there.")

    async def _addresses(self, host: str, port: int) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                found = tuple(await self._resolve(host, port))
        except TimeoutError:
            raise unreachable(host, "its name was not resolved in time.") from None
        except (OSError, UnicodeError):
            found = ()
        if not found:
            raise ToolFailed(f"There is no host {host}, or no network here.", ErrorCode.NOT_FOUND)
        return found


def _is_number(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
            return True
        except OSError:
            continue
    return False
