"""The code index of a server: created on first use, then kept up to date, closed with the server.

An idle server has none: no thread, process, file or imported module. The first run, search or
index command creates it; only a workspace that was never indexed is indexed shortly after the
first document is opened, so that the first run need not wait. Not here: opening it (`current.py`), the open index
(`running.py`), notifications of changes (`feed.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.index.current import CurrentIndex
from codeagent_lsp.index.port import Finder
from codeagent_lsp.index.running import MakeVectorSearch, Tell, ended

if TYPE_CHECKING:  # heavy
    from codeagent_lsp.config import IndexSettings
    from codeagent_lsp.index.answers import Answers
    from codeagent_lsp.index.service import Status

FIRST_BUILD_AFTER = 2.0  # seconds after the first document was opened
STATUS_SECONDS = 1.0

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
        self._current = CurrentIndex(folders, settings, tell, watch, vectors)
        self._first: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def whole(self) -> bool:
        """Return whether the whole workspace was scanned since the server started."""
        index = self._current.index
        return index is not None and index.service.last_scan.ended is not None

    def finders(self) -> Sequence[Finder]:
        """Return the searches besides the lexical one."""
        index = self._current.index
        vectors = index.vectors if index is not None else None
        return () if vectors is None else (vectors.search,)

    async def ready(self, seconds: float) -> Answers:
        """Return the answers for the disk as it is, or for an older state if updating takes over `seconds`.

        Raises ToolFailed if there is no index, it cannot be kept, or its first build is not finished.
        """
        end = time.monotonic() + seconds
        index = await self._current.opened()
        await index.feed.settle(seconds)
        seen = await index.looked(self._current.age, end - time.monotonic())
        if seen is not None and seen.state == "failed":
            raise ToolFailed(FAILED.format(problem=seen.problem))
        status = index.service.status
        if not index.known and index.service.last_scan.ended is None:
            # NOT_FOUND, so that the circuit breaker of the tools does not count it as a failure.
            raise ToolFailed(BUILDING.format(done=status.done, total=status.total), ErrorCode.NOT_FOUND)
        return index.answers

    async def refresh(self) -> Status:
        """Update the index to the present state of the disk and wait until that is done."""
        return await (await self._current.opened()).looked_now()

    async def rebuild(self) -> Status:
        """Start to rebuild the index in the background and return the initial status."""
        index = await self._current.opened()
        await index.rebuild()
        return index.service.status

    async def status(self) -> dict[str, Any]:
        """Return the status of the index for the user; creates the index."""
        index = await self._current.opened()
        status = await index.looked(self._current.age, STATUS_SECONDS) or index.service.status
        return {
            "state": status.state,
            "files": status.files,
            "done": status.done,
            "total": status.total,
            "problem": status.problem,
            "watched": bool(self._current.watched),
            "path": str(index.service.store.path),
        }

    def document_opened(self) -> None:
        """Schedule the first build after a document was opened, if this workspace was never indexed."""
        if self._first is None:
            self._first = asyncio.create_task(self._first_build())

    def wanted(self) -> None:
        """Start opening the index in the background, as a query will follow soon."""
        if self._current.index is None:
            self._spawn(self._begun())

    def touched(self, paths: Iterable[str]) -> None:
        """Report files, by absolute path, that were saved, created, changed or deleted."""
        if self._current.index is not None:
            self._current.index.feed.add(paths)

    def folders_changed(self) -> None:
        """Reopen an index that was in use, as the workspace folders have changed."""
        if self._current.index is not None:
            self._spawn(self._begun())

    async def close(self) -> None:
        """Stop everything and leave no process, task or file handle behind."""
        for task in (self._first, *self._tasks):
            await ended(task)
        await self._current.close()

    async def _first_build(self) -> None:
        await asyncio.sleep(FIRST_BUILD_AFTER)
        if self._current.index is None and not await asyncio.to_thread(self._current.was_built):
            await self._begun()

    async def _begun(self) -> None:
        try:
            await (await self._current.opened()).looked(self._current.age)
        except ToolFailed:
            return  # there is nothing to index, and no caller to report to

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
