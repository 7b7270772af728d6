"""A transport over WebSocket, one JSON message in each text frame, which the library lacks.

Redirects are not followed, as headers may hold secrets. Not here: the messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.typing import Subprotocol

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.errors import SettingError
from codeagent_lsp.network import DEFAULTS, refusal, way_to
from codeagent_lsp.tools.mcp.health import MAX_MESSAGE, Health, Unreadable
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.mcp.stdio import OUTBOX, Item, Streams

_TOO_BIG = 1009
_CLOSING_SECONDS = 1.0


class _Ended(asyncio.Transport):
    """A replacement for a transport that has ended."""

    def abort(self) -> None:
        """Do nothing; asyncio's own method fails here if it ended with much data unwritten."""


class Socket(ClientConnection):
    """A connection that can be written to and closed after the peer closed it; it then raises only ConnectionClosed."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection (called once by asyncio)."""
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
    """Open the connection and yield its message streams. OSError or a WebSocket error if it cannot be reached."""
    came, inbox = anyio.create_memory_object_stream[Item](0)
    outbox, go = anyio.create_memory_object_stream[SessionMessage](OUTBOX)
    opened = _opened(settings, health, network)
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


async def _opened(settings: ServerSettings, health: Health, network: NetworkSettings) -> ClientConnection:
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
