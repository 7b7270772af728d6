"""A JSON-RPC connection to a language server in a child process: requests both ways, notifications, and shutdown.

Not here: what the messages mean (`terminal/client.py`, `acp_agent/open_session.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from codeagent_lsp.language_servers.json_rpc import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    REQUEST_CANCELLED,
    Identity,
    JsonRpcPeer,
    Refused,
    framed,
)
from codeagent_lsp.system import OWN_GROUP
from codeagent_lsp.workspace.process_group import reap

MAX_MESSAGE = 256 * 1024 * 1024
LEAVE_SECONDS = 2.0

RequestHandler = Callable[[Any], Awaitable[Any]]
NotificationHandler = Callable[[Any], None]
LINES = 20
CHUNK = 65_536  # bytes that are read at once, and of an unfinished line kept
LINE = 500


class ConnectionLost(Exception):
    """Raised if the server has ended or does not answer; the message has the last line of its log."""


class Connection:
    """A JSON-RPC connection to one server process, from `start` to `close`. `requests` and `notifications` map methods
    to handlers and are set before `start`; `lost` is set when the server has ended, `log` has its last lines.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self.requests: dict[str, RequestHandler] = {}
        self.notifications: dict[str, NotificationHandler] = {}
        self._command = command
        self._environ = dict(environ)
        self._process: asyncio.subprocess.Process | None = None
        self._peer = JsonRpcPeer(self._write, self._begin_answer, self._notified)
        self._answering: dict[Identity, asyncio.Task[None]] = {}
        self._readers: list[asyncio.Task[None]] = []
        self.log = ServerLog()
        self.lost: asyncio.Event = asyncio.Event()

    async def start(self) -> None:
        """Start the server in a session of its own, without the terminal's signals. OSError if it cannot be started."""
        process = self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environ,
            **OWN_GROUP,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        reading = (self._read(process.stdout), self.log.read(process.stderr))
        self._readers = [asyncio.ensure_future(work) for work in reading]

    async def request(self, method: str, params: Any = None, seconds: float = 30.0) -> Any:
        """Send a request and return the result as plain JSON. Refused if the server answers with an error,
        ConnectionLost if it has ended or there is no answer within `seconds`.
        """
        if self.lost.is_set():
            raise ConnectionLost(self.log.last_line)
        with self._peer.request(method, params) as asked:
            try:
                async with asyncio.timeout(seconds):
                    return await asked.answer
            except TimeoutError as error:
                raise ConnectionLost(f"no answer to {method} within {seconds:g} s") from error

    def notify(self, method: str, params: Any = None) -> None:
        """Queue a notification with parameters in plain JSON and return at once; ignored if the server has ended."""
        self._peer.notify(method, params)

    async def close(self, seconds: float = LEAVE_SECONDS) -> None:
        """Send `shutdown` and `exit`, wait at most `seconds` for each, then kill the process group. Never raises;
        requests that wait raise ConnectionLost.
        """
        process = self._process
        if process is None:
            return
        with contextlib.suppress(Refused, ConnectionLost):
            if not self.lost.is_set():
                await self.request("shutdown", seconds=seconds)
        self.notify("exit")
        try:
            async with asyncio.timeout(seconds):
                await process.wait()
        except TimeoutError:
            pass  # killed below
        finally:
            await self._end(process)

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        tasks = [*self._readers, *self._answering.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if process.stdin is not None:
            process.stdin.close()
        await reap(process)

    def _write(self, body: bytes) -> None:
        process = self._process
        if process is not None and process.stdin is not None and not self.lost.is_set():
            process.stdin.write(framed(body))

    async def _read(self, stream: asyncio.StreamReader) -> None:
        try:
            async for message in _messages(stream):
                self._peer.take(message)
            await asyncio.wait(self._readers[1:], timeout=0.2)  # the log says why it ended
        finally:
            self._lose()

    def _lose(self) -> None:
        """Fail all waiting requests with the end of the log."""
        self.lost.set()
        self._peer.fail(ConnectionLost(self.log.last_line))

    def _notified(self, method: str, params: Any) -> None:
        if method == "$/cancelRequest":
            answering = self._answering.get(params["id"])
            if answering is not None:
                answering.cancel()
        elif method in self.notifications:
            self.notifications[method](params)

    def _begin_answer(self, identity: Identity, method: str, params: Any) -> None:
        task = asyncio.ensure_future(self._answer(identity, method, params))
        self._answering[identity] = task
        task.add_done_callback(lambda _: self._finish_answer(identity, task))

    async def _answer(self, identity: Identity, method: str, params: Any) -> None:
        handler = self.requests.get(method)
        if handler is None:
            self._peer.refuse(identity, METHOD_NOT_FOUND, method)
            return
        try:
            self._peer.reply(identity, await handler(params))
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._peer.refuse(identity, INTERNAL_ERROR, str(error))

    def _finish_answer(self, identity: Identity, task: asyncio.Task[None]) -> None:
        """Remove a finished request; answer one that was cancelled before its handler began."""
        self._answering.pop(identity, None)
        if task.cancelled():
            self._peer.refuse(identity, REQUEST_CANCELLED, "cancelled")


def server_command() -> list[str]:
    """Return the words of the command that starts our server in this interpreter, to speak LSP on standard input and
    output; `-P` prevents imports from the current folder.
    """
    return [sys.executable, "-P", "-m", "codeagent_lsp.cli", "serve"]


async def _messages(stream: asyncio.StreamReader) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the messages of a stream until it ends, or has something that no server sends."""
    try:
        while True:
            head = await stream.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.split(b"\r\n") if line[:15].lower() == b"content-length:")
            if length > MAX_MESSAGE:
                break
            yield json.loads(await stream.readexactly(length))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, StopIteration, ValueError, OSError):
        pass  # the end of the stream, or nothing that a server sends


# The end of the log that a language server writes to its standard error. Not here: its messages (`connection.py`).


class ServerLog:
    """The last 20 lines of one server's log, each cut to 500 characters."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LINES)
        self._unended = b""

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Read a log until its end and keep its last lines; of a line without an end, only the last 65,536 bytes."""
        while chunk := await stream.read(CHUNK):
            *lines, unended = (self._unended + chunk).split(b"\n")
            self._unended = unended[-CHUNK:]
            self._lines.extend(map(_shown, lines[-LINES:]))

    @property
    def last_line(self) -> str:
        """The last line that is not blank; '' for none."""
        lines = (_shown(self._unended), *reversed(self._lines))
        return next((line for line in lines if line.strip()), "")


def _shown(line: bytes) -> str:
    return line.decode("utf-8", "replace")[:LINE]
