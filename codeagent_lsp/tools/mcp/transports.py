"""Opens the transport that a server's settings name. Not here: that over pipes (`stdio.py`)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import SettingError
from codeagent_lsp.network import DEFAULTS, PROXY_LOGIN, proxy_for, proxy_refused, refusal, way_to
from codeagent_lsp.tools.mcp.host import Host
from codeagent_lsp.tools.mcp.login import Waiting, login_for
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.mcp.stdio import (
    MAX_MESSAGE,
    OUTBOX,
    Health,
    Item,
    Streams,
    Unreadable,
    launch_of,
    stdio_transport,
)

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 900.0
"""Most seconds without data on an event stream."""
_TOO_BIG = 1009
_CLOSING_SECONDS = 1.0


def transport_for(
    settings: ServerSettings, host: Host, health: Health, waiting: Waiting
) -> AbstractAsyncContextManager[Any]:
    """Return the context that opens a server's transport and yields its message streams. Nothing is opened before it is
    entered. What goes wrong is recorded in `health`; if a login is needed, the user is waited for within the context
    `waiting`.
    """
    if settings.transport == "stdio":
        folder = next(iter(host.folders()), "/")
        return stdio_transport(launch_of(settings, folder, host.environ), health)
    if settings.transport == "websocket":
        return websocket_transport(settings, health, host.network)
    return _over_http(settings, host, health, waiting)


@asynccontextmanager
async def _over_http(
    settings: ServerSettings, host: Host, health: Health, waiting: Waiting
) -> AsyncGenerator[Any, None]:
    """Open an HTTP transport, with a login if the settings have no authorization for the server."""
    auth = None
    async with AsyncExitStack() as stack:
        if host.logins is not None and not settings.authorized:
            auth = await stack.enter_async_context(login_for(settings, host.logins, health, waiting))
        opened = http_transport if settings.transport == "http" else sse_transport
        yield await stack.enter_async_context(opened(settings, health, auth, host.network))


# The HTTP transports of the library, with a size limit on replies and a record of error statuses added.


class TooMuch(httpx2.StreamError):
    """Raised for a reply that is too long, or compressed without being asked for."""

    def __init__(self, words: str) -> None:
        super().__init__(words)


@asynccontextmanager
async def http_transport(
    settings: ServerSettings, health: Health, auth: httpx2.Auth | None = None, network: NetworkSettings = DEFAULTS
) -> AsyncGenerator[Any, None]:
    """Open a Streamable HTTP transport (MCP) and yield its message streams, until this context ends. Errors of HTTP are
    recorded in `health`.
    """
    async with (
        _client(settings, health, auth, network) as client,
        streamable_http_client(settings.url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        yield streams


@asynccontextmanager
async def sse_transport(
    settings: ServerSettings, health: Health, auth: httpx2.Auth | None = None, network: NetworkSettings = DEFAULTS
) -> AsyncGenerator[Any, None]:
    """Open the older HTTP+SSE transport (MCP 2024-11-05) and yield its message streams, until this context ends.
    Failures are recorded in `health`.
    """

    def factory(headers: Any = None, timeout: Any = None, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
        return _client(settings, health, auth, network)

    async with sse_client(settings.url, httpx_client_factory=factory, auth=auth) as streams:
        yield streams


def _client(
    settings: ServerSettings, health: Health, auth: httpx2.Auth | None, network: NetworkSettings
) -> httpx2.AsyncClient:
    async def watch(response: httpx2.Response) -> None:
        if response.status_code >= 400:
            health.status = response.status_code
        response.stream = _Bounded(response)

    return httpx2.AsyncClient(
        # Not compressed: a few bytes could become any number of them.
        headers={**settings.headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=max(SILENCE_SECONDS, settings.seconds)),
        auth=auth,
        event_hooks={"response": [watch]},
        # Proxies and certificates come from the settings, by `_ByHost`.
        trust_env=False,
        transport=_ByHost(health, network),
    )


class _ByHost(httpx2.AsyncBaseTransport):
    """Sends each request on the way to its host, as a login leads to other hosts: with or without proxy, with TLS. What
    a certificate or the proxy refuses is recorded in `health`.
    """

    def __init__(self, health: Health, network: NetworkSettings) -> None:
        self._health = health
        self._network = network
        self._ways: dict[tuple[str, bool], httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = str(request.url)
        try:
            response = await self._way(url).handle_async_request(request)
            if response.status_code == PROXY_LOGIN:
                self._health.refused = proxy_refused(url, self._network)
            return response
        except (httpx2.TransportError, ssl.SSLError) as error:
            self._health.refused = refusal(error, url, self._network)
            raise
        except SettingError as error:
            self._health.refused = error
            raise httpx2.ConnectError(str(error)) from error

    async def aclose(self) -> None:
        for way in self._ways.values():
            await way.aclose()

    def _way(self, url: str) -> httpx2.AsyncHTTPTransport:
        proxy, secure = proxy_for(url, self._network), url.startswith("https:")
        if (proxy, secure) not in self._ways:
            trust, proxy, proxy_trust = way_to(url, self._network)
            given = httpx2.Proxy(proxy, ssl_context=proxy_trust) if proxy else None
            self._ways[proxy, secure] = httpx2.AsyncHTTPTransport(verify=trust or False, proxy=given)
        return self._ways[proxy, secure]


class _Bounded(httpx2.AsyncByteStream):
    """A response body with a size limit. Event streams are exempt: each event has a limit of its own."""

    def __init__(self, response: httpx2.Response) -> None:
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        self._inner = stream
        self._packed = response.headers.get("content-encoding", "identity") not in ("", "identity")
        self._endless = response.headers.get("content-type", "").lower().startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._packed:
            raise TooMuch("the reply is packed, which was not asked for")
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_MESSAGE and not self._endless:
                raise TooMuch(f"the reply has more than the {MAX_MESSAGE >> 20} MiB that are read")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


# A transport over WebSocket, one JSON message in each text frame, which the library lacks.


class _Ended(asyncio.Transport):
    """A replacement for a transport that has ended."""

    def abort(self) -> None:
        """Do nothing; asyncio's own method fails here if it ended with much data unwritten."""


class Socket(ClientConnection):
    """A connection that can be written to and closed after the peer closed it; it then raises only ConnectionClosed."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection has ended, so that later writes raise ConnectionClosed; asyncio calls this once."""
        super().connection_lost(exc)
        self.transport = _Ended()


class _Straight(connect):
    """A connector that does not follow redirects."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


@asynccontextmanager
async def websocket_transport(
    settings: ServerSettings, health: Health, network: NetworkSettings = DEFAULTS
) -> AsyncGenerator[Streams, None]:
    """Open a WebSocket and yield its message streams; it is closed with this context. OSError or a WebSocket error if
    it cannot be reached.
    """
    came, inbox = anyio.create_memory_object_stream[Item](0)
    outbox, go = anyio.create_memory_object_stream[SessionMessage](OUTBOX)
    opened = _open(settings, health, network)
    async with await opened as socket, came, inbox, outbox, go, anyio.create_task_group() as group:

        async def read() -> None:
            async with came:
                await _read(socket, came.send, health)

        async def write() -> None:
            try:
                async for item in go:
                    await socket.send(item.message.model_dump_json(by_alias=True, exclude_unset=True))
            except ConnectionClosed:  # reading says so, too
                pass

        group.start_soon(read)
        group.start_soon(write)
        yield inbox, outbox
        group.cancel_scope.cancel()


async def _open(settings: ServerSettings, health: Health, network: NetworkSettings) -> ClientConnection:
    """Return an open connection. What a certificate or the proxy refuses is recorded in `health`."""
    try:
        way = way_to(settings.url, network)
        contexts: dict[str, Any] = {"ssl": way.trust, "proxy_ssl": way.proxy_trust}
        return await _Straight(
            settings.url,
            create_connection=Socket,
            subprotocols=[Subprotocol("mcp")],
            additional_headers=dict(settings.headers),
            max_size=MAX_MESSAGE,
            open_timeout=settings.seconds,
            close_timeout=_CLOSING_SECONDS,
            compression=None,  # a small frame must not become a large message
            proxy=way.proxy or None,
            **{name: context for name, context in contexts.items() if context},
        )
    except SettingError as error:
        health.refused = error
        raise ConnectionError(str(error)) from error
    except (OSError, WebSocketException) as error:
        health.refused = refusal(error, settings.url, network)
        raise


async def _read(socket: ClientConnection, send: Callable[[Item], Awaitable[None]], health: Health) -> None:
    """Forward messages until the connection ends."""
    try:
        async for data in socket:
            await send(_item(data, health))
    except ConnectionClosed as error:
        too_big = error.sent is not None and error.sent.code == _TOO_BIG
        words = f"a message of more than {MAX_MESSAGE >> 20} MiB"
        health.problem = Unreadable(words) if too_big else error
    except Unreadable as error:
        health.problem = error
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):  # the reader is closed
        pass
    finally:
        health.gone.set()


def _item(data: str | bytes, health: Health) -> Item:
    try:
        message = jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValueError as error:
        health.garbage(data.encode() if isinstance(data, str) else data)
        return error
    health.good()
    return SessionMessage(message)
