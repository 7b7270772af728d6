"""A model server on loopback that keeps its connections, as real ones do, and counts them; in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

Reply = Callable[[int, dict[str, Any]], list[dict[str, Any]]]
"""Returns the chunks of the reply to a request, from its number and its body."""


@dataclass
class Kept:
    """What the server saw: connections, requests, and seconds from the end of each reply to the next request."""

    url: str = ""
    connections: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    ended: float = 0.0


@contextmanager
def keeping_server(reply: Reply, tls: ssl.SSLContext | None = None, *, linger: float = 0.0) -> Iterator[Kept]:
    """The server, while it runs; with `linger` it ends each response only so many seconds after `[DONE]`."""
    kept, ready, stop = Kept(), threading.Event(), threading.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kept.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                await _answer(kept, reply, reader, writer, linger)
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
        host = "localhost" if tls else "127.0.0.1"
        kept.url = f"{'https' if tls else 'http'}://{host}:{server.sockets[0].getsockname()[1]}/v1"
        ready.set()
        await asyncio.to_thread(stop.wait)
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    ready.wait(10)
    try:
        yield kept
    finally:
        stop.set()
        thread.join()


async def _answer(
    kept: Kept, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, linger: float
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    if kept.ended and head.startswith("post"):
        kept.waits.append(time.perf_counter() - kept.ended)
    length = next((int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length")), 0)
    body = json.loads(await reader.readexactly(length) or b"{}")
    if head.startswith("get"):
        listed = json.dumps({"object": "list", "data": [{"id": "m", "max_model_len": 200_000}]}).encode()
        found = b"/models" in head.split("\r\n")[0].encode() and b"/v0/" not in head.encode()
        status, data = (b"200 OK", listed) if found else (b"404 Not Found", b"{}")
        writer.write(
            b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(data))
        )
        writer.write(data)
        await writer.drain()
        return
    kept.bodies.append(body)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for chunk in [*map(json.dumps, reply(len(kept.bodies), body)), "[DONE]"]:
        data = f"data: {chunk}\n\n".encode()
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))
    await writer.drain()
    if linger:
        await asyncio.sleep(linger)
    kept.ended = time.perf_counter()
    writer.write(b"0\r\n\r\n")
    await writer.drain()
