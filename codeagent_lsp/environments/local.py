"""Environments on this machine: shadow workspaces at the configured level of isolation.

Not here: the levels (`shadow/`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.environments.environment import EnvironmentKind
from codeagent_lsp.shadow.probe import Isolator
from codeagent_lsp.shadow.workspace import Execute, ShadowWorkspace, executing

logger = logging.getLogger(__name__)

LOST_SECONDS = 3600  # no command prints nothing for so long and is still wanted


class LocalAdapter:
    """Creates environments on this machine. One per server; `state` is the folder of all our state, `spool` this
    workspace's for long outputs.
    """

    kind: EnvironmentKind = "local"

    def __init__(self, settings: Callable[[], ShellSettings], state: Path, spool: Path) -> None:
        self._settings = settings
        self._spool = spool
        self._isolator = Isolator(str(state))
        self._sweeping: asyncio.Task[None] | None = None

    async def create(
        self, settings: ShellSettings, folders: Sequence[str], execute: Execute | None = None
    ) -> ShadowWorkspace:
        """Return a new environment as `Adapter.create` says. `execute` replaces the default execution of commands. The
        first call also removes what servers that have ended left behind.
        """
        await self._swept()
        isolation = await asyncio.to_thread(self._isolator.isolation, settings, tuple(folders))
        return ShadowWorkspace(
            isolation,
            lambda folders: self._isolator.open(settings, folders),
            execute or executing(self._settings, self._spool),
        )

    async def _swept(self) -> None:
        if self._sweeping is None:
            self._sweeping = asyncio.create_task(asyncio.to_thread(self._sweep))
        # All wait for one sweep, which goes on when one of them is cancelled.
        await asyncio.shield(self._sweeping)

    def _sweep(self) -> None:
        removed = self._isolator.sweep()
        if removed:
            logger.info("removed %d shadows of servers that are gone", removed)
        _sweep_spool(self._spool)


def _sweep_spool(folder: Path) -> None:
    """Remove the raw outputs of commands whose server was killed before it could mask them."""
    for path in folder.glob("command-*"):
        try:
            if path.stat().st_mtime < time.time() - LOST_SECONDS:
                path.unlink(missing_ok=True)
        except OSError:
            continue
