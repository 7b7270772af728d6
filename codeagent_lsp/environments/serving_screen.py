"""The life cycle of one web terminal or desktop: its command in a private view, and the program that serves it.

All processes are below one watchdog, so that none outlives the server, even if it is killed. Not here: which session
has it, what it consists of (`desktop.py`), the serving program (`serving_program.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import time
from asyncio import StreamReader
from pathlib import Path
from typing import Any

from codeagent_lsp.environments.desktop import EXTRA, missing
from codeagent_lsp.environments.serving import PORTS, Recipe, ScreenRequest, Status
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.shadow.limits import ProcessLimits
from codeagent_lsp.shadow.process import Guarded, settled
from codeagent_lsp.shadow.shell import Command, CommandResult, Finished, Launch, OnOutput, Shell
from codeagent_lsp.workspace.process_group import read_head

LONGEST_SECONDS = 8 * 3600.0
"""Seconds after which a forgotten screen ends."""
STARTING_SECONDS = 90.0
PORTS_TRIED = 100

_PACKAGE = Path(__file__).resolve().parents[2]
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); import codeagent_lsp.environments.serving_program as p; p.main()"
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "TZ")
_MAX_ANSWER = 4096

_OVER = "It has ended."
_ENDED = {
    "memory": "It was stopped: too much memory.",
    "processes": "It was stopped: too many processes.",
    "disk": "It was stopped: it filled the disk.",
}


class Screen:
    """One web terminal or desktop. Its shell must run commands through `execute`."""

    def __init__(self, recipe: Recipe, wanted: ScreenRequest) -> None:
        self._recipe = recipe
        self._wanted = wanted
        self._isolation = ""
        self._token = secrets.token_urlsafe(24)
        self._said: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._guarded: Guarded | None = None
        self._running: asyncio.Task[CommandResult] | None = None
        self._started = 0.0
        self._ended = ""
        self._collected = asyncio.Event()

    @property
    def status(self) -> Status:
        """Return its current state."""
        kind, task = self._recipe.kind, self._running
        if task is None or not self._said.done() or self._said.cancelled():
            return Status(kind)
        if self._ended or task.done():
            return Status(kind, why=self._ended or _why(task))
        answer = self._said.result()
        return Status(
            kind,
            True,
            f"http://127.0.0.1:{answer['port']}/{self._token}/",
            answer["port"],
            answer["pid"],
            time.monotonic() - self._started,
            self._isolation,
            self._wanted.resolution,
            self._wanted.display,
        )

    @property
    def over(self) -> bool:
        """Return whether it has ended completely, including the collection of written files."""
        return self._running is not None and self._running.done()

    async def start(self, shell: Shell) -> None:
        """Start it and wait until it answers. ToolFailed, with nothing left, if it does not."""
        self._started, self._isolation = time.monotonic(), shell.isolation.level
        self._running = asyncio.create_task(shell.run(self._recipe.command))
        try:
            waiting: list[asyncio.Future[Any]] = [self._said, self._running]
            await asyncio.wait(waiting, timeout=STARTING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if self._said.done():
                _check(self._said.result())
                return
            if self._running.done():
                self._running.result()  # raises what went wrong
            raise ToolFailed(f"The {self._recipe.kind} did not start.", ErrorCode.TIMEOUT)
        except BaseException:
            await settled(self.close())
            raise

    async def stop(self) -> CommandResult | None:
        """End all its processes and return the result of what was written; None if that is unknown."""
        self._collected.set()
        if self._guarded is not None:
            self._guarded.stop()
        if self._running is None:
            return None
        await asyncio.wait([self._running])  # cancelled while it waits, it goes on to its end
        if self._running.cancelled() or self._running.exception() is not None:
            return None
        return self._running.result()

    async def close(self) -> None:
        """End it in any state; no process is left."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
            if not self._running.cancelled():
                self._running.exception()  # it was reported, or no caller waits for it

    async def execute(self, launch: Launch, command: Command, on_output: OnOutput) -> Finished:
        """Serve the program of `launch` until it ends, then wait for `stop` before its files are collected."""
        finished = await self._served(launch)
        self._ended = _ENDED.get(finished.ending, _OVER)
        await self._collected.wait()
        return finished

    async def _served(self, launch: Launch) -> Finished:
        self._guarded = guarded = Guarded()
        limits = ProcessLimits(seconds=LONGEST_SECONDS, disk_folder=launch.reports)
        serving = _serving(launch)
        try:
            await settled(guarded.start(serving, limits, apart=True, talk=True))
            streams = dict(guarded.streams)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._hear(streams["stdout"]))
                complaint = group.create_task(read_head(streams["stderr"], _MAX_ANSWER))
                await self._tell(guarded, launch)
                await guarded.ended()
            answer = guarded.answer(serving)
            if not self._said.done():
                raise ToolFailed(f"The {self._recipe.kind} did not start: {_last_line(complaint.result())}")
            return Finished(0, "", ending=answer["ending"] if answer["ending"] in _ENDED else "exited")
        finally:
            self._guarded = None
            await settled(guarded.close())

    async def _tell(self, guarded: Guarded, launch: Launch) -> None:
        recipe = self._recipe
        # A port that was asked for is that one or none.
        port = self._wanted.port
        ports = [port] if port else list(range(PORTS[recipe.kind], PORTS[recipe.kind] + PORTS_TRIED))
        spec = {
            "kind": recipe.kind,
            "token": self._token,
            "ports": ports,
            "files": dict(recipe.files),
            "socket": recipe.socket,
            "folder": launch.reports,
            "argv": launch.argv,
            "cwd": launch.cwd,
            "environment": dict(launch.environment),
        }
        assert guarded.stdin is not None
        try:
            guarded.stdin.write(json.dumps(spec).encode() + b"\n")
            await guarded.stdin.drain()
        except OSError:  # it ended early; its output says why
            pass

    async def _hear(self, stdout: StreamReader) -> None:
        """Read the first line, which has the port; later output is dropped."""
        line = await stdout.readline()
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if isinstance(answer, dict) and not self._said.done():
            self._said.set_result(answer)
        await read_head(stdout, 0)


def _serving(launch: Launch) -> Launch:
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"PATH": os.defpath, "LC_CTYPE": "C.UTF-8"}
    argv = (sys.executable, "-I", "-X", "utf8", "-c", _PROGRAM, str(_PACKAGE))
    return Launch(argv, "/", environment, launch.reports)


def _check(answer: dict[str, Any]) -> None:
    if "missing" in answer:
        raise missing(str(answer["missing"]), EXTRA)
    if "problem" in answer:
        raise ToolFailed(str(answer["problem"])[:500])


def _why(task: asyncio.Task[CommandResult]) -> str:
    if task.cancelled():
        return "It was stopped."
    error = task.exception()
    return _OVER if error is None else str(error)


def _last_line(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
