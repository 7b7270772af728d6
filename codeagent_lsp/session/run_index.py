"""Gives one run access to the code index: its staged texts over unsaved ones over the disk, without files it may not
read; and reads the past commits of the repositories around the workspace, by which files are ranked.

Waits for the index a bounded time. Nothing of the commits is shown. Not here: building the index (`index/host.py`),
answering (`index/answers.py`), what commits count (`index/commits.py`), the map in the prompts
(`conversation/repo_maps.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from codeagent_lsp.config import PermissionsSettings
from codeagent_lsp.errors import AgentError, ToolFailed
from codeagent_lsp.index.port import Indexing
from codeagent_lsp.tools.git.calls import call, repository_of
from codeagent_lsp.tools.permissions.policy import may_read
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import Roots

if TYPE_CHECKING:  # heavy, and a server that is idle does without them
    from codeagent_lsp.index.answers import Answers
    from codeagent_lsp.index.commits import PastCommit, PastCommits
    from codeagent_lsp.index.rank import Task
    from codeagent_lsp.index.relevance import Chunk
    from codeagent_lsp.index.repomap import RepoMap
    from codeagent_lsp.index.service import Status
    from codeagent_lsp.index.view import View

TOOL_SECONDS = 20.0  # less than the time limit of a tool
MAP_SECONDS = 4.0  # a run that begins without a map can still search
LOG_SECONDS = 1.5
_MOST_BYTES = 4 * 1024 * 1024

P = ParamSpec("P")
T = TypeVar("T")


class RunIndex:
    """The `CodeIndex` of one run. `permissions` returns the present settings; it is called at every question."""

    def __init__(self, indexing: Indexing, files: FileView, permissions: Callable[[], PermissionsSettings]) -> None:
        self._indexing = indexing
        self._files = files
        self._permissions = permissions
        self._patience = MAP_SECONDS
        self._past: PastCommits | None = None

    async def view(self) -> View:
        """Return the present state of the index. Waits at most 20 s for an update; ToolFailed if there is no index, it
        is not built yet, or cannot be read.
        """
        answers = await self._indexing.ready(TOOL_SECONDS)
        return await _ask(answers.view, self._files)

    async def search(self, query: str, limit: int) -> tuple[Chunk, ...]:
        """Return at most `limit` chunks of code that answer best, fused from the lexical search and all others. Only
        files that may be read without asking are in it. Waits and ToolFailed as for `view`.
        """
        from codeagent_lsp.index.rank import Task, fuse_lists  # late, with the rest of the index

        answers, task = await self._with_commits(self._indexing.ready(TOOL_SECONDS), Task(query))
        may_read = self._may_read()
        words, *others = await asyncio.gather(
            _ask(answers.search, self._files, task, limit, may_read),
            *(finder(query, limit) for finder in self._indexing.finders()),
        )
        return fuse_lists([words, *(self._showable(found, may_read) for found in others)], limit)

    async def found(self, query: str, limit: int) -> tuple[Chunk, ...]:
        """Return at most `limit` chunks that the lexical search alone finds, the best first, with which a run begins:
        it waits no longer than a map does, and starts no embedder. ToolFailed if there is no index.
        """
        from codeagent_lsp.index.rank import Task  # late, with the rest of the index

        answers, task = await self._with_commits(self._for_a_map(), Task(query))
        return await _ask(answers.search, self._files, task, limit, self._may_read())

    async def refresh(self) -> Status:
        """Update the index to the present state of the disk, wait for that however long it takes, and return its
        status. ToolFailed if there is no index.
        """
        return await self._indexing.refresh()

    async def overview(self, budget: int) -> RepoMap | None:
        """Return the map for no task in particular, in at most `budget` tokens; None until all of the workspace is
        scanned. All maps of a run together wait at most 4 s; ToolFailed if there is no index by then.
        """
        answers = await self._for_a_map()
        # The overview stays in the prompt for the whole session, so a map of half a workspace would, too.
        if not self._indexing.whole:
            return None
        return await _ask(answers.overview, self._files, budget, self._may_read())

    async def task_map(self, task: Task, budget: int, *, lines: bool = False) -> RepoMap:
        """Return the map for a task, in at most `budget` tokens; with `lines`, with line numbers. Waits and ToolFailed
        as for `overview`.
        """
        answers, task = await self._with_commits(self._for_a_map(), task)
        return await _ask(answers.task_map, self._files, task, budget, self._may_read(), lines=lines)

    async def _with_commits(self, ready: Awaitable[Answers], task: Task) -> tuple[Answers, Task]:
        """Wait for the index, and beside it read the past commits; return the answers, and the task with them."""
        reading = asyncio.create_task(self._commits())
        try:
            return await ready, replace(task, past=await reading)
        finally:
            reading.cancel()
            await asyncio.wait([reading])

    async def _commits(self) -> PastCommits:
        """Return the past commits, read once for a run: what the run itself commits says nothing new."""
        if self._past is None:
            self._past = await past_commits(self._files.roots)
        return self._past

    async def _for_a_map(self) -> Answers:
        """Wait for the index; all maps of a run together wait at most 4 seconds."""
        begun = time.monotonic()
        try:
            return await self._indexing.ready(self._patience)
        finally:
            # Also when it fails: an index that is not ready for the overview must not hold up the map of the task as
            # long again.
            self._patience = max(0.0, self._patience - (time.monotonic() - begun))

    def _may_read(self) -> Callable[[str], bool]:
        """Return a predicate for whether a file (absolute path) may be read without asking the user."""
        return may_read(self._permissions(), self._files.roots)

    def _showable(self, found: Sequence[Chunk], may_read: Callable[[str], bool]) -> list[Chunk]:
        """Return the chunks of files that exist, may be read, and have no newer text than the one that was searched."""
        newer = self._files.over_disk()
        paths = [(chunk, self._absolute(chunk.path)) for chunk in found]
        # Vectors are made of the text on the disk; for a file with a newer text their lines are not right.
        return [chunk for chunk, path in paths if path is not None and path not in newer and may_read(path)]

    def _absolute(self, path: str) -> str | None:
        try:
            absolute = self._files.roots.resolve(path)
        except AgentError:
            return None
        return absolute if self._files.exists(absolute) else None


async def past_commits(roots: Roots) -> PastCommits:
    """Return the last 2,000 commits of each workspace folder; none of one that has no repository, or whose git takes
    longer than 1.5 s.
    """
    from codeagent_lsp.index.commits import PastCommits  # late, with the rest of the index

    found = await asyncio.gather(*(_commits_of(folder, roots) for folder in roots.folders))
    return await asyncio.to_thread(PastCommits, [commit for commits in found for commit in commits])


async def _commits_of(folder: str, roots: Roots) -> list[PastCommit]:
    from codeagent_lsp.index.commits import LOG, commits_of  # late, with the rest of the index

    label = f"{roots.relative(folder)}/" if len(roots.folders) > 1 else ""
    try:
        repository = repository_of(folder, roots)
        inner = repository.inner(folder)
        # A folder of a large repository: the commits that change something in it, with paths as seen from it.
        below = (f"--relative={inner}", "--", inner) if inner else ()
        async with asyncio.timeout(LOG_SECONDS):
            log = await call(repository, *LOG, *below, limit=_MOST_BYTES)
    except (AgentError, OSError, TimeoutError):
        return []
    return commits_of(log.decode("utf-8", "replace"), label)


async def _ask(look: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a blocking call to the index. ToolFailed if its file cannot be read."""
    import sqlite3  # late, with the rest of the index

    try:
        return await asyncio.to_thread(look, *args, **kwargs)
    except (sqlite3.Error, OSError) as error:
        raise ToolFailed(f"The code index cannot be read ({error}). Use grep and glob_file_search.") from None
