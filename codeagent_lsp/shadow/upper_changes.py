"""The differences of an upper folder from the state that was prepared for a command: what the command wrote.

Changes nothing. Not here: preparing the folder (`upper.py`), walking it (`upper_walk.py`).
"""

# ruff: noqa: PTH119, PTH208 - plain strings are several times faster in a walk

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from codeagent_lsp.shadow.shell import Written
from codeagent_lsp.shadow.upper_walk import (
    MAX_DEPTH,
    VERSION_CONTROL,
    Stamp,
    UpperEntry,
    UpperPaths,
    has_files,
    is_binary,
    is_folder,
    listed,
    lstat,
    read,
    same_as_disk,
    same_link,
)
from codeagent_lsp.shadow.written_files import WrittenFiles
from codeagent_lsp.workspace.files.ignore import FolderRules


class UpperChanges:
    """Adds to `found` the files of one upper that differ from its prepared state.

    That state are the `wanted` texts by absolute path, None for a deleted file, and the `stamps` of all entries.
    `rules` are the ignore rules at the root, None if all of it is ignored.
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
        """Add all differences."""
        met = set()
        for entry in self._paths.walk(self._rules):
            met.add(entry.path)
            if entry.is_version_control:
                if not entry.is_folder or entry.hides or has_files(entry.upper):
                    self._found.add(entry.path, "git")
            elif not entry.ignored:
                self._entry(entry)
        for path, data in self._wanted.items():
            if data is not None and path not in met and not os.path.lexists(self._paths.place(path)):
                self._gone(path)

    def _entry(self, entry: UpperEntry) -> None:
        if entry.is_folder and entry.inner is None:
            if entry.path not in self._stamps:
                self._found.add(entry.path, "deep")
        elif entry.is_folder:
            self._hidden_by(entry)
        elif self._stamps.get(entry.path) == entry.stamp:
            pass
        elif entry.is_whiteout:
            self._deleted(entry.path, entry.lower, entry.rules)
        else:
            if entry.lower is not None and is_folder(entry.lower):
                self._deleted(entry.path, entry.lower, entry.rules)
            if (written := self._changed(entry)) is not None:
                self._found.add(written.path, written.kind, written.data)

    def _hidden_by(self, entry: UpperEntry) -> None:
        """Collect the files on the disk that a folder in the upper hides."""
        if entry.lower is None or entry.inner is None or not os.path.lexists(entry.lower):
            return
        if not is_folder(entry.lower):
            self._deleted(entry.path, entry.lower, entry.rules)
        elif entry.hides:
            here = set(os.listdir(entry.upper))
            for name in listed(entry.lower):
                if name not in here:
                    self._deleted(f"{entry.path}/{name}", f"{entry.lower}/{name}", entry.inner)

    def _deleted(self, path: str, lower: str | None, rules: FolderRules) -> None:
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
            for child in listed(lower):
                self._deleted(f"{path}/{child}", f"{lower}/{child}", inner)

    def _gone(self, path: str) -> None:
        """Collect the deletion of a wanted file that is not on the disk, which leaves no whiteout."""
        rules = self._rules
        for folder in self._paths.above(path):
            if rules is None or rules.ignores(os.path.basename(folder), is_dir=True):
                return
            rules = rules.enter(os.path.basename(folder))
        if rules is not None and not rules.ignores(os.path.basename(path), is_dir=False):
            self._found.add(path, "deleted")

    def _changed(self, entry: UpperEntry) -> Written | None:
        """Return how a file in the upper has changed; None if it has not."""
        mode = entry.info.st_mode
        if stat.S_ISLNK(mode):
            return None if same_link(entry) else Written(entry.path, "symlink")
        if not stat.S_ISREG(mode):
            return Written(entry.path, "special")
        if (before := self._mode_before(entry)) is not None and self._same_bytes(entry):
            return None if stat.S_IMODE(mode) == stat.S_IMODE(before) else Written(entry.path, "mode")
        if entry.info.st_size > self._found.limits.file_bytes:
            return Written(entry.path, "large")
        if is_binary(entry.upper):
            return Written(entry.path, "binary")
        return Written(entry.path, "text", read(entry.upper))

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
