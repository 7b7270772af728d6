"""The code index of a server: created on first use, then kept up to date, closed with the server.

An idle server has none: no thread, process, file or imported module. The first run, search or index command creates it;
only a workspace that was never indexed is indexed shortly after the first document is opened, so that the first run
need not wait. Not here: the store and the workers that fill it (`service.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.index.port import Finder, VectorSearch
from codeagent_lsp.state import index_file

if TYPE_CHECKING:
    from codeagent_lsp.config import IndexSettings
    from codeagent_lsp.index.answers import Answers
    from codeagent_lsp.index.scan import Folders
    from codeagent_lsp.index.service import IndexService, Status
    from codeagent_lsp.index.store import Store

FIRST_BUILD_AFTER = 2.0  # seconds after the first document was opened
STATUS_SECONDS = 1.0

BUILDING = "The code index is being built ({done} of {total} files so far). Use grep and glob_file_search meanwhile."
FAILED = "The code index cannot be kept: {problem}. Use grep and glob_file_search."
FRESH = 5.0  # seconds that a scan counts as fresh, where the client does not report changed files
TRUSTED = 300.0  # the same where it does

OFF = "The code index is switched off (setting index.enabled). Use grep and glob_file_search."
NO_FOLDER = "No folder is open, so there is no code index. Use grep and glob_file_search."
TOO_WIDE = "{folder} is too much for a code index; open the folder of a project. Use grep and glob_file_search."
Tell = Callable[["Status"], None]
MakeVectorSearch = Callable[["Store", "Folders"], VectorSearch | None]
"""Makes the vector search for an index; None where none is configured. Called in a thread."""
DELAY = 0.3
MANY = 500

Look = Callable[[tuple[str, ...] | None], Awaitable[object]]
"""Processes these files, by absolute path; None: the whole workspace."""


class IndexHost:
    """The `Indexing` of one server, until `close`. `folders` and `settings` are called for every query; `tell` receives
    every status; `watch` asks the client once to report changed files and returns whether it does; `vectors` makes the
    vector search.
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
        self._index: OpenIndex | None = None
        self._watched: bool | None = None  # until the client has answered
        self._turn = asyncio.Lock()
        self._first: asyncio.Task[None] | None = None
        self._tasks = BackgroundTasks()

    @property
    def whole(self) -> bool:
        """Whether the whole workspace was scanned since the server started."""
        return self._index is not None and self._index.service.last_scan.ended is not None

    def finders(self) -> Sequence[Finder]:
        """Return the searches besides the lexical one; () if there are none or the index is not open."""
        vectors = self._index.vectors if self._index is not None else None
        return () if vectors is None else (vectors.search,)

    async def ready(self, seconds: float) -> Answers:
        """Open the index if necessary, wait at most `seconds` for an update, and return the answers, which may then be
        of an older state. ToolFailed if there is no index, it cannot be kept, or its first build is not finished.
        """
        end = time.monotonic() + seconds
        index = await self.opened()
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
        """Scan the whole workspace, wait for the end without a time limit, and return the status; a full disk is
        `failed` in it. ToolFailed if there is no index.
        """
        return await (await self.opened()).looked_now()

    async def rebuild(self) -> Status:
        """Start to rebuild the index in the background and return the status at its beginning. ToolFailed if there is
        no index.
        """
        index = await self.opened()
        await index.rebuild()
        return index.service.status

    async def status(self) -> dict[str, Any]:
        """Return the status of the index for the user: `state` (as in `Status`), the counts `files`, `done` and
        `total`, `problem` ('' for none), `watched` (whether the client reports changes on disk) and the absolute `path`
        of its file. Opens the index, and waits at most 1 s for a scan. ToolFailed if there is no index.
        """
        index = await self.opened()
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
        """Schedule the first build 2 s after the first document was opened, if this workspace was never indexed;
        returns at once.
        """
        if self._first is None:
            self._first = asyncio.create_task(self._first_build())

    def wanted(self) -> None:
        """Start opening the index in the background, as a query will follow soon; returns at once."""
        if self._index is None:
            self._tasks.start(self._begin())

    def touched(self, paths: Iterable[str]) -> None:
        """Report files, by absolute path, that were saved, created, changed or deleted; returns at once. Ignored while
        the index is not open.
        """
        if self._index is not None:
            self._index.feed.add(paths)

    def folders_changed(self) -> None:
        """Reopen the index in the background for the new workspace folders, if it was open; returns at once."""
        if self._index is not None:
            self._tasks.start(self._begin())

    async def close(self) -> None:
        """Cancel all work on the index, wait for its end and close it; no process, task or file handle is left."""
        await end_task(self._first)
        await self._tasks.end()
        await self._shut()

    def was_built(self) -> bool:
        """Return whether the present folders have an index file. Blocks on the disk."""
        return index_file(self._folders()).exists()

    async def opened(self) -> OpenIndex:
        """Return the open index of the present folders, the same until these change; the host closes it. ToolFailed if
        the setting is off, no folder is open, or one of them is a home folder or above it.
        """
        async with self._turn:
            folders, settings = tuple(self._folders()), self._settings()
            problem = _unfit(folders, settings)
            if problem or (self._index is not None and self._index.folders != folders):
                await self._shut()
            if problem:
                raise ToolFailed(problem, ErrorCode.NOT_FOUND)
            if self._index is None:
                path = index_file(folders)
                self._index = await asyncio.to_thread(OpenIndex, folders, path, settings, self._tell, self._vectors)
                self._tasks.start(self._follow(self._index))
            return self._index

    @property
    def _age(self) -> float:
        """Return for how many seconds a scan of everything counts as fresh."""
        return TRUSTED if self._watched else FRESH

    async def _follow(self, index: OpenIndex) -> None:
        """Have the client report changed files; if it does not, poll for them."""
        if self._watched is None:
            self._watched = await self._watch()
        # The folders may have changed while the client was asked.
        if not self._watched and self._index is index:
            index.service.start()

    async def _shut(self) -> None:
        index, self._index = self._index, None
        if index is not None:
            await index.close()

    async def _first_build(self) -> None:
        await asyncio.sleep(FIRST_BUILD_AFTER)
        if self._index is None and not await asyncio.to_thread(self.was_built):
            await self._begin()

    async def _begin(self) -> None:
        try:
            await (await self.opened()).looked(self._age)
        except ToolFailed:
            return  # there is nothing to index, and no caller to report to


def _unfit(folders: Sequence[str], settings: IndexSettings) -> str:
    """Return why these folders get no index; '' if they do. A home folder or a root is not a project."""
    if not settings.enabled:
        return OFF
    home = Path.home()
    wide = next((name for name in folders if Path(name) in (home, *home.parents)), "")
    return NO_FOLDER if not folders else TOO_WIDE.format(folder=wide) if wide else ""


# An open index: scans of the disk, batched file changes, and the vector search.


class OpenIndex:
    """The index of `folders` (absolute paths) in the file `path`, with its workers, until `close`. `known` says that it
    had files before this server started.
    """

    def __init__(
        self, folders: Sequence[str], path: Path, settings: IndexSettings, tell: Tell, vectors: MakeVectorSearch
    ) -> None:
        """Import and open the heavy parts; blocks, so it is called in a thread."""
        import sqlite3  # late: an idle server does without it

        from codeagent_lsp.index.answers import Answers  # late: an idle server does without it
        from codeagent_lsp.index.service import IndexService  # late: an idle server does without it

        self.folders = tuple(folders)
        self.service: IndexService = IndexService(folders, path, settings, tell=self._on_status)
        self.answers: Answers = Answers(self.service.store, self.service.folders)
        self.vectors = vectors(self.service.store, self.service.folders)
        self.feed = Feed(self._look)
        try:
            self.known = bool(self.service.store.query("SELECT 1 FROM files LIMIT 1"))
        except (sqlite3.Error, OSError):
            self.known = False  # the first scan reports the problem
        self._tell = tell
        self._looking: asyncio.Task[Status] | None = None
        self._following: asyncio.Task[object] | None = None

    async def looked(self, age: float, seconds: float | None = None) -> Status | None:
        """Wait at most `seconds` (None: without limit) for a scan of everything, unless the last one is younger than
        `age` seconds, and return its status; None if it is still running or was cancelled. All callers share one scan.
        """
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self.service.refresh(age=age))
        done, _ = await asyncio.wait([self._looking], timeout=None if seconds is None else max(0.0, seconds))
        return next((task.result() for task in done if not task.cancelled()), None)

    async def looked_now(self) -> Status:
        """Wait, without a time limit, for a scan of everything that begins now, since one in progress may have missed
        recent changes, and return the status.
        """
        if self._looking is not None:
            await asyncio.wait([self._looking])
        return await self.looked(0.0) or self.service.status

    async def rebuild(self) -> None:
        """Cancel the current scan and start a rebuild in its place; does not wait for it."""
        await end_task(self._looking)
        self._looking = asyncio.create_task(self.service.rebuild())
        # It begins now, so that the caller reads its status, not the one before.
        await asyncio.sleep(0)

    async def close(self) -> None:
        """Cancel all work on this index, wait for its end, without a time limit, and close the files; not to be used
        afterwards.
        """
        await self.feed.close()
        await end_task(self._looking)
        await end_task(self._following)
        if self.vectors is not None:
            await self.vectors.close()
        await self.service.close()

    async def _look(self, paths: tuple[str, ...] | None) -> Status:
        return await (self.service.refresh() if paths is None else self.service.changed(paths))

    def _on_status(self, status: Status) -> None:
        """Pass on a status, and update the vectors after each scan of the disk."""
        self._tell(status)
        if status.state != "ready" or self.vectors is None:
            return
        if self._following is None or self._following.done():
            self._following = asyncio.ensure_future(self.vectors.refresh())


async def end_task(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task and wait until it has ended, without a time limit; None and finished tasks are accepted. Its
    exception is not raised.
    """
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task])


# Batching of notifications of changed files: gathered for 0.3 seconds, then passed on together.


class Feed:
    """Gathers changed paths for 0.3 s and passes them to `look` together, or None for more than 500; `look` never runs
    twice at the same time.
    """

    def __init__(self, look: Look) -> None:
        self._look = look
        self._waiting: dict[str, None] = {}
        self._now = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, paths: Iterable[str]) -> None:
        """Add absolute paths that may have changed; returns at once. Needs a running event loop."""
        for path in paths:
            if len(self._waiting) <= MANY:  # with more than that the whole workspace is scanned
                self._waiting[path] = None
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._hand_on())

    async def settle(self, seconds: float) -> None:
        """Have the waiting paths processed now, and wait for that at most `seconds`; nothing if there are none."""
        if self._task is not None and not self._task.done():
            self._now.set()
            await asyncio.wait([self._task], timeout=seconds)

    async def close(self) -> None:
        """Drop the waiting paths, cancel the work and wait for its end."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _hand_on(self) -> None:
        while self._waiting:
            try:
                async with asyncio.timeout(DELAY):
                    await self._now.wait()
            except TimeoutError:
                pass
            self._now.clear()
            paths, self._waiting = tuple(self._waiting), {}
            await self._look(paths if len(paths) <= MANY else None)
