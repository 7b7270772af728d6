"""Deletes in the background what a deleted session leaves: its screens, its shadow, its long outputs, its artifacts.

Not here: the session's file (`store.py`), stopping its runs (`manager.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.session.services import Services

CLEAR_SECONDS = 30.0
LEAVE_SECONDS = 1.0

logger = logging.getLogger(__name__)


class SessionDeletion:
    """The background deletions of all sessions of one server."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._tasks = BackgroundTasks()

    def start(self, session_id: str, working: Sequence[asyncio.Task[None]]) -> asyncio.Task[None]:
        """Start to delete what a session leaves, and return the task. It waits for `working`, the session's runs, and
        gives up after 30 seconds; what is left then is logged.
        """
        return self._tasks.start(self._clear(session_id, working))

    async def close(self) -> None:
        """Wait for a second at most, then cancel the deletions."""
        await self._tasks.close(LEAVE_SECONDS)

    async def _clear(self, session_id: str, working: Sequence[asyncio.Task[None]]) -> None:
        try:
            async with asyncio.timeout(CLEAR_SECONDS):
                if working:
                    await asyncio.wait(working)
                if self._services.shells.screens is not None:
                    await self._services.shells.screens.close(session_id)
                await self._services.shells.shadows.close(session_id)
                if self._services.workspace.servers is not None:
                    await self._services.workspace.servers.close(session_id)
                await asyncio.to_thread(self._services.kept.outputs(session_id).remove)
                await asyncio.to_thread(self._services.kept.artifacts(session_id).remove)
        except (TimeoutError, OSError):
            logger.warning("something of the deleted session %s is left", session_id, exc_info=True)
