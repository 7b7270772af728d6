"""The environments of a server by name: created by the adapter of their kind, listed, used for commands, stopped.

Not here: what an environment is (`local.py`, `container.py`), which kind a session gets (`session/shadows.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environment import (
    Adapter,
    Environment,
    EnvironmentKind,
    EnvironmentProblem,
    Info,
    Status,
)
from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.shadow.shell import Approve, Command, CommandResult, Isolation, OnOutput, Shell, no_output
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView

Load = Callable[[], Adapter]
"""Creates an adapter; called once, in a thread, when its kind is first requested."""


@dataclass(slots=True)
class _Known:
    """One environment with its settings, folders and number of running commands."""

    kind: EnvironmentKind
    environment: Environment
    settings: ShellSettings
    folders: tuple[str, ...]
    running: int = 0


class Orchestrator:
    """The environments of all kinds, by name."""

    def __init__(self, adapters: Mapping[EnvironmentKind, Load]) -> None:
        self._load = adapters
        self._adapters: dict[EnvironmentKind, Adapter] = {}
        self._known: dict[str, _Known] = {}
        self._turn = asyncio.Lock()

    async def create(self, name: str, kind: EnvironmentKind, settings: ShellSettings, folders: Sequence[str]) -> Info:
        """Create an environment, replacing one of the same name. SettingError or ToolFailed if that is impossible."""
        async with self._turn:
            await self._stop(name)
            environment = await (await self.adapter(kind)).create(settings, folders)
            self._known[name] = _Known(kind, environment, settings, tuple(folders))
            return self._info(name, self._known[name])

    def list(self) -> tuple[Info, ...]:
        """Return all environments, oldest first."""
        return tuple(self._info(name, known) for name, known in self._known.items())

    def shell(self, name: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        """Return the shell of one run in an environment. EnvironmentProblem if there is none of this name."""
        if name not in self._known:
            raise EnvironmentProblem(f"There is no environment {name}.", ErrorCode.SANDBOX_NOT_FOUND)
        return _Tracked(self, name, self._known[name].environment.bind(view, staging, approve))

    async def execute(
        self, name: str, shell: Shell, command: Command, on_output: OnOutput = no_output
    ) -> CommandResult:
        """Run a command to its end with a shell of the environment, after the previous ones."""
        known = self._known.get(name)
        if known is None:
            raise EnvironmentProblem(f"The environment {name} was stopped.", ErrorCode.SANDBOX_TERMINATED)
        known.running += 1
        try:
            return await shell.run(command, on_output)
        finally:
            known.running -= 1

    async def stop(self, name: str | None = None) -> None:
        """Stop an environment, or all, with everything in them; an unknown name is ignored."""
        async with self._turn:
            names = tuple(self._known) if name is None else (name,)
            await asyncio.gather(*map(self._stop, names))

    async def adapter(self, kind: EnvironmentKind) -> Adapter:
        """Return the adapter of a kind, created at the first call."""
        if kind not in self._adapters:
            made = await asyncio.to_thread(self._load[kind])
            self._adapters.setdefault(kind, made)
        return self._adapters[kind]

    async def _stop(self, name: str) -> None:
        known = self._known.pop(name, None)
        if known is not None:
            await known.environment.close()

    @staticmethod
    def _info(name: str, known: _Known) -> Info:
        where = (known.settings.container_image or "") if known.kind == "container" else ""
        status: Status = "running" if known.running else "ready"
        return Info(name, known.kind, status, known.environment.isolation, known.folders, where)


class _Tracked:
    """The `Shell` of one run, which counts its running commands in the orchestrator."""

    def __init__(self, orchestrator: Orchestrator, name: str, shell: Shell) -> None:
        self._orchestrator = orchestrator
        self._name = name
        self._shell = shell

    @property
    def isolation(self) -> Isolation:
        return self._shell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        return await self._orchestrator.execute(self._name, self._shell, command, on_output)
