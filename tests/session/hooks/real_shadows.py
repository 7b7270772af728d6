"""The shadows of a server, real ones, for runs in a process of tests."""

from __future__ import annotations

from pathlib import Path

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.shadow.probe import Isolator
from codeagent_lsp.shadow.shell import Approve, Shell
from codeagent_lsp.shadow.workspace import ShadowWorkspace, executing
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView

SETTINGS = ShellSettings(isolation="overlay")


class RealShadows:
    """One shadow for each session, by overlays."""

    def __init__(self, state: Path) -> None:
        self._isolator = Isolator(str(state / "shadow"))
        self._spool = state / "spool"
        self._open: dict[str, ShadowWorkspace] = {}

    async def shell(self, session_id: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        if session_id not in self._open:
            isolation = self._isolator.isolation(SETTINGS, view.roots.folders)
            self._open[session_id] = ShadowWorkspace(
                isolation,
                lambda folders: self._isolator.open(SETTINGS, folders),
                executing(lambda: SETTINGS, self._spool),
            )
        return self._open[session_id].bind(view, staging, approve)

    async def close(self, session_id: str | None = None) -> None:
        for name in [session_id] if session_id else list(self._open):
            if (shadow := self._open.pop(name, None)) is not None:
                await shadow.close()
