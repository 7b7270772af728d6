"""Scan of the workspace for files that are new, changed or removed compared to the index.

Based on names and stamps only; ignored names and links are left out. Not here: reading files (`intake.py`).
"""

# ruff: noqa: PTH118 - plain strings are several times faster in a walk

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from codeagent_lsp.index.store import Known, Stamp, Store, Work
from codeagent_lsp.workspace.files.ignore import FolderRules, IgnoreRules
from codeagent_lsp.workspace.files.paths import Roots, entries_of, is_unicode, relative_name

MAX_FILES = 500_000
FEW_FILES = 16
FEW_BYTES = 400_000


class Scan(NamedTuple):
    """The result of a scan: `changed` files to process, `removed` index paths to delete, and the number of all files
    found.
    """

    changed: tuple[Work, ...]
    removed: tuple[str, ...]
    files: int

    @property
    def is_small(self) -> bool:
        """Whether processing the changed files here is faster than starting processes for it: at most 16 of together
        400 kB.
        """
        return len(self.changed) <= FEW_FILES and sum(work.size for work in self.changed) <= FEW_BYTES


class Folders:
    """The workspace folders, with their ignore rules and the index paths of their files: relative to the folder, such
    as `a/b.py`, with the folder's label in front if there are several.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self.roots = Roots(folders)
        several = len(self.roots.folders) > 1
        self._prefixes = {root: f"{self.roots.relative(root)}/" if several else "" for root in self.roots.folders}
        self._rules = {root: IgnoreRules(root) for root in self.roots.folders}

    def path_of(self, absolute: str) -> str | None:
        """Return the index path of a file on disk; None outside the folders or for a name that is not Unicode."""
        root = self.roots.root_of(absolute)
        if root is None or not is_unicode(absolute):
            return None
        return self._prefixes[root] + relative_name(absolute, root)

    def absolute(self, path: str) -> str | None:
        """Return the absolute path on disk of an index path, whether or not it exists; None if it does not begin with
        the label of a folder, where there are several.
        """
        for root, prefix in self._prefixes.items():
            if path.startswith(prefix):
                return os.path.join(root, path[len(prefix) :])
        return None

    def look(self, absolute: str) -> Stamp | None:
        """Return the stamp of one file; None if it is gone, ignored, a link, not a regular file or outside of the
        folders.
        """
        root = self.roots.root_of(absolute)
        info = self.roots.stat(absolute) if root is not None else None
        if root is None or info is None or not stat.S_ISREG(info.st_mode):
            return None
        return None if self._rules[root].is_ignored(absolute, is_dir=False) else Stamp.of(info)

    def ignores(self, folder: str) -> bool:
        """Return whether a folder, by absolute path, is an ignored one of the workspace or inside of one; False outside
        of the workspace.
        """
        root = self.roots.root_of(folder)
        return root is not None and self._rules[root].is_ignored(folder, is_dir=True)

    def walk(self, stop: threading.Event) -> Iterator[tuple[str, str, Stamp]]:
        """Yield every file that is not ignored as its index path, its absolute path and its stamp, unsorted; links and
        names that are not Unicode are left out. Ends early once `stop` is set. Blocks.
        """
        for root, prefix in self._prefixes.items():
            yield from self._walk(root, prefix, stop)

    def _walk(self, root: str, prefix: str, stop: threading.Event) -> Iterator[tuple[str, str, Stamp]]:
        pending: list[tuple[str, str, FolderRules]] = [(root, prefix, self._rules[root].at_root())]
        while pending and not stop.is_set():
            folder, inner, rules = pending.pop()
            for entry in entries_of(folder):
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    below = os.path.join(folder, name)
                    # A workspace folder inside another one is walked by itself, under its own label.
                    if below not in self._prefixes and not rules.ignores(name, is_dir=True):
                        pending.append((below, f"{inner}{name}/", rules.enter(name)))
                elif entry.is_file(follow_symlinks=False) and not rules.ignores(name, is_dir=False):
                    stamp = _stamp_at(entry)
                    if stamp is not None and is_unicode(inner + name):
                        yield inner + name, entry.path, stamp


def scan(folders: Folders, known: Mapping[str, Known], stop: threading.Event) -> Scan:
    """Return what differs between the disk and the `known` files, by index path; blocks. A scan that `stop` interrupts,
    or that finds more than 500,000 files, removes nothing.
    """
    changed: list[Work] = []
    seen: set[str] = set()
    for path, absolute, stamp in folders.walk(stop):
        seen.add(path)
        if len(seen) > MAX_FILES:
            break
        before = known.get(path)
        if before is None or before.stamp != stamp:
            changed.append(Work(path, absolute, before.digest if before else b"", stamp.size))
    whole = not stop.is_set() and len(seen) <= MAX_FILES  # what the walk has not reached may still be there
    removed = tuple(path for path in known if path not in seen) if whole else ()
    return Scan(tuple(changed), removed, len(seen))


def scan_files(folders: Folders, paths: Iterable[str], store: Store, files: int) -> Scan:
    """Compare single files, by absolute path, with `store`; `files` becomes the result's number of all files. Also what
    the index has below each path is compared, since of a deleted folder clients may report only the folder.
    """
    changed: list[Work] = []
    removed: list[str] = []
    asked = (path for each in paths for path in (each, *_below(folders, each, store)))
    for absolute in dict.fromkeys(asked):
        path = folders.path_of(absolute)
        stamp = folders.look(absolute) if path is not None else None
        if path is not None and stamp is None:
            removed.append(path)
        elif path is not None and stamp is not None:
            changed.append(Work(path, absolute, store.digest(path), stamp.size))
    return Scan(tuple(changed), tuple(path for path in removed if store.digest(path)), files)


def _below(folders: Folders, absolute: str, store: Store) -> list[str]:
    """Return the absolute paths of the indexed files below a path on disk."""
    path = folders.path_of(absolute)
    inner = () if path is None else store.below(path)
    return [place for each in inner if (place := folders.absolute(each)) is not None]


def _stamp_at(entry: os.DirEntry[str]) -> Stamp | None:
    try:
        return Stamp.of(entry.stat(follow_symlinks=False))
    except OSError:
        return None
