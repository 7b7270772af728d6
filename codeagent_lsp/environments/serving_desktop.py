"""A relay between the page's WebSocket and an X server's socket; bytes pass unchanged.

Runs in the serving program only. Not here: who is let in (`serving_guard.py`), what a desktop is made of
(`serving_screen.py`).
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable
from typing import Any

from tornado.websocket import WebSocketClosedError, WebSocketHandler

from codeagent_lsp.environments.serving_guard import MAX_CLIENTS, Guarded

STARTING_SECONDS = 60.0
_CHUNK = 1 << 16
_LAST_WORDS = 2000


class Relay(Guarded, WebSocketHandler):
    """The connection of one browser to the X server. `path` is the socket; `clients` are all browsers."""

    def initialize(self, path: str, clients: set[Relay]) -> None:
        """Set the state before the connection."""
        self._path, self._clients = path, clients
        self._writer: StreamWriter | None = None
        self._pumping: asyncio.Task[None] | None = None

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        """Accept the subprotocol of older versions of noVNC."""
        return "binary" if "binary" in subprotocols else None

    async def open(self, *args: str, **kwargs: str) -> None:
        """Connect to the X server, unless MAX_CLIENTS are connected."""
        if len(self._clients) >= MAX_CLIENTS:
            # 1013: try again later.
            self.close(1013)
            return
        self._clients.add(self)
        self.set_nodelay(True)
        try:
            reader, self._writer = await connected(self._path)
        except OSError:
            self.close(1011)
            return
        self._pumping = asyncio.ensure_future(self._pump(reader))

    async def on_message(self, message: str | bytes) -> None:
        """Forward a message from the browser, with backpressure."""
        if self._writer is not None and isinstance(message, bytes):
            try:
                self._writer.write(message)
                await self._writer.drain()
            except OSError:
                self.close()

    def on_close(self) -> None:
        """Clean up after the browser has disconnected."""
        self._clients.discard(self)
        if self._pumping is not None:
            self._pumping.cancel()
        if self._writer is not None:
            self._writer.close()

    async def _pump(self, reader: StreamReader) -> None:
        try:
            while data := await reader.read(_CHUNK):
                await self.write_message(data, binary=True)
        except (OSError, WebSocketClosedError):
            pass
        self.close()


async def connected(path: str) -> tuple[StreamReader, StreamWriter]:
    """Return a connection to the Unix socket at `path` without following links. OSError if there is none."""
    if sys.platform != "linux":
        raise ConnectionRefusedError("no desktop on this system")
    else:  # noqa: RET506 - or mypy finds it unreachable there
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                raise ConnectionRefusedError("no socket")
            # By the descriptor: at the path a link may stand since the look.
            return await asyncio.open_unix_connection(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)


async def made(spec: dict[str, Any], over: Callable[[], None]) -> tuple[type[Relay], dict[str, Any], int]:
    """Start the desktop and return the WebSocket handler, its settings and the process id. OSError if it does not
    answer.
    """
    path = f"{spec['folder']}/{spec['socket']}"
    process = await asyncio.create_subprocess_exec(
        *spec["argv"], cwd=spec["cwd"], env=spec["environment"], stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
    )
    words = asyncio.ensure_future(_followed(process, over))
    try:
        async with asyncio.timeout(STARTING_SECONDS):
            while not await _answers(path):
                if words.done():
                    raise OSError(f"The desktop ended at its start: {words.result()}")
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise OSError(f"The desktop did not start within {STARTING_SECONDS:g} s.") from None
    return Relay, {"path": path, "clients": set()}, process.pid


async def _answers(path: str) -> bool:
    try:
        _, writer = await connected(path)
    except OSError:
        return False
    writer.close()
    return True


async def _followed(process: Process, over: Callable[[], None]) -> str:
    """Return the end of the desktop's output once it has ended."""
    assert process.stdout is not None
    said = b""
    while data := await process.stdout.read(_CHUNK):
        said = (said + data)[-_LAST_WORDS:]
    await process.wait()
    over()
    return " ".join(said.decode(errors="replace").split())
