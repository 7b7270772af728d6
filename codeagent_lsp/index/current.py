"""The index of the present workspace folders: where there is one, opening it, and reopening it for other folders.

Not here: queries and the lifetime in the server (`host.py`), the open index itself (`running.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.index.running import MakeVectorSearch, OpenIndex, Tell, ended
from codeagent_lsp.state import workspace_state

if TYPE_CHECKING:  # heavy
    from codeagent_lsp.config import IndexSettings

STORE = "index.sqlite"
FRESH = 5.0  # seconds that a scan counts as fresh, where the client does not report changed files
TRUSTED = 300.0  # the same where it does

OFF = "The code index is switched off (setting index.enabled). Use grep and glob_file_search."
NO_FOLDER = "No folder is open, so there is no code index. Use grep and glob_file_search."
TOO_WIDE = "{folder} is too much for a code index; open the folder of a project. Use grep and glob_file_search."


class CurrentIndex:
    """Opens the index of the present folders on demand. For the parameters see `IndexHost`.

    `index` is the open one, None while there is none; `watched` says whether the client reports changed files, None
    until it has answered.
    """

    def __init__(
        self,
        folders: Callable[[], Sequence[str]],
        settings: Callable[[], IndexSettings],
        tell: Tell,
        watch: Callable[[], Awaitable[bool]],
        vectors: MakeVectorSearch,
    ) -> None:
        self.index: OpenIndex | None = None
        self.watched: bool | None = None
        self._folders = folders
        self._settings = settings
        self._tell = tell
        self._watch = watch
        self._vectors = vectors
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def age(self) -> float:
        """Return for how many seconds a scan of everything counts as fresh."""
        return TRUSTED if self.watched else FRESH

    def was_built(self) -> bool:
        """Return whether the present folders were indexed at some time. Blocks on the disk."""
        return _store(self._folders()).exists()

    async def opened(self) -> OpenIndex:
        """Return the index of the present folders. Raises ToolFailed where there cannot be one."""
        async with self._turn:
            folders, settings = tuple(self._folders()), self._settings()
            problem = _unfit(folders, settings)
            if problem or (self.index is not None and self.index.folders != folders):
                await self._shut()
            if problem:
                raise ToolFailed(problem, ErrorCode.NOT_FOUND)
            if self.index is None:
                path = _store(folders)
                self.index = await asyncio.to_thread(OpenIndex, folders, path, settings, self._tell, self._vectors)
                task = asyncio.create_task(self._follow(self.index))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            return self.index

    async def close(self) -> None:
        """Close the open index and stop asking the client to report changed files."""
        for task in tuple(self._tasks):
            await ended(task)
        await self._shut()

    async def _follow(self, index: OpenIndex) -> None:
        """Have the client report changed files; if it does not, poll for them."""
        if self.watched is None:
            self.watched = await self._watch()
        if not self.watched and self.index is index:
            index.service.start()

    async def _shut(self) -> None:
        index, self.index = self.index, None
        if index is not None:
            await index.close()


def _store(folders: Sequence[str]) -> Path:
    return workspace_state(folders) / STORE


def _unfit(folders: Sequence[str], settings: IndexSettings) -> str:
    """Return why these folders get no index; '' if they do. A home folder or a root is not a project."""
    if not settings.enabled:
        return OFF
    home = Path.home()
    wide = next((name for name in folders if Path(name) in (home, *home.parents)), "")
    return NO_FOLDER if not folders else TOO_WIDE.format(folder=wide) if wide else ""
