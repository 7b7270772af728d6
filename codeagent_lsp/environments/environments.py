"""The environments of a server, one for each session: created at first use, listed, removed with the session.

One is a container if an image is set, else a shadow workspace on this machine. The code that isolates commands is
imported late, at the first use: an idle server does without it. Not here: that code (`local.py`, `container.py`), and
who may run commands (`tools/permissions/policy.py`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environment import (
    Adapter,
    Environment,
    EnvironmentKind,
    EnvironmentProblem,
    EnvironmentStatus,
    Info,
    PrivateView,
)
from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.shadow.shell import Approve, Command, CommandResult, Isolation, OnOutput, Shell, no_output
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView

if TYPE_CHECKING:
    from codeagent_lsp.environments.container import ContainerAdapter
    from codeagent_lsp.environments.local import LocalAdapter
    from codeagent_lsp.shadow.workspace import Execute

Load = Callable[[], Adapter]
"""Creates an adapter; called once, in a thread, when its kind is first needed."""


@dataclass(slots=True)
class _Known:
    """One environment with the settings and folders that it was made for, and how many commands run in it."""

    kind: EnvironmentKind
    environment: Environment
    settings: ShellSettings
    folders: tuple[str, ...]
    running: int = 0
    closed: bool = False

    def fits(self, settings: ShellSettings, folders: tuple[str, ...]) -> bool:
        return _decisive(self.settings) == _decisive(settings) and self.folders == folders


class Environments:
    """The environments of a server's sessions, by the session's id; the server closes them at its end. `state` is the
    folder of all our state, `spool` a folder of this workspace for long outputs; `adapters` load the adapter of each
    kind.

    `directly` returns a context that is entered while a command runs in the user's own folders.
    """

    def __init__(
        self,
        settings: Callable[[], ShellSettings],
        state: Path,
        spool: Path,
        adapters: Mapping[EnvironmentKind, Load] | None = None,
    ) -> None:
        self._settings = settings
        self._load = adapters or {
            "local": partial(_import_adapter, "local", "LocalAdapter", settings, state, spool),
            "container": partial(_import_adapter, "container", "ContainerAdapter", settings, state, spool),
        }
        self.directly: Callable[[], AbstractContextManager[None]] = nullcontext
        self._adapters: dict[EnvironmentKind, Adapter] = {}
        self._known: dict[str, _Known] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def shell(self, name: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        """Return the shell for the commands of one run in the environment of the session `name`. An environment made
        for other settings or folders is closed and replaced, which may wait 30 s for its command. SettingError or
        ToolFailed if they do not work here.
        """
        settings, folders = self._settings(), tuple(view.roots.folders)
        async with self._turns[name]:  # calls side by side share what the first of them makes
            known = self._known.get(name)
            if known is None or not known.fits(settings, folders):
                await self._stop(name)
                kind = _kind(settings)
                environment = await (await self._adapter(kind)).create(settings, folders)
                known = self._known[name] = _Known(kind, environment, settings, folders)
            return _Tracked(name, known, known.environment.bind(view, staging, approve), lambda: self.directly())

    @property
    def kind(self) -> EnvironmentKind:
        """The kind of environment by the present settings, `container` if an image is set, else `local`; one that
        exists may be of another kind.
        """
        return _kind(self._settings())

    async def private_view(self, kind: EnvironmentKind, folders: Sequence[str], execute: Execute) -> PrivateView:
        """Return a new view of the folders (absolute paths), for a command that outlives a run; the caller closes it.
        `execute` runs the command. SettingError or ToolFailed if that is impossible here.
        """
        adapter = cast("LocalAdapter | ContainerAdapter", await self._adapter(kind))
        return await adapter.create(self._settings(), folders, execute)

    def list(self) -> tuple[Info, ...]:
        """Return the state of all environments, the oldest first."""
        return tuple(_info(name, known) for name, known in self._known.items())

    async def close(self, name: str | None = None) -> None:
        """Remove the environment of a session, or all of them for None, waiting at most 30 s for a running command; an
        unknown name is ignored.
        """
        # By turns, not by what is known: an environment may be just being made.
        await asyncio.gather(*map(self._close, tuple(self._turns) if name is None else (name,)))

    async def _close(self, name: str) -> None:
        async with self._turns[name]:
            await self._stop(name)

    async def _stop(self, name: str) -> None:
        known = self._known.pop(name, None)
        if known is not None:
            # Before its end: a run that has its shell must begin nothing in it.
            known.closed = True
            await known.environment.close()

    async def _adapter(self, kind: EnvironmentKind) -> Adapter:
        if kind not in self._adapters:
            made = await asyncio.to_thread(self._load[kind])
            # Another call may have made one meanwhile.
            self._adapters.setdefault(kind, made)
        return self._adapters[kind]


class _Tracked:
    """The `Shell` of one run, which counts its running commands and knows when its environment is gone."""

    def __init__(
        self, name: str, known: _Known, shell: Shell, directly: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._directly = directly
        self._name = name
        self._known = known
        self._shell = shell

    @property
    def isolation(self) -> Isolation:
        return self._shell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        if self._known.closed:
            raise EnvironmentProblem(f"The environment {self._name} was stopped.", ErrorCode.SANDBOX_TERMINATED)
        self._known.running += 1
        try:
            with self._directly() if self.isolation.level == "direct" else nullcontext():
                return await self._shell.run(command, on_output)
        finally:
            self._known.running -= 1


def _import_adapter(module: str, name: str, settings: Callable[[], ShellSettings], state: Path, spool: Path) -> Adapter:
    """Import and create an adapter; blocks."""
    made: Adapter = getattr(import_module(f"codeagent_lsp.environments.{module}"), name)(settings, state, spool)
    return made


def _info(name: str, known: _Known) -> Info:
    where = (known.settings.container_image or "") if known.kind == "container" else ""
    status: EnvironmentStatus = "running" if known.running else "ready"
    return Info(name, known.kind, status, known.environment.isolation, known.folders, where)


def _kind(settings: ShellSettings) -> EnvironmentKind:
    return "container" if settings.container_image else "local"


def _decisive(settings: ShellSettings) -> tuple[object, ...]:
    """Return the settings that an environment is made for."""
    return settings.isolation, settings.readable, settings.container_image
