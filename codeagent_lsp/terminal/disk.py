"""Atomic writing of several files, all of them or none, each by a temporary file that is renamed into place.

A failure undoes what was already done, but only for files that still have the bytes written here: concurrent changes of
others are never overwritten. Not here: what is written (`edits.py`).
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from codeagent_lsp.terminal.edits import FileWrite

NEW_FILE_MODE = 0o666


class ChangedMeanwhile(OSError):
    """Raised if a file is not what it was when the change was computed."""


class Disk:
    """The operations on disk, one method each. Each may raise OSError and then has done nothing."""

    def read(self, path: Path) -> bytes | None:
        """Return the bytes of a file; None if there is none."""
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None

    def make_folder(self, path: Path) -> None:
        """Create a folder, whose parent exists."""
        path.mkdir()

    def remove_folder(self, path: Path) -> None:
        """Remove an empty folder."""
        path.rmdir()

    def stage(self, folder: Path, data: bytes, mode: int) -> Path:
        """Write a temporary file with `data`, synced to disk, and return its path."""
        descriptor, name = tempfile.mkstemp(prefix=".codeagent-", suffix=".tmp", dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(descriptor, mode)
                os.fsync(descriptor)
        except BaseException:
            os.unlink(name)  # noqa: PTH108 - nothing may happen between the failure and this
            raise
        return Path(name)

    def replace(self, staged: Path, path: Path) -> None:
        """Rename a staged file into place."""
        staged.replace(path)

    def remove(self, path: Path) -> None:
        """Delete a file."""
        path.unlink()


def commit(writes: Sequence[FileWrite], disk: Disk | None = None) -> None:
    """Carry out `writes`, all or none. OSError if one fails; the disk is then unchanged."""
    _Commit(disk or Disk()).run(writes)


class _Commit:
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._folders: list[Path] = []
        self._staged: dict[Path, Path] = {}
        self._backups: dict[Path, Path] = {}
        self._done: list[FileWrite] = []

    def run(self, writes: Sequence[FileWrite]) -> None:
        try:
            targets = [_resolved(write) for write in writes]
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
        self._check(write)
        if write.after is not None:
            self._make_folders(write.path.parent)
            self._staged[write.path] = self._disk.stage(write.path.parent, write.after, _mode(write))
        if write.before is not None:
            mode = stat.S_IMODE(write.path.stat().st_mode)
            self._backups[write.path] = self._disk.stage(write.path.parent, write.before, mode)

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
        if self._disk.read(write.path) != write.after:
            return
        if write.before is None:
            self._disk.remove(write.path)
        else:
            self._disk.replace(self._backups[write.path], write.path)
            del self._backups[write.path]

    def _clean(self) -> None:
        for staged in [*self._staged.values(), *self._backups.values()]:
            with contextlib.suppress(OSError):
                staged.unlink(missing_ok=True)


def _resolved(write: FileWrite) -> FileWrite:
    """Return the write with a link resolved, so that its target is written; a deletion removes the link itself."""
    if write.after is None or not write.path.is_symlink():
        return write
    return FileWrite(write.path.resolve(), write.before, write.after, write.like)


def _mode(write: FileWrite) -> int:
    """Return the mode of the new file: that of the file it replaces or continues, else by the umask."""
    for path in (write.path, write.like):
        if path is not None and path.exists():
            return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return NEW_FILE_MODE & ~mask
