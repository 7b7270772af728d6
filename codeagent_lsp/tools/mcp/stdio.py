"""The stdio transport (MCP) to a server as a child process: one JSON message per line; and what transports have of a
server's raw output: lines of bounded length, and facts besides its messages.

The shadow's watchdog guards the process, so that its whole tree ends with ours. It sees the environment that commands
see, and what its settings add. Of a line that is too long only the ends are kept. The facts (noise, exit, stderr) are
read to explain a failure. Not here: the messages, the failures (`errors.py`).
"""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, jsonrpc_message_adapter

from codeagent_lsp.errors import ToolFailed, UserError
from codeagent_lsp.shadow.environment import scrub_environment, with_own_programs_last
from codeagent_lsp.shadow.process import Guarded, run_to_end
from codeagent_lsp.shadow.shell import Launch, ProcessLimits
from codeagent_lsp.tools.mcp.errors import TOO_LARGE
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.workspace.text.visible import one_line

GRACE_SECONDS = 1.0
OUTBOX = 64

_CHUNK = 1 << 16
SERVER_LIMITS = ProcessLimits(seconds=math.inf, look_seconds=1.0)

Item = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Item], MemoryObjectSendStream[SessionMessage]]
MAX_MESSAGE = 8 << 20
"""Most bytes of one message; larger ones are not read."""
MAX_SKIPPED = 256 << 20
"""Most bytes of an oversized message to skip before the server is given up."""
MAX_NOISE = 100
"""Number of consecutive invalid messages after which a server is given up."""

SAMPLE = 200
TAIL = 4096

_KEPT_END = 512
_ID = rb'"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,100})")'
# `{"jsonrpc": "2.0", "id": 7,` or `, "id": 7}`: further inside, an `"id"` may belong to the content.
_AT_HEAD = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_AT_TAIL = re.compile(_ID + rb'(?:\s*,\s*"jsonrpc"\s*:\s*"2\.0")?\s*\}\s*$')


def launch_of(settings: ServerSettings, folder: str, environ: Mapping[str, str]) -> Launch:
    """Return how the server's process is started: its words, its folder, and the environment that commands see with
    what its settings add; `folder` is its default working folder.
    """
    environment = with_own_programs_last(scrub_environment(environ, settings.env), [folder])
    cwd = os.path.join(folder, os.path.expanduser(settings.cwd))  # noqa: PTH111, PTH118 - what the user wrote
    command = os.path.expanduser(settings.command)  # noqa: PTH111
    return Launch((command, *settings.args), cwd, environment, "")


@asynccontextmanager
async def stdio_transport(launch: Launch, health: Health) -> AsyncGenerator[Streams, None]:
    """Start the process and yield its message streams (incoming, outgoing); its whole tree ends with this context.
    ToolFailed if it cannot be started.
    """
    child = _Child(launch, health)
    try:
        await run_to_end(child.guarded.start(launch, SERVER_LIMITS, apart=True, talk=True))
        async with anyio.create_task_group() as group:
            group.start_soon(child.read)
            group.start_soon(keep_last_words, child.guarded, health)
            group.start_soon(child.write)
            try:
                yield child.inbox, child.outbox
            finally:
                child.hang_up()
                await run_to_end(child.leave())
                group.cancel_scope.cancel()
    finally:
        await run_to_end(child.guarded.close())
        child.close()


class Unreadable(ValueError):
    """Raised when a server's messages can no longer be separated; the message says why in English."""


@dataclass(slots=True)
class Health:
    """Facts about one connection. `noise` counts invalid messages since the last valid one, `garbled` all of them,
    `sample` is the last one; `status` is the last HTTP error status, 0 for none; `login` is the reason why a login
    failed; `refused` is what a certificate or the proxy refused; `problem` is the error that broke it; `stderr` has its
    last 4,096 bytes; `ending` is how its process ended; `gone` is set when nothing more can arrive.
    """

    noise: int = 0
    garbled: int = 0
    sample: str = ""
    status: int = 0
    ending: str = ""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    problem: BaseException | None = None
    login: UserError | None = None
    refused: UserError | None = None
    stderr: bytes = b""

    def good(self) -> None:
        """Record a valid message, which ends a series of invalid ones."""
        self.noise = 0

    def garbage(self, data: bytes) -> None:
        """Record an invalid message and a sample of it. Unreadable is raised after 100 in a row."""
        self.noise += 1
        self.garbled += 1
        if data.strip():
            self.sample = one_line(data[: 2 * SAMPLE].decode("utf-8", "replace"), SAMPLE)
        if self.noise >= MAX_NOISE:
            raise Unreadable(f"{self.noise} lines in a row that are no messages, such as: {self.sample}")

    def printed(self, data: bytes) -> None:
        """Record output on standard error; the last 4,096 bytes are kept."""
        self.stderr = (self.stderr + data)[-TAIL:]

    @property
    def last_words(self) -> str:
        """The last three lines of its standard error, joined to one line by ` | `; '' if it has printed nothing."""
        lines = [line for line in self.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        return one_line(" | ".join(lines[-3:]), 2 * SAMPLE)


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line that exceeded the limit: its first and last bytes and its size in bytes."""

    head: bytes
    tail: bytes
    size: int

    @property
    def answers(self) -> int | str | None:
        """The JSON-RPC id of the request that the line seems to answer; None if it cannot be determined."""
        match = _AT_HEAD.match(self.head) or _AT_TAIL.search(self.tail)
        if match is None:
            return None
        return int(match[1]) if match[1] else match[2].decode("utf-8", "replace")


class Lines:
    """An incremental splitter of bytes into lines; one object for each stream. Lines above `limit` bytes are not kept,
    and one above `most` bytes is an error.
    """

    def __init__(self, limit: int = MAX_MESSAGE, most: int = MAX_SKIPPED) -> None:
        self._limit = limit
        self._most = most
        self._kept = bytearray()
        self._tail = b""
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Return the lines completed by `data`, without LF; above 8 MiB, a `TooLong` in its place. Unreadable is raised
        for a line above 256 MiB.
        """
        *ended, rest = data.split(b"\n")
        found: list[bytes | TooLong] = []
        for piece in ended:
            self._take(piece)
            found.append(self._line())
        self._take(rest)
        return found

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._kept += piece
            return
        if self._size > self._most:
            raise Unreadable(f"a message of more than {self._most >> 20} MiB")
        # Of a message that is too long only both ends are kept: there its id stands, by which the request can be
        # answered.
        self._tail = ((self._tail or bytes(self._kept[-_KEPT_END:])) + piece)[-_KEPT_END:]
        self._kept += piece[: max(0, _KEPT_END - len(self._kept))]
        del self._kept[_KEPT_END:]

    def _line(self) -> bytes | TooLong:
        long = self._size > self._limit
        line = TooLong(bytes(self._kept), self._tail, self._size) if long else bytes(self._kept)
        self._kept.clear()
        self._tail, self._size = b"", 0
        return line


class _Child:
    """The process and its two message queues."""

    def __init__(self, launch: Launch, health: Health) -> None:
        self.guarded = Guarded()
        self._launch = launch
        self._health = health
        self._leaving = False
        # No room: a server is read only as fast as its messages are taken.
        self._came, self.inbox = anyio.create_memory_object_stream[Item](0)
        self.outbox, self._go = anyio.create_memory_object_stream[SessionMessage](OUTBOX)

    async def read(self) -> None:
        """Forward its messages until its output ends."""
        reader = dict(self.guarded.streams)["stdout"]
        lines = Lines()
        try:
            async with self._came:
                while data := await reader.read(_CHUNK):
                    for line in lines.feed(data):
                        if (item := self._item(line)) is not None:
                            await self._came.send(item)
                    # Reading what has come already does not wait: a server that floods would keep the loop.
                    await asyncio.sleep(0)
                if not self._leaving:
                    await record_end(self.guarded, self._launch, self._health)
        except Unreadable as error:
            self._health.problem = error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):  # the reader is closed
            pass
        finally:
            self._health.gone.set()
        while await reader.read(_CHUNK):  # so that it does not hang while it ends
            pass

    async def write(self) -> None:
        """Write our messages to its standard input."""
        stdin = self.guarded.stdin
        if stdin is None:
            return
        try:
            async with self._go:
                async for item in self._go:
                    stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                    await stdin.drain()
        except OSError as error:  # it reads no more; what it still says is read
            self._health.problem = self._health.problem or error

    def hang_up(self) -> None:
        """Close both queues."""
        self._leaving = True
        self.inbox.close()
        self.outbox.close()

    async def leave(self) -> None:
        """Close its standard input and wait up to GRACE_SECONDS for its exit."""
        if self.guarded.stdin is not None:
            self.guarded.stdin.close()
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await self.guarded.ended()
        except TimeoutError:
            pass

    def close(self) -> None:
        """Close all streams."""
        for stream in (self._came, self.inbox, self.outbox, self._go):
            stream.close()

    def _item(self, line: bytes | TooLong) -> Item | None:
        if isinstance(line, TooLong):
            return self._too_long(line)
        if not line.strip():
            return None
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as error:
            self._health.garbage(line)
            return error
        self._health.good()
        return SessionMessage(message)

    def _too_long(self, line: TooLong) -> SessionMessage:
        words = f"the message has {line.size >> 20} MiB, more than the {MAX_MESSAGE >> 20} MiB that are read"
        # Without the id, the request that it answers would wait for ever, so the server is given up.
        if line.answers is None:
            raise Unreadable(words)
        error = ErrorData(code=TOO_LARGE, message=words)
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=line.answers, error=error))


async def keep_last_words(guarded: Guarded, health: Health) -> None:
    """Read a process' standard error until it ends, and record the end of it in `health`. Cancellable."""
    reader = dict(guarded.streams)["stderr"]
    while data := await reader.read(_CHUNK):
        health.printed(data)


async def record_end(guarded: Guarded, launch: Launch, health: Health) -> None:
    """Wait up to 1 s for the end of a process that has closed its output, and record how it ended in `health`."""
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            await guarded.ended()
        health.ending = f"exit code {guarded.answer(launch)['code']}"
    except TimeoutError:
        health.ending = "it closed its output"
    except ToolFailed as error:
        health.ending = str(error)
        health.problem = error.__cause__ or error
