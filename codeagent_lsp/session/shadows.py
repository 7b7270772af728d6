"""The shadow workspaces of a server: one per session, opened at its first command, gone with the session.

Not here: what isolates commands (`shadow/`), who may run them (`tools/permissions.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.shadow.base import Approve, Shell
from codeagent_lsp.shadow.probe import Isolator
from codeagent_lsp.shadow.workspace import ShadowWorkspace, executing
from codeagent_lsp.workspace.files import FileView
from codeagent_lsp.workspace.staging import Staging

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Open:
    """A session's shadow and what it was made for; when that changes, another one takes its place."""

    key: tuple[object, ...]
    workspace: ShadowWorkspace


class SessionShadows:
    """`state` is the folder of all our state, `spool` a folder of this workspace's for long outputs."""

    def __init__(self, settings: Callable[[], ShellSettings], state: Path, spool: Path) -> None:
        self._settings = settings
        self._isolator = Isolator(str(state))
        self._spool = spool
        self._open: dict[str, _Open] = {}
        self._swept = False

    async def shell(self, session_id: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        """What runs the commands of one run. SettingError when the level that is set does not work here."""
        settings, folders = self._settings(), view.roots.folders
        isolation = await asyncio.to_thread(self._isolator.isolation, settings, folders)
        key = (settings.isolation, settings.readable, folders)
        known = self._open.get(session_id)
        if known is None or known.key != key:
            await self._sweep()
            await self.close(session_id)
            workspace = ShadowWorkspace(
                isolation,
                lambda folders: self._isolator.open(settings, folders),
                executing(self._settings, self._spool),
            )
            known = self._open[session_id] = _Open(key, workspace)
        return known.workspace.bind(view, staging, approve)

    async def close(self, session_id: str | None = None) -> None:
        """Remove the shadow of a session, or all."""
        chosen: Sequence[str] = tuple(self._open) if session_id is None else (session_id,)
        closing = [self._open.pop(name).workspace.close() for name in chosen if name in self._open]
        await asyncio.gather(*closing)

    async def _sweep(self) -> None:
        """Once: remove what servers that died have left."""
        if not self._swept:
            self._swept = True
            removed = await asyncio.to_thread(self._isolator.sweep)
            if removed:
                logger.info("removed %d shadows of servers that are gone", removed)
