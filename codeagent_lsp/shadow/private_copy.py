"""The files of a private copy of a folder: writing and removing them, and the origin of each.

Links are never followed, not even in the folders above a file. Not here: what is copied when (`mirror.py`), copying one
file (`mirror_files.py`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal

from codeagent_lsp.shadow.folder import remove_tree
from codeagent_lsp.shadow.mirror_files import Item, copy_file, same_bytes, write_file
from codeagent_lsp.shadow.text_times import TextTimes
from codeagent_lsp.shadow.upper_walk import Stamp, is_folder, lstat, read

FileChangeKind = Literal["created", "changed", "deleted"]

Origin = Stamp | bytes
"""The origin of a file in the copy: a state of the disk, or given bytes."""


class PrivateCopy:
    """The copy in `place` of the folder `root`, absolute real paths. Files are named relative to both.

    `origins` are those of the files that were written here, each with the stamp that the file had then; `changed` is
    what was done to files since `begin`.
    """

    def __init__(self, root: str, place: str) -> None:
        self.origins: dict[str, tuple[Origin, Stamp]] = {}
        self.changed: dict[str, FileChangeKind] = {}
        self._root = root
        self._place = place
        self._given: Collection[str] = ()
        self._times = TextTimes()
        Path(place).mkdir(mode=0o700, parents=True, exist_ok=True)

    def begin(self, given: Collection[str]) -> None:
        """Begin the next state, in which the files `given` have texts of their own: none makes way for a folder."""
        self._given = given
        self.changed = {}
        self._times.begin()

    def has(self, name: str, origin: Origin) -> bool:
        """Return whether a file has the bytes of `origin`."""
        path = f"{self._place}/{name}"
        return read(path) == origin if isinstance(origin, bytes) else same_bytes(path, f"{self._root}/{name}")

    def write(self, name: str, origin: Origin, like: os.stat_result | None) -> None:
        """Write a file anew: given bytes with the mode of `like`, or a copy of the one on the disk."""
        target = f"{self._place}/{name}"
        before = lstat(target)
        # Never over the file that is there: a command may have made it a link to another one.
        self.remove(name)
        self.changed[name] = "created" if before is None else "changed"
        if not self._make_folders(name):
            return
        if isinstance(origin, bytes):
            write_file(target, origin, like)
            self._times.give(target, like, before)
        elif not copy_file(f"{self._root}/{name}", target):
            return
        self.origins[name] = (origin, Item(os.lstat(target), False).stamp)

    def remove(self, name: str) -> None:
        """Remove a file or folder."""
        self.origins.pop(name, None)
        self.changed[name] = "deleted"
        path = f"{self._place}/{name}"
        # Behind a link that a command put there it would be a file outside of the copy.
        if not self._is_reached(name):
            return
        if is_folder(path):
            remove_tree(path)
        elif os.path.lexists(path):
            Path(path).unlink()

    def make_folder(self, name: str, mode: int) -> None:
        """Create a folder in place of what is there, unless that is a given file."""
        if is_folder(f"{self._place}/{name}") or name in self._given:
            return
        self.remove(name)
        if self._is_reached(name):
            Path(self._place, name).mkdir()
            Path(self._place, name).chmod(stat.S_IMODE(mode) & 0o777 | 0o700)

    def remove_empty(self, names: Iterable[str]) -> None:
        """Remove those of the folders that are empty."""
        # Inner folders first.
        for name in sorted(names, reverse=True):
            try:
                Path(self._place, name).rmdir()
            except OSError:
                pass  # something is still in it

    def _make_folders(self, name: str) -> bool:
        """Create the folders above a file; return False if a given file is in the way."""
        for folder in _above(name):
            if folder in self._given:
                return False
            self.make_folder(folder, 0o755)
        return True

    def _is_reached(self, name: str) -> bool:
        """Return whether all above a path are folders, not links to folders."""
        return all(is_folder(f"{self._place}/{folder}") for folder in _above(name))


def _above(name: str) -> list[str]:
    """Return the folders between the top and `name`, outermost first."""
    parts = name.split("/")[:-1]
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]
