"""Walking the upper folder of an overlay together with the disk below it, and comparing single files of both.

Never follows a link, and reads a command's files even without access rights. Changes nothing else. Not here: what the
differences mean (`upper.py`).
"""

# ruff: noqa: PTH101, PTH115, PTH123, PTH208 - plain strings are several times faster in a walk

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from codeagent_lsp.system import open_reading, set_mode
from codeagent_lsp.workspace.files.ignore import FolderRules

VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj", ".bzr", "CVS"})
OPAQUE = "user.overlay.opaque"
MAX_DEPTH = 200
LONGEST_PATH, LONGEST_NAME = 4096, 256
"""PATH_MAX and NAME_MAX of Linux in bytes, with the NUL and the slash."""

_ORIGIN = "user.overlay.origin"

_BINARY_HEAD = 8192
_PIECE = 1 << 20
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")

Stamp = tuple[int, int, int, int, int]

Rules = Callable[[], FolderRules | None]
"""Returns the current ignore rules at the top of a folder; None if all of it is ignored."""


def stamp_of(info: os.stat_result) -> Stamp:
    """Return a value that differs after every modification of a file, its mode included: inode, size in bytes, both
    times in nanoseconds, and mode.
    """
    return (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_mode)


class UpperEntry(NamedTuple):
    """One entry of the upper folder. `path` is its path for the command, `upper` its absolute path in the upper folder,
    `lower` that on the disk, None if a parent is not a folder there.

    `rules` are those of its folder, `inner` its own for a folder that is walked. `hides` says that it is a folder that
    hides the contents on the disk.
    """

    path: str
    upper: str
    lower: str | None
    info: os.stat_result
    rules: FolderRules
    inner: FolderRules | None = None
    ignored: bool = False
    hides: bool = False

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder in the upper, which holds only what differs from the one on the disk."""
        return stat.S_ISDIR(self.info.st_mode)

    @property
    def is_whiteout(self) -> bool:
        """Whether it is a whiteout, a character device 0/0 (overlayfs), which marks the disk's file or folder as
        deleted.
        """
        return stat.S_ISCHR(self.info.st_mode) and getattr(self.info, "st_rdev", None) == 0

    @property
    def is_version_control(self) -> bool:
        """Whether its name is that of a repository's folder, or of a file that refers to one, such as `.git`."""
        return self.path.rpartition("/")[2] in VERSION_CONTROL

    @property
    def stamp(self) -> Stamp:
        """A value that changes with every modification of the entry in the upper folder, see `stamp_of`."""
        return stamp_of(self.info)


class UpperPaths(NamedTuple):
    """The folder `root` of the disk, an absolute real path, and the folder `upper` over it."""

    root: str
    upper: str

    def place(self, path: str) -> str:
        """Return the absolute place in the upper folder of an absolute path, which must be `root` or in it; whether it
        exists does not matter.
        """
        return self.upper + path.removeprefix(self.root)

    def above(self, path: str) -> list[str]:
        """Return the absolute paths of the folders between the root and `path`, both excluded, outermost first."""
        parts = path.removeprefix(self.root + "/").split("/")[:-1]
        return [f"{self.root}/{'/'.join(parts[: end + 1])}" for end in range(len(parts))]

    def walk(self, rules: FolderRules | None) -> Iterator[UpperEntry]:
        """Yield all entries of the upper, sorted, folders before their contents; none if `rules` is None.

        Folders that are ignored, belong to version control or lie too deep are yielded but not entered.
        """
        if rules is not None:
            yield from _walk(_Place(self.root, self.upper, self.root if is_folder(self.root) else None, rules))


class _Place(NamedTuple):
    """A folder during the walk: as the command sees it, in the upper, and on the disk if it is one there."""

    path: str
    upper: str
    lower: str | None
    rules: FolderRules
    hides: bool = False
    depth: int = 0


def lstat(path: str | None) -> os.stat_result | None:
    """Return the status of a path without following links; None for None, or if it does not exist or cannot be read."""
    try:
        return None if path is None else os.lstat(path)
    except OSError:
        return None


def is_folder(path: str) -> bool:
    """Return whether a path is a real folder, not a link to one; False if it cannot be read."""
    info = lstat(path)
    return info is not None and stat.S_ISDIR(info.st_mode)


def list_names(folder: str) -> list[str]:
    """Return the names in a folder of the disk, sorted, without `.` and `..`; [] if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read(path: str, size: int = -1) -> bytes:
    """Return the first `size` bytes of a regular file, -1 for all, even if its mode forbids reading. OSError if it does
    not exist or is not a regular file.
    """
    with _reader(path) as file:
        return file.read(size)


def is_binary(path: str) -> bool:
    """Return whether a file is not text in any encoding: there is a NUL in its first 8,192 bytes, and no UTF-16 mark.
    OSError if it cannot be read.
    """
    head = read(path, _BINARY_HEAD)
    return b"\0" in head and not head.startswith(_WIDE_MARKS)


def became_executable(before: int | None, after: int) -> bool:
    """Return whether a file is executable, for anybody, by its mode `after` and was not by `before` (None: there was no
    file). Always False on Windows, which decides by names.
    """
    return sys.platform != "win32" and not (before or 0) & 0o111 and bool(after & 0o111)


def same_link(entry: UpperEntry) -> bool:
    """Return whether the disk has the same symbolic link, to the same target as written, at this place; False if it
    cannot be read.
    """
    try:
        return entry.lower is not None and os.readlink(entry.lower) == os.readlink(entry.upper)
    except OSError:
        return False


def same_as_disk(entry: UpperEntry) -> bool:
    """Return whether a file in the upper has the same bytes as the file on the disk; False also if one of them cannot
    be read.
    """
    info = lstat(entry.lower)
    if entry.lower is None or info is None or not stat.S_ISREG(info.st_mode) or info.st_size != entry.info.st_size:
        return False
    try:
        with _reader(entry.upper) as ours, open(entry.lower, "rb") as theirs:
            while (piece := ours.read(_PIECE)) == theirs.read(_PIECE):
                if not piece:
                    return True
            return False
    except OSError:
        return False


def forget_origin(entry: UpperEntry) -> None:
    """Remove the origin mark of overlayfs from a file; never raises. Two names with the same mark, left by `ln` or an
    interrupted `mv`, would be one file to the kernel, and one of them would not be listed.
    """
    if sys.platform == "linux" and stat.S_ISREG(entry.info.st_mode):
        with suppress(OSError):  # most have no mark
            os.removexattr(entry.upper, _ORIGIN, follow_symlinks=False)


def is_opaque(folder: str) -> bool:
    """Return whether a folder of the upper is opaque, which means that it hides the one on the disk; False if
    unknown.
    """
    mark = b""
    if sys.platform == "linux":
        with suppress(OSError):  # it has none
            mark = os.getxattr(folder, OPAQUE, follow_symlinks=False)
    return mark == b"y"


def has_files(folder: str) -> bool:
    """Return whether anything but folders is anywhere below a folder; what cannot be read is taken as empty."""
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        return True
                    pending.append(entry.path)
        except OSError:  # not ours to read, or its path is too long
            continue
    return False


def is_too_long(*folders: str) -> bool:
    """Return whether a file in one of these folders (absolute paths) could have a path that exceeds the system's limit
    (`PATH_MAX`), with a name of the greatest length.
    """
    return any(len(os.fsencode(folder)) + LONGEST_NAME >= LONGEST_PATH for folder in folders)


def _walk(place: _Place) -> Iterator[UpperEntry]:
    for name in _open_names(place.upper):
        upper = f"{place.upper}/{name}"
        lower = f"{place.lower}/{name}" if place.lower is not None else None
        entry = UpperEntry(f"{place.path}/{name}", upper, lower, os.lstat(upper), place.rules)
        # Before the rules, which leave repositories out: that one was written is to be told.
        if entry.is_version_control:
            yield entry._replace(hides=entry.is_folder and is_opaque(upper))
        elif place.rules.ignores(name, is_dir=_counts_as_folder(entry)):
            yield entry._replace(ignored=True)
        # A path that fits where the command sees it may be too long below the upper folder.
        elif not entry.is_folder or place.depth >= MAX_DEPTH or is_too_long(entry.path, upper):
            yield entry
        else:
            # Below an opaque folder nothing of the disk is seen either.
            inner, hides = place.rules.enter(name), place.hides or is_opaque(upper)
            yield entry._replace(inner=inner, hides=hides)
            below = lower if lower is not None and is_folder(lower) else None
            yield from _walk(_Place(entry.path, upper, below, inner, hides, place.depth + 1))


def _counts_as_folder(entry: UpperEntry) -> bool:
    """Return whether ignore rules for folders apply to an entry: it is a folder, or deletes one."""
    return entry.is_folder or (entry.is_whiteout and entry.lower is not None and is_folder(entry.lower))


def _reader(path: str) -> BinaryIO:
    """Open a file; if that is not permitted, with its read permission restored for a moment."""
    try:
        descriptor = open_reading(path)
    except PermissionError:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        os.chmod(path, mode | stat.S_IRUSR)
        descriptor = open_reading(path)
        set_mode(descriptor, mode)
    return os.fdopen(descriptor, "rb")


def _open_names(folder: str) -> list[str]:
    """Return the names in a folder of the upper, also without access rights."""
    try:
        return sorted(os.listdir(folder))
    except PermissionError:
        Path(folder).chmod(0o700)
        return sorted(os.listdir(folder))
    except OSError:
        return []
