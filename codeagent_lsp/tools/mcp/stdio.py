"""The stdio transport (MCP) to a server as a child process: one JSON message per line.

The shadow's watchdog guards the process, so that its whole tree ends with ours. It sees the environment that commands
see, and what its settings add. Not here: the messages.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, jsonrpc_message_adapter

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.environment import scrubbed, with_own_programs_last
from codeagent_lsp.shadow.limits import ProcessLimits
from codeagent_lsp.shadow.process import Guarded, settled
from codeagent_lsp.shadow.shell import Launch
from codeagent_lsp.tools.mcp.errors import TOO_LARGE
from codeagent_lsp.tools.mcp.health import MAX_MESSAGE, Health, Lines, TooLong, Unreadable
from codeagent_lsp.tools.mcp.settings import ServerSettings

GRACE_SECONDS = 1.0
OUTBOX = 64

_CHUNK = 1 << 16
_LIMITS = ProcessLimits(seconds=math.inf, look_seconds=1.0)

Item = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Item], MemoryObjectSendStream[SessionMessage]]


def launch_of(settings: ServerSettings, folder: str, environ: Mapping[str, str]) -> Launch:
    """Return how the server's process is started; `folder` is its default working folder."""
    environment = with_own_programs_last(scrubbed(environ, settings.env), [folder])
    cwd = os.path.join(folder, os.path.expanduser(settings.cwd))  # noqa: PTH111, PTH118 - what the user wrote
    command = os.path.expanduser(settings.command)  # noqa: PTH111
    return Launch((command, *settings.args), cwd, environment, "")


@asynccontextmanager
async def stdio_transport(launch: Launch, health: Health) -> AsyncGenerator[Streams, None]:
    """Start the process and yield its message streams; it ends with this context. ToolFailed if it
    cannot be started.
    """
    child = _Child(launch, health)
    try:
        await settled(child.guarded.start(launch, _LIMITS, apart=True, talk=True))
        async with anyio.create_task_group() as group:
            group.start_soon(child.read)
            group.start_soon(child.keep_last_words)
            group.start_soon(child.write)
            try:
                yield child.inbox, child.outbox
            finally:
                child.hang_up()
                await settled(child.leave())
                group.cancel_scope.cancel()
    finally:
        await settled(child.guarded.close())
        child.close()


class _Child:
    """The process and its two message queues."""

    def __init__(self, launch: Launch, health: Health) -> None:
        self.guarded = Guarded()
        self._launch = launch
        self._health = health
        self._leaving = False
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
                await self._ended()
        except Unreadable as error:
            self._health.problem = error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):  # the reader is closed
            pass
        finally:
            self._health.gone.set()
        while await reader.read(_CHUNK):  # so that it does not hang while it ends
            pass

    async def keep_last_words(self) -> None:
        """Record the end of its standard error."""
        reader = dict(self.guarded.streams)["stderr"]
        while data := await reader.read(_CHUNK):
            self._health.printed(data)

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

    async def _ended(self) -> None:
        """Record how the process ended, if it closed its output before we left."""
        if self._leaving:
            return
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await self.guarded.ended()
            self._health.ending = f"exit code {self.guarded.answer(self._launch)['code']}"
        except TimeoutError:
            self._health.ending = "it closed its output"
        except ToolFailed as error:
            self._health.ending = str(error)
            self._health.problem = error.__cause__ or error
