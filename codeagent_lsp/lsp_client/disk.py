"""The effect of an LSP WorkspaceEdit on the files on disk, computed before anything is written, and its writing: all
files or none, each by a temporary file that is renamed into place.

A failure undoes what was already done, but only for files that still have the bytes written here: concurrent changes of
others are never overwritten. Not here: who accepted the edit.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.system import Folder, set_mode
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.document import Change, Document
from codeagent_lsp.workspace.text.encoding import decode, encode
from codeagent_lsp.workspace.text.position import LineIndex, with_newlines

NEW_FILE_MODE, NEW_SCRIPT_MODE = 0o666, 0o777
_NAMES_INTERPRETER = re.compile(rb"#![ \t]*/")  # `#![no_std]` begins a module of Rust
ReadBytes = Callable[[Path], bytes | None]


class ChangedMeanwhile(OSError):
    """Raised if a file or its folder is no longer as it was when the change was computed; it was not overwritten."""


class OutsideWorkspace(OSError):
    """Raised if a path leads out of the workspace, such as by a link; nothing was done."""


class Disk:
    """The operations on files below the folder `root`. Each blocks, and may raise OSError; then it has done nothing.

    All but `read` and `real` take real paths, and open each folder on the way without following links, so that a link
    that replaces a folder meanwhile leads nowhere.
    """

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))

    def real(self, path: Path) -> Path:
        """Return the path with links resolved. OutsideWorkspace if it is not below `root`."""
        found = Path(os.path.realpath(path))
        if not found.is_relative_to(self._root):
            raise OutsideWorkspace(f"{path} leads out of the workspace, to {found}")
        return found

    def read(self, path: Path) -> bytes | None:
        """Return the bytes of a file, or of the one that a link leads to; None if there is none. OSError for a folder
        or what cannot be read.
        """
        try:
            with self._folder(found := self.real(path)) as folder:
                descriptor = folder.open_reading(found.name)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(f"{path} is not a file")
            return file.read()

    def mode(self, path: Path) -> int | None:
        """Return the permission bits of a file, such as 0o644; None if it does not exist."""
        try:
            with self._folder(path) as folder:
                return stat.S_IMODE(folder.status(path.name).st_mode)
        except FileNotFoundError:
            return None

    def make_folder(self, path: Path) -> None:
        """Create a folder, whose parent must exist. OSError if it exists or cannot be made."""
        with self._folder(path) as folder:
            folder.make_folder(path.name)

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder. OSError if something is in it, or there is none."""
        with self._folder(path) as folder:
            folder.remove_folder(path.name)

    def stage(self, path: Path, data: bytes, mode: int) -> Path:
        """Write a new temporary file with `data` and the permissions `mode` beside `path`, synced to disk, and return
        its path. The caller has to `replace` or `discard` it.
        """
        name = f".codeagent-{secrets.token_hex(8)}.tmp"
        with self._folder(path) as folder:
            descriptor = folder.open_new(name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    set_mode(descriptor, mode)
                    os.fsync(descriptor)
            except BaseException:
                folder.remove(name)
                raise
        return path.with_name(name)

    def replace(self, staged: Path, path: Path) -> None:
        """Rename a staged file to `path`, in place of the file that is there, in one step. Both must be in the same
        folder.
        """
        with self._folder(path) as folder:
            folder.replace(staged.name, path.name)

    def remove(self, path: Path) -> None:
        """Delete a file or a link. FileNotFoundError if there is none."""
        with self._folder(path) as folder:
            folder.remove(path.name)

    def discard(self, staged: Path) -> None:
        """Delete a staged file if it is still there. Never raises OSError."""
        with contextlib.suppress(OSError), self._folder(staged) as folder:
            folder.remove(staged.name)

    @contextlib.contextmanager
    def _folder(self, path: Path) -> Iterator[Folder]:
        """Yield the folder of a real path."""
        try:
            folder = Folder(str(self._root), path.parent.relative_to(self._root).parts)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            raise ChangedMeanwhile(
                f"{path.parent} is no folder any more: a link or a file took its place, or that of one above it"
            ) from None
        with folder:
            try:
                yield folder
            except OSError as error:
                if error.errno is not None:  # it may name a file of ours that is there for a while, or none
                    error.filename = str(path.relative_to(self._root))
                raise


def reason(error: Exception) -> str:
    """Return why an edit was not applied, as a sentence for the server; for an error of the system with the file's
    path, and with the error's notes.
    """
    words = str(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        words = f"{error.filename}: {error.strerror}."
    return " ".join([words, *getattr(error, "__notes__", ())])


def commit(writes: Sequence[FileWrite], disk: Disk) -> None:
    """Write all of `writes` or none; blocks. OSError if one fails (ChangedMeanwhile if a file differs from `before`);
    what was written is undone then, and the error's notes name files for which that failed.
    """
    _Commit(disk).run(writes)


class _Commit:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._folders: list[Path] = []
        self._staged: dict[Path, Path] = {}
        self._backups: dict[Path, Path] = {}
        self._done: list[FileWrite] = []

    def run(self, writes: Sequence[FileWrite]) -> None:
        try:
            targets = [self._resolve_links(write) for write in writes]
            for write in targets:
                self._prepare(write)
            for write in sorted(targets, key=lambda item: item.after is None):  # deletions last
                self._check(write)
                self._carry_out(write)
        except BaseException as error:
            self._take_back(error)
            raise
        self._clean()

    def _prepare(self, write: FileWrite) -> None:
        """Write the new and the backup files: all that can fail for space or rights, before the first file changes."""
        # Once more: writing the new files took its time.
        self._check(write)
        if write.before is None:
            self._make_folders(write.path.parent)
        if write.after is not None:
            self._staged[write.path] = self._disk.stage(write.path, write.after, self._mode(write))
        if write.before is not None:
            self._backups[write.path] = self._disk.stage(write.path, write.before, self._mode(write))

    def _check(self, write: FileWrite) -> None:
        if self._disk.read(write.path) != write.before:
            raise ChangedMeanwhile(f"{write.path} changed on disk meanwhile")

    def _carry_out(self, write: FileWrite) -> None:
        if write.after is None:
            self._disk.remove(write.path)
        else:
            self._disk.replace(self._staged[write.path], write.path)
            del self._staged[write.path]
        self._done.append(write)

    def _make_folders(self, folder: Path) -> None:
        missing = [item for item in (folder, *folder.parents) if not item.exists()]
        for item in reversed(missing):
            self._disk.make_folder(item)
            self._folders.append(item)

    def _take_back(self, error: BaseException) -> None:
        for write in reversed(self._done):
            try:
                self._take_back_one(write)
            except OSError:  # the others shall still be taken back, and this one's bytes are kept beside it
                error.add_note(
                    f"{write.path} could not be put back; its text is in {self._backups.pop(write.path, '-')}"
                )
        self._clean()
        for folder in reversed(self._folders):
            with contextlib.suppress(OSError):  # not empty: another process uses it
                self._disk.remove_folder(folder)

    def _take_back_one(self, write: FileWrite) -> None:
        # Another program has written to it since: its text stays.
        if self._disk.read(write.path) != write.after:
            return
        if write.before is None:
            self._disk.remove(write.path)
        else:
            self._disk.replace(self._backups[write.path], write.path)
            del self._backups[write.path]

    def _clean(self) -> None:
        for staged in [*self._staged.values(), *self._backups.values()]:
            self._disk.discard(staged)

    def _resolve_links(self, write: FileWrite) -> FileWrite:
        """Return the write with links resolved, so that a target is written; a deletion removes the link itself."""
        path = self._disk.real(write.path.parent) / write.path.name
        return replace(write, path=path if write.after is None else self._disk.real(path))

    def _mode(self, write: FileWrite) -> int:
        """Return the mode of a new file: that of the file it replaces or continues, else by its text and the umask."""
        for path in (write.path, write.like):
            mode = None if path is None else self._disk.mode(self._disk.real(path))
            if mode is not None:
                return mode
        # The mask can only be read by setting it.
        mask = os.umask(0)
        os.umask(mask)
        runs = _NAMES_INTERPRETER.match(write.after or b"")
        return (NEW_SCRIPT_MODE if runs else NEW_FILE_MODE) & ~mask


class EditImpossible(Exception):
    """Raised if the edit does not fit the files on disk; the message is the reason, an English sentence. Nothing was
    changed. `failed` is the 0-based number of the operation that does not fit.
    """

    failed: int | None = None


@dataclass(frozen=True, slots=True)
class FileWrite:
    """The change of one file: `before` and `after` are its bytes, None if there is no such file. `like` is the file
    whose mode the new one gets, None for the default.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    like: Path | None = None


def plan(edit: Mapping[str, Any], read: ReadBytes) -> tuple[FileWrite, ...]:
    """Return the changes of files by a WorkspaceEdit (LSP, plain JSON), without writing any. `read` returns a file's
    bytes, None if it does not exist. EditImpossible if one of its operations does not fit the files; then none must be
    written.
    """
    draft = _Draft(read)
    for number, operation in enumerate(_operations(edit)):
        try:
            draft.take(operation)
        except EditImpossible as error:
            error.failed = number
            raise
    return draft.writes()


class _Draft:
    """The state of all files concerned, after the operations so far."""

    def __init__(self, read: ReadBytes) -> None:
        self._read = read
        self._before: dict[Path, bytes | None] = {}
        self._after: dict[Path, bytes | None] = {}
        self._origin: dict[Path, Path] = {}

    def take(self, operation: Mapping[str, Any]) -> None:
        match operation.get("kind"):
            case "create":
                self._create(path_of(operation["uri"]), operation.get("options") or {})
            case "delete":
                self._delete(path_of(operation["uri"]), operation.get("options") or {})
            case "rename":
                self._rename(operation)
            case None:
                self._edit(path_of(operation["textDocument"]["uri"]), operation["edits"])
            case other:
                raise EditImpossible(f"unknown operation {other}")

    def writes(self) -> tuple[FileWrite, ...]:
        return tuple(
            FileWrite(path, before, self._after[path], self._origin.get(path))
            for path, before in self._before.items()
            if before != self._after[path]
        )

    def _now(self, path: Path) -> bytes | None:
        if path not in self._after:
            self._before[path] = self._after[path] = self._read(path)
        return self._after[path]

    def _create(self, path: Path, options: Mapping[str, Any]) -> None:
        exists = self._now(path) is not None
        if exists and options.get("overwrite"):
            self._after[path] = b""
        elif exists and not options.get("ignoreIfExists"):
            raise EditImpossible(f"{path} exists already")
        elif not exists:
            self._after[path] = b""

    def _delete(self, path: Path, options: Mapping[str, Any]) -> None:
        if self._now(path) is not None:
            self._after[path] = None
        elif not options.get("ignoreIfNotExists"):
            raise EditImpossible(f"{path} does not exist")

    def _rename(self, operation: Mapping[str, Any]) -> None:
        old, new = path_of(operation["oldUri"]), path_of(operation["newUri"])
        options = operation.get("options") or {}
        content = self._now(old)
        if content is None:
            raise EditImpossible(f"{old} does not exist")
        if self._now(new) is not None and not options.get("overwrite"):
            if options.get("ignoreIfExists"):
                return
            raise EditImpossible(f"{new} exists already")
        self._after[new], self._after[old] = content, None
        self._origin[new] = self._origin.get(old, old)

    def _edit(self, path: Path, edits: list[Mapping[str, Any]]) -> None:
        content = self._now(path)
        if content is None:
            raise EditImpossible(f"{path} does not exist")
        try:
            decoded = decode(content)
            text = _apply(path, decoded.text, edits)
            self._after[path] = encode(text, decoded.encoding)
        except FileRefused as error:
            raise EditImpossible(f"{path}: {error}") from error


def _apply(path: Path, text: str, edits: list[Mapping[str, Any]]) -> str:
    """Return `text` with edits applied, whose ranges all refer to `text`; new lines end with CRLF if all old
    ones do.
    """
    newline = "\r\n" if 0 < text.count("\r\n") == text.count("\n") else None
    document = Document("", text)
    lines = len(LineIndex.of(text))
    spans = [(_place(edit, "start"), _place(edit, "end"), str(edit["newText"])) for edit in edits]
    ordered = sorted(spans, key=lambda span: span[:2])  # stable: what is inserted at one place keeps its order
    # From the end, so that the places before an edit stay valid.
    for start, end, new in reversed(ordered):
        # One line beyond the last is allowed: LSP ends a range there that takes the last line end.
        if end[0] > lines:
            raise EditImpossible(f"{path} is shorter than expected: it changed on disk meanwhile")
        inserted = with_newlines(new, newline) if newline else new
        document = document.apply(Change(inserted, start, end), "utf-32")  # as our clients announce
    return document.text


def _place(edit: Mapping[str, Any], name: str) -> tuple[int, int]:
    position = edit["range"][name]
    return position["line"], position["character"]


def _operations(edit: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = edit.get("documentChanges")
    if listed is not None:
        return list(listed)
    changes = edit.get("changes") or {}
    return [{"textDocument": {"uri": uri}, "edits": edits} for uri, edits in changes.items()]


def path_of(uri: str) -> Path:
    """Return the absolute path of a file by its URI. EditImpossible if it is not a `file:` URI."""
    path = uris.to_path(uri)
    if path is None:
        raise EditImpossible(f"{uri} is not a file")
    return Path(path)
