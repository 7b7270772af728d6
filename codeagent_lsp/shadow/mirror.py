"""A private copy of one workspace folder, kept in step with it: only changed files are copied again.

Ignored folders are not copied but listed as `linked`, except those that programs recreate (`OUTPUTS`), which start
empty and are kept. Links are never followed. Not here: how commands run in the copy (`copying.py`), writing its files
and walking (`private_copy.py`).
"""

# ruff: noqa: PTH119 - plain strings are several times faster in a walk

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping

from codeagent_lsp.shadow.collect import WrittenFiles, WrittenLimits
from codeagent_lsp.shadow.private_copy import Item, Origin, PrivateCopy, Tree, is_output, walk
from codeagent_lsp.shadow.shell import WrittenKind
from codeagent_lsp.shadow.upper_walk import VERSION_CONTROL, Rules, became_executable, is_binary, lstat, read
from codeagent_lsp.workspace.files.ignore import FolderRules
from codeagent_lsp.workspace.files.paths import path_of, within

_LARGE_IGNORED = 64 << 20


class Mirror:
    """The private copy in `place` of the workspace folder `root` (absolute real paths), for one session. `rules`
    returns the current ignore rules. `strays` decides which links are left out, and removed if a command made them;
    without it all links are copied.

    `linked` are the ignored folders and large ignored files that are not in the copy, and `repositories` the version
    control data, both relative to the folder. All methods block.
    """

    def __init__(
        self,
        root: str,
        place: str,
        rules: Rules,
        limits: WrittenLimits | None = None,
        *,
        strays: Callable[[str], bool] | None = None,
    ) -> None:
        self.root = root
        self.place = place
        self.linked: tuple[str, ...] = ()
        self.repositories: tuple[str, ...] = ()
        self._rules = rules
        self._limits = limits or WrittenLimits()
        self._strays = strays or (lambda _: False)
        self.copy = PrivateCopy(root, place)
        self._prepared: dict[str, Item] = {}
        self._deep: frozenset[str] = frozenset()
        self._wanted: Mapping[str, bytes | None] = {}

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """Update the copy to the disk and, over it, `wanted` (bytes by absolute path, None: no such file). Text that a
        command wrote is reverted; ignored files and those that could not become an edit stay. OSError if the copy
        cannot be written.
        """
        rules = self._rules()
        disk, here = walk(self.root, rules), self._here(rules)
        # First, as it takes large ignored files out of what was found.
        self._link(disk)
        # What `git init` made for one command does not stay for the next.
        for name in set(here.version_control) - set(disk.version_control):
            self.copy.remove(name)
        self._wanted = {self._name(path): data for path, data in wanted.items() if self._keeps(path)}
        self.copy.begin({name for name, data in self._wanted.items() if data is not None})
        desired = self._desired_files(disk)
        # Removed before anything is made: a file may stand where a folder is to be.
        for name, item in here.files.items():
            if name not in desired and self._goes(name, item):
                self.copy.remove(name)
        # Sorted, so that a folder is there before those inside it.
        for name in sorted(disk.folders):
            self.copy.make_folder(name, disk.folders[name])
        for name, origin in desired.items():
            if not self._stays(name, origin, here.files.get(name)):
                on_disk = disk.files.get(name)
                self.copy.write(name, origin, on_disk.info if on_disk else None)
        self.copy.remove_empty(here.folders.keys() - disk.folders.keys())
        # Walked once more: `collect` compares with the stamps of what was just written.
        prepared = self._here(rules)
        self._prepared, self._deep = prepared.files, frozenset(prepared.deep)

    def lay(self, wanted: Mapping[str, bytes | None]) -> None:
        """Update only the files in which `wanted` (bytes by absolute path, None: no such file) differs from the last
        time; the disk is taken to be as `prepare` found it. Quick even for large folders. OSError if the copy cannot be
        written.
        """
        before = self._wanted
        self._wanted = {self._name(path): data for path, data in wanted.items() if self._keeps(path)}
        self.copy.begin({name for name, data in self._wanted.items() if data is not None})
        names = before.keys() | self._wanted.keys()
        for name in sorted(name for name in names if before.get(name, _DISK) != self._wanted.get(name, _DISK)):
            on_disk = lstat(f"{self.root}/{name}")
            origin = Item(on_disk, ignored=False).stamp if on_disk else None
            if (given := self._wanted.get(name, origin)) is None:
                self.copy.remove(name)
            else:
                self.copy.write(name, given, on_disk)

    def collect(self, found: WrittenFiles) -> None:
        """Add to `found` every file that differs from the prepared state, by its absolute path in the workspace;
        ignored files are left out.
        """
        now = self._here(self._rules())
        for name in now.version_control:
            if not os.path.lexists(f"{self.root}/{name}"):
                found.add(path_of(self.root, name), "git")
        for name in now.deep:
            if name not in self._deep:
                found.add(path_of(self.root, name), "deep")
        for name in sorted(self._prepared.keys() | now.files.keys()):
            before, after = self._prepared.get(name), now.files.get(name)
            # `ignored` of the file as it is now, as the command may have changed the rules.
            if (after or before or _NOTHING).ignored or (before and after and before.stamp == after.stamp):
                continue
            kind = self._kind(name, before, after)
            if kind is not None:
                data = read(f"{self.place}/{name}") if kind == "text" else b""
                runs = after is not None and became_executable(before and before.info.st_mode, after.info.st_mode)
                found.add(path_of(self.root, name), kind, data, runs=runs)

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

    def _desired_files(self, disk: Tree) -> dict[str, Origin]:
        desired: dict[str, Origin] = {
            name: item.stamp
            for name, item in disk.files.items()
            if not item.special and not (item.is_link and self._strays(f"{self.root}/{name}"))
        }
        for name, data in self._wanted.items():
            if data is None:
                desired.pop(name, None)
            else:
                desired[name] = data
        return desired

    def _goes(self, name: str, item: Item) -> bool:
        """Return whether an unwanted file is removed: one that we made, or text that a command made."""
        if name in self.copy.origins or self._wanted.get(name, b"") is None or self._is_stray(name, item):
            return True
        return not item.ignored and self._is_text(name, item)

    def _stays(self, name: str, origin: Origin, item: Item | None) -> bool:
        """Return whether a file is left as it is: unchanged, or changed in a way that cannot become an edit."""
        known = self.copy.origins.get(name)
        if known is None or known[0] != origin:
            return False
        if item is None:
            # A command deleted it: a text comes back, as its deletion was a proposal; what cannot be an edit stays
            # away.
            return not self._was_text(name, origin)
        if self._is_stray(name, item):
            return False
        if item.stamp == known[1] or item.ignored:
            return True
        return not self._is_text(name, item) or self.copy.has(name, origin)

    def _is_stray(self, name: str, item: Item) -> bool:
        """Return whether an entry of the copy is a link that commands must not be able to follow."""
        return item.is_link and self._strays(f"{self.place}/{name}")

    def _was_text(self, name: str, origin: Origin) -> bool:
        if isinstance(origin, bytes):
            return True
        source = f"{self.root}/{name}"
        return stat.S_ISREG(origin[4]) and origin[1] <= self._limits.file_bytes and not is_binary(source)

    def _is_text(self, name: str, item: Item) -> bool:
        if not stat.S_ISREG(item.info.st_mode) or item.info.st_size > self._limits.file_bytes:
            return False
        return not is_binary(f"{self.place}/{name}")

    def _kind(self, name: str, before: Item | None, after: Item | None) -> WrittenKind | None:
        """Return how a file has changed; None if it has not."""
        if after is None:
            return "deleted" if before is not None and stat.S_ISREG(before.info.st_mode) else "symlink"
        if stat.S_ISLNK(after.info.st_mode):
            return None if before is not None and before.target == after.target else "symlink"
        if after.special:
            return "special"
        origin = self.copy.origins.get(name)
        # Written anew with the same bytes, as by a formatter that has nothing to change.
        if before is not None and stat.S_ISREG(before.info.st_mode) and origin and self.copy.has(name, origin[0]):
            return None if stat.S_IMODE(before.info.st_mode) == stat.S_IMODE(after.info.st_mode) else "mode"
        if after.info.st_size > self._limits.file_bytes:
            return "large"
        return "binary" if is_binary(f"{self.place}/{name}") else "text"

    def _name(self, path: str) -> str:
        """Return the path relative to the folder."""
        return path.removeprefix(path_of(self.root, "")).replace(os.sep, "/")

    def _keeps(self, path: str) -> bool:
        """Return whether an absolute path belongs into the copy."""
        if not within(path, [self.root]) or path == self.root:
            return False
        name = self._name(path)
        linked = any(f"{name}/".startswith(f"{each}/") for each in self.linked)
        return not linked and VERSION_CONTROL.isdisjoint(name.split("/"))


_DISK = b"\0on the disk"  # no text: it has a NUL
_NOTHING = Item(os.stat_result((0,) * 10), ignored=False)
