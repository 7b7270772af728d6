"""Connections that never finish a request head keep nobody out."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest
from mcp.server.lowlevel import Server

from codeagent_lsp.mcp_server import transports
from codeagent_lsp.mcp_server.transports import listening, over_http


async def answer(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(5):
        found = await reader.readline()
    writer.close()
    return found


async def half_open(port: int, count: int) -> list[asyncio.StreamReader]:
    readers = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        readers.append(reader)
        reader._writer = writer  # type: ignore[attr-defined] # else it is collected and closed
    return readers


@pytest.mark.slow
async def test_half_open_connections_do_not_block_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "HEAD_SECONDS", 0.5)
    opened: socket.socket = listening("127.0.0.1", 0)
    port = opened.getsockname()[1]
    serving = asyncio.create_task(over_http(Server("s"), opened, "token"))
    try:
        readers = await half_open(port, 60)
        assert await answer(port) == b"HTTP/1.1 401 Unauthorized\r\n"
        for reader in readers:  # the oldest give way at once, the others in time
            async with asyncio.timeout(5):
                with suppress(ConnectionError):
                    assert await reader.read() == b""
        assert await answer(port) == b"HTTP/1.1 401 Unauthorized\r\n"
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
