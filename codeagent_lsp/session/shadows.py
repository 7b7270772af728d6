"""The shadow workspaces of a server: one per session, opened at its first command, gone with the session.

What isolates commands is loaded with the first of them: an idle server does without it. Not here: that (`shadow/`),
and who may run commands (`tools/permissions.py`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.shadow.base import Approve, Shell
from codeagent_lsp.workspace.files import FileView
from codeagent_lsp.workspace.staging import Staging

if TYPE_CHECKING:
    from codeagent_lsp.shadow.probe import Isolator
    from codeagent_lsp.shadow.workspace import ShadowWorkspace

logger = logging.getLogger(__name__)

LOST_SECONDS = 3600  # no command prints nothing for so long and is still wanted


@dataclass(frozen=True, slots=True)
class _Open:
    """A session's shadow and what it was made for; when that changes, another one takes its place."""

    key: tuple[object, ...]
    workspace: ShadowWorkspace


class SessionShadows:
    """`state` is the folder of all our state, `spool` a folder of this workspace's for long outputs."""

    def __init__(self, settings: Callable[[], ShellSettings], state: Path, spool: Path) -> None:
        self._settings = settings
        self._state = state
        self._isolator: Isolator | None = None
        self._spool = spool
        self._open: dict[str, _Open] = {}

    async def shell(self, session_id: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        """What runs the commands of one run. SettingError when the level that is set does not work here."""
        settings, folders = self._settings(), view.roots.folders
        isolator = await self._loaded()
        isolation = await asyncio.to_thread(isolator.isolation, settings, folders)
        key = (settings.isolation, settings.readable, folders)
        known = self._open.get(session_id)
        if known is None or known.key != key:
            await self.close(session_id)
            shadow = import_module("codeagent_lsp.shadow.workspace")
            workspace = shadow.ShadowWorkspace(
                isolation,
                lambda folders: isolator.open(settings, folders),
                shadow.executing(self._settings, self._spool),
            )
            known = self._open[session_id] = _Open(key, workspace)
        return known.workspace.bind(view, staging, approve)

    async def close(self, session_id: str | None = None) -> None:
        """Remove the shadow of a session, or all."""
        chosen: Sequence[str] = tuple(self._open) if session_id is None else (session_id,)
        closing = [self._open.pop(name).workspace.close() for name in chosen if name in self._open]
        await asyncio.gather(*closing)

    async def _loaded(self) -> Isolator:
        """What knows this machine; when it is first asked for, what servers that died have left is removed."""
        if self._isolator is None:
            probe = await asyncio.to_thread(import_module, "codeagent_lsp.shadow.probe")
            await asyncio.to_thread(import_module, "codeagent_lsp.shadow.workspace")
            isolator: Isolator = probe.Isolator(str(self._state))
            removed = await asyncio.to_thread(isolator.sweep)
            await asyncio.to_thread(_sweep_spool, self._spool)
            if removed:
                logger.info("removed %d shadows of servers that are gone", removed)
            self._isolator = self._isolator or isolator
        return self._isolator


def _sweep_spool(folder: Path) -> None:
    """Remove the raw outputs of commands whose server was killed before it could mask them."""
    for path in folder.glob("command-*"):
        try:
            if path.stat().st_mtime < time.time() - LOST_SECONDS:
                path.unlink(missing_ok=True)
        except OSError:
            continue
