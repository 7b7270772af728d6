"""The stdio transport (MCP) of the server: one message per line of bounded length.

Reading and writing block in daemon threads: the server can end while its client neither writes nor reads. Not here:
what is said (`serving.py`).
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from codeagent_lsp.tools.mcp.stdio import Lines, TooLong, Unreadable

MAX_MESSAGE = 4 << 20
_CHUNK = 1 << 16

Item = SessionMessage | Exception
Send = Callable[[Item], Any]


@asynccontextmanager
async def stdio_streams(read_fd: int, write_fd: int) -> AsyncGenerator[tuple[Any, Any], None]:
    """Yield the streams of messages from and to the peer at these descriptors, in the form of the library's server,
    with two daemon threads that read and write. A message has at most 4 MiB.
    """
    came, inbox = anyio.create_memory_object_stream[Item](0)
    outbox, go = anyio.create_memory_object_stream[SessionMessage](0)
    loop = asyncio.get_running_loop()
    written: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(read_fd, loop, came), name="mcp-reader", daemon=True).start()
    threading.Thread(target=_write, args=(write_fd, loop, written), name="mcp-writer", daemon=True).start()
    async with came, inbox, outbox, go, anyio.create_task_group() as group:
        group.start_soon(_pass_on, go, written)
        yield inbox, outbox
        group.cancel_scope.cancel()


def claim_stdio() -> tuple[int, int]:
    """Return duplicates of the descriptors of standard input and output, in this order, which the caller closes. From
    now on prints go to stderr, and standard input is empty.
    """
    streams = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # What was printed before the move belongs to where it was printed.
    sys.stdout.flush()
    os.dup2(2, 1)
    return streams


def message_in(data: str | bytes) -> Item:
    """Return the message that this JSON is, or the error that the library is given in place of one that is none."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(data, by_name=False))
    except ValueError as error:
        return error


def _read(descriptor: int, loop: asyncio.AbstractEventLoop, came: Any) -> None:
    """Read messages in a thread and hand over each, waiting until it is taken."""

    def hand_over(item: Item) -> None:
        asyncio.run_coroutine_threadsafe(came.send(item), loop).result()

    lines = Lines(MAX_MESSAGE)
    with suppress(OSError, RuntimeError, Unreadable, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while data := os.read(descriptor, _CHUNK):
            for line in lines.feed(data):
                if isinstance(line, TooLong) or line.strip():
                    hand_over(_item(line))
    with suppress(RuntimeError):  # the loop has ended before
        loop.call_soon_threadsafe(came.close)


def _item(line: bytes | TooLong) -> Item:
    if isinstance(line, TooLong):
        return ValueError(f"a message of {line.size:,} bytes; at most {MAX_MESSAGE:,} are read")
    return message_in(line)


async def _pass_on(go: Any, written: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]]) -> None:
    """Pass messages to the writer, each after the previous one is written."""
    loop = asyncio.get_running_loop()
    async for item in go:
        done: asyncio.Future[None] = loop.create_future()
        written.put((item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n", done))
        await done


def _write(
    descriptor: int,
    loop: asyncio.AbstractEventLoop,
    written: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]],
) -> None:
    """Write messages in a thread; dropped once the peer does not read any more."""
    gone = False
    while True:
        data, done = written.get()
        view = memoryview(data)
        try:
            while view and not gone:
                view = view[os.write(descriptor, view) :]
        except OSError:
            # It goes on settling: `_pass_on` waits for each message.
            gone = True
        with suppress(RuntimeError):  # the loop has ended before
            loop.call_soon_threadsafe(_settle, done)


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
