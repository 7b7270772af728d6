"""A WebSocket whose other side closes it while much is still to be written."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from codeagent_lsp.tools.mcp.transports import Socket

_PROTOCOL_KEY = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_TOO_BIG = b"\x88\x02\x03\xf1"  # a frame: closed, 1009
_MORE_THAN_IS_BUFFERED = "x" * (32 << 20)


async def test_it_closes_when_the_other_side_did(caplog: pytest.LogCaptureFixture) -> None:
    heard = asyncio.Event()
    async with _refusing(heard) as url:
        socket = await connect(url, create_connection=Socket, compression=None, close_timeout=20)
        sending = asyncio.ensure_future(socket.send(_MORE_THAN_IS_BUFFERED))
        while socket.state is State.OPEN:  # noqa: ASYNC110 - the library has no event for it
            await asyncio.sleep(0.01)
        heard.set()
        await asyncio.wait_for(socket.wait_closed(), 20)
        (said,) = await asyncio.gather(sending, return_exceptions=True)
        assert said is None or isinstance(said, ConnectionClosed)
        with pytest.raises(ConnectionClosed):
            await socket.send("more")
        await socket.close()
    assert not caplog.records


@asynccontextmanager
async def _refusing(heard: asyncio.Event) -> AsyncGenerator[str, None]:
    """A server that says goodbye before it reads what was sent, and reads it once that was `heard`."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        writer.write(_upgraded(head))
        await reader.readexactly(1)  # a large message is on its way
        writer.write(_TOO_BIG)
        writer.write_eof()
        await heard.wait()  # there is still much to be written there
        while await reader.read(1 << 20):
            pass
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def _upgraded(head: str) -> bytes:
    key = next(line.partition(": ")[2] for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key"))
    accepted = base64.b64encode(hashlib.sha1((key + _PROTOCOL_KEY).encode()).digest()).decode()
    upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    return f"{upgrade}Sec-WebSocket-Accept: {accepted}\r\n\r\n".encode()
