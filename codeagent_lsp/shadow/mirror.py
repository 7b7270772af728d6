"""A private copy of one workspace folder, kept in step with it: only changed files are copied again.

Ignored folders are not copied but listed as `linked`, except those that programs recreate (`OUTPUTS`), which start
empty and are kept. Links are never followed. Not here: how commands run in the copy (`copying.py`), walking and copying
itself (`mirror_files.py`).
"""

# ruff: noqa: PTH119 - plain strings are several times faster in a walk

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from codeagent_lsp.shadow.folder import remove_tree
from codeagent_lsp.shadow.hiding import within
from codeagent_lsp.shadow.mirror_files import Item, Tree, copy_file, is_output, same_bytes, walk, write_file
from codeagent_lsp.shadow.shell import WrittenKind
from codeagent_lsp.shadow.text_times import TextTimes
from codeagent_lsp.shadow.upper_walk import VERSION_CONTROL, Rules, Stamp, is_binary, is_folder, lstat, read
from codeagent_lsp.shadow.written_files import WrittenFiles, WrittenLimits
from codeagent_lsp.workspace.files.ignore import FolderRules

_LARGE_IGNORED = 64 << 20

Origin = Stamp | bytes
"""The origin of a file in the copy: a state of the disk, or given bytes."""


class Mirror:
    """The copy in `place` of the folder `root`, absolute real paths. `rules` returns the current ignore rules.

    `linked` are the ignored folders and large ignored files that are not in the copy, and `repositories` the version
    control data, both by path relative to the folder.
    """

    def __init__(self, root: str, place: str, rules: Rules, limits: WrittenLimits | None = None) -> None:
        self.root = root
        self.place = place
        self.linked: tuple[str, ...] = ()
        self.repositories: tuple[str, ...] = ()
        self._rules = rules
        self._limits = limits or WrittenLimits()
        self._origins: dict[str, tuple[Origin, Stamp]] = {}
        self._prepared: dict[str, Item] = {}
        self._wanted: Mapping[str, bytes | None] = {}
        self._times = TextTimes()
        Path(place).mkdir(mode=0o700, parents=True, exist_ok=True)

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """Update the copy to the state of the disk and, over it, `wanted` by absolute path.

        Text that a command wrote is reverted; ignored files and those that could not become an edit stay.
        """
        rules = self._rules()
        disk, here = walk(self.root, rules), self._here(rules)
        self._link(disk)
        for name in set(here.version_control) - set(disk.version_control):
            self._remove(name)
        self._wanted = {self._name(path): data for path, data in wanted.items() if self._keeps(path)}
        desired = self._desired(disk)
        for name, item in here.files.items():
            if name not in desired and self._goes(name, item):
                self._remove(name)
        for name in sorted(disk.folders):
            self._make_folder(name, disk.folders[name])
        self._times.begin()
        for name, origin in desired.items():
            if not self._stays(name, origin, here.files.get(name)):
                self._remake(name, origin, disk)
        self._remove_empty(here, disk)
        self._prepared = self._here(rules).files

    def collect(self, found: WrittenFiles) -> None:
        """Add to `found` the differences from the prepared state."""
        now = self._here(self._rules())
        for name in now.version_control:
            if not os.path.lexists(f"{self.root}/{name}"):
                found.add(f"{self.root}/{name}", "git")
        for name in sorted(self._prepared.keys() | now.files.keys()):
            before, after = self._prepared.get(name), now.files.get(name)
            if (after or before or _NOTHING).ignored or (before and after and before.stamp == after.stamp):
                continue
            kind = self._kind(name, before, after)
            if kind is not None:
                data = read(f"{self.place}/{name}") if kind == "text" else b""
                found.add(f"{self.root}/{name}", kind, data)

    def _here(self, rules: FolderRules | None) -> Tree:
        """Return the tree of the copy, without the placeholders of linked folders."""
        tree = walk(self.place, rules, ours=True)
        for name in self.linked:
            tree.files.pop(name, None)
        return tree

    def _link(self, disk: Tree) -> None:
        large = [name for name, item in disk.files.items() if item.ignored and item.info.st_size > _LARGE_IGNORED]
        for name in large:
            del disk.files[name]
        self.repositories = tuple(disk.version_control)
        self.linked = (*(name for name in disk.closed if not is_output(os.path.basename(name))), *large)

    def _desired(self, disk: Tree) -> dict[str, Origin]:
        desired: dict[str, Origin] = {name: item.stamp for name, item in disk.files.items() if not item.special}
        for name, data in self._wanted.items():
            if data is None:
                desired.pop(name, None)
            else:
                desired[name] = data
        return desired

    def _goes(self, name: str, item: Item) -> bool:
        """Return whether an unwanted file is removed: one that we made, or text that a command made."""
        if name in self._origins or self._wanted.get(name, b"") is None:
            return True
        return not item.ignored and self._is_text(name, item)

    def _stays(self, name: str, origin: Origin, item: Item | None) -> bool:
        """Return whether a file is left as it is: unchanged, or changed in a way that cannot become an edit."""
        known = self._origins.get(name)
        if known is None or known[0] != origin:
            return False
        if item is None:
            return not self._was_text(name, origin)
        if item.stamp == known[1] or item.ignored:
            return True
        return not self._is_text(name, item) or self._has(name, origin)

    def _was_text(self, name: str, origin: Origin) -> bool:
        if isinstance(origin, bytes):
            return True
        source = f"{self.root}/{name}"
        return stat.S_ISREG(origin[4]) and origin[1] <= self._limits.file_bytes and not is_binary(source)

    def _is_text(self, name: str, item: Item) -> bool:
        if not stat.S_ISREG(item.info.st_mode) or item.info.st_size > self._limits.file_bytes:
            return False
        return not is_binary(f"{self.place}/{name}")

    def _has(self, name: str, origin: Origin) -> bool:
        """Return whether the file in the copy has the bytes of `origin`."""
        path = f"{self.place}/{name}"
        return read(path) == origin if isinstance(origin, bytes) else same_bytes(path, f"{self.root}/{name}")

    def _remake(self, name: str, origin: Origin, disk: Tree) -> None:
        source, target = f"{self.root}/{name}", f"{self.place}/{name}"
        before = lstat(target)
        self._remove(name)
        if not self._make_folders(name):
            return
        if isinstance(origin, bytes):
            item = disk.files.get(name)
            below = item.info if item else None
            write_file(target, origin, below)
            self._times.give(target, below, before)
        elif not copy_file(source, target):
            return
        self._origins[name] = (origin, Item(os.lstat(target), False).stamp)

    def _remove(self, name: str) -> None:
        """Remove a path from the copy without following links above it."""
        self._origins.pop(name, None)
        path = f"{self.place}/{name}"
        if not all(is_folder(f"{self.place}/{folder}") for folder in _above(name)):
            return
        if is_folder(path):
            remove_tree(path)
        elif os.path.lexists(path):
            Path(path).unlink()

    def _make_folders(self, name: str) -> bool:
        """Create the folders above a file; return False if a wanted file is in the way."""
        for folder in _above(name):
            if self._wanted.get(folder) is not None:
                return False
            self._make_folder(folder, 0o755)
        return True

    def _make_folder(self, name: str, mode: int) -> None:
        if not is_folder(f"{self.place}/{name}") and self._wanted.get(name) is None:
            self._remove(name)
            if all(is_folder(f"{self.place}/{folder}") for folder in _above(name)):
                Path(self.place, name).mkdir()
                Path(self.place, name).chmod(stat.S_IMODE(mode) & 0o777 | 0o700)

    def _remove_empty(self, here: Tree, disk: Tree) -> None:
        """Remove empty folders that are not on the disk."""
        for name in sorted(here.folders, reverse=True):
            if name not in disk.folders:
                try:
                    Path(self.place, name).rmdir()
                except OSError:
                    pass  # something is still in it

    def _kind(self, name: str, before: Item | None, after: Item | None) -> WrittenKind | None:
        """Return how a file has changed; None if it has not."""
        if after is None:
            return "deleted" if before is not None and stat.S_ISREG(before.info.st_mode) else "symlink"
        if stat.S_ISLNK(after.info.st_mode):
            return None if before is not None and before.target == after.target else "symlink"
        if after.special:
            return "special"
        origin = self._origins.get(name)
        if before is not None and stat.S_ISREG(before.info.st_mode) and origin and self._has(name, origin[0]):
            return None if stat.S_IMODE(before.info.st_mode) == stat.S_IMODE(after.info.st_mode) else "mode"
        if after.info.st_size > self._limits.file_bytes:
            return "large"
        return "binary" if is_binary(f"{self.place}/{name}") else "text"

    def _name(self, path: str) -> str:
        """Return the path relative to the folder."""
        return path.removeprefix(self.root.rstrip("/") + "/")

    def _keeps(self, path: str) -> bool:
        """Return whether an absolute path belongs into the copy."""
        if not within(path, [self.root]) or path == self.root or within(self._name(path), self.linked):
            return False
        return VERSION_CONTROL.isdisjoint(self._name(path).split("/"))


_NOTHING = Item(os.stat_result((0,) * 10), ignored=False)


def _above(name: str) -> list[str]:
    """Return the folders between the top and `name`, outermost first."""
    parts = name.split("/")[:-1]
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]
