"""The connection to one language server as a guarded process, bounded in every direction.

Not here: requests and answers (`json_rpc.py`), what the messages mean (`language_server.py`), how the process is kept
from the disk (`Launch`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.language_servers.json_rpc import METHOD_NOT_FOUND, Identity, JsonRpcPeer, Refused, framed
from codeagent_lsp.shadow.process import Guarded, run_to_end
from codeagent_lsp.shadow.shell import Launch, ProcessLimits

MAX_MESSAGE = 32 << 20
MAX_UNSENT = 32 << 20
FLOOD_BYTES = 128 << 20
FLOOD_SECONDS = 10.0
GRACE_SECONDS = 1.0

_MAX_LINES = 1000  # before a message: some servers greet
_LEAST = 4096  # what a message counts at least: a flood may be one of small ones
_LARGE = 1 << 16  # what is read beside the event loop
_LAST_WORDS = 2000

logger = logging.getLogger(__name__)

Handler = Callable[[Any], Any]


class ServerFailed(ToolFailed):
    """Raised if a language server has ended, does not answer in time, or answers with an error; the message, in
    English, names the server.
    """


class ServerLate(ServerFailed):
    """Raised if a language server does not answer in time; it may still answer the next request."""


class ServerGone(ServerFailed):
    """Raised if a language server has ended or was ended because it misbehaved; it will not answer again."""


class ServerConnection:
    """The connection to one server process, from `start` to `close`. `lost` is set when it has ended, and `problem`
    then says why, in English.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.lost = asyncio.Event()
        self.problem = ""
        self._guarded = Guarded()
        self._peer = JsonRpcPeer(self._write, self._requested, self._notified)
        self._handlers: Mapping[str, Handler] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._last_words = b""

    def handle(self, handlers: Mapping[str, Handler]) -> None:
        """Set the functions that answer the server's requests and take its notifications, by method, with plain JSON;
        to be called before `start`.
        """
        self._handlers = handlers

    async def start(self, launch: Launch, limits: ProcessLimits) -> None:
        """Start the process and read what it writes. ToolFailed if that is impossible; `close` must be called, however
        this ends.
        """
        # Cancelled halfway, a process would run that nobody knows of.
        await run_to_end(self._guarded.start(launch, limits, apart=True, talk=True))
        streams, flood = dict(self._guarded.streams), _Flood()
        self._tasks = [
            asyncio.create_task(self._read(_Reader(streams["stdout"], flood))),
            asyncio.create_task(self._keep_last_words(streams["stderr"], flood)),
        ]

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        """Send a request and return the result as plain JSON. ServerLate if there is no answer within `seconds`,
        ServerGone if the server has ended, ServerFailed if it refuses.
        """
        self._check()
        try:
            with self._peer.request(method, params) as asked:
                try:
                    async with asyncio.timeout(seconds):
                        return await asked.answer
                except (TimeoutError, asyncio.CancelledError):
                    self._cancel(asked.identity)
                    raise
        except TimeoutError:
            raise ServerLate(f"{self.name} did not answer {method} within {seconds:g} s.") from None
        except Refused as error:
            raise ServerFailed(f"{self.name}: {str(error)[:300]}") from error

    def notify(self, method: str, params: Any) -> None:
        """Queue a notification with parameters in plain JSON and return at once. ServerGone if the server has ended, or
        reads too slowly for what waits.
        """
        self._check()
        self._peer.notify(method, params)
        self._check()

    async def close(self) -> None:
        """Ask the process to end, kill it after 1 s, and wait for its end, also when cancelled."""
        try:
            await run_to_end(self._leave())
        finally:
            self._lose("it was stopped")
            await run_to_end(self._guarded.close())
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def end(self, reason: str) -> None:
        """Kill a server that misbehaves, with all its processes; `problem` is `reason`, an English clause. Returns at
        once.
        """
        self._lose(reason)
        self._guarded.stop()

    async def _leave(self) -> None:
        if self.lost.is_set() or not self._tasks:
            return
        try:
            await self.request("shutdown", None, GRACE_SECONDS)
            self.notify("exit", None)
            async with asyncio.timeout(GRACE_SECONDS):
                await self.lost.wait()
        except (ServerFailed, TimeoutError):
            pass  # it is killed

    async def _read(self, reader: _Reader) -> None:
        """Take its messages until its output ends or is more than a server ever writes."""
        try:
            while (body := await reader.message()) is not None:
                try:
                    message = _parse(body) if len(body) < _LARGE else await asyncio.to_thread(_parse, body)
                    self._peer.take(message)
                except Exception as error:  # noqa: BLE001 (what a handler cannot take must not end the reading)
                    logger.info("%s: %s", self.name, type(error).__name__)
            await asyncio.sleep(0.05)  # for what it says about its end
            said = self._last_words.decode("utf-8", "replace").strip().rpartition("\n")[2]
            self._lose(said[:300] or "it has ended")
        except _TooMuchError as error:
            self.end(str(error))
        except (OSError, ValueError, asyncio.IncompleteReadError):
            self.end("it broke off in the middle of a message")

    async def _keep_last_words(self, reader: asyncio.StreamReader, flood: _Flood) -> None:
        try:
            while data := await reader.read(1 << 16):
                flood.add(len(data))
                self._last_words = (self._last_words + data)[-_LAST_WORDS:]
        except _TooMuchError as error:
            self.end(str(error))

    def _check(self) -> None:
        if self.lost.is_set():
            raise ServerGone(f"{self.name} is not running: {self.problem}.")

    def _lose(self, problem: str) -> None:
        if self.lost.is_set():
            return
        self.problem = problem
        self.lost.set()
        # Or those that wait would wait for their whole time.
        self._peer.fail(Refused(f"it is not running: {problem}"))

    def _cancel(self, identity: Identity) -> None:
        """Tell the server that an answer is not wanted any more."""
        if not self.lost.is_set():
            try:
                self.notify("$/cancelRequest", {"id": identity})
            except ServerFailed:
                pass

    def _write(self, body: bytes) -> None:
        """Send a message without waiting; end a server that does not read."""
        stream = self._guarded.stdin
        assert stream is not None
        if stream.transport.get_write_buffer_size() > MAX_UNSENT:
            self.end("it does not read what it is sent")
        elif not stream.is_closing():
            stream.write(framed(body))

    def _requested(self, identity: Identity, method: str, params: Any) -> None:
        handler = self._handlers.get(method)
        if handler is None:
            self._peer.refuse(identity, METHOD_NOT_FOUND, "not supported")
        else:
            self._peer.reply(identity, handler(params))

    def _notified(self, method: str, params: Any) -> None:
        if handler := self._handlers.get(method):
            handler(params)


class _TooMuchError(Exception):
    """Raised for more data than a server may send."""


class _Flood:
    """How much a server has sent lately."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._came = 0

    def add(self, size: int) -> None:
        """Count what came. _TooMuchError if that is a flood."""
        now = time.monotonic()
        if now - self._since > FLOOD_SECONDS:
            self._since, self._came = now, 0
        self._came += size
        if self._came > FLOOD_BYTES:
            raise _TooMuchError(f"it sent more than {FLOOD_BYTES >> 20} MiB within {FLOOD_SECONDS:g} s")


class _Reader:
    """The messages in the output of a server, with limits on one and on a flood of them."""

    def __init__(self, stream: asyncio.StreamReader, flood: _Flood) -> None:
        self._stream = stream
        self._flood = flood

    async def message(self) -> bytes | None:
        """Return the next message, None at the end. ValueError, IncompleteReadError and _TooMuchError."""
        size = 0
        for _ in range(_MAX_LINES):
            line = await self._stream.readline()  # ValueError beyond the stream's own limit
            name, _, value = line.partition(b":")
            if not line:
                return None
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                size = int(value)
            elif size and not line.strip():
                return await self._body(size)
        raise _TooMuchError("it writes something else than the protocol")

    async def _body(self, size: int) -> bytes:
        if size > MAX_MESSAGE:
            raise _TooMuchError(f"it sent a message of {size >> 20} MiB")
        self._flood.add(max(size, _LEAST))
        await asyncio.sleep(0)  # a server that is always writing must not keep others waiting
        return await self._stream.readexactly(size)


def _parse(body: bytes) -> Any:
    """Return a message as JSON. The hook lets other threads run meanwhile."""
    return json.loads(body, object_hook=_same)


def _same(found: dict[str, Any]) -> dict[str, Any]:
    return found
