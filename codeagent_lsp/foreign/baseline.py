"""What the files of a workspace were, before another program changed them, and the copies of them in the state folder,
for this user alone, bounded in number and size.

In a git repository a file that is as git has it needs no copy; of the others one is kept, and without git of every
text, up to limits. Blocks. Not here: when files are looked at and whose a change is (`whose.py`).
"""

# ruff: noqa: PTH118 - paths of the workspace are plain strings

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from codeagent_lsp.errors import AgentError
from codeagent_lsp.foreign import git_tree
from codeagent_lsp.foreign.disk import ABSENT, UNKNOWN, FileState, Stamp, Tree, stamps
from codeagent_lsp.foreign.git_tree import Entry, Marks
from codeagent_lsp.state import make_private
from codeagent_lsp.tools.git.calls import Repository, repository_of
from codeagent_lsp.workspace.files.git_folders import top_of
from codeagent_lsp.workspace.files.paths import within

MOST_TREES = 20
_SUBMODULE = re.compile(r"^\s*path\s*=\s*(.+?)\s*$", re.MULTILINE)

logger = logging.getLogger(__name__)
MOST_COPIES = 4000
MOST_BYTES = 64 << 20
_OLD_SECONDS = 7 * 86400


class Baseline:
    """Knows what the files that `tree` follows were before other programs changed them, until `close`. `is_whole` says
    that all of them were looked at, so that a file that is not known was not there. Paths are absolute.
    """

    def __init__(self, tree: Tree, copies: Copies) -> None:
        self.is_whole = False
        self._tree = tree
        self._copies = copies
        self._repositories: dict[str, Repository] = {}  # by their tops
        self._stop = threading.Event()

    @property
    def repositories(self) -> tuple[Repository, ...]:
        """The git repositories whose files are followed, by their tops; () before `take_stock`, and where git is not
        installed.
        """
        return tuple(self._repositories.values())

    async def take_stock(self, *, again: bool = False) -> dict[str, Stamp] | None:
        """Look at all files, copy those that git does not have, and return their stamps by path; None if there are more
        than 50,000, or this was closed. With `again`, files that were copied before are left as they are.
        """
        found = await asyncio.to_thread(stamps, self._tree, self.stopped)
        if found is None or self._stop.is_set():
            self.is_whole = False
            return None
        known: dict[str, Entry] = {}
        for repository in await asyncio.to_thread(self._find_repositories):
            try:
                known.update(await git_tree.entries(repository, self._inside(repository.top)))
            except AgentError as error:  # no git here: files are copied as without a repository
                logger.info("git does not tell what was there: %s", error)
            else:
                self._repositories[repository.top] = repository
        left = frozenset(self._copies.paths() if again else ())
        await asyncio.to_thread(self._keep_others, found, known, left)
        self.is_whole = not self._stop.is_set()
        return found

    async def before(self, paths: Iterable[str]) -> dict[str, FileState]:
        """Return what these files were, by absolute path; `ABSENT` for those that were not there, `UNKNOWN` for those
        of which that is not known.
        """
        found: dict[str, FileState] = {}
        asked: dict[str, list[str]] = {}
        for path in paths:
            # Copies first: what git has of a file says nothing once the file was something else.
            state = await asyncio.to_thread(self._copies.state, path)
            top = self._top(path)
            if state is not None:
                found[path] = state
            elif top is None:
                found[path] = ABSENT if self.is_whole else UNKNOWN
            else:
                asked.setdefault(top, []).append(path)
        for top, inner in asked.items():
            found.update(await self._in_git(self._repositories[top], inner))
        return found

    async def as_staged(self, paths: Iterable[str]) -> frozenset[str]:
        """Return those of these paths whose files are now as git's index has them, missing ones included; none if git
        fails.
        """
        asked: dict[str, list[str]] = {}
        for path in paths:
            if (top := self._top(path)) is not None:
                asked.setdefault(top, []).append(path)
        found: set[str] = set()
        for top, inner in asked.items():
            try:
                known = await git_tree.entries(self._repositories[top], inner)
            except AgentError:
                continue
            found.update(await asyncio.to_thread(self._alike, inner, known))
        return frozenset(found)

    async def settle(self, states: Mapping[str, FileState]) -> None:
        """Keep these states of files, by absolute path, as what they were from now on; one for which there is no more
        room counts as `UNKNOWN`.
        """
        for path, state in states.items():
            await asyncio.to_thread(self._copies.keep, path, state)

    async def files_below(self, folder: str) -> tuple[str, ...]:
        """Return the absolute paths of the files that were known below a folder (an absolute path), and of those that
        are there now, each once. Where git fails, its files are left out.
        """
        kept = [path for path in self._copies.paths() if within(path, (folder,))]
        for repository in self.repositories:
            if within(folder, (repository.top,)):
                try:
                    kept += [path for path in await git_tree.entries(repository, (folder,)) if within(path, (folder,))]
                except AgentError:
                    continue
        there = await asyncio.to_thread(lambda: [path for path, _ in self._tree.below(folder, self.stopped)])
        return tuple(dict.fromkeys((*kept, *there)))

    def stopped(self) -> bool:
        """Return whether this is closed, so that threads that look at files should end."""
        return self._stop.is_set()

    def marks(self) -> dict[str, Marks]:
        """Return the marks of the repositories by the absolute path of their tops, without repositories that are gone;
        reads a few file names and blocks shortly.
        """
        found = ((top, git_tree.marks(repository)) for top, repository in self._repositories.items())
        return {top: marks for top, marks in found if marks is not None}

    def top_of(self, path: str) -> str | None:
        """Return the absolute path of the top of the repository that a file is in; None if it is in none that is
        known.
        """
        return self._top(path)

    async def close(self) -> None:
        """Stop the threads that look at files, and delete the copies; afterwards nothing is known of any file."""
        self._stop.set()
        await asyncio.to_thread(self._copies.remove)

    def _top(self, path: str) -> str | None:
        # The innermost: a submodule has its own index.
        tops = [top for top in self._repositories if within(path, (top,))]
        return max(tops, key=len, default=None)

    async def _in_git(self, repository: Repository, paths: list[str]) -> dict[str, FileState]:
        absent = ABSENT if self.is_whole else UNKNOWN
        try:
            known = await git_tree.entries(repository, paths)
            wanted = {path: known[path] for path in paths if path in known}
            texts = await git_tree.texts(repository, wanted)
        except AgentError as error:
            logger.info("git does not tell what was there: %s", error)
            return dict.fromkeys(paths, UNKNOWN)
        return {path: texts.get(path, absent) for path in paths}

    def _inside(self, top: str) -> tuple[str, ...]:
        """Return the workspace folders in a repository; none where one is all of it."""
        inside = tuple(folder for folder in self._tree.roots.folders if within(folder, (top,)))
        return () if top in inside else inside

    def _find_repositories(self) -> list[Repository]:
        roots, found = self._tree.roots, dict[str, Repository]()
        waiting = [folder for folder in roots.folders if top_of(folder) is not None]
        while waiting and len(found) < MOST_TREES:
            try:
                repository = repository_of(waiting.pop(0), roots)
            except AgentError:
                continue
            if repository.top in found:
                continue
            found[repository.top] = repository
            waiting += _submodules(repository.top)
        return list(found.values())

    def _keep_others(self, found: Mapping[str, Stamp], known: Mapping[str, Entry], leave: frozenset[str]) -> None:
        """Keep copies of what is not as git has it."""
        for path, stamp in found.items():
            if self._stop.is_set():
                return
            entry = known.get(path)
            # Of a file that was changed when the index was written, the time says nothing; few are.
            if path in leave or (entry is not None and entry.is_file and _is_as(entry, stamp)):
                continue
            if entry is None or not self._has_content(entry, path):
                self._copies.keep(path, self._tree.state(path))
        for path, entry in known.items():
            if path not in found and path not in leave and entry.is_file and self._tree.follows(path):
                self._copies.keep(path, ABSENT)

    def _alike(self, paths: Iterable[str], known: Mapping[str, Entry]) -> list[str]:
        return [
            path
            for path in paths
            if (self._has_content(known[path], path) if path in known else self._tree.stamp(path) is None)
        ]

    def _has_content(self, entry: Entry, path: str) -> bool:
        if not entry.is_file:
            return False
        try:
            # Twice, as git may count a text with LF that has CRLF here.
            data = self._tree.roots.read_bytes(path, max(entry.size * 2, 1))
        except AgentError:
            return False
        return git_tree.has_content(entry, data)


class Copies:
    """The copies of one server's files, in a new folder below `place`, at most 4,000 files of together 64 MiB; `remove`
    deletes it. Methods block.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._folder = place / uuid.uuid4().hex
        self._sizes: dict[str, int | None] = {}
        self._total = 0

    def state(self, path: str) -> FileState | None:
        """Return a file (absolute path) as it was when it was kept, `UNKNOWN` if its copy is gone; None if it was never
        kept.
        """
        if path not in self._sizes:
            return None
        size = self._sizes[path]
        if size is None:
            return UNKNOWN
        if size < 0:
            return ABSENT
        try:
            return FileState(self._file(path).read_bytes().decode("utf-8", "surrogatepass"))
        except (OSError, UnicodeDecodeError):  # somebody cleans the state folder
            return UNKNOWN

    def keep(self, path: str, state: FileState) -> None:
        """Keep this state of a file (absolute path) in place of an earlier one. If there is no more room, only that it
        is not known is kept.
        """
        self._total -= max(self._sizes.pop(path, 0) or 0, 0)
        if not state.known or state.text is None:
            self._sizes[path] = None if not state.known else -1
            self._forget(path)
            return
        data = state.text.encode("utf-8", "surrogatepass")
        # A file for which there is no room is not known, rather than taken for absent.
        full = len(self._sizes) >= MOST_COPIES or self._total + len(data) > MOST_BYTES
        if full or not self._write(path, data):
            self._sizes[path] = None
            self._forget(path)
            return
        self._sizes[path] = len(data)
        self._total += len(data)

    def drop(self, path: str) -> None:
        """Forget a file (absolute path) and delete its copy, since what it was is known otherwise."""
        self._total -= max(self._sizes.pop(path, 0) or 0, 0)
        self._forget(path)

    def paths(self) -> tuple[str, ...]:
        """Return the absolute paths of the files that were kept, those included of which only that is known."""
        return tuple(self._sizes)

    def remove(self) -> None:
        """Delete the folder, and those of other servers that are older than a week; never raises."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._sizes.clear()
        self._total = 0
        oldest = time.time() - _OLD_SECONDS
        with contextlib.suppress(OSError):
            for other in self._place.iterdir():
                if other.stat().st_mtime < oldest:
                    shutil.rmtree(other, ignore_errors=True)
            self._place.rmdir()  # only where no other server has copies

    def _write(self, path: str, data: bytes) -> bool:
        file = self._file(path)
        try:
            make_private(self._folder)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(data)
        except OSError:  # the disk is full: what the file was is not known then
            return False
        return True

    def _forget(self, path: str) -> None:
        with contextlib.suppress(OSError):
            self._file(path).unlink(missing_ok=True)

    def _file(self, path: str) -> Path:
        return self._folder / hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _is_as(entry: Entry, stamp: Stamp) -> bool:
    return entry.size == stamp.size and entry.mtime == stamp.mtime


def _submodules(top: str) -> list[str]:
    """Return the folders of the submodules of a repository that are there."""
    try:
        listed = Path(top, ".gitmodules").read_text("utf-8", "replace")[:100_000]
    except OSError:
        return []
    folders = [os.path.realpath(os.path.join(top, name)) for name in _SUBMODULE.findall(listed)]
    return [folder for folder in folders if within(folder, (top,)) and top_of(folder) == folder]
