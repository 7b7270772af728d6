# ruff: noqa: PTH119, PTH120 - names are plain strings here and may be any bytes
# ruff: noqa: PTH118 - names are plain strings here and may be any bytes

"""The workspace as a run sees it: its staged text over the open buffers over the disk.

Synchronous and without side effects; callers that serve a client run it in a thread. Not here: confinement of paths
to the workspace (`paths.py`), search in the texts (`search.py`), changes (`changes/changeset.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple, Protocol

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.workspace.files.ignore import FolderRules, IgnoreRules
from codeagent_lsp.workspace.files.paths import Child, FileKind, Roots, is_untitled, relative_name
from codeagent_lsp.workspace.text.document import Document
from codeagent_lsp.workspace.text.encoding import Encoding, decode


class ListedEntry(NamedTuple):
    """One entry of a folder listing: its absolute path and its kind, `file`, `folder`, `link` or `other`."""

    path: str
    kind: FileKind


class FolderTree:
    """The files and folders of the workspace at one moment: `over` are the absolute paths of open and staged files,
    `deleted` those of files that a run has deleted. `rules` are the ignore rules by the path of each workspace folder.
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
        """Return whether open or staged files are in the folder with this absolute path, which may not exist on
        disk.
        """
        return folder in self._names

    def is_file(self, path: str) -> bool:
        """Return whether there is a file, staged, open or on disk, at this absolute path; False for a link and for one
        that the run has deleted.
        """
        if path in self._deleted:
            return False
        folder, name = os.path.split(path)
        return name in self._names.get(folder, ()) or self._roots.kind(path) == "file"

    def entries(self, folder: str, depth: int) -> Iterator[ListedEntry]:
        """Yield the entries of a folder (absolute path) in preorder, `depth` levels deep (1: only its own), by name;
        ignored ones are left out. Nothing for a folder that cannot be read.
        """
        return self._tree(folder, self._rules_at(folder), depth)

    def files(self, start: str) -> Iterator[str]:
        """Yield the absolute paths of the files below a folder, in preorder; ignored ones and links are left out.
        Nothing for a folder that cannot be read.
        """
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
                # What is pushed last is taken first.
                pending += reversed(inside)

    def _rules_at(self, path: str) -> FolderRules | None:
        """Return the ignore rules inside a folder.

        None (no rules) for a folder that is ignored itself but was asked for.
        """
        root = self._roots.root_of(path)
        if root is None or self._rules[root].is_ignored(path, is_dir=True):
            return None
        rules = self._rules[root].at_root()
        inner = relative_name(path, root)
        for name in () if inner == "." else inner.split("/"):
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
            # In a folder that is ignored itself and was asked for, everything is shown but repositories.
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


TextSource = Literal["staged", "buffer", "disk"]

MAX_BYTES = 1 << 20
MAX_ENTRIES = 1000
MAX_FILES = 200_000
_LOOKED_AT_FOR_NAMES = 5000


class Buffers(Protocol):
    """Port: the documents that are open in the editor, by absolute real path, or by URI if they have no file."""

    def get_by_path(self, path: str) -> Document | None:
        """Return the open document of a file, by absolute real path, or by URI if it has no file; None if it is not
        open.
        """

    def open_paths(self) -> Iterable[str]:
        """Return the absolute real paths of the files of all open documents."""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """The staged state of one file: its text, or None when it is deleted or was moved away."""

    text: str | None


class StagedView(Protocol):
    """Port: the staged changes of a run, by absolute real path."""

    def lookup(self, path: str) -> StagedFile | None:
        """Return the staged state of the file at this absolute real path; None if nothing of it is staged."""

    def paths(self) -> Iterable[str]:
        """Return the absolute real paths of the files whose state differs from the user's, deleted ones included."""


class NoBuffers:
    """A `Buffers` without any open document."""

    def get_by_path(self, path: str) -> Document | None:
        """Return None, as no file is open."""
        return None

    def open_paths(self) -> Iterable[str]:
        """Return (), as no file is open."""
        return ()


class NothingStaged:
    """A `StagedView` without any staged change."""

    def lookup(self, path: str) -> StagedFile | None:
        """Return None, as nothing is staged."""
        return None

    def paths(self) -> Iterable[str]:
        """Return (), as nothing is staged."""
        return ()


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of the file at the absolute `path`. `source` is `staged`, `buffer` or `disk`; `version` is the buffer's,
    None for other sources or without a number; `encoding` is that of the file on disk, UTF-8 for a new one; `note` is a
    remark for the reader or ''.
    """

    path: str
    text: str
    source: TextSource
    version: int | None = None
    encoding: Encoding = "utf-8"
    note: str = ""


class Listing(NamedTuple):
    """Entries in preorder, each folder before its content; `truncated` if there were more."""

    entries: tuple[ListedEntry, ...]
    truncated: bool


class FileView:
    """Reads files as a run sees them: the state at each call, as nothing is kept. All paths are absolute and resolved.
    `max_bytes` is the size limit of one file, in bytes of UTF-8 for texts that are not on disk.
    """

    def __init__(self, roots: Roots, buffers: Buffers, staged: StagedView, *, max_bytes: int = MAX_BYTES) -> None:
        self.roots = roots
        self.max_bytes = max_bytes
        self._buffers = buffers
        self._staged = staged
        self._rules = {root: IgnoreRules(root) for root in roots.folders}

    def read(self, path: str) -> FileText:
        """Return the text of `path`.

        Raises FileRefused if it is missing, deleted in this run, a folder, binary or too large.
        """
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
        """Return the user's version of `path`, ignoring staged changes: the open buffer, else the file on disk; None if
        there is neither.

        Raises FileRefused if it is a folder, binary or too large.
        """
        document = self._buffers.get_by_path(path)
        if document is not None:
            _check_size(self.roots.relative(path), document.text, self.max_bytes)
            return FileText(path, document.text, "buffer", document.version, self._disk_encoding(path))
        return self.saved(path)

    def saved(self, path: str) -> FileText | None:
        """Return the version of `path` on disk, ignoring buffers and staged changes; None if there is none.

        Raises FileRefused if it is a folder, binary or too large.
        """
        kind = None if is_untitled(path) else self.roots.kind(path)
        return None if kind is None else self._from_disk(path, kind)

    def text(self, path: str) -> str | None:
        """Return the text of `path`; None if `read` would refuse it. Faster than that for a missing file, as no similar
        names are looked for.
        """
        try:
            return self.read(path).text if self.exists(path) else None
        except FileRefused:
            return None

    def exists(self, path: str) -> bool:
        """Return whether the run sees anything at the absolute `path`: an open or staged file, or a file, folder or
        link on disk; False for a deleted one.
        """
        staged = self._staged.lookup(path)
        if staged is not None:
            return staged.text is not None
        if self._buffers.get_by_path(path) is not None:
            return True
        return not is_untitled(path) and (self.roots.stat(path) is not None or self._folders().holds(path))

    def require(self, path: str) -> None:
        """Raise FileRefused, with names that may be meant, if the run sees neither a file nor a folder at `path`."""
        if not self.exists(path):
            raise FileRefused(self._missing(path))

    def list_dir(self, path: str, depth: int = 1, *, limit: int = MAX_ENTRIES) -> Listing:
        """Return the first `limit` entries of folder `path`, `depth` levels deep (1: only its own), in preorder and by
        name, without ignored names. FileRefused if it does not exist or is not a folder; of one that cannot be read, no
        entries.
        """
        folders = self._folders()
        self._require_folder(path, folders)
        # One more tells whether there are others.
        found = list(islice(folders.entries(path, depth), limit + 1))
        return Listing(tuple(found[:limit]), len(found) > limit)

    def walk(self, path: str, *, limit: int = MAX_FILES) -> Iterator[str]:
        """Yield the files below `path` in preorder, or `path` itself if it is a file; at most `limit`. Ignored names
        and links are left out, unless `path` itself is ignored. Nothing for a missing path.
        """
        folders = self._folders()
        # A folder may exist only in what is staged or open.
        if not folders.holds(path) and self.roots.kind(path) != "folder":
            return iter((path,) if folders.is_file(path) else ())
        return islice(folders.files(path), limit)

    def over_disk(self) -> frozenset[str]:
        """Return the absolute paths whose text does not come from the disk: open or staged, deleted ones included."""
        return frozenset(self._staged.paths()) | frozenset(self._buffers.open_paths())

    def open_paths(self) -> tuple[str, ...]:
        """Return the absolute real paths of the files that are open in the editor, saved or not."""
        return tuple(self._buffers.open_paths())

    def is_ignored(self, path: str, *, is_dir: bool = False) -> bool:
        """Return whether the ignore rules leave out the file or folder at this absolute path; False outside of the
        workspace.
        """
        root = self.roots.root_of(path)
        return root is not None and self._rules[root].is_ignored(path, is_dir=is_dir)

    def is_named_for_agents(self, path: str) -> bool:
        """Return whether a `.codeagentignore` names the file at this absolute path or a folder that it is in; False
        outside of the workspace.
        """
        root = self.roots.root_of(path)
        return root is not None and self._rules[root].is_named_for_agents(path)

    def _from_disk(self, path: str, kind: FileKind) -> FileText:
        if kind == "folder":
            raise FileRefused(f"{self.roots.relative(path)} is a folder. List it instead.")
        data = self.roots.read_bytes(path, self.max_bytes)
        try:
            decoded = decode(data)
        except FileRefused as error:
            raise FileRefused(f"{self.roots.relative(path)}: {error}") from None
        return FileText(path, decoded.text, "disk", None, decoded.encoding, decoded.note)

    def _disk_encoding(self, path: str) -> Encoding:
        """Return the encoding of the file on disk under a buffer or staged text; UTF-8 for new files."""
        if is_untitled(path) or self.roots.kind(path) != "file":
            return "utf-8"
        try:
            return decode(self.roots.read_bytes(path, self.max_bytes)).encoding
        except FileRefused:
            return "utf-8"

    def _missing(self, path: str) -> str:
        return f"{self.roots.relative(path)} does not exist. {self.meant(path)}".rstrip()

    def meant(self, path: str) -> str:
        """Return a question that names up to three files which a path that does not exist may mean; '' if there are
        none.
        """
        if is_untitled(path) or self.roots.root_of(path) is None:
            return ""
        names = [self.roots.relative(found) for found in self._alike(path)]
        return f"Did you mean {' or '.join(names)}?" if names else ""

    def _alike(self, path: str) -> list[str]:
        """Return up to three files that may be meant: the same name elsewhere, or a similar name in the folder."""
        root = self.roots.root_of(path) or path
        folder, name = os.path.split(path)
        seen = list(self.walk(root, limit=_LOOKED_AT_FOR_NAMES))
        same = [found for found in seen if os.path.basename(found).casefold() == name.casefold()]
        near = {os.path.basename(found): found for found in seen if os.path.dirname(found) == folder}
        import difflib  # late: only for names that do not exist

        similar = [near[match] for match in difflib.get_close_matches(name, near, n=3)]
        return list(dict.fromkeys([*same, *similar]))[:3]

    def _require_folder(self, path: str, folders: FolderTree) -> None:
        kind = self.roots.kind(path)
        if kind == "folder" or folders.holds(path):
            return
        if kind is None and not folders.is_file(path):
            raise FileRefused(self._missing(path))
        raise FileRefused(f"{self.roots.relative(path)} is not a folder. Read it instead.")

    def _folders(self) -> FolderTree:
        """Return the folders as they are now."""
        staged = {path: self._staged.lookup(path) for path in self._staged.paths()}
        deleted = frozenset(path for path, state in staged.items() if state is not None and state.text is None)
        return FolderTree(self.roots, self._rules, {*staged, *self._buffers.open_paths()} - deleted, deleted)


def own_file(view: FileView, path: str) -> FileText | None:
    """Return the user's version of a file (absolute path), as `FileView.base`; None also for one that cannot be read as
    text.
    """
    try:
        return view.base(path)
    except FileRefused:
        return None


def own_text(view: FileView, path: str) -> str | None:
    """Return the text of a file (absolute path) as the user has it, without staged changes; None if there is none or it
    cannot be read as text.
    """
    file = own_file(view, path)
    return None if file is None else file.text


def readable_texts(view: FileView, paths: Iterable[str | None]) -> dict[str, str | None]:
    """Return the texts of files as the user has them, by absolute path: None for those that do not exist, without those
    that cannot be read as text.
    """
    found: dict[str, str | None] = {}
    for path in paths:
        with suppress(FileRefused):
            if path is not None:
                found[path] = None if (file := view.base(path)) is None else file.text
    return found


def _check_size(shown: str, text: str, limit: int) -> None:
    # A character has at most four bytes, so most texts need not be encoded to be checked.
    size = len(text) * 4 if len(text) * 4 <= limit else len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise FileRefused(f"{shown} has {size:,} bytes, more than the limit of {limit:,}.")
