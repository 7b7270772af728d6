"""Environments in containers: commands run in one, on a private copy of the workspace that is transferred in and out.

The image has to provide what the commands need. A command that does not end by itself takes its container with it; the
next one gets a new one. A terminal's shell has a container of its own. Not here: one container (`container_box.py`),
what is carried (`container_files.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.container_box import REPORTS, Box, BoxLimits, Pieces, Plan, Task, shell_words, sweep
from codeagent_lsp.environments.container_engine import Engine, find_socket
from codeagent_lsp.environments.container_files import ContainerFiles
from codeagent_lsp.environments.environment import EnvironmentKind, EnvironmentProblem
from codeagent_lsp.environments.failures import Sleep, grade, patient
from codeagent_lsp.errors import ErrorCode, SettingError
from codeagent_lsp.shadow.environment import FIXED
from codeagent_lsp.shadow.folder import LayerFolder, is_abandoned
from codeagent_lsp.shadow.folder import sweep as sweep_folders
from codeagent_lsp.shadow.guard_messages import KILLED
from codeagent_lsp.shadow.output import Output
from codeagent_lsp.shadow.process import run_to_end
from codeagent_lsp.shadow.shell import (
    REPORT_VARIABLE,
    Approve,
    Command,
    Ending,
    Finished,
    Isolation,
    Launch,
    OnOutput,
    Writings,
)
from codeagent_lsp.shadow.workspace import BoundShell, Execute, ShadowWorkspace
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import within

CONTAINER = Isolation("container", confined=True, offline=True, hidden=True)
STARTING_SECONDS = 120.0

_JOINS = str(Path(__file__).with_name("container_terminal.py"))
_TEMPORARY = "/tmp"  # noqa: S108 - the container's own
# An image would have none of its programs with a workspace mounted over these.
_OF_THE_IMAGE = ("", "bin", "boot", "dev", "etc", "home", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "tmp",
                 "usr", "var")  # fmt: skip
_FRESH_REPORTS = 'rm -rf "$0" && mkdir -p "$0" && exec "$@"'


class ContainerAdapter:
    """Creates environments in containers of the configured image. One per server; `state` is the folder of all our
    state.
    """

    kind: EnvironmentKind = "container"

    def __init__(
        self,
        settings: Callable[[], ShellSettings],
        state: Path,
        spool: Path,
        *,
        environ: Mapping[str, str] | None = None,
        limits: BoxLimits | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._state = state
        self._spool = spool
        self._environ = os.environ if environ is None else environ
        self._limits = limits or BoxLimits()
        self._sleep = sleep
        self._swept = False

    async def create(
        self, settings: ShellSettings, folders: Sequence[str], serve: Execute | None = None
    ) -> ContainerEnvironment:
        """Return a new environment as `Adapter.create` says. The container itself starts with the first command, which
        then waits up to 120 s. With `serve` its only command is a terminal's shell: `serve` runs the program that
        connects a terminal here with it.

        SettingError if there is no container engine or the image is missing, or for a folder that belongs to the image;
        EnvironmentProblem if the engine fails. The first call also removes what ended servers left behind.
        """
        image, socket = settings.container_image or "", find_socket(self._environ)
        if not socket:
            raise SettingError("container.no_engine", image=image)
        # Asked before anything is started: mounted over these, the container would fail in ways that no one
        # understands.
        for folder in folders:
            if folder.strip("/") in _OF_THE_IMAGE:
                raise SettingError("container.folder", folder=folder)
        engine, state = Engine(socket), label_of(self._state)
        await patient(lambda: _has_image(engine, image), grade, self._sleep)
        # Once for each server: containers of a server that was killed go on for ever otherwise.
        if not self._swept:
            await sweep(engine, state, _is_lost)
            await asyncio.to_thread(sweep_folders, self._copies)
            self._swept = True
        # One mount holds all that is below it.
        outermost = [path for path in folders if not within(path, [other for other in folders if other != path])]
        plan = Plan(image, tuple(dict.fromkeys(outermost)), state, limits=self._limits)
        container = _LastingContainer(engine, plan, self._sleep)
        return ContainerEnvironment(container, self._copies, self._settings, self._spool, serve)

    @property
    def _copies(self) -> str:
        return os.path.realpath(self._state / "containers")


class ContainerEnvironment:
    """An `Environment` in which commands run in a container, which is started by a command and removed by `close`, or
    after a command that did not end by itself.
    """

    def __init__(
        self,
        container: _LastingContainer,
        copies: str,
        settings: Callable[[], ShellSettings],
        spool: Path,
        serve: Execute | None = None,
    ) -> None:
        self._container = container
        self._settings = settings
        self._spool = spool
        self._serve = serve
        self._layer: _ContainerLayer | None = None
        execute = self._execute if serve is None else self._serve_terminal
        self._workspace = ShadowWorkspace(CONTAINER, lambda folders: self._opened(copies), execute)

    @property
    def isolation(self) -> Isolation:
        """The isolation of containers, which is complete: commands need no approval."""
        return CONTAINER

    def bind(self, view: FileView, staging: Staging, approve: Approve) -> BoundShell:
        """Return the shell of one run in this container, as `Environment.bind`; commands raise EnvironmentProblem if
        the container fails.
        """
        return self._workspace.bind(view, staging, approve)

    async def close(self) -> None:
        """Let no further command begin, wait at most 30 s for the running one, and remove the container with everything
        that runs in it, even if this is cancelled.
        """
        try:
            await self._workspace.close()
        finally:
            await run_to_end(self._container.end())

    def _opened(self, copies: str) -> _ContainerLayer:
        self._layer = _ContainerLayer(LayerFolder(copies), self._container.plan)
        return self._layer

    async def _execute(self, launch: Launch, command: Command, on_output: OnOutput) -> Finished:
        spool = self._spool if command.whole else None
        output, ended = Output(spool, command.keywords, apart=command.apart), False
        try:
            finished = await self._run_in_box(launch, command, on_output, output)
            ended = finished.ending == "exited"
            return finished
        except BaseException:
            output.discard()
            raise
        finally:
            # What still runs in it cannot be ended singly.
            if not ended:
                await run_to_end(self._container.end())

    async def _serve_terminal(self, launch: Launch, command: Command, on_output: OnOutput) -> Finished:
        """Serve a shell at a terminal until it is stopped."""
        assert self._serve is not None  # see `__init__`
        try:
            files, box = await self._load(command)
            path = await box.announced(Task(launch.argv, launch.cwd, launch.environment))
            finished = await self._serve(_joining(self._container.socket, path, files.owner), command, on_output)
            # What a killed program left half written is not taken over; the copies stay as they were before.
            if finished.ending == "exited":
                await files.carry_out(box)
            return finished
        finally:
            await run_to_end(self._container.end())

    async def _run_in_box(self, launch: Launch, command: Command, on_output: OnOutput, output: Output) -> Finished:
        settings, (files, box) = self._settings(), await self._load(command)
        task = Task(launch.argv, launch.cwd, launch.environment, command.apart, command.stdin)
        limits = _Limits(command.seconds or settings.timeout_seconds, command.output_bytes or settings.max_output_bytes)
        started = time.monotonic()
        ending, code = await _follow_program(box, task, limits, output, on_output)
        seconds = time.monotonic() - started
        # 137 is also the code of a program that another one killed; only the kernel's count tells.
        if code == KILLED and ending == "exited" and await box.ran_out_of_memory():
            ending = "memory"
        # As in `_serve_terminal`; a later command finds the copies, and not what the ended one did in the container.
        reports = await files.carry_out(box) if ending == "exited" else {}
        kept = await run_to_end(asyncio.to_thread(output.finish))
        return Finished(code, kept.text, output.size, ending, seconds, kept.whole, reports, kept.streams)

    async def _load(self, command: Command) -> tuple[ContainerFiles, Box]:
        """Return a running container with the current workspace in it."""
        assert self._layer is not None  # it was prepared in this turn
        files = self._layer.files
        box = await self._container.ready(files, network=command.network)
        await files.carry_in(box)
        return files, box


class _ContainerLayer:
    """The private copies as a `Layer` of a shadow workspace; they outlive the container."""

    def __init__(self, folder: LayerFolder, plan: Plan) -> None:
        self.files = ContainerFiles(folder, plan.folders, plan.limits)

    @property
    def isolation(self) -> Isolation:
        """Return the isolation, which is complete."""
        return CONTAINER

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """See `Layer`."""
        self.files.prepare(wanted)

    def launch(self, command: Command) -> Launch:
        """See `Layer`; the launch refers to paths in the container."""
        reports = f"{REPORTS}/now"
        argv = ("sh", "-c", _FRESH_REPORTS, reports, *shell_words(command.script))
        # Our user has no home in the image.
        fixed = {**FIXED, "HOME": _TEMPORARY, "LC_CTYPE": "C.UTF-8"}
        return Launch(argv, command.cwd, {**fixed, **command.environment, REPORT_VARIABLE: reports}, reports)

    def writings(self) -> Writings:
        """See `Layer`."""
        return self.files.writings()

    def close(self) -> None:
        """Remove the copies."""
        self.files.close()


class _LastingContainer:
    """The container of an environment: created on demand, and again if it has ended."""

    def __init__(self, engine: Engine, plan: Plan, sleep: Sleep) -> None:
        self.plan = plan
        self._engine = engine
        self._sleep = sleep
        self._box: Box | None = None
        self._network = False

    @property
    def socket(self) -> str:
        """Return the path of its engine's socket."""
        return self._engine.socket

    async def ready(self, files: ContainerFiles, *, network: bool) -> Box:
        """Return a running container; a new one is empty, which `files` is told."""
        # The network of a container cannot be changed while it exists.
        if self._box is not None and (self._network != network or not await self._box.runs()):
            await self.end()
        if self._box is None:
            plan = replace(self.plan, owner=files.owner, network=network)
            try:
                async with asyncio.timeout(STARTING_SECONDS):
                    self._box = await patient(lambda: Box.started(self._engine, plan), grade, self._sleep)
            except TimeoutError:
                message = f"The container did not start within {STARTING_SECONDS:g} s."
                raise EnvironmentProblem(message, ErrorCode.TIMEOUT_ERROR) from None
            self._network = network
            files.unloaded()
        return self._box

    async def end(self) -> None:
        """Remove the container."""
        box, self._box = self._box, None
        if box is not None:
            await box.remove()


@dataclass(frozen=True, slots=True)
class _Limits:
    seconds: float
    output_bytes: int


def label_of(state: Path) -> str:
    """Return the label, 32 hexadecimal digits, for the containers of all servers with this state folder, by its real
    path.
    """
    return hashlib.sha256(os.fsencode(os.path.realpath(state))).hexdigest()[:32]


def _joining(socket: str, path: str, folder: str) -> Launch:
    """Return the launch of the program that connects its terminal with a program in a container."""
    environment = {"PATH": os.defpath, "LC_CTYPE": "C.UTF-8"}
    return Launch((sys.executable, "-I", "-S", _JOINS, socket, path), "/", environment, folder)


async def _follow_program(
    box: Box, task: Task, limits: _Limits, output: Output, on_output: OnOutput
) -> tuple[Ending, int]:
    """Run a program to its end or to a limit and return how it ended and its exit code."""
    try:
        async with asyncio.timeout(limits.seconds):
            if await _forward_output(box.run(task), output, on_output, limits.output_bytes):
                return "exited", await box.code()
            return "output", KILLED
    except TimeoutError:
        return "timeout", KILLED


async def _forward_output(pieces: Pieces, output: Output, on_output: OnOutput, most: int) -> bool:
    """Forward the output; return False if it exceeds the limit."""
    async with aclosing(pieces):
        async for stream, data in pieces:
            room = most - output.size
            # Up to the very limit, so that the last line before it can still be read.
            if text := output.feed(stream, data[:room]):
                on_output(stream, text)
            if len(data) > room:
                return False
            if output.wants_flush:
                await run_to_end(asyncio.to_thread(output.flush))
    return True


async def _has_image(engine: Engine, image: str) -> None:
    try:
        await engine.get(f"/images/{quote(image, safe='/:@')}/json")
    except EnvironmentProblem as problem:
        if problem.code == ErrorCode.SANDBOX_NOT_FOUND:
            raise SettingError("container.no_image", image=image) from None
        raise


def _is_lost(owner: str) -> bool:
    """Return whether the server with its copies in the folder `owner` has ended."""
    return not Path(owner).exists() or is_abandoned(owner)
