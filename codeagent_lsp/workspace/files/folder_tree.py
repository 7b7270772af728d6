"""The folders of a workspace as a run sees them: the disk without ignored names, under open and staged files.

Not here: the texts of the files (`file_view.py`), the ignore rules (`ignore.py`), confinement of paths (`paths.py`).
"""

# ruff: noqa: PTH118, PTH206 - names are plain strings here and may be any bytes

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.workspace.files.confined_file import Child, FileKind
from codeagent_lsp.workspace.files.ignore import FolderRules, IgnoreRules
from codeagent_lsp.workspace.files.paths import Roots, is_untitled


class ListedEntry(NamedTuple):
    """One entry of a folder listing: its absolute path and its kind."""

    path: str
    kind: FileKind


class FolderTree:
    """The tree at one moment: `over` are the paths of open and staged files, `deleted` those of files that a run has
    deleted. `rules` are the ignore rules of each workspace folder.
    """

    def __init__(
        self, roots: Roots, rules: Mapping[str, IgnoreRules], over: Iterable[str], deleted: frozenset[str]
    ) -> None:
        self._roots = roots
        self._rules = rules
        self._names: dict[str, dict[str, FileKind]] = {}
        for path in over:
            root = None if is_untitled(path) else roots.root_of(path)
            if root is not None:
                _add(self._names, path, root)
        self._deleted = deleted - self._names.keys()  # a folder may replace a deleted file

    def holds(self, folder: str) -> bool:
        """Return whether open or staged files are in `folder`, which may not exist on disk."""
        return folder in self._names

    def is_file(self, path: str) -> bool:
        """Return whether there is a file at `path`."""
        if path in self._deleted:
            return False
        folder, name = os.path.split(path)
        return name in self._names.get(folder, ()) or self._roots.kind(path) == "file"

    def entries(self, folder: str, depth: int) -> Iterator[ListedEntry]:
        """Yield what is in a folder in preorder, `depth` levels deep."""
        return self._tree(folder, self._rules_at(folder), depth)

    def files(self, start: str) -> Iterator[str]:
        """Yield the files of a walk with an explicit stack, so that deep trees do not exhaust Python's."""
        pending: list[tuple[str, FileKind, FolderRules | None]] = [(start, "folder", self._rules_at(start))]
        while pending:
            path, kind, rules = pending.pop()
            if kind == "file":
                yield path
            elif kind == "folder":
                inside = [
                    (os.path.join(path, name), inner, rules.enter(name) if rules and inner == "folder" else None)
                    for name, inner in self._children(path, rules)
                ]
                pending += reversed(inside)

    def _rules_at(self, path: str) -> FolderRules | None:
        """Return the ignore rules inside a folder.

        None (no rules) for a folder that is ignored itself but was asked for.
        """
        root = self._roots.root_of(path)
        if root is None or self._rules[root].is_ignored(path, is_dir=True):
            return None
        rules = self._rules[root].at_root()
        inner = os.path.relpath(path, root)
        for name in () if inner == "." else inner.split(os.sep):
            rules = rules.enter(name)
        return rules

    def _tree(self, folder: str, rules: FolderRules | None, depth: int) -> Iterator[ListedEntry]:
        for name, kind in self._children(folder, rules):
            path = os.path.join(folder, name)
            yield ListedEntry(path, kind)
            if kind == "folder" and depth > 1:
                yield from self._tree(path, rules and rules.enter(name), depth - 1)

    def _children(self, folder: str, rules: FolderRules | None) -> list[Child]:
        """Return the entries of a folder without ignored names, in byte order of the names."""
        found: dict[str, FileKind] = dict(_scan(self._roots, folder))
        found |= self._names.get(folder, {})
        return [
            Child(name, found[name])
            for name in sorted(found, key=os.fsencode)
            if os.path.join(folder, name) not in self._deleted
            and not (rules.ignores(name, is_dir=found[name] == "folder") if rules else name == ".git")
        ]


def _scan(roots: Roots, folder: str) -> tuple[Child, ...]:
    try:
        return roots.scan(folder)
    except FileRefused:  # staged only, unreadable, or gone meanwhile
        return ()


def _add(names: dict[str, dict[str, FileKind]], path: str, root: str) -> None:
    kind: FileKind = "file"
    while path != root:
        path, name = os.path.split(path)
        names.setdefault(path, {}).setdefault(name, kind)
        kind = "folder"
