"""The server's side of a worker of own tools: its process, guarded as that of an MCP server, and the calls, in turn.

A call that takes too long or is cancelled ends the process; the next call starts another. Not here: when there is a
connection (`tools/mcp/server.py`), the worker (`worker.py`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.shadow.environment import scrub_environment, with_own_programs_last
from codeagent_lsp.shadow.process import Guarded, run_to_end
from codeagent_lsp.shadow.shell import Launch
from codeagent_lsp.tools.mcp.errors import McpProblem, error_message
from codeagent_lsp.tools.mcp.host import Calling, Host
from codeagent_lsp.tools.mcp.listing import MAX_TOOLS, RemoteTool, remote_tool
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.mcp.stdio import (
    MAX_MESSAGE,
    SERVER_LIMITS,
    Health,
    Lines,
    TooLong,
    Unreadable,
    keep_last_words,
    record_end,
)
from codeagent_lsp.workspace.text.visible import one_line

MAX_REASON = 400

_CHUNK = 1 << 16


@asynccontextmanager
async def open_connection(settings: ServerSettings, host: Host) -> AsyncGenerator[WorkerConnection, None]:
    """Start a worker that lasts as long as this context. McpProblem if it cannot be started."""
    connection = WorkerConnection(settings, host)
    try:
        await connection.open()
        yield connection
    finally:
        await connection.close()


def launch_of(settings: ServerSettings, folder: str, environ: Mapping[str, str]) -> Launch:
    """Return how a worker is started in `folder`. Modules are not searched there: that would run files of the workspace
    before they are trusted.
    """
    environment = with_own_programs_last(scrub_environment(environ), [folder])
    entries = environment.pop("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join(entry for entry in entries if _is_outside(entry, folder))
    added = {"PYTHONPATH": path} if path else {}
    return Launch((settings.command, *settings.args), folder, {**environment, **added}, "")


def _is_outside(entry: str, folder: str) -> bool:
    path = Path(entry)
    return path.is_absolute() and not path.resolve().is_relative_to(Path(folder).resolve())


class WorkerConnection:
    """The connection to the worker process that runs one file of the user's own tools. `open` starts the process,
    `close` ends it, and `gone` is set when it has ended for whatever reason. It is its own `diagnosis`: errors are
    explained with the last words of the worker.
    """

    version = ""
    tells = True  # its tools never change: a changed file has another worker

    def __init__(self, settings: ServerSettings, host: Host) -> None:
        self._settings = settings
        self._launch = launch_of(settings, next(iter(host.folders()), "/"), host.environ)
        self._guarded = Guarded()
        self._health = Health()
        self._turn = asyncio.Lock()
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def gone(self) -> asyncio.Event:
        """The event that is set when the worker has ended."""
        return self._health.gone

    @property
    def diagnosis(self) -> WorkerConnection:
        """The object that explains errors of this connection: itself."""
        return self

    def problem(self, error: BaseException) -> McpProblem:
        """Return, without raising it, the end of the worker as a problem with a sentence for the user."""
        ending = self._health.ending or error_message(self._health.problem or error)
        words = self._health.last_words or "—"
        return McpProblem(
            "own.ended", ErrorCode.MCP_NETWORK_ERROR, name=self._settings.name, ending=ending, words=words
        )

    async def open(self) -> None:
        """Start the process, without loading the source (see `tools`). McpProblem if that fails."""
        try:
            await run_to_end(self._guarded.start(self._launch, SERVER_LIMITS, apart=True, talk=True))
        except ToolFailed as error:
            raise McpProblem("own.failed", name=self._settings.name, reason=error) from error
        self._tasks = [
            asyncio.create_task(self._read()),
            asyncio.create_task(keep_last_words(self._guarded, self._health)),
        ]

    async def close(self) -> None:
        """End the process and everything it started, and wait for that."""
        for task in self._tasks:
            task.cancel()
        await run_to_end(self._guarded.close())
        self._let_go()

    async def tools(self) -> tuple[RemoteTool, ...]:
        """Have the worker load the source, which runs its code, and return its tools. McpProblem with the reason if it
        has an error or takes longer than its limit.
        """
        try:
            answer = await self._ask({}, self._settings.seconds)
        except TimeoutError as error:
            self._stop()
            seconds = f"{self._settings.seconds:g}"
            raise McpProblem("own.silent", ErrorCode.MCP_TIMEOUT, name=self._settings.name, seconds=seconds) from error
        except ConnectionResetError as error:
            raise self.problem(error) from error
        if not isinstance(answer.get("result"), list):
            reason = one_line(str(answer.get("error")), MAX_REASON)
            raise McpProblem("own.failed", ErrorCode.MCP_EXECUTION_ERROR, name=self._settings.name, reason=reason)
        return tuple(tool for row in answer["result"][:MAX_TOOLS] if (tool := remote_tool(row)))

    async def call(self, name: str, arguments: Mapping[str, Any], calling: Calling) -> dict[str, Any]:
        """Call a tool, after those called before, and return its result in the form of MCP. ToolFailed if the tool
        raises, the worker ends, or it takes too long, which ends the worker.
        """
        # The worker does one call after the other, so the time of a call begins when it is sent.
        async with self._turn:
            try:
                answer = await self._ask({"tool": name, "arguments": dict(arguments)}, calling.seconds)
            except TimeoutError as error:
                self._stop()
                words = f"{calling.label} did not end within {calling.seconds:g} s and was stopped."
                raise ToolFailed(words, ErrorCode.MCP_TIMEOUT) from error
            except ConnectionResetError as error:
                raise ToolFailed(str(self.problem(error)), ErrorCode.MCP_NETWORK_ERROR) from error
            except asyncio.CancelledError:
                self._stop()
                raise
        if not isinstance(answer.get("result"), dict):
            raise ToolFailed(f"{calling.label}: {one_line(str(answer.get('error')), MAX_REASON)}")
        return dict(answer["result"])

    async def listen(self) -> None:
        """Wait for ever, until cancelled: a worker announces nothing."""
        await asyncio.Event().wait()

    async def _ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and return the answer. TimeoutError; ConnectionResetError if the worker ends."""
        number, stdin = next(self._ids), self._guarded.stdin
        if stdin is None or self._health.gone.is_set():
            raise ConnectionResetError("it has ended")
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                stdin.write(json.dumps({"id": number, **request}).encode() + b"\n")
                await stdin.drain()
                found: dict[str, Any] = await answer
                return found
        except OSError as error:
            # It is an OSError, too.
            if isinstance(error, TimeoutError):
                raise
            raise ConnectionResetError(str(error)) from error
        finally:
            del self._waiting[number]

    async def _read(self) -> None:
        """Hand out its answers until its output ends."""
        reader = dict(self._guarded.streams)["stdout"]
        lines = Lines()
        try:
            while data := await reader.read(_CHUNK):
                for line in lines.feed(data):
                    self._on_answer(line)
            await record_end(self._guarded, self._launch, self._health)
        except Unreadable as error:
            self._health.problem = error
            self._guarded.stop()
        finally:
            self._let_go()

    def _on_answer(self, line: bytes | TooLong) -> None:
        if isinstance(line, TooLong):
            answer: Any = {"id": line.answers, "error": f"the result has more than {MAX_MESSAGE >> 20} MiB"}
        else:
            try:
                answer = json.loads(line)
            except (ValueError, RecursionError):
                self._health.garbage(line)
                return
        number = answer.get("id") if isinstance(answer, dict) else None
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        if waiting is None:
            self._health.garbage(b"" if isinstance(line, TooLong) else line)
        elif not waiting.done():
            self._health.good()
            waiting.set_result(answer)

    def _stop(self) -> None:
        self._guarded.stop()
        self._let_go()

    def _let_go(self) -> None:
        self._health.gone.set()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionResetError("it has ended"))
