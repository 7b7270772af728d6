"""The code index of a server: created on first use, then kept up to date, closed with the server.

An idle server has none: no thread, process, file or imported module. The first run, search or
index command creates it; only a workspace that was never indexed is indexed shortly after the
first document is opened, so that the first run need not wait. Not here: the open index (`running.py`), notifications
of changes (`feed.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.index.port import Finder
from codeagent_lsp.index.running import MakeVectorSearch, OpenIndex, Tell, ended
from codeagent_lsp.state import workspace_state

if TYPE_CHECKING:  # heavy
    from codeagent_lsp.config import IndexSettings
    from codeagent_lsp.index.answers import Answers
    from codeagent_lsp.index.service import Status

STORE = "index.sqlite"
FIRST_BUILD_AFTER = 2.0  # seconds after the first document was opened
STATUS_SECONDS = 1.0
FRESH = 5.0  # seconds that a scan counts as fresh, where the client does not report changed files
TRUSTED = 300.0  # the same where it does

OFF = "The code index is switched off (setting index.enabled). Use grep and glob_file_search."
NO_FOLDER = "No folder is open, so there is no code index. Use grep and glob_file_search."
TOO_WIDE = "{folder} is too much for a code index; open the folder of a project. Use grep and glob_file_search."
BUILDING = "The code index is being built ({done} of {total} files so far). Use grep and glob_file_search meanwhile."
FAILED = "The code index cannot be kept: {problem}. Use grep and glob_file_search."


class IndexHost:
    """The `Indexing` of one server.

    `folders` and `settings` are called for every query; `tell` receives every status; `watch` asks the client once to
    report changed files; `vectors` makes the vector search.
    """

    def __init__(
        self,
        folders: Callable[[], Sequence[str]],
        settings: Callable[[], IndexSettings],
        tell: Tell,
        watch: Callable[[], Awaitable[bool]],
        vectors: MakeVectorSearch = lambda store, folders: None,
    ) -> None:
        self._folders = folders
        self._settings = settings
        self._tell = tell
        self._watch = watch
        self._vectors = vectors
        self._watched: bool | None = None
        self._open: OpenIndex | None = None
        self._turn = asyncio.Lock()
        self._first: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def whole(self) -> bool:
        """Return whether the whole workspace was scanned since the server started."""
        return self._open is not None and self._open.service.last_scan.ended is not None

    def finders(self) -> Sequence[Finder]:
        """Return the searches besides the lexical one."""
        vectors = self._open.vectors if self._open is not None else None
        return () if vectors is None else (vectors.search,)

    async def ready(self, seconds: float) -> Answers:
        """Return the answers for the disk as it is, or for an older state if updating takes over `seconds`.

        Raises ToolFailed if there is no index, it cannot be kept, or its first build is not finished.
        """
        end = time.monotonic() + seconds
        index = await self._opened()
        await index.feed.settle(seconds)
        seen = await index.looked(self._age, end - time.monotonic())
        if seen is not None and seen.state == "failed":
            raise ToolFailed(FAILED.format(problem=seen.problem))
        status = index.service.status
        if not index.known and index.service.last_scan.ended is None:
            # NOT_FOUND, so that the circuit breaker of the tools does not count it as a failure.
            raise ToolFailed(BUILDING.format(done=status.done, total=status.total), ErrorCode.NOT_FOUND)
        return index.answers

    async def refresh(self) -> Status:
        """Update the index to the present state of the disk and wait until that is done."""
        return await (await self._opened()).looked_now()

    async def rebuild(self) -> Status:
        """Start to rebuild the index in the background and return the initial status."""
        index = await self._opened()
        await index.rebuild()
        return index.service.status

    async def status(self) -> dict[str, Any]:
        """Return the status of the index for the user; creates the index."""
        index = await self._opened()
        status = await index.looked(self._age, STATUS_SECONDS) or index.service.status
        return {
            "state": status.state,
            "files": status.files,
            "done": status.done,
            "total": status.total,
            "problem": status.problem,
            "watched": bool(self._watched),
            "path": str(index.service.store.path),
        }

    def document_opened(self) -> None:
        """Schedule the first build after a document was opened, if this workspace was never indexed."""
        if self._first is None:
            self._first = asyncio.create_task(self._first_build())

    def wanted(self) -> None:
        """Start opening the index in the background, as a query will follow soon."""
        if self._open is None:
            self._spawn(self._begun())

    def touched(self, paths: Iterable[str]) -> None:
        """Report files, by absolute path, that were saved, created, changed or deleted."""
        if self._open is not None:
            self._open.feed.add(paths)

    def folders_changed(self) -> None:
        """Reopen an index that was in use, as the workspace folders have changed."""
        if self._open is not None:
            self._spawn(self._begun())

    async def close(self) -> None:
        """Stop everything and leave no process, task or file handle behind."""
        for task in (self._first, *self._tasks):
            await ended(task)
        await self._shut()

    @property
    def _age(self) -> float:
        return TRUSTED if self._watched else FRESH

    async def _first_build(self) -> None:
        await asyncio.sleep(FIRST_BUILD_AFTER)
        if self._open is None and not await asyncio.to_thread(_store(self._folders()).exists):
            await self._begun()

    async def _begun(self) -> None:
        try:
            await (await self._opened()).looked(self._age)
        except ToolFailed:
            return  # there is nothing to index, and no caller to report to

    async def _opened(self) -> OpenIndex:
        """Return the index of the present folders. Raises ToolFailed where there cannot be one."""
        async with self._turn:
            folders, settings = tuple(self._folders()), self._settings()
            problem = _unfit(folders, settings)
            if problem or (self._open is not None and self._open.folders != folders):
                await self._shut()
            if problem:
                raise ToolFailed(problem, ErrorCode.NOT_FOUND)
            if self._open is None:
                path = _store(folders)
                self._open = await asyncio.to_thread(OpenIndex, folders, path, settings, self._tell, self._vectors)
                self._spawn(self._follow(self._open))
            return self._open

    async def _follow(self, index: OpenIndex) -> None:
        """Have the client report changed files; if it does not, poll for them."""
        if self._watched is None:
            self._watched = await self._watch()
        if not self._watched and self._open is index:
            index.service.start()

    async def _shut(self) -> None:
        index, self._open = self._open, None
        if index is not None:
            await index.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _store(folders: Sequence[str]) -> Path:
    return workspace_state(folders) / STORE


def _unfit(folders: Sequence[str], settings: IndexSettings) -> str:
    """Return why these folders get no index; '' if they do. A home folder or a root is not a project."""
    if not settings.enabled:
        return OFF
    home = Path.home()
    wide = next((name for name in folders if Path(name) in (home, *home.parents)), "")
    return NO_FOLDER if not folders else TOO_WIDE.format(folder=wide) if wide else ""
