"""Atomic writing of several files, all of them or none, each by a temporary file that is renamed into place.

A failure undoes what was already done, but only for files that still have the bytes written here: concurrent changes of
others are never overwritten. Not here: what is written (`edits.py`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from codeagent_lsp.lsp_client.edits import FileWrite
from codeagent_lsp.system import Folder, set_mode

NEW_FILE_MODE, NEW_SCRIPT_MODE = 0o666, 0o777
_NAMES_INTERPRETER = re.compile(rb"#![ \t]*/")  # `#![no_std]` begins a module of Rust


class ChangedMeanwhile(OSError):
    """Raised if a file or its folder is not what it was when the change was computed."""


class OutsideWorkspace(OSError):
    """Raised if a path leads out of the workspace."""


class Disk:
    """The operations on files below the folder `root`, one method each. Each may raise OSError and then has done
    nothing.

    All but `read` and `real` take real paths, and open each folder on the way without following links, so that a link
    that is put in the place of a folder meanwhile leads nowhere.
    """

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))

    def real(self, path: Path) -> Path:
        """Return the path with links resolved. OutsideWorkspace if that is not below `root`."""
        found = Path(os.path.realpath(path))
        if not found.is_relative_to(self._root):
            raise OutsideWorkspace(f"{path} leads out of the workspace, to {found}")
        return found

    def read(self, path: Path) -> bytes | None:
        """Return the bytes of a file, or of the one that a link leads to; None if there is none."""
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
        """Return the permissions of a file; None if there is none."""
        try:
            with self._folder(path) as folder:
                return stat.S_IMODE(folder.status(path.name).st_mode)
        except FileNotFoundError:
            return None

    def make_folder(self, path: Path) -> None:
        """Create a folder, whose parent exists."""
        with self._folder(path) as folder:
            folder.make_folder(path.name)

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""
        with self._folder(path) as folder:
            folder.remove_folder(path.name)

    def stage(self, path: Path, data: bytes, mode: int) -> Path:
        """Write a temporary file with `data` beside `path`, synced to disk, and return its path."""
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
        """Rename a staged file into place."""
        with self._folder(path) as folder:
            folder.replace(staged.name, path.name)

    def remove(self, path: Path) -> None:
        """Delete a file or a link."""
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
            yield folder


def commit(writes: Sequence[FileWrite], disk: Disk) -> None:
    """Carry out `writes`, all or none. OSError if one fails; the disk is then unchanged."""
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
            targets = [self._resolved(write) for write in writes]
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

    def _resolved(self, write: FileWrite) -> FileWrite:
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
