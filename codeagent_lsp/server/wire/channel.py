"""The connection to the client: a channel of bytes, and the thread that reads messages from it.

The reader has a thread of its own, so that blocking tools cannot keep it from reading. Messages are passed to the event
loop a bounded number at a time. Not here: writing (`outgoing.py`), dispatch (`protocol_guard.py`).
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass

from codeagent_lsp.server.wire.envelope import PARSE_ERROR, Malformed, Message, read
from codeagent_lsp.server.wire.framing import Damage, Framer

MAX_AHEAD = 256  # messages read but not yet handled
MAX_SKIPPED = 256 * 1024 * 1024  # bytes without a header after which the connection is closed
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Channel:
    """A byte stream to and from the client: `read` returns b"" at its end, `write` blocks until all is written."""

    read: Callable[[], bytes]
    write: Callable[[bytes], None]


def pipe_channel(read_fd: int, write_fd: int) -> Channel:
    """Return a channel over two file descriptors."""

    def write(data: bytes) -> None:
        view = memoryview(data)
        # A pipe may take only a part.
        while view:
            view = view[os.write(write_fd, view) :]

    return Channel(lambda: os.read(read_fd, _CHUNK), write)


def socket_channel(connection: socket.socket) -> Channel:
    """Return a channel over a connected socket."""
    return Channel(lambda: connection.recv(_CHUNK), connection.sendall)


class Reader:
    """Reads messages on its own thread and calls `deliver` with each, in order, on the loop given to `start`. `ended`
    is called at most once, on that thread, with the reason and an exit code: 1 when the stream ends, 3 after more than
    MAX_SKIPPED bytes without a message header.
    """

    def __init__(self, channel: Channel, deliver: Callable[[Message], None], ended: Callable[[str, int], None]) -> None:
        self._channel = channel
        self._deliver = deliver
        self._ended = ended
        self._framer = Framer()
        self._ahead = threading.BoundedSemaphore(MAX_AHEAD)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start reading; the thread ends with the stream or with the process."""
        threading.Thread(target=self._run, args=(loop,), name="lsp-reader", daemon=True).start()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while chunk := self._channel.read():
                self._framer.feed(chunk)
                while (message := self._next()) is not None:
                    # Waits while the loop is behind, so that a flood slows the client down and does not fill the
                    # memory.
                    self._ahead.acquire()
                    loop.call_soon_threadsafe(self._hand_over, message)
                if self._framer.skipped > MAX_SKIPPED:
                    self._ended("no message was found in what the client sent", 3)
                    return
        except OSError:
            pass  # a connection that breaks has ended
        except RuntimeError:
            return  # the loop is closed: the process is on its way out
        self._ended("the client closed the connection", 1)

    def _next(self) -> Message | None:
        frame = self._framer.next()
        if frame is None:
            return None
        if isinstance(frame, Damage):
            return Malformed(None, PARSE_ERROR, frame.reason)
        message, tail = read(frame.data)
        self._framer.unread(tail)
        return message

    def _hand_over(self, message: Message) -> None:
        self._ahead.release()
        self._deliver(message)
