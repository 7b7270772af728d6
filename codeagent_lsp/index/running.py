"""An open index: scans of the disk, batched file changes, and the vector search.

Not here: whether there is an index, and for which folders (`host.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeagent_lsp.index.feed import Feed
from codeagent_lsp.index.port import VectorSearch

if TYPE_CHECKING:  # heavy
    from codeagent_lsp.config import IndexSettings
    from codeagent_lsp.index.answers import Answers
    from codeagent_lsp.index.scan import Folders
    from codeagent_lsp.index.service import IndexService, Status
    from codeagent_lsp.index.store import Store

Tell = Callable[["Status"], None]
MakeVectorSearch = Callable[["Store", "Folders"], VectorSearch | None]
"""Makes the vector search for an index; None where none is configured. Called in a thread."""


class OpenIndex:
    """The index of `folders` at `path`, until `close`. `known` says that it had files before this server started."""

    def __init__(
        self, folders: Sequence[str], path: Path, settings: IndexSettings, tell: Tell, vectors: MakeVectorSearch
    ) -> None:
        """Import and open the heavy parts; blocks, so it is called in a thread."""
        import sqlite3  # late: an idle server does without it

        from codeagent_lsp.index.answers import Answers  # late: an idle server does without it
        from codeagent_lsp.index.service import IndexService  # late: an idle server does without it

        self.folders = tuple(folders)
        self.service: IndexService = IndexService(folders, path, settings, tell=self._heard)
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
        """Wait at most `seconds` for a scan of everything, unless the last one is younger than `age` seconds.

        All callers share one scan. Returns its status; None where it is still running or was cancelled.
        """
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self.service.refresh(age=age))
        done, _ = await asyncio.wait([self._looking], timeout=None if seconds is None else max(0.0, seconds))
        return next((task.result() for task in done if not task.cancelled()), None)

    async def looked_now(self) -> Status:
        """Wait for a scan of everything that begins now: one in progress may have missed recent changes."""
        if self._looking is not None:
            await asyncio.wait([self._looking])
        return await self.looked(0.0) or self.service.status

    async def rebuild(self) -> None:
        """Cancel the current scan and start a rebuild in its place."""
        await ended(self._looking)
        self._looking = asyncio.create_task(self.service.rebuild())
        await asyncio.sleep(0)

    async def close(self) -> None:
        """Stop everything."""
        await self.feed.close()
        await ended(self._looking)
        await ended(self._following)
        if self.vectors is not None:
            await self.vectors.close()
        await self.service.close()

    async def _look(self, paths: tuple[str, ...] | None) -> Status:
        return await (self.service.refresh() if paths is None else self.service.changed(paths))

    def _heard(self, status: Status) -> None:
        """Pass on a status, and update the vectors after each scan of the disk."""
        self._tell(status)
        if status.state != "ready" or self.vectors is None:
            return
        if self._following is None or self._following.done():
            self._following = asyncio.ensure_future(self.vectors.refresh())


async def ended(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task and wait until it has ended; None and finished tasks are accepted."""
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task])
