"""The life cycle of a connection: its channel of bytes and the thread that reads messages from it, its phases, the
standard streams, and the end of the process with its exit code.

0: `exit` after `shutdown`, or the end of input after it. 1: the same without `shutdown`, or the client's process is
gone. 3: no message in what the client sent, or it stopped reading. 128 + n: signal n. Even when threads are busy, the
process ends within `LEAVE_SECONDS`.

The reader has a thread of its own, so that blocking tools cannot keep it from reading. Messages are passed to the event
loop a bounded number at a time. Not here: writing (`outgoing.py`), dispatch (`protocol_guard.py`), when the phase
changes (`../server.py`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from types import FrameType
from typing import Any, NoReturn

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from codeagent_lsp.server.documents import Documents
from codeagent_lsp.server.wire.framing import INVALID_REQUEST, PARSE_ERROR, Damage, Framer, Malformed, Message, read
from codeagent_lsp.system import is_alive, unread_bytes

LEAVE_SECONDS = 1.9
CLOSE_SECONDS = 1.5
PARENT_POLL_SECONDS = 2.0

Callback = Callable[[], Awaitable[None]]

_log = logging.getLogger(__name__)

NOT_INITIALIZED = -32002
ExecuteCommand = Callable[[str, list[Any]], Awaitable[Any]]
"""A function that runs a command by its name with its arguments and returns the answer."""
MAX_AHEAD = 256  # messages read but not yet handled
MAX_SKIPPED = 256 * 1024 * 1024  # bytes without a header after which the connection is closed
_CHUNK = 64 * 1024


class Departure:
    """The request to end the process, with code and reason; only the first one counts. Safe from threads and
    signals.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        self.reason = ""
        self._lock = threading.RLock()  # a signal may arrive while `begin` runs
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begun = asyncio.Event()

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the loop that is woken when leaving begins, at once if it has begun; from then on the process ends within
        1.9 s.
        """
        with self._lock:
            self._loop = loop
            if self.code is not None:
                self._announce(loop, self.code)

    def begin(self, code: int, reason: str) -> None:
        """Request the end of the process with this exit code, and return at once; later calls are ignored."""
        with self._lock:
            if self.code is not None:
                return
            self.code, self.reason = code, reason
            if self._loop is not None:
                self._announce(self._loop, code)

    async def wait(self) -> int:
        """Wait until leaving begins and return the exit code; after `bind`, in its loop. Cancellable."""
        await self._begun.wait()
        _log.info("Leaving: %s.", self.reason)
        return self.code or 0

    def _announce(self, loop: asyncio.AbstractEventLoop, code: int) -> None:
        # On a thread, as it may be the loop that hangs, and `os._exit`, as no busy thread can delay that.
        timer = threading.Timer(LEAVE_SECONDS, os._exit, (code,))
        timer.daemon = True
        timer.start()
        try:
            loop.call_soon_threadsafe(self._begun.set)
        except RuntimeError:  # the loop is closed, nothing is left to do
            os._exit(code)


def take_stdio() -> Channel:
    """Return the client's channel, moved off the standard streams.

    Afterwards stdin is empty and stdout is stderr, for this process and its children: no stray print and no child can
    disturb the protocol.
    """
    read_fd, write_fd = os.dup(0), os.dup(1)
    for fd in (read_fd, write_fd):
        # Inherited descriptors may be non-blocking, where a read without data raises BlockingIOError.
        if sys.platform != "win32":
            os.set_blocking(fd, True)
    guard_stdio()
    return pipe_channel(read_fd, write_fd)


def guard_stdio() -> None:
    """Give this process and its children an empty stdin, and stderr as stdout; without a stderr nothing is printed."""
    # What was printed so far still goes where it was meant to go.
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(null, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # started without stderr
            os.dup2(null, 1)
    finally:
        os.close(null)


def leave_on_signals(leave: Callable[[int, str], None]) -> None:
    """Install handlers for SIGTERM and SIGINT that call `leave(128 + number, reason)` in the main thread, where it has
    to be called.
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        leave(128 + number, signal.Signals(number).name)

    # Not `loop.add_signal_handler`, whose handlers wait until the loop is free.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


async def watch_parent(pid: int | None, leave: Callable[[int, str], None], code: Callable[[], int]) -> None:
    """Wait until the client's process has ended, looking every 2 s, then call `leave(code(), reason)`; returns at once
    for a process that cannot be seen from here.
    """
    if pid is None or pid <= 0 or not is_alive(pid):
        return
    while is_alive(pid):  # noqa: ASYNC110 (there is no event for the end of a process that is no child)
        await asyncio.sleep(PARENT_POLL_SECONDS)
    leave(code(), "the process of the client is gone")


async def run_callbacks(callbacks: Iterable[Callback], seconds: float = CLOSE_SECONDS) -> None:
    """Run the callbacks concurrently, for `seconds` at most, then cancel those that are late; failures are logged, not
    raised.
    """
    tasks = [asyncio.ensure_future(_guard(callback)) for callback in callbacks]
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            _log.warning("%d closing steps were not done in time.", len(late))


def end_process(code: int) -> NoReturn:
    """End the process at once with this exit code, without waiting for any thread; standard streams are flushed."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # the reader of the stream is gone
    os._exit(code)


async def _guard(callback: Callback) -> None:
    try:
        await callback()
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 (the others shall still run)
        _log.error("A closing or starting step failed: %s.", type(error).__name__)


class Phase(Enum):
    """The state of a connection: before, during and after `initialize`, and after `shutdown`."""

    FRESH = auto()
    STARTING = auto()
    READY = auto()
    SHUT = auto()

    def refusal(self, method: str) -> tuple[int, str] | None:
        """Return (code, reason), the JSON-RPC error code and a clause in English, if a request of this method is
        refused in this phase; None if it is not (LSP, life cycle messages).
        """
        if self is Phase.SHUT:
            return INVALID_REQUEST, "the server is shutting down"
        if method == types.INITIALIZE:
            return None if self is Phase.FRESH else (INVALID_REQUEST, "the server is initialized already")
        return None if self is Phase.READY else (NOT_INITIALIZED, "the server is not initialized yet")

    @property
    def exit_code(self) -> int:
        """The exit code of a process that ends in this phase: 0 after `shutdown`, else 1."""
        return 0 if self is Phase.SHUT else 1


class Served(LanguageServer):
    """Base of the server as its protocol uses it: `documents` are the open documents, `language` is that of
    messages.
    """

    documents: Documents
    language: str
    execute_command: ExecuteCommand

    @abstractmethod
    def started(self, process_id: int | None) -> None:
        """Start what follows a successful `initialize`; `process_id` is the client's, None when it gave none."""

    @abstractmethod
    def leave(self, code: int, reason: str) -> None:
        """Request the end of the process with this exit code, and return at once; `reason` is logged."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A byte stream to and from the client: `read` returns b"" at its end, `write` blocks until all is written.
    `unread` returns how many bytes of that the client has not read yet, None if that is not known; always 0 of a
    socket, whose other end says only what has arrived.
    """

    read: Callable[[], bytes]
    write: Callable[[bytes], None]
    unread: Callable[[], int | None] = lambda: 0


def pipe_channel(read_fd: int, write_fd: int) -> Channel:
    """Return a channel that reads from and writes to two file descriptors, `read_fd` and `write_fd`, which stay open;
    both calls block.
    """

    def write(data: bytes) -> None:
        view = memoryview(data)
        # A pipe may take only a part.
        while view:
            view = view[os.write(write_fd, view) :]

    return Channel(lambda: os.read(read_fd, _CHUNK), write, lambda: unread_bytes(write_fd))


def socket_channel(connection: socket.socket) -> Channel:
    """Return a channel that reads from and writes to a connected socket, which stays the caller's to close."""
    return Channel(lambda: connection.recv(_CHUNK), connection.sendall)


class Reader:
    """Reads messages on its own thread and calls `deliver` with each, in order, on the loop given to `start`. `ended`
    is called at most once, on that thread, with the reason and an exit code: 1 if the stream ends, 3 after more than
    256 MiB without a message header.
    """

    def __init__(self, channel: Channel, deliver: Callable[[Message], None], ended: Callable[[str, int], None]) -> None:
        self._channel = channel
        self._deliver = deliver
        self._ended = ended
        self._framer = Framer()
        self._ahead = threading.BoundedSemaphore(MAX_AHEAD)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start reading in a daemon thread, which hands messages to `loop`; call it once. The thread ends with the
        stream or with the process.
        """
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
