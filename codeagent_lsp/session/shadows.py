"""Provides the environment in which each session's commands run: created at first use, removed with the session.

It is a container if an image is set, else the shadow workspace on this machine. The code that isolates commands is
imported late, at the first use: an idle server does without it. Not here: that code (`environments/`, `shadow/`), and
who may run commands (`tools/permissions/policy.py`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environment import Adapter, EnvironmentKind, Info, PrivateView
from codeagent_lsp.environments.orchestrator import Orchestrator
from codeagent_lsp.shadow.shell import Approve, Shell
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView

if TYPE_CHECKING:
    from codeagent_lsp.environments.container import ContainerAdapter
    from codeagent_lsp.environments.local import LocalAdapter
    from codeagent_lsp.shadow.workspace import Execute


class SessionShadows:
    """The environments of a server's sessions. `state` is the folder of all our state, `spool` a folder of this
    workspace for long outputs.
    """

    def __init__(self, settings: Callable[[], ShellSettings], state: Path, spool: Path) -> None:
        self._settings = settings
        self._state = state
        self._spool = spool
        self._orchestrator = Orchestrator(
            {
                "local": lambda: self._adapter("local", "LocalAdapter"),
                "container": lambda: self._adapter("container", "ContainerAdapter"),
            }
        )
        self._keys: dict[str, tuple[object, ...]] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def shell(self, session_id: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        """Return the shell for the commands of one run, in an environment that fits the present settings. SettingError
        if these do not work here.
        """
        settings, folders = self._settings(), view.roots.folders
        key = (settings.isolation, settings.readable, settings.container_image, folders)
        async with self._turns[session_id]:  # calls side by side share what the first of them makes
            if self._keys.get(session_id) != key:
                await self.close(session_id)
                await self._orchestrator.create(session_id, _kind(settings), settings, folders)
                self._keys[session_id] = key
            return self._orchestrator.shell(session_id, view, staging, approve)

    @property
    def kind(self) -> EnvironmentKind:
        """Return where commands run, by the present settings."""
        return _kind(self._settings())

    async def private_view(self, kind: EnvironmentKind, folders: Sequence[str], execute: Execute) -> PrivateView:
        """Return a new view of the folders, for a command that outlives a run; the caller has to close it."""
        adapter = cast("LocalAdapter | ContainerAdapter", await self._orchestrator.adapter(kind))
        return await adapter.create(self._settings(), folders, execute)

    def list(self) -> tuple[Info, ...]:
        """Return the environments of all sessions; their names are the ids of the sessions."""
        return self._orchestrator.list()

    async def close(self, session_id: str | None = None) -> None:
        """Remove the environment of a session, or all for None."""
        if session_id is None:
            self._keys.clear()
        else:
            self._keys.pop(session_id, None)
        await self._orchestrator.stop(session_id)

    def _adapter(self, module: str, name: str) -> Adapter:
        """Import and create an adapter; blocks."""
        made: Adapter = getattr(import_module(f"codeagent_lsp.environments.{module}"), name)(
            self._settings, self._state, self._spool
        )
        return made


def _kind(settings: ShellSettings) -> EnvironmentKind:
    return "container" if settings.container_image else "local"
