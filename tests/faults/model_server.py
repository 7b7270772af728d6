"""A model server on loopback that misbehaves on purpose, at the level of TCP, where no mock can.

A `Script` is what it does with one connection; the server plays its scripts one after the other and repeats
the last. Not here: the tests (`tests/llm`).
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Asked:
    """One request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Connection:
    """One accepted connection, its request read already."""

    asked: Asked
    writer: asyncio.StreamWriter

    async def send(self, data: bytes, *, size: int = 0, pause: float = 0.0) -> None:
        """Sends `data`, in pieces of `size` bytes with a pause between, when a size is given."""
        pieces = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(pause)

    def reset(self) -> None:
        """Ends the connection with RST."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Script = Callable[[Connection], Awaitable[None]]


@dataclass
class ModelServer:
    """What the test sees: where it listens and what it was asked."""

    port: int
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def chats(self) -> list[Asked]:
        """The requests for a reply, without the questions for models."""
        return [asked for asked in self.asked if asked.line.startswith("POST")]


@asynccontextmanager
async def model_server(
    *scripts: Script, get: Script | None = None, trust: ssl.SSLContext | None = None
) -> AsyncGenerator[ModelServer, None]:
    """A server that plays `scripts` for POST requests, and `get` (404 by default) for GET requests; over TLS with a
    context.
    """
    running: set[asyncio.Task[None]] = set()
    queue = list(scripts)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            asked = await _read(reader)
            server.asked.append(asked)
            if asked.line.startswith("GET"):
                script = get or status(404, b"{}")
            else:
                script = queue.pop(0) if len(queue) > 1 else queue[0]
            await script(Connection(asked, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            running.discard(task)
            with suppress(ConnectionError):
                writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=trust)
    server = ModelServer(listener.sockets[0].getsockname()[1])
    try:
        yield server
    finally:
        listener.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def free_port() -> int:
    """A loopback port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def delta(content: str | None = None, finish: str | None = None, calls: Any = None, **more: Any) -> dict[str, Any]:
    """One chunk of a chat completion."""
    inner: dict[str, Any] = {**more}
    if content is not None:
        inner["content"] = content
    if calls is not None:
        inner["tool_calls"] = calls
    return {"id": "x", "model": "m", "choices": [{"index": 0, "delta": inner, "finish_reason": finish}]}


def events(*chunks: Any, done: bool = True) -> bytes:
    """Chunks as server-sent events; text is taken as it is."""
    lines = [
        f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks
    ]
    return "".join([*lines, "data: [DONE]\n\n"] if done else lines).encode()


HELLO = (delta("Hel"), delta("lo"), delta(finish="stop"))


def head(code: int = 200, content_type: str = "text/event-stream", **headers: str) -> bytes:
    """A status line and headers; the body ends with the connection unless a length is among them."""
    lines = [f"HTTP/1.1 {code} X", f"Content-Type: {content_type}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def stream(*chunks: Any, done: bool = True, size: int = 0, pause: float = 0.0) -> Script:
    """A good stream of `chunks`, HELLO by default, perhaps in small pieces."""
    return raw(head() + events(*(chunks or HELLO), done=done), size=size, pause=pause)


def raw(data: bytes, *, size: int = 0, pause: float = 0.0) -> Script:
    """Exactly these bytes, then the end of the connection."""

    async def play(connection: Connection) -> None:
        await connection.send(data, size=size, pause=pause)

    return play


def status(code: int, body: bytes | str, content_type: str = "application/json", **headers: str) -> Script:
    """An answer with a status, a body and its length."""
    data = body.encode() if isinstance(body, str) else body
    return raw(head(code, content_type, Content_Length=str(len(data)), **headers) + data)


def error(code: int, message: str, **headers: str) -> Script:
    """An error in the usual shape."""
    return status(code, json.dumps({"error": {"message": message, "type": "x", "code": None}}), **headers)


def then_reset(data: bytes) -> Script:
    """These bytes, then RST."""

    async def play(connection: Connection) -> None:
        await connection.send(data, pause=0.05)
        connection.reset()

    return play


def then_hang(data: bytes = b"", seconds: float = 30.0) -> Script:
    """These bytes, then silence on an open connection."""

    async def play(connection: Connection) -> None:
        await connection.send(data)
        await asyncio.sleep(seconds)

    return play


def endless(piece: bytes, *, first: bytes = b"") -> Script:
    """The same bytes for ever."""

    async def play(connection: Connection) -> None:
        await connection.send(first)
        while True:
            await connection.send(piece)

    return play


def by_path(**scripts: Script) -> Script:
    """Another script for each path; `/v1/models` is written `v1_models`."""

    async def play(connection: Connection) -> None:
        name = connection.asked.path.strip("/").replace("/", "_").replace("-", "_")
        await scripts.get(name, status(404, b"{}"))(connection)

    return play


def models(names: Iterable[str], **more: Any) -> Script:
    """An answer of `/v1/models`."""
    return status(200, json.dumps({"data": [{"id": name, **more} for name in names]}))


async def _read(reader: asyncio.StreamReader) -> Asked:
    block = await reader.readuntil(b"\r\n\r\n")
    line, *lines = block.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (item.partition(":") for item in lines if item)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(line, headers, body)
