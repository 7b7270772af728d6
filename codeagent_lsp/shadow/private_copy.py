"""The files of a private copy of a folder: walking, copying, writing and removing them, and the origin of each.

Links are never followed, not even in the folders above a file, and special files never opened. A text gets another
modification time, in seconds, with every version, as programs compare them. Not here: what is copied when
(`mirror.py`).
"""

# ruff: noqa: PTH115, PTH118 - plain strings are several times faster in a walk

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from codeagent_lsp.shadow.folder import remove_tree
from codeagent_lsp.shadow.upper_walk import (
    MAX_DEPTH,
    VERSION_CONTROL,
    Stamp,
    is_folder,
    is_too_long,
    lstat,
    read,
    stamp_of,
)
from codeagent_lsp.system import copy_new, open_new, open_reading, set_mode
from codeagent_lsp.workspace.files.ignore import FolderRules

FileChangeKind = Literal["created", "changed", "deleted"]

Origin = Stamp | bytes
"""The origin of a file in the copy: a state of the disk, or given bytes."""

OUTPUTS = frozenset(
    """
    __pycache__ .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache .parcel-cache .turbo .tox .nox .next .nuxt
    .svelte-kit .gradle target build dist out coverage htmlcov
    """.split()  # noqa: SIM905
)
"""Ignored folders that programs recreate: they need not be copied, and must be writable."""

_CHUNK = 1 << 20


class Item(NamedTuple):
    """One entry of a tree other than a folder: its status, whether it is ignored, and the `target` of a symbolic link
    (None for others).
    """

    info: os.stat_result
    ignored: bool
    target: str | None = None

    @property
    def stamp(self) -> Stamp:
        """A value that changes with every modification of the entry, see `stamp_of`."""
        return stamp_of(self.info)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.info.st_mode)

    @property
    def special(self) -> bool:
        """Whether it is neither a regular file nor a symbolic link, but a device, a pipe or a socket."""
        return not (stat.S_ISREG(self.info.st_mode) or stat.S_ISLNK(self.info.st_mode))


@dataclass(frozen=True, slots=True)
class Tree:
    """The contents of a folder by path relative to it, with `/` between the parts; `folders` have their modes
    (`st_mode`). Paths of folders that were not entered are in `closed` (ignored), `version_control` and `deep` (nested
    too deeply).
    """

    files: dict[str, Item] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    closed: list[str] = field(default_factory=list)
    version_control: list[str] = field(default_factory=list)
    deep: list[str] = field(default_factory=list)


def is_output(name: str) -> bool:
    """Return whether an ignored folder of this name, without its path, starts empty in a copy, as those for build
    output do.
    """
    return name in OUTPUTS or name.startswith("cmake-build-")


def walk(top: str, rules: FolderRules | None, *, ours: bool = False) -> Tree:
    """Return everything below `top`, without the contents of ignored folders; an empty tree if `rules` is None.

    Unreadable folders are skipped, but if the tree is `ours`, their access rights are restored.
    """
    tree = Tree()
    pending: list[tuple[str, FolderRules]] = [("", rules)] if rules is not None else []
    while pending:
        folder, here = pending.pop()
        for entry in _entries(os.path.join(top, folder), ours=ours):
            inner = _sort_in(tree, entry, folder, here)
            if inner is None:
                continue
            if inner[0].count("/") < MAX_DEPTH and not is_too_long(os.path.join(top, inner[0])):
                pending.append(inner)
            else:
                tree.deep.append(inner[0])
    return tree


def _entries(folder: str, *, ours: bool) -> list[os.DirEntry[str]]:
    try:
        # A command may have locked itself out of its copy; the user's own folders are left as they are.
        if ours and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            Path(folder).chmod(0o700)
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # gone meanwhile, or not ours to read
        return []


def _sort_in(tree: Tree, entry: os.DirEntry[str], folder: str, rules: FolderRules) -> tuple[str, FolderRules] | None:
    """Add one entry to the tree; return a folder that is to be walked."""
    name = f"{folder}/{entry.name}" if folder else entry.name
    try:
        info = entry.stat(follow_symlinks=False)
        target = os.readlink(entry.path) if stat.S_ISLNK(info.st_mode) else None
    except OSError:
        return None
    is_dir = stat.S_ISDIR(info.st_mode)
    # Before the rules: also where it is a file, as in a linked worktree, it is never copied.
    if entry.name in VERSION_CONTROL:
        tree.version_control.append(name)
    elif not is_dir:
        tree.files[name] = Item(info, rules.ignores(entry.name, is_dir=False), target)
    elif rules.ignores(entry.name, is_dir=True):
        tree.closed.append(name)
    else:
        tree.folders[name] = info.st_mode
        return name, rules.enter(entry.name)
    return None


def copy_file(source: str, target: str) -> bool:
    """Copy a file with its mode (without set-user-id bits) and times, or a link as a link. Return False if it cannot be
    read or is a special file; OSError if the target exists or cannot be written.
    """
    try:
        mode = os.lstat(source).st_mode
        if stat.S_ISLNK(mode):
            Path(target).symlink_to(os.readlink(source))
            return True
        if not stat.S_ISREG(mode):
            return False
        descriptor = open_reading(source)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb"):
        info = os.fstat(descriptor)
        copy = copy_new(descriptor, target)
        try:
            # Without the set-user-id bits.
            set_mode(copy, stat.S_IMODE(info.st_mode) & 0o777)
        finally:
            os.close(copy)
        # Build tools compare times: with new ones they would build everything again.
        os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))
    return True


def write_file(target: str, data: bytes, like: os.stat_result | None) -> None:
    """Write a new file with the permissions of `like`, without set-user-id bits, or 0644 if None. OSError if it exists
    or cannot be written.
    """
    with os.fdopen(open_new(target), "wb") as file:
        file.write(data)
        set_mode(file.fileno(), stat.S_IMODE(like.st_mode) & 0o777 if like is not None else 0o644)


def same_bytes(one: str, other: str) -> bool:
    """Return whether two regular files have the same contents; False also if one of them cannot be read or is not a
    regular file.
    """
    try:
        sizes = [os.lstat(path).st_size for path in (one, other)]
        # Most that differ do so in size, which costs no reading.
        if sizes[0] != sizes[1]:
            return False
        with os.fdopen(open_reading(one), "rb") as first, os.fdopen(open_reading(other), "rb") as second:
            while (piece := first.read(_CHUNK)) == second.read(_CHUNK):
                if not piece:
                    return True
        return False
    except OSError:
        return False


class PrivateCopy:
    """The copy in `place` of the folder `root` (absolute real paths), for one session. Files are named by their paths
    relative to both.

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
        """Begin the next state and clear `changed`. The files `given` have texts of their own, so no folder takes their
        place.
        """
        self._given = given
        self.changed = {}
        self._times.begin()

    def has(self, name: str, origin: Origin) -> bool:
        """Return whether a file of the copy has the bytes of `origin`: those given, or for a stamp those of the file on
        the disk now. OSError for given bytes if there is no such file.
        """
        path = f"{self._place}/{name}"
        return read(path) == origin if isinstance(origin, bytes) else same_bytes(path, f"{self._root}/{name}")

    def write(self, name: str, origin: Origin, like: os.stat_result | None) -> None:
        """Write a file anew, by its path in the copy: given bytes with the mode of `like`, or a copy of the one on the
        disk. Left out if a given file is in the place of one of its folders, or the one on the disk cannot be read.
        OSError if it cannot be written.
        """
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
        # The stamp of now: a later one means that a command wrote the file.
        self.origins[name] = (origin, Item(os.lstat(target), False).stamp)

    def remove(self, name: str) -> None:
        """Remove a file or a folder with its contents, by its path in the copy, if it is there, and note it as deleted
        in any case. Never removes anything outside of the copy. OSError if that fails.
        """
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
        """Create a folder, by its path in the copy, with the permissions of `mode`, and always those of the user; a
        file that is there is removed, unless it is a given one. OSError if it cannot be made.
        """
        if is_folder(f"{self._place}/{name}") or name in self._given:
            return
        self.remove(name)
        if self._is_reached(name):
            Path(self._place, name).mkdir()
            Path(self._place, name).chmod(stat.S_IMODE(mode) & 0o777 | 0o700)

    def remove_empty(self, names: Iterable[str]) -> None:
        """Remove those of the folders, by their paths in the copy, that are empty, inner ones first; others stay. Never
        raises.
        """
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


class TextTimes:
    """Gives the texts of a private copy new modification times in whole seconds, so that programs see every change.
    They never decrease, and are ahead of the clock only if texts change faster than it.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._given = 0
        self._now: int | None = None

    def begin(self) -> None:
        """Begin a batch of texts: `give` gives all of them the same second, one that no earlier batch
        had, if possible.
        """
        self._now = None

    def give(self, place: str, *others: os.stat_result | None) -> None:
        """Set the modification time of the file at `place`, in whole seconds and different from that of `others`, its
        earlier versions. OSError if that fails.
        """
        if self._now is None:
            # In whole seconds, as many programs compare no finer ones.
            self._now = max(int(self._clock()), self._given + 1)
        second, taken = self._now, {int(other.st_mtime) for other in others if other is not None}
        while second in taken:
            second += 1
        self._given = max(self._given, second)
        os.utime(place, (second, second))
