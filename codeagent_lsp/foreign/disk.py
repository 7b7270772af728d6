"""Files as they are on the disk: one as a text, all of them by their stamps. Ignored files and links are left out.

Blocks; callers that serve a client use a thread. Not here: what a file had been before (`baseline.py`).
"""

# ruff: noqa: PTH118 - plain strings are several times faster in a walk

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple

from codeagent_lsp.errors import AgentError
from codeagent_lsp.workspace.files.file_view import MAX_BYTES
from codeagent_lsp.workspace.files.ignore import FolderRules, IgnoreRules
from codeagent_lsp.workspace.files.paths import Roots, entries_of, is_unicode, within
from codeagent_lsp.workspace.text.encoding import decode

MOST_FILES = 50_000
EDITORS_FOLDERS = frozenset((".vscode", ".idea", ".vs", ".zed", ".fleet"))
"""Where editors keep settings of a project, and write without a word to us."""
NOTEBOOK = ".ipynb"


@dataclass(frozen=True, slots=True)
class FileState:
    """A file at one moment: its text, None if there is no file. If it is not `known`, nothing else is: it is binary,
    too large, no regular file, usually holds secrets, or nobody kept what it was.
    """

    text: str | None = None
    known: bool = True


ABSENT = FileState()
UNKNOWN = FileState(known=False)


class Stamp(NamedTuple):
    """Metadata that changes when a file does, so that it need not be read. Times are in nanoseconds, the
    size in bytes.
    """

    mtime: int
    ctime: int
    size: int
    inode: int


class Tree:
    """The files of the workspace folders that are followed: those that are not ignored and no links. `own` are folders
    of this program's state, which are left out. Paths are absolute; methods block.
    """

    def __init__(self, roots: Roots, own: tuple[str, ...] = ()) -> None:
        self.roots = roots
        self._own = own
        self._rules = {root: IgnoreRules(root) for root in roots.folders}
        self._inside: dict[str, FolderRules | None] = {}

    def follows(self, path: str) -> bool:
        """Return whether a path, absolute and real, is that of a file that would be followed; it need not exist."""
        root = self.roots.root_of(path)
        if root is None or path == root or within(path, self._own) or not _is_ours_to_follow(path):
            return False
        if not EDITORS_FOLDERS.isdisjoint(PurePath(path[len(root) :]).parts):
            return False
        folder, name = os.path.split(path)
        rules = self._rules_in(folder)
        return rules is not None and not rules.ignores(name, is_dir=False)

    def look_again(self) -> None:
        """Have the ignore rules read again at the next use, as they may have changed; in between they are cached by
        folder.
        """
        self._inside.clear()

    def state(self, path: str) -> FileState:
        """Return the file at an absolute path as it is now; never raises: `ABSENT` if there is none, `UNKNOWN` if it
        cannot be read as text or usually holds secrets.
        """
        info = self.roots.stat(path)
        if info is None:
            return ABSENT
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_BYTES or self.roots.is_secret(path):
            return UNKNOWN
        try:
            return state_of(self.roots.read_bytes(path, MAX_BYTES))
        except AgentError:
            return UNKNOWN

    def stamp(self, path: str) -> Stamp | None:
        """Return the stamp of the regular file at an absolute path; None if there is none, for a link, and outside of
        the workspace.
        """
        info = self.roots.stat(path)
        return None if info is None or not stat.S_ISREG(info.st_mode) else _stamp(info)

    def below(self, folder: str, stopped: Callable[[], bool]) -> Iterator[tuple[str, Stamp]]:
        """Yield pairs of absolute path and stamp of the followed files below a folder; none for an ignored one. Ends
        early once `stopped` returns True.
        """
        rules = self._rules_in(folder)
        if rules is not None and not within(folder, self._own):
            yield from self._walk(folder, rules, stopped)

    def walk(self, stopped: Callable[[], bool]) -> Iterator[tuple[str, Stamp]]:
        """Yield the path and stamp of every followed file; ends early once `stopped` returns True."""
        for root in self.roots.folders:
            yield from self._walk(root, self._rules[root].at_root(), stopped)

    def _rules_in(self, folder: str) -> FolderRules | None:
        """Return the rules for the names in a folder of the workspace; None if it is ignored."""
        if folder not in self._inside:
            root, (outer, name) = self.roots.root_of(folder), os.path.split(folder)
            if root is None or folder == root:
                self._inside[folder] = None if root is None else self._rules[root].at_root()
            else:
                rules = self._rules_in(outer)
                ignored = rules is None or rules.ignores(name, is_dir=True)
                self._inside[folder] = None if rules is None or ignored else rules.enter(name)
        return self._inside[folder]

    def _walk(self, start: str, first: FolderRules, stopped: Callable[[], bool]) -> Iterator[tuple[str, Stamp]]:
        pending = [(start, first)]
        while pending and not stopped():
            folder, rules = pending.pop()
            for entry in entries_of(folder):
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    inner = os.path.join(folder, name)
                    # A workspace folder inside another one is walked by itself.
                    left = inner in self._rules or inner in self._own or name in EDITORS_FOLDERS
                    if not left and not rules.ignores(name, is_dir=True):
                        pending.append((inner, rules.enter(name)))
                elif (
                    entry.is_file(follow_symlinks=False)
                    and not rules.ignores(name, is_dir=False)
                    and _is_ours_to_follow(name)
                ):
                    try:
                        yield entry.path, _stamp(entry.stat(follow_symlinks=False))
                    except OSError:  # gone meanwhile
                        continue


def state_of(data: bytes) -> FileState:
    """Return the state of a file with this content; `UNKNOWN` if it is binary or longer than the limit for followed
    files.
    """
    if len(data) > MAX_BYTES:
        return UNKNOWN
    try:
        return FileState(decode(data).text)
    except AgentError:  # binary
        return UNKNOWN


def stamps(tree: Tree, stopped: Callable[[], bool]) -> dict[str, Stamp] | None:
    """Return the stamps of all followed files by path; None if there are more than 50,000. Blocks."""
    found: dict[str, Stamp] = {}
    for path, stamp in tree.walk(stopped):
        found[path] = stamp
        if len(found) > MOST_FILES:
            return None
    return found


def differing(before: Mapping[str, Stamp], now: Mapping[str, Stamp]) -> tuple[str, ...]:
    """Return the paths that are new or have another stamp, in the order of `now`, then those that are gone; () if both
    are equal.
    """
    changed = [path for path, stamp in now.items() if before.get(path) != stamp]
    return (*changed, *(path for path in before if path not in now))


def _stamp(info: os.stat_result) -> Stamp:
    return Stamp(info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino)


def _is_ours_to_follow(name: str) -> bool:
    """Return whether we can name a file, and hear of what an editor saves there: it tells nothing of notebooks."""
    return not name.endswith(NOTEBOOK) and is_unicode(name)
