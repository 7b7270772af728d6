"""What a run sees of the workspace: its staged text over the open buffers over the disk.

Synchronous and free of effects; callers that serve a client run it in a thread. Not here: where a path may
lead (`paths.py`), searching in the texts (`search.py`), changing anything (`changeset.py`).
"""

# ruff: noqa: PTH118, PTH119, PTH120, PTH206 - names are plain strings here and may be any bytes

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple, Protocol

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.workspace.files.ignore import FolderRules, IgnoreRules
from codeagent_lsp.workspace.files.paths import Child, Kind, Roots, is_untitled
from codeagent_lsp.workspace.text.document import Document
from codeagent_lsp.workspace.text.encoding import Encoding, decode

Source = Literal["staged", "buffer", "disk"]

MAX_BYTES = 1 << 20
MAX_ENTRIES = 1000
MAX_FILES = 200_000
_LOOKED_AT_FOR_NAMES = 5000


class Buffers(Protocol):
    """The open documents, by absolute real path, or by uri where there is no file."""

    def get_by_path(self, path: str) -> Document | None: ...

    def open_paths(self) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True)
class StagedFile:
    """What a run made of a file: its text, or None when it is deleted."""

    text: str | None


class StagedView(Protocol):
    """The staged changes of a run; `paths` are those whose state differs from what the user has."""

    def lookup(self, path: str) -> StagedFile | None: ...

    def paths(self) -> Iterable[str]: ...


class NoBuffers:
    """No document is open."""

    def get_by_path(self, path: str) -> Document | None:
        """None."""
        return None

    def open_paths(self) -> Iterable[str]:
        """None."""
        return ()


class NothingStaged:
    """Nothing is staged."""

    def lookup(self, path: str) -> StagedFile | None:
        """None."""
        return None

    def paths(self) -> Iterable[str]:
        """None."""
        return ()


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as text. `version` is the buffer's, None for other sources; `note` is '' or a remark."""

    path: str
    text: str
    source: Source
    version: int | None = None
    encoding: Encoding = "utf-8"
    note: str = ""


class Entry(NamedTuple):
    """Something in a folder: its absolute path and what it is."""

    path: str
    kind: Kind


class Listing(NamedTuple):
    """Entries in the order of a tree, each folder before what it holds; `truncated` if there were more."""

    entries: tuple[Entry, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Overlay:
    """What stands over the disk: names by folder, and the files that are gone."""

    names: dict[str, dict[str, Kind]] = field(default_factory=dict)
    deleted: frozenset[str] = frozenset()


class FileView:
    """Reads files as a run sees them. All paths are absolute and resolved; `max_bytes` bounds one file."""

    def __init__(self, roots: Roots, buffers: Buffers, staged: StagedView, *, max_bytes: int = MAX_BYTES) -> None:
        self.roots = roots
        self.max_bytes = max_bytes
        self._buffers = buffers
        self._staged = staged
        self._rules = {root: IgnoreRules(root) for root in roots.folders}

    def read(self, path: str) -> FileText:
        """The text of `path`. FileRefused: missing, deleted here, a folder, binary or too large."""
        staged = self._staged.lookup(path)
        if staged is None:
            found = self.base(path)
            if found is None:
                raise FileRefused(self._missing(path))
            return found
        if staged.text is None:
            raise FileRefused(f"{self.roots.relative(path)} is deleted in the pending changes of this run.")
        return FileText(path, staged.text, "staged", None, self._disk_encoding(path))

    def base(self, path: str) -> FileText | None:
        """What the user has at `path`, without anything staged; None if there is nothing. Else as `read`."""
        document = self._buffers.get_by_path(path)
        if document is not None:
            _check_size(self.roots.relative(path), document.text, self.max_bytes)
            return FileText(path, document.text, "buffer", document.version, self._disk_encoding(path))
        return self.saved(path)

    def saved(self, path: str) -> FileText | None:
        """What the disk has at `path`, without buffers and staged texts; None if there is nothing. Else as `read`."""
        kind = None if is_untitled(path) else self.roots.kind(path)
        return None if kind is None else self._from_disk(path, kind)

    def exists(self, path: str) -> bool:
        """Whether the run sees a file or a folder at `path`."""
        staged = self._staged.lookup(path)
        if staged is not None:
            return staged.text is not None
        if self._buffers.get_by_path(path) is not None:
            return True
        return not is_untitled(path) and (self.roots.stat(path) is not None or path in self._overlay().names)

    def list_dir(self, path: str, depth: int = 1, *, limit: int = MAX_ENTRIES) -> Listing:
        """What `path` holds, `depth` levels deep, ignored names left out. FileRefused if it is no folder."""
        overlay = self._overlay()
        self._require_folder(path, overlay)
        found = list(islice(self._tree(path, self._rules_at(path), overlay, depth), limit + 1))
        return Listing(tuple(found[:limit]), len(found) > limit)

    def walk(self, path: str, *, limit: int = MAX_FILES) -> Iterator[str]:
        """The files below `path`, or `path` itself if it is one, in the order of a tree, at most `limit`.

        Ignored names and links are left out, unless `path` itself is ignored. Nothing there: no files.
        """
        overlay = self._overlay()
        if path not in overlay.names and self.roots.kind(path) != "folder":
            return iter((path,) if self._is_file(path, overlay) else ())
        return islice(self._files(path, self._rules_at(path), overlay), limit)

    def over_disk(self) -> frozenset[str]:
        """The paths whose text does not come from the disk: open or staged, deleted ones included."""
        return frozenset(self._staged.paths()) | frozenset(self._buffers.open_paths())

    def is_ignored(self, path: str, *, is_dir: bool = False) -> bool:
        """Whether the ignore rules leave out the file or folder `path`."""
        root = self.roots.root_of(path)
        return root is not None and self._rules[root].is_ignored(path, is_dir=is_dir)

    def _from_disk(self, path: str, kind: Kind) -> FileText:
        if kind == "folder":
            raise FileRefused(f"{self.roots.relative(path)} is a folder. List it instead.")
        data = self.roots.read_bytes(path, self.max_bytes)
        try:
            decoded = decode(data)
        except FileRefused as error:
            raise FileRefused(f"{self.roots.relative(path)}: {error}") from None
        return FileText(path, decoded.text, "disk", None, decoded.encoding, decoded.note)

    def _disk_encoding(self, path: str) -> Encoding:
        """How the file under a buffer or a staged text is written; new files are UTF-8."""
        if is_untitled(path) or self.roots.kind(path) != "file":
            return "utf-8"
        try:
            return decode(self.roots.read_bytes(path, self.max_bytes)).encoding
        except FileRefused:
            return "utf-8"

    def _missing(self, path: str) -> str:
        sentence = f"{self.roots.relative(path)} does not exist."
        if is_untitled(path) or self.roots.root_of(path) is None:
            return sentence
        names = [self.roots.relative(found) for found in self._alike(path)]
        return f"{sentence} Did you mean {' or '.join(names)}?" if names else sentence

    def _alike(self, path: str) -> list[str]:
        """Up to three files that may be meant: the same name elsewhere, or a similar one in the folder."""
        root = self.roots.root_of(path) or path
        folder, name = os.path.split(path)
        seen = list(self.walk(root, limit=_LOOKED_AT_FOR_NAMES))
        same = [found for found in seen if os.path.basename(found).casefold() == name.casefold()]
        near = {os.path.basename(found): found for found in seen if os.path.dirname(found) == folder}
        similar = [near[match] for match in difflib.get_close_matches(name, near, n=3)]
        return list(dict.fromkeys([*same, *similar]))[:3]

    def _require_folder(self, path: str, overlay: _Overlay) -> None:
        kind = self.roots.kind(path)
        if kind == "folder" or path in overlay.names:
            return
        if kind is None and not self._is_file(path, overlay):
            raise FileRefused(self._missing(path))
        raise FileRefused(f"{self.roots.relative(path)} is not a folder. Read it instead.")

    def _is_file(self, path: str, overlay: _Overlay) -> bool:
        if path in overlay.deleted:
            return False
        folder, name = os.path.split(path)
        return name in overlay.names.get(folder, ()) or self.roots.kind(path) == "file"

    def _rules_at(self, path: str) -> FolderRules | None:
        """The rules inside a folder; None, no rules, for one that is ignored itself but was asked for."""
        root = self.roots.root_of(path)
        if root is None or self.is_ignored(path, is_dir=True):
            return None
        rules = self._rules[root].at_root()
        inner = os.path.relpath(path, root)
        for name in () if inner == "." else inner.split(os.sep):
            rules = rules.enter(name)
        return rules

    def _tree(self, folder: str, rules: FolderRules | None, overlay: _Overlay, depth: int) -> Iterator[Entry]:
        for name, kind in self._children(folder, rules, overlay):
            path = os.path.join(folder, name)
            yield Entry(path, kind)
            if kind == "folder" and depth > 1:
                yield from self._tree(path, rules and rules.enter(name), overlay, depth - 1)

    def _files(self, start: str, start_rules: FolderRules | None, overlay: _Overlay) -> Iterator[str]:
        """A walk with a stack of its own, so that deep trees do no harm."""
        pending: list[tuple[str, Kind, FolderRules | None]] = [(start, "folder", start_rules)]
        while pending:
            path, kind, rules = pending.pop()
            if kind == "file":
                yield path
            elif kind == "folder":
                inside = [
                    (os.path.join(path, name), inner, rules.enter(name) if rules and inner == "folder" else None)
                    for name, inner in self._children(path, rules, overlay)
                ]
                pending += reversed(inside)

    def _children(self, folder: str, rules: FolderRules | None, overlay: _Overlay) -> list[Child]:
        """What a folder holds, ignored names left out, in byte order of the names."""
        found: dict[str, Kind] = dict(_scan(self.roots, folder))
        found |= overlay.names.get(folder, {})
        return [
            Child(name, found[name])
            for name in sorted(found, key=os.fsencode)
            if os.path.join(folder, name) not in overlay.deleted
            and not (rules.ignores(name, is_dir=found[name] == "folder") if rules else name == ".git")
        ]

    def _overlay(self) -> _Overlay:
        """The files that are open or staged, with the folders they need, and those deleted."""
        staged = {path: self._staged.lookup(path) for path in self._staged.paths()}
        deleted = frozenset(path for path, state in staged.items() if state is not None and state.text is None)
        names: dict[str, dict[str, Kind]] = {}
        for path in {*staged, *self._buffers.open_paths()} - deleted:
            root = None if is_untitled(path) else self.roots.root_of(path)
            if root is not None:
                _add(names, path, root)
        return _Overlay(names, deleted - names.keys())  # a folder may take the place of a deleted file


def _check_size(shown: str, text: str, limit: int) -> None:
    # Four bytes are the most a character takes, so most texts need no encoding to be judged.
    size = len(text) * 4 if len(text) * 4 <= limit else len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise FileRefused(f"{shown} has {size:,} bytes, more than the limit of {limit:,}.")


def _scan(roots: Roots, folder: str) -> tuple[Child, ...]:
    try:
        return roots.scan(folder)
    except FileRefused:  # staged only, unreadable, or gone meanwhile
        return ()


def _add(names: dict[str, dict[str, Kind]], path: str, root: str) -> None:
    kind: Kind = "file"
    while path != root:
        path, name = os.path.split(path)
        names.setdefault(path, {}).setdefault(name, kind)
        kind = "folder"
