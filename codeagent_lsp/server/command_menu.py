"""The users' own commands for code actions and completion, answered from memory: read again in the background.

Not here: reading the files (`agent/custom_commands.py`), running one (`server/commands/commands.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from codeagent_lsp.background_tasks import BackgroundTasks

if TYPE_CHECKING:
    from codeagent_lsp.agent.custom_commands import CommandShelf, CustomCommand
    from codeagent_lsp.workspace.files.file_view import FileView

FRESH_SECONDS = 5.0


class CommandMenu:
    """The commands as they were a few seconds ago."""

    def __init__(self, shelf: CommandShelf, view: Callable[[], FileView]) -> None:
        self._shelf = shelf
        self._view = view
        self._known: tuple[tuple[str, str], ...] = ()
        self._read = 0.0
        self._tasks = BackgroundTasks()

    def offered(self) -> tuple[tuple[str, str], ...]:
        """Return names and descriptions of all commands; they are read again if that was some seconds ago."""
        # The answer is that of before: a code action must not wait for files.
        if time.monotonic() - self._read > FRESH_SECONDS and not len(self._tasks):
            self._tasks.start(self._refresh())
        return self._known

    def close(self) -> None:
        """Stop reading."""
        self._tasks.cancel()

    async def _refresh(self) -> None:
        self._read = time.monotonic()
        found: tuple[CustomCommand, ...] = await asyncio.to_thread(self._shelf.commands, self._view())
        self._known = tuple((item.name, item.description) for item in found)
