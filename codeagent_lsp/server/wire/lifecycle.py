"""The life cycle of a connection: its phases, the standard streams, and the end of the process with its exit code.

0: `exit` after `shutdown`, or the end of input after it. 1: the same without `shutdown`, or the client's process is
gone. 3: no message in what the client sent, or it stopped reading. 128 + n: signal n. Even when threads are busy, the
process ends within `LEAVE_SECONDS`. Not here: the protocol, and when the phase changes (`../server.py`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum, auto
from types import FrameType
from typing import NoReturn

from lsprotocol import types

from codeagent_lsp.server.wire.channel import Channel, pipe_channel
from codeagent_lsp.server.wire.envelope import INVALID_REQUEST
from codeagent_lsp.system import is_alive

LEAVE_SECONDS = 1.9
CLOSE_SECONDS = 1.5
PARENT_POLL_SECONDS = 2.0

Callback = Callable[[], Awaitable[None]]

_log = logging.getLogger(__name__)

NOT_INITIALIZED = -32002


class Departure:
    """The request to end the process, with code and reason; the first one counts. Safe from threads and signals."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.reason = ""
        self._lock = threading.RLock()  # a signal may arrive while `begin` runs
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begun = asyncio.Event()

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the loop that is woken when leaving begins; from then on the process ends within `LEAVE_SECONDS`."""
        with self._lock:
            self._loop = loop
            if self.code is not None:
                self._announce(loop, self.code)

    def begin(self, code: int, reason: str) -> None:
        """Begin to leave with this exit code; later calls are ignored."""
        with self._lock:
            if self.code is not None:
                return
            self.code, self.reason = code, reason
            if self._loop is not None:
                self._announce(self._loop, code)

    async def wait(self) -> int:
        """Wait until leaving begins and return the exit code."""
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
    """Give this process and its children an empty stdin, and stderr as stdout."""
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
    """Install handlers for SIGTERM and SIGINT that call `leave(128 + number, reason)` in the main thread."""

    def handle(number: int, _frame: FrameType | None) -> None:
        leave(128 + number, signal.Signals(number).name)

    # Not `loop.add_signal_handler`, whose handlers wait until the loop is free.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


async def watch_parent(pid: int | None, leave: Callable[[int, str], None], code: Callable[[], int]) -> None:
    """Leave once the client's process has ended. A process that cannot be seen from here is not watched."""
    if pid is None or pid <= 0 or not is_alive(pid):
        return
    while is_alive(pid):  # noqa: ASYNC110 (there is no event for the end of a process that is no child)
        await asyncio.sleep(PARENT_POLL_SECONDS)
    leave(code(), "the process of the client is gone")


async def run_callbacks(callbacks: Iterable[Callback], seconds: float = CLOSE_SECONDS) -> None:
    """Run the callbacks concurrently, for `seconds` at most; failures are logged."""
    tasks = [asyncio.ensure_future(_guarded(callback)) for callback in callbacks]
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            _log.warning("%d closing steps were not done in time.", len(late))


def end_process(code: int) -> NoReturn:
    """End the process without waiting for any thread."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass  # the reader of the stream is gone
    os._exit(code)


async def _guarded(callback: Callback) -> None:
    try:
        await callback()
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 (the others shall still run)
        _log.error("A closing or starting step failed: %s.", type(error).__name__)


class Phase(Enum):
    """The state of a connection in its life cycle."""

    FRESH = auto()
    STARTING = auto()
    READY = auto()
    SHUT = auto()

    def refusal(self, method: str) -> tuple[int, str] | None:
        """Return the error code and reason why a request is refused in this phase, or None."""
        if self is Phase.SHUT:
            return INVALID_REQUEST, "the server is shutting down"
        if method == types.INITIALIZE:
            return None if self is Phase.FRESH else (INVALID_REQUEST, "the server is initialized already")
        return None if self is Phase.READY else (NOT_INITIALIZED, "the server is not initialized yet")

    @property
    def exit_code(self) -> int:
        """Return the exit code of a process that ends in this phase: 0 after `shutdown`, else 1."""
        return 0 if self is Phase.SHUT else 1
