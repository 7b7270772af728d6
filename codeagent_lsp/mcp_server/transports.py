"""The transports of the sandbox server: stdio, Streamable HTTP and WebSocket, the last two on loopback only.

Both require a bearer token in every request, and check Host and Origin, so that no web page can reach them. Not here:
what is said (`serving.py`).
"""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_websockets
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from codeagent_lsp.mcp_server.stdio import MAX_MESSAGE, Item, claim_stdio, message_in, stdio_streams

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PATH = "/mcp"
_MCP = Subprotocol("mcp")
_CLOSING_SECONDS = 1.0
_MAX_CONNECTIONS = 32
# A web page can have its own name resolve to loopback (DNS rebinding), but its browser then sends that name as Host.
_HOSTS = ["127.0.0.1:*", "localhost:*", "[::1]:*"]
_ORIGINS = [f"http://{host}" for host in _HOSTS]
HEAD_SECONDS = 5.0
MAX_UNFINISHED = 32


async def over_stdio(server: Server[Any]) -> None:
    """Serve the parent process (the stdio transport of MCP) until it closes our standard input. Prints go to stderr
    from then on.
    """
    async with stdio_streams(*claim_stdio()) as (read, write):
        await server.run(read, write, server.create_initialization_options())


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket on a loopback host; port 0 takes a free one. OSError if that is impossible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen()
    except OSError:
        opened.close()
        raise
    return opened


def address_of(opened: socket.socket) -> str:
    """Return `host:port` of a listening socket, as in a URL: an IPv6 host is in brackets."""
    host, port = opened.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def over_http(server: Server[Any], opened: socket.socket, token: str) -> None:
    """Serve Streamable HTTP at `/mcp` on a listening socket, until cancelled; every request needs the bearer `token`.
    The caller closes the socket if this never ran.
    """
    security = TransportSecuritySettings(allowed_hosts=_HOSTS, allowed_origins=_ORIGINS)
    app = server.streamable_http_app(
        streamable_http_path=PATH, max_request_body_size=MAX_MESSAGE, transport_security=security
    )
    config = uvicorn.Config(
        _Guarded(app, token),
        log_level="critical",
        access_log=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=int(_CLOSING_SECONDS),
        ws="none",
        http=patient_protocol(),
    )
    web = _Uvicorn(config)
    serving = asyncio.create_task(web.serve([opened]))
    try:
        # uvicorn leaves in order only by `should_exit`; cancelled, it would leave connections open.
        await asyncio.shield(serving)
    finally:
        web.should_exit = True
        await asyncio.wait([serving])


async def over_websocket(server: Server[Any], opened: socket.socket, token: str) -> None:
    """Serve WebSocket connections on a listening socket, which this closes, one message in each text frame, until
    cancelled; each needs the bearer `token`.
    """

    def check(connection: ServerConnection, request: Request) -> Response | None:
        status = _refusal_status(request.headers.get("Host"), request.headers.get("Origin"))
        if status is None and not _is_authorised(request.headers.get("Authorization"), token):
            status = HTTPStatus.UNAUTHORIZED
        return None if status is None else connection.respond(status, f"{status.phrase}\n")

    async def connected(connection: ServerConnection) -> None:
        async with _streams(connection) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    async with serve_websockets(
        connected,
        sock=opened,
        select_subprotocol=lambda connection, offered: _MCP if _MCP in offered else None,
        process_request=check,
        max_size=MAX_MESSAGE,
        compression=None,  # a small frame must not become a large message
        close_timeout=_CLOSING_SECONDS,
    ) as listener:
        await listener.serve_forever()


class _Uvicorn(uvicorn.Server):
    """A uvicorn server without signal handlers, which the command has."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Guarded:
    """An ASGI wrapper that refuses requests without the token or from other hosts or origins."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        status = _refusal_status(headers.get("host"), headers.get("origin"))
        if status is None and not _is_authorised(headers.get("authorization"), self._token):
            status = HTTPStatus.UNAUTHORIZED
        if status is None:
            await self._app(scope, receive, send)
            return
        close = {"Connection": "close"}  # else it could wait here for ever with its next request
        await PlainTextResponse(f"{status.phrase}\n", status_code=status, headers=close)(scope, receive, send)


def _refusal_status(host: str | None, origin: str | None) -> HTTPStatus | None:
    """Return the status for a request whose Host or Origin is not loopback; None if it is. Prevents DNS rebinding."""
    if _name(f"//{host}") not in LOOPBACK:
        return HTTPStatus.MISDIRECTED_REQUEST
    if origin is not None and _name(origin) not in LOOPBACK:
        return HTTPStatus.FORBIDDEN
    return None


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _is_authorised(header: str | None, token: str) -> bool:
    scheme, _, given = (header or "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


_Streams = tuple[Any, Any]


@asynccontextmanager
async def _streams(connection: ServerConnection) -> AsyncGenerator[_Streams, None]:
    """Yield the message streams from and to one WebSocket client, in the form of the library's server."""
    came, inbox = anyio.create_memory_object_stream[Item](0)
    outbox, go = anyio.create_memory_object_stream[SessionMessage](0)
    async with came, inbox, outbox, go, anyio.create_task_group() as group:
        group.start_soon(_read, connection, came.send, came.aclose)
        group.start_soon(_write, connection, go)
        yield inbox, outbox
        group.cancel_scope.cancel()


async def _read(
    connection: ServerConnection, send: Callable[[Item], Awaitable[None]], close: Callable[[], Awaitable[None]]
) -> None:
    """Forward messages until the client disconnects."""
    try:
        async for data in connection:
            await send(message_in(data))
    except (ConnectionClosed, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass
    finally:
        await close()


async def _write(connection: ServerConnection, go: Any) -> None:
    try:
        async for item in go:
            await connection.send(item.message.model_dump_json(by_alias=True, exclude_unset=True))
    except ConnectionClosed:  # reading says so, too
        pass


# Bounds HTTP connections that never send a whole request head, so that they keep nobody else out.


class PatientProtocol(H11Protocol):
    """One HTTP connection, which is closed unless a request's head is complete within 5 s. Beyond 32 connections
    without one, the oldest is closed.
    """

    unfinished: dict[PatientProtocol, asyncio.TimerHandle]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin the time limit for the first head, and close the oldest connection that has none if there are too many.
        Called by the event loop.
        """
        super().connection_made(transport)
        self.connections.discard(self)  # only those that asked for something count for the limit
        while len(self.unfinished) >= MAX_UNFINISHED:
            next(iter(self.unfinished))._give_up()
        self.unfinished[self] = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Parse more of the request; a complete head ends the time limit. Called by the event loop."""
        super().data_received(data)
        if self.cycle is not None:
            self._finish_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection as unfinished; called by the event loop."""
        self._finish_head()
        super().connection_lost(exc)

    def _finish_head(self) -> None:
        if (timer := self.unfinished.pop(self, None)) is not None:
            timer.cancel()
            self.connections.add(self)

    def _give_up(self) -> None:
        if (timer := self.unfinished.pop(self, None)) is not None:
            timer.cancel()
        self.transport.abort()


def patient_protocol() -> type[Any]:
    """Return a new protocol class for one server, with its own list of unfinished connections."""
    return type("Patient", (PatientProtocol,), {"unfinished": {}})
