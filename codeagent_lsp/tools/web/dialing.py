"""Connections to hosts by checked addresses: the address that is checked is the one that is connected to.

A name is resolved once for each connection. If any of its addresses is not public, no connection is made, so DNS
rebinding gains nothing. With the setting `network.proxy`, the proxy connects: what a name means here must then be
public, or nothing; what it means to the proxy is the proxy's to judge. Not here: what is a public address
(`urls.py`).
"""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from urllib.parse import unquote, urlsplit

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.network import DEFAULTS, PROXY_LOGIN, proxy_for, proxy_refused, redact_url, tls_context
from codeagent_lsp.tools.web.urls import PORTS, WebRefused, is_own, is_public, own_addresses, unreachable

RESOLVE_SECONDS = 10.0
CONNECT_SECONDS = 5.0
MAX_ADDRESSES = 4

SocketAddress = tuple[str, int]
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host and port. OSError if there are none."""

Route = Callable[[SocketAddress], SocketAddress]
"""Maps a checked address and port to the actual target; tests use it for a simulated public network."""
SECONDS = 10.0


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """Return the IP addresses of a host from the system's resolver, each once. OSError if it has none."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def direct(place: SocketAddress) -> SocketAddress:
    """Return the address unchanged: the route in production, in whose place tests put another."""
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
        """Return the checked (IP address, port) pairs of a host, best first, at most 4. WebRefused if one is not
        public, ToolFailed if none.
        """
        addresses = (host,) if _is_number(host) else await self._addresses(host, port)
        own = await asyncio.to_thread(self._own)  # each time: a machine changes its network
        if not all(map(is_public, addresses)) or any(is_own(address, own) for address in addresses):
            raise WebRefused(f"{host} leads to an address that is not public, so nothing is fetched from it.")
        return tuple(self._route((address, port)) for address in addresses[:MAX_ADDRESSES])

    def proxy_for(self, host: str, port: int) -> str:
        """Return the URL of the proxy for a host and port, by the settings alone; '' for none. The proxy of the
        environment is not used for what models ask for.
        """
        shown = f"[{host}]" if ":" in host else host
        return proxy_for(f"https://{shown}:{port}", self.network) if self.network.proxy else ""

    async def admit(self, host: str, port: int) -> None:
        """Resolve a host and raise WebRefused if one of its addresses is not public; one that cannot be resolved here
        is left to the proxy.
        """
        try:
            await self.places(host, port)
        except WebRefused:
            raise
        except ToolFailed:
            pass

    async def connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection to the first address that accepts one, within 5 s each, or through the proxy; the caller
        closes it. Errors as in `places`; ToolFailed if none accepts.
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
            # Only the usual spelling counts as a number, unlike getaddrinfo, which also reads `0x7f.1`.
            socket.inet_pton(family, host)
            return True
        except OSError:
            continue
    return False


# A connection through an HTTP proxy by its method CONNECT (RFC 9110, 9.3.6), for the traffic of helper programs.


async def tunnel(
    proxy: str, host: str, port: int, network: NetworkSettings
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a connection to the host through a proxy (HTTP CONNECT), given by its URL; the caller closes it.
    ToolFailed if the proxy gives none within 10 s.
    """
    parts = urlsplit(proxy)
    if parts.scheme not in PORTS:
        raise unreachable(host, f"the proxy {redact_url(proxy)} cannot be used for this.")
    secure = await asyncio.to_thread(tls_context, network) if parts.scheme == "https" else None
    try:
        async with asyncio.timeout(SECONDS):
            place = parts.hostname, parts.port or PORTS[parts.scheme]
            reader, writer = await asyncio.open_connection(*place, ssl=secure)
            authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            writer.write(_request(authority, parts.username, parts.password))
            head = await reader.readuntil(b"\r\n\r\n")
    except (OSError, EOFError, asyncio.LimitOverrunError):  # TimeoutError too
        raise unreachable(host, f"the proxy {redact_url(proxy)} does not answer.") from None
    status = head.split(b"\r\n")[0].decode("latin-1").partition(" ")[2]
    if status.startswith("2"):
        return reader, writer
    writer.close()
    refused = proxy_refused(f"https://{host}:{port}", network) if status.startswith(str(PROXY_LOGIN)) else None
    words = str(refused or f"The proxy {redact_url(proxy)} gives no connection to {host}: {status[:100]}")
    raise ToolFailed(words, ErrorCode.NETWORK_ERROR)


def _request(authority: str, user: str | None, password: str | None) -> bytes:
    pair = f"{unquote(user or '')}:{unquote(password or '')}".encode()
    login = b"Proxy-Authorization: Basic " + base64.b64encode(pair) + b"\r\n" if user else b""
    return f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n".encode("ascii") + login + b"\r\n"
