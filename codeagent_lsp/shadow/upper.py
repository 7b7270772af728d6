# ruff: noqa: PTH119, PTH208 - plain strings are several times faster in a walk

"""The upper folder of one overlay: what is put into it before a command, and taken back before the next.

It holds only differences from the disk, in the format of overlayfs: files, whiteouts (character devices 0/0) for
deleted ones, and opaque folders that hide all below them. It is used while nothing is mounted on it. Not here: mounting
(`overlay.py`), walking (`upper_walk.py`).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from codeagent_lsp.shadow.collect import WrittenFiles, WrittenLimits
from codeagent_lsp.shadow.folder import remove_tree
from codeagent_lsp.shadow.private_copy import TextTimes
from codeagent_lsp.shadow.shell import Written
from codeagent_lsp.shadow.upper_walk import (
    MAX_DEPTH,
    OPAQUE,
    VERSION_CONTROL,
    Rules,
    Stamp,
    UpperEntry,
    UpperPaths,
    became_executable,
    forget_origin,
    has_files,
    is_binary,
    is_folder,
    list_names,
    lstat,
    read,
    same_as_disk,
    same_link,
)
from codeagent_lsp.system import open_new, set_mode
from codeagent_lsp.workspace.files.ignore import FolderRules


class Upper:
    """The upper folder `upper` of an overlay over the folder `root` (absolute real paths), used while nothing is
    mounted. All methods block.
    """

    def __init__(self, root: str, upper: str, rules: Rules, limits: WrittenLimits | None = None) -> None:
        self._paths = UpperPaths(root, upper)
        self._rules = rules
        self._limits = limits or WrittenLimits()
        self._wanted: Mapping[str, bytes | None] = {}
        self._stamps: dict[str, Stamp] = {}
        self._times = TextTimes()

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """Update the folder to `wanted` (bytes by absolute path, None: no such file). Ignored files and those that
        cannot become an edit stay. OSError if it cannot be written.
        """
        wanted = {path: data for path, data in wanted.items() if not self._is_version_control(path)}
        for path in [path for path, data in wanted.items() if data is not None]:
            wanted.update({folder: None for folder in self._paths.above(path) if _is_in_the_way(folder, wanted)})
        emptied: set[str] = set()
        for path in self._wanted.keys() - wanted.keys():  # ignored or not, it was we who laid it
            self._drop(path)
            emptied.update(self._paths.above(path))
        self._wanted = wanted
        # Contents before their folder: a folder is taken back when nothing is left in it.
        for entry in reversed(list(self._walk())):
            self._take_back(entry, emptied)
        self._times.begin()
        # Deletions first: they clear the way for a folder where a file was.
        for path in sorted(wanted, key=lambda path: wanted[path] is not None):
            self._lay(path, wanted[path])
        for entry in self._walk():
            forget_origin(entry)
        # Taken last: whatever has another stamp later was written by the command.
        self._stamps = {entry.path: entry.stamp for entry in self._walk()}

    def collect(self, found: WrittenFiles) -> None:
        """Add to `found` every file that differs from the prepared state, by its absolute path in the workspace;
        ignored files are left out.
        """
        UpperChanges(self._paths, self._wanted, self._stamps, self._rules(), found).collect()

    def _take_back(self, entry: UpperEntry, emptied: set[str]) -> None:
        """Remove an entry that must not stay for the next command. Contents come before their folder."""
        if entry.is_folder and not entry.ignored and not entry.is_version_control:
            _clear_mark(entry.upper)
            # Over a folder of the disk an empty one says nothing, unless it is opaque, and that mark is gone.
            is_merged = entry.lower is not None and is_folder(entry.lower)
            if (is_merged or entry.path in emptied) and _remove_empty(entry.upper):
                emptied.update(self._paths.above(entry.path))
        elif entry.is_version_control or (
            not entry.ignored and entry.path not in self._wanted and (entry.is_whiteout or self._is_stale(entry))
        ):
            self._drop(entry.path)
            emptied.update(self._paths.above(entry.path))

    def _is_stale(self, entry: UpperEntry) -> bool:
        """Return whether a file is text that is no longer wanted, or a plain copy of the file on the disk."""
        mode = entry.info.st_mode
        if stat.S_ISLNK(mode):
            return same_link(entry)
        if not stat.S_ISREG(mode):
            return False
        below = lstat(entry.lower)
        if below is not None and same_as_disk(entry):
            return stat.S_IMODE(below.st_mode) == stat.S_IMODE(mode)
        return entry.info.st_size <= self._limits.file_bytes and not is_binary(entry.upper)

    def _lay(self, path: str, data: bytes | None) -> None:
        """Write a file with these bytes at `path`, or a whiteout for None."""
        place = self._paths.place(path)
        info, below = lstat(place), self._on_disk(path)
        is_file = info is not None and stat.S_ISREG(info.st_mode)
        # Left alone it keeps its time, and build tools see no new version.
        if data is not None and is_file and info is not None and info.st_size == len(data) and read(place) == data:
            return
        self._drop(path)
        # A whiteout where the disk has no file would be a deletion that nobody made.
        if (data is None and below is None) or not self._make_folders(path):
            return
        if data is None:
            if sys.platform != "win32":
                # The one device that the kernel lets an ordinary user make (Linux 5.8).
                os.mknod(place, stat.S_IFCHR, 0)
            return
        before = info if is_file else below
        # The mode that a command gave the file stays: only its text is ours to set.
        mode = before.st_mode if before is not None and stat.S_ISREG(before.st_mode) else 0o644
        with os.fdopen(open_new(place), "wb") as file:
            file.write(data)
            set_mode(file.fileno(), stat.S_IMODE(mode) & 0o777)
        self._times.give(place, below, info)

    def _make_folders(self, path: str) -> bool:
        """Create the folders above `path`; return False if a wanted file is in the way."""
        for folder in self._paths.above(path):
            if self._wanted.get(folder) is not None:
                return False
            if not is_folder(self._paths.place(folder)):
                self._drop(folder)
                Path(self._paths.place(folder)).mkdir()
                below = lstat(folder)
                mode = stat.S_IMODE(below.st_mode) | 0o700 if below and stat.S_ISDIR(below.st_mode) else 0o755
                Path(self._paths.place(folder)).chmod(mode)
        return True

    def _on_disk(self, path: str) -> os.stat_result | None:
        """Return the status of a file on the disk; None if there is none, it is a folder, or it is behind a link."""
        info = lstat(path) if all(map(is_folder, self._paths.above(path))) else None
        return None if info is None or stat.S_ISDIR(info.st_mode) else info

    def _drop(self, path: str) -> None:
        """Remove a path from the upper without following links above it."""
        place = self._paths.place(path)
        if not all(is_folder(self._paths.place(folder)) for folder in self._paths.above(path)):
            return
        if is_folder(place):
            remove_tree(place)
        elif os.path.lexists(place):
            Path(place).unlink()

    def _walk(self) -> Iterator[UpperEntry]:
        return self._paths.walk(self._rules())

    def _is_version_control(self, path: str) -> bool:
        return not VERSION_CONTROL.isdisjoint(path.removeprefix(self._paths.root + "/").split("/"))


def _is_in_the_way(folder: str, wanted: Mapping[str, bytes | None]) -> bool:
    """Return whether the disk has something other than a folder where a wanted file needs one."""
    return folder not in wanted and os.path.lexists(folder) and not is_folder(folder)


def _clear_mark(folder: str) -> None:
    if sys.platform == "linux":
        with suppress(OSError):  # it had none
            os.removexattr(folder, OPAQUE, follow_symlinks=False)


def _remove_empty(folder: str) -> bool:
    try:
        Path(folder).rmdir()
    except OSError:
        return False  # something is still in it
    return True


# The differences of an upper folder from the state that was prepared for a command: what the command wrote.


class UpperChanges:
    """Finds the files of one upper folder that differ from its prepared state, once. That state consists of the
    `wanted` texts by absolute path, None for a deleted file, and the `stamps` of all entries. `rules` are the ignore
    rules at the root, None if all of it is ignored.
    """

    def __init__(
        self,
        paths: UpperPaths,
        wanted: Mapping[str, bytes | None],
        stamps: Mapping[str, Stamp],
        rules: FolderRules | None,
        found: WrittenFiles,
    ) -> None:
        self._paths = paths
        self._wanted = wanted
        self._stamps = stamps
        self._rules = rules
        self._found = found

    def collect(self) -> None:
        """Add all differences to `found`, by absolute path in the workspace; ignored files are left out. Blocks."""
        met = set()
        for entry in self._paths.walk(self._rules):
            met.add(entry.path)
            if entry.is_version_control:
                if not entry.is_folder or entry.hides or has_files(entry.upper):
                    self._found.add(entry.path, "git")
            elif not entry.ignored:
                self._entry(entry)
        # A deleted file that only the buffers had leaves no trace in the upper, so it is missed rather than met.
        for path, data in self._wanted.items():
            if data is not None and path not in met and not os.path.lexists(self._paths.place(path)):
                self._collect_gone(path)

    def _entry(self, entry: UpperEntry) -> None:
        # A folder that was not walked: it lies too deep.
        if entry.is_folder and entry.inner is None:
            if entry.path not in self._stamps:
                self._found.add(entry.path, "deep")
        elif entry.is_folder:
            self._hidden_by(entry)
        # Before its kind: whatever it is, it was there when the command began.
        elif self._stamps.get(entry.path) == entry.stamp:
            pass
        elif entry.is_whiteout:
            self._collect_deletion(entry.path, entry.lower, entry.rules)
        else:
            # A file in the place of a folder is two changes: all that was in the folder is deleted.
            if entry.lower is not None and is_folder(entry.lower):
                self._collect_deletion(entry.path, entry.lower, entry.rules)
            if (written := self._change_of(entry)) is not None:
                self._found.add(written.path, written.kind, written.data, runs=written.runs)

    def _hidden_by(self, entry: UpperEntry) -> None:
        """Collect the files on the disk that a folder in the upper hides."""
        if entry.lower is None or entry.inner is None or not os.path.lexists(entry.lower):
            return
        if not is_folder(entry.lower):
            self._collect_deletion(entry.path, entry.lower, entry.rules)
        elif entry.hides:
            here = set(os.listdir(entry.upper))
            for name in list_names(entry.lower):
                if name not in here:
                    self._collect_deletion(f"{entry.path}/{name}", f"{entry.lower}/{name}", entry.inner)

    def _collect_deletion(self, path: str, lower: str | None, rules: FolderRules) -> None:
        """Collect the deletion of `path`, or of every file below a folder. `rules` are those of the folder above."""
        if lower is None or not os.path.lexists(lower):
            return
        name, folder = os.path.basename(path), is_folder(lower)
        if name in VERSION_CONTROL:
            self._found.add(path, "git")
        elif rules.ignores(name, is_dir=folder):
            return
        elif not folder:
            if path not in self._wanted or self._wanted[path] is not None:
                self._found.add(path, "deleted")
        elif path.count("/") - self._paths.root.count("/") < MAX_DEPTH:
            inner = rules.enter(name)
            for child in list_names(lower):
                self._collect_deletion(f"{path}/{child}", f"{lower}/{child}", inner)

    def _collect_gone(self, path: str) -> None:
        """Collect the deletion of a wanted file that is not on the disk, which leaves no whiteout."""
        rules = self._rules
        for folder in self._paths.above(path):
            if rules is None or rules.ignores(os.path.basename(folder), is_dir=True):
                return
            rules = rules.enter(os.path.basename(folder))
        if rules is not None and not rules.ignores(os.path.basename(path), is_dir=False):
            self._found.add(path, "deleted")

    def _change_of(self, entry: UpperEntry) -> Written | None:
        """Return how a file in the upper has changed; None if it has not."""
        mode = entry.info.st_mode
        if stat.S_ISLNK(mode):
            return None if same_link(entry) else Written(entry.path, "symlink")
        if not stat.S_ISREG(mode):
            return Written(entry.path, "special")
        if (before := self._mode_before(entry)) is not None and self._same_bytes(entry):
            same = stat.S_IMODE(mode) == stat.S_IMODE(before)
            return None if same else Written(entry.path, "mode", runs=became_executable(before, mode))
        if entry.info.st_size > self._found.limits.file_bytes:
            return Written(entry.path, "large")
        if is_binary(entry.upper):
            return Written(entry.path, "binary")
        return Written(entry.path, "text", read(entry.upper), became_executable(before, mode))

    def _mode_before(self, entry: UpperEntry) -> int | None:
        """Return the mode of the file before the command; None if there was no such file."""
        if entry.path in self._wanted:
            stamp = self._stamps.get(entry.path)
            return stamp[4] if stamp is not None and self._wanted[entry.path] is not None else None
        info = lstat(entry.lower)
        return info.st_mode if info is not None and stat.S_ISREG(info.st_mode) else None

    def _same_bytes(self, entry: UpperEntry) -> bool:
        """Return whether the file has its prepared bytes: the wanted ones, else those on the disk."""
        if entry.path in self._wanted:
            wanted = self._wanted[entry.path]
            return wanted is not None and len(wanted) == entry.info.st_size and wanted == read(entry.upper)
        return same_as_disk(entry)
