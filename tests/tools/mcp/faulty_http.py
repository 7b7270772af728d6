"""A server over HTTP that answers every request with the same bytes, whatever was asked: for what no library sends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Answer = Callable[[dict[str, Any]], AsyncIterator[bytes]]


@dataclass
class Requests:
    """What came: the head of each request as text, and the methods in their bodies."""

    url: str = ""
    heads: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)


@asynccontextmanager
async def answering(answer: Answer) -> AsyncGenerator[Requests, None]:
    """Serve on a free port of loopback; `answer` gives the pieces of a whole HTTP response for a JSON message."""
    seen = Requests()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            size = next((int(line.split(":")[1]) for line in head.splitlines() if "content-length" in line.lower()), 0)
            message = json.loads(await reader.readexactly(size) or b"{}")
            seen.heads.append(head)
            seen.methods.append(str(message.get("method", head.split()[0])))
            async for piece in answer(message):
                writer.write(piece)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        seen.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        yield seen


def response(status: str, body: bytes = b"", *headers: str) -> bytes:
    """A whole response."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def result(message: dict[str, Any], value: dict[str, Any]) -> bytes:
    """A good answer."""
    body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": value}).encode()
    return response("200 OK", body, "Content-Type: application/json")


async def older_era(message: dict[str, Any]) -> AsyncIterator[bytes]:
    """A well-behaved server of the older era with one tool."""
    method = message.get("method")
    if method == "initialize":
        told = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "x", "version": "1"}}
        yield result(message, {**told, "capabilities": {"tools": {}}})
    elif method == "tools/list":
        yield result(message, {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        yield result(message, {"content": [{"type": "text", "text": "done"}]})
    elif method == "server/discover":
        error = {"code": -32601, "message": "Method not found"}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
        yield response("200 OK", body, "Content-Type: application/json")
    elif method is None:
        yield response("405 Method Not Allowed")
    else:
        yield response("202 Accepted")


def in_calls(answer: Answer) -> Answer:
    """Well-behaved but when a tool is called."""

    async def pieces(message: dict[str, Any]) -> AsyncIterator[bytes]:
        chosen = answer if message.get("method") == "tools/call" else older_era
        async for piece in chosen(message):
            yield piece

    return pieces


def always(*pieces: bytes) -> Answer:
    """The same for everything."""

    async def given(message: dict[str, Any]) -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return given
