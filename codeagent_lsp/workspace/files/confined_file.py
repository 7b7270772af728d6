"""Access to a file below a workspace folder by descriptors, part by part from the folder's own.

Links are never followed, so a link that is swapped in after the check of a path (TOCTOU) leads nowhere. Not here: which
paths are in the workspace (`paths.py`), writing (`lsp_client/disk.py`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.system import Folder

FileKind = Literal["file", "folder", "link", "other"]


class Child(NamedTuple):
    """One name in a folder and its kind."""

    name: str
    kind: FileKind


@dataclass(frozen=True, slots=True)
class ConfinedFile:
    """The file or folder `path`, which is `parts` below the workspace folder `root`; it need not exist.

    `name_of` returns the name of a path for the user and the model.
    """

    path: str
    root: str
    parts: tuple[str, ...]
    name_of: Callable[[str], str]

    def read_bytes(self, limit: int) -> bytes:
        """Return the content of a regular file, at most `limit` bytes. Never blocks.

        Raises FileRefused if it is missing, not a regular file, unreadable or longer than `limit`.
        """
        with self._opened() as fd:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise FileRefused(f"{self._name} is {_what(info.st_mode)}, not a file of text.")
            if info.st_size > limit:
                raise FileRefused(_too_large(self._name, info.st_size, limit))
            data = _read(fd, limit + 1)
        if len(data) > limit:
            raise FileRefused(_too_large(self._name, len(data), limit))
        return data

    def scan(self) -> tuple[Child, ...]:
        """Return the names in a folder with their kinds, unsorted. FileRefused if it is not a readable folder."""
        with self._refusing():
            folder = Folder(self.root, self.parts)
        with folder:
            return tuple(Child(entry.name, _entry_kind(entry)) for entry in folder.entries())

    def stat(self) -> os.stat_result | None:
        """Return the status, without following links; None if nothing is there or it cannot be reached."""
        try:
            with self._parent() as (folder, name):
                return folder.status(name)
        except (FileRefused, OSError):
            return None

    @property
    def _name(self) -> str:
        return self.name_of(self.path)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        with self._parent() as (folder, name), self._refusing():
            # Opening a device may have effects, so its type is checked first; that no link is followed guards against a
            # swap.
            _refuse_special(folder.status(name).st_mode, self._name)
            fd = folder.open_reading(name)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _parent(self) -> Iterator[tuple[Folder, str]]:
        """Yield the file's folder, opened part by part from the root, and its last name."""
        # For the workspace folder itself.
        *folders, name = self.parts or (".",)
        with self._refusing():
            folder = Folder(self.root, folders)
        with folder:
            yield folder, name

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Raise FileRefused for an OSError."""
        try:
            yield
        except FileNotFoundError:
            raise FileRefused(f"{self._name} does not exist.") from None
        except OSError as error:
            raise FileRefused(f"{self._name} cannot be opened: {error.strerror}.") from None


def kind_of(mode: int) -> FileKind:
    """Return the kind of a file by its mode (`st_mode`)."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def _refuse_special(mode: int, shown: str) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise FileRefused(f"{shown} is {_what(mode)}, not a file of text.")


def _too_large(shown: str, size: int, limit: int) -> str:
    advice = "Look for the part you need with a command."
    return f"{shown} has {size:,} bytes, more than the limit of {limit:,}. {advice}"


def _read(fd: int, limit: int) -> bytes:
    """Read at most `limit` bytes in small pieces, as sizes reported by a file system can be wrong."""
    pieces: list[bytes] = []
    while limit > 0 and (piece := os.read(fd, min(limit, 1 << 20))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def _what(mode: int) -> str:
    names = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFLNK: "a link",
    }
    return names.get(stat.S_IFMT(mode), "a device")


def _entry_kind(entry: os.DirEntry[str]) -> FileKind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
