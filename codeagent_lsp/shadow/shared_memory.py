"""Memory that a tree of processes holds in files: private file systems in memory, and `memfd_create`.

It is in no process's resident memory unless mapped. Standard library only, as the watchdog imports it. Not here: the
limit (`watchdog.py`), the sizes of the file systems (`sandbox.py`).
"""

# ruff: noqa: PTH115, PTH116, PTH123 - pathlib would double the time the watchdog takes to start

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # as in `typing`, see `watchdog.py`
    from collections.abc import Iterable, Iterator

_ESCAPES = (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\"))
_MEMFD = "/memfd:"


class FileMemory:
    """The files in memory that the processes with these ids hold at one moment, and their size in `bytes`, each counted
    once. File systems whose device (`major:minor`) is `known`, as they are not theirs alone, count only for files that
    are open.
    """

    def __init__(self, pids: Iterable[int], known: frozenset[str]) -> None:
        """Look at the processes; `known` are the devices of file systems that are not theirs alone."""
        self.bytes = 0
        self._devices: set[str] = set()
        self._files: set[tuple[str, int]] = set()
        # In our own namespace the file systems in memory are those of the machine.
        spaces = {None, _space(os.getpid())}
        for pid in pids:
            self._add_open(pid)
            if (space := _space(pid)) not in spaces:
                spaces.add(space)
                self._add_mounted(pid, known)

    def unshared(self, pid: int) -> int | None:
        """Return the proportional memory (PSS) of a process in bytes, without mappings of these files; None if it
        cannot be read.
        """
        total, counted = 0, False
        try:
            with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    if line.startswith("Pss:"):
                        total += 0 if counted else int(line.split()[1]) * 1024
                    elif line[0] in "0123456789abcdef":  # the first line of a mapping; names of values are capitalised
                        _, _, _, device, inode, *_ = line.split(maxsplit=5)
                        counted = _plain(device) in self._devices or (_plain(device), int(inode)) in self._files
        except (OSError, ValueError, IndexError):
            return None
        return total

    def _add_mounted(self, pid: int, known: frozenset[str]) -> None:
        """Add the file systems in memory of a process's mount namespace."""
        for device, point in memory_mounts(pid):
            if device in known or device in self._devices:
                continue
            try:
                status = _status(f"/proc/{pid}/root{point}", device)
            except OSError:
                continue
            if status is None:  # another is mounted over it
                continue
            self._devices.add(device)
            self.bytes += (status.f_blocks - status.f_bfree) * status.f_frsize

    def _add_open(self, pid: int) -> None:
        """Add the files without a name that a process has open."""
        try:
            entries = os.scandir(f"/proc/{pid}/fd")
        except OSError:
            return
        with entries:
            for entry in entries:
                try:
                    if not os.readlink(entry.path).startswith(_MEMFD):
                        continue
                    info = os.stat(entry.path)
                except OSError:  # closed meanwhile
                    continue
                file = (_device(info.st_dev), info.st_ino)
                if file not in self._files:
                    self._files.add(file)
                    # What is really there: such a file may have holes.
                    self.bytes += getattr(info, "st_blocks", 0) * 512


def memory_mounts(pid: int | str) -> Iterator[tuple[str, str]]:
    """Yield the device, as `major:minor`, and the mount point of each file system in memory that a process sees;
    nothing if it has ended.
    """
    try:
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError:
        return
    for line in lines:
        before, _, after = line.partition(" - ")
        if after.startswith(("tmpfs ", "ramfs ")):
            fields = before.split(" ")
            yield fields[2], _unescape(fields[4])


def _status(path: str, device: str) -> os.statvfs_result | None:
    """Return the state of the file system at a path; None if it is not on `device`. OSError if it cannot be read.

    Through one descriptor: while a sandbox is set up, one path leads to its memory now and to the whole disk then.
    """
    found = None
    if sys.platform == "linux":
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            found = os.fstatvfs(place) if _device(os.fstat(place).st_dev) == device else None
        finally:
            os.close(place)
    return found


def _unescape(point: str) -> str:
    for escape, char in _ESCAPES:
        point = point.replace(escape, char)
    return point


def _space(pid: int) -> str | None:
    """Return the mount namespace of a process; None if it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/ns/mnt")
    except OSError:
        return None


def _device(number: int) -> str:
    numbers = (0, 0)
    if sys.platform != "win32":
        numbers = (os.major(number), os.minor(number))
    return ":".join(map(str, numbers))


def _plain(device: str) -> str:
    """Return a device of `smaps`, which has hexadecimal numbers, as `major:minor`."""
    major, _, minor = device.partition(":")
    return f"{int(major, 16)}:{int(minor, 16)}"
