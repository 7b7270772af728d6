"""Level `overlay`: commands see each workspace folder through a private overlay, inside a closed sandbox.

The mounts are in the command's own mount namespace and end with it; the disk below is never written. Not here: what
lies in the private folders (`upper.py`), how they are mounted (`mounts.py`), what the sandbox shows (`sandbox.py`),
whether the machine can do it (`probe.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.shadow.collect import WrittenFiles, WrittenLimits
from codeagent_lsp.shadow.folder import LayerFolder, open_way, remove_tree
from codeagent_lsp.shadow.hiding import Hidden
from codeagent_lsp.shadow.mounts import (
    OPTIONS,
    OUTER_ENVIRONMENT,
    Over,
    Programs,
    fails,
    is_privileged,
    mount_table,
    mountable,
    mounting,
    nested_mounts,
)
from codeagent_lsp.shadow.sandbox import STATUS, Bind, Sandbox, services, write_options
from codeagent_lsp.shadow.seccomp import ENVIRONMENT as WITHOUT_CALLS
from codeagent_lsp.shadow.shell import Command, Isolation, Launch, Writings
from codeagent_lsp.shadow.upper import Upper
from codeagent_lsp.workspace.files.ignore import FolderRules, IgnoreRules
from codeagent_lsp.workspace.files.paths import within

OVERLAY = Isolation("overlay", confined=True, offline=True, hidden=True)

_OTHERWISE = frozenset({"/proc", "/sys", "/dev", "/run", "/tmp", "/var/run", "/var/tmp"})  # noqa: S108
"""Folders that the sandbox replaces."""
_PROGRAMS = frozenset({"/usr", "/etc", "/boot", "/nix", "/gnu", "/snap", "/lost+found"})
"""Folders that only the system's own installer writes; each overlay costs every command two milliseconds."""
_REMOTE = re.compile(rb"(?:nfs\d?|cifs|smb\w*|9p|ceph|glusterfs|lustre|afs|autofs|fuse(?:\.\S+)?) ")
"""File systems that are not asked to mount: a server that does not answer would keep every command from starting."""
_MOST = 24  # folders read through an overlay: each is one more mount for every command
_PLAIN = re.compile(r"[^,:\\\"]+")  # the others would need escapes, which not every `mount` knows


class OverlayLayer:
    """The layer of one session at level `overlay`: an overlay over the workspace `folders` (absolute real paths) in
    `folder`, which `close` removes. `environment` is that of commands.
    """

    def __init__(
        self,
        folders: Sequence[str],
        folder: LayerFolder,
        sandbox: Sandbox,
        programs: Programs,
        *,
        environment: Mapping[str, str],
    ) -> None:
        self._folders = tuple(folders)
        self._folder = folder
        self._sandbox = sandbox
        self._programs = programs
        self._environment = environment
        self._rules = {path: IgnoreRules(path) for path in folders}
        self._limits = WrittenLimits()
        self._caches: list[Over] | None = None  # as prepared once
        self._known: dict[str, tuple[Over, Upper] | None] = {}  # by root; None: can only be shown read-only
        self._readable: dict[str, bool] = {}  # whether an overlay can be laid over a folder outside of the workspace
        self._shown: tuple[str, ...] = ()  # the roots of the next command, outermost first
        for path in sandbox.folders:
            Path(path).mkdir(mode=0o700, exist_ok=True)

    @property
    def isolation(self) -> Isolation:
        """The isolation, the best there is. `reason` names mounts inside the workspace that are read-only for
        commands.
        """
        fixed = [path for path, made in self._known.items() if made is None]
        why = f"Mounted inside the workspace, and read-only for commands: {', '.join(fixed)}."
        return replace(OVERLAY, reason=why) if fixed else OVERLAY

    def check(self) -> str | None:
        """Run a command in the view, for at most 30 s, and return None if that works, else the reason in English.
        Blocks.
        """
        try:
            self.prepare({})
            # The whole way, as each of its steps may be forbidden on some machine, and only the last one says so.
            return fails(self.launch(Command(("true",), self._folders[0])).argv)
        except (OSError, ToolFailed) as error:
            return str(error)

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """Update the overlay as `Layer.prepare` says. Paths outside the workspace folders are ignored. ToolFailed if
        something is mounted inside the workspace and this process is not root.
        """
        nested = nested_mounts(self._folders)
        if nested and not is_privileged():
            raise ToolFailed(
                f"Something is mounted inside the workspace, at {nested[0]}, and only root can lay a private view over "
                "it. Unmount it, or set shell.isolation to copy."
            )
        # By their parts, so that a mount stands behind the folder that it is in: in this order they are laid over each
        # other.
        self._shown = tuple(sorted({*self._folders, *nested}, key=lambda path: path.split("/")))
        if self._caches is None:
            self._caches = self._over_caches()
        for root in self._shown:
            if root not in self._known:
                self._known[root] = self._make_folders(root)
            if (made := self._known[root]) is not None:
                # Only into the innermost root: what an outer one has there is covered by the inner one.
                made[1].prepare({path: data for path, data in wanted.items() if self._root_of(path) == root})

    def launch(self, command: Command) -> Launch:
        """Return how to start `command` in the overlay, which `prepare` must have updated. Killing the started process
        ends all others of the command.
        """
        overlays = []
        binds = []
        for root in self._shown:
            if (made := self._known[root]) is None:
                binds.append(Bind(root, root, writable=False))
                continue
            overlays.append(made[0])
            binds.append(Bind(f"{self._folder.path}/{made[0].name}/view", root))
            inside = command.cwd.removeprefix(root) if self._root_of(command.cwd) == root else ""
            open_way(f"{self._folder.path}/{made[0].name}/up", inside)
            # A `volatile` mount leaves a mark in its work folder, and the kernel refuses to mount there again.
            _renew(f"{self._folder.path}/{made[0].name}/work")
        _renew(f"{self._sandbox.private}/reports")
        for cache in self._caches or ():
            overlays.append(cache)
            binds.append(Bind(f"{self._folder.path}/{cache.name}/view", cache.root))
            _renew(f"{self._folder.path}/{cache.name}/work")
        read = self._read()
        options = self._sandbox.options(
            binds,
            cwd=command.cwd,
            network=command.network,
            environment={**WITHOUT_CALLS, **self._environment, **command.environment},
            sockets=services(),
            views={over.root: f"{self._folder.path}/{over.name}/view" for over in read},
        )
        write_options(f"{self._folder.path}/{OPTIONS}", options)
        argv = mounting(self._programs, self._folder.path, overlays, self._sandbox.start(command))
        reports, status = f"{self._sandbox.private}/reports", f"{self._folder.path}/{STATUS}"
        return Launch(argv, "/", OUTER_ENVIRONMENT, reports, status)

    def writings(self) -> Writings:
        """Return the files that differ from the prepared overlay, sorted by path. Takes time by the number of
        changes.
        """
        found = WrittenFiles(self._limits)
        for root in self._shown:
            if (made := self._known[root]) is not None:
                made[1].collect(found)
        return Writings(tuple(found.files[path] for path in sorted(found.files)), found.more)

    def close(self) -> None:
        """Remove the overlay with what commands wrote there; no command may be running in it. Blocks, for large ones up
        to minutes; twice does no harm.
        """
        self._folder.close()

    def _read(self) -> list[Over]:
        """Prepare the mounts of the folders outside of the workspace that are read through an overlay."""
        roots = [root for root in overlaid_folders(self._sandbox.hidden) if not within(root, self._folders)]
        if new := [root for root in roots if root not in self._readable]:
            tried = self._write_table(new)
            found = mountable(self._programs, self._folder.path, tried)
            self._readable.update((over.root, over.name in found) for over in tried)
        # The others are seen as they are.
        return self._write_table([root for root in roots if self._readable[root]])

    def _write_table(self, roots: Iterable[str]) -> list[Over]:
        read = [Over(f"read{number}", root) for number, root in enumerate(roots)]
        for names in (("empty",), *((over.name, "view") for over in read)):
            Path(self._folder.path, *names).mkdir(mode=0o700, parents=True, exist_ok=True)
        table = Path(self._folder.path, "table")
        table.write_text(mount_table(self._folder.path, read), "utf-8", "surrogateescape")
        return read

    def _over_caches(self) -> list[Over]:
        """Return overlays over the caches of build tools, in which what commands write stays until the session ends;
        those that cannot be overlaid are left out.
        """
        every = [Over(f"cache{number}", root) for number, root in enumerate(self._sandbox.hidden.caches)]
        for over in every:
            self._lay_out(over)
        # All at once succeeds as a rule, and each trial starts a process.
        return every if not every or self._can_mount(*every) else [over for over in every if self._can_mount(over)]

    def _make_folders(self, root: str) -> tuple[Over, Upper] | None:
        """Create the private folders over `root`; None if it cannot be overlaid."""
        # A number is never used again, as entries of `_known` stay when a mount goes.
        over = Over(str(len(self._known)), root)
        self._lay_out(over)
        if root not in self._folders:
            if not os.path.isdir(root):  # noqa: PTH112 - a single file can be mounted too
                return None
            if not self._can_mount(over):
                return None
        upper = Path(self._folder.path, over.name, "up")
        # A command sees the mode of the upper folder as that of its workspace.
        upper.chmod(Path(root).stat().st_mode & 0o777 | 0o700)
        return over, Upper(root, str(upper), lambda: self._rules_at(root), self._limits)

    def _lay_out(self, over: Over) -> None:
        for name in ("low", "up", "work", "view"):
            self._folder.make(over.name, name)

    def _can_mount(self, *overlays: Over) -> bool:
        write_options(f"{self._folder.path}/{OPTIONS}", ())
        return fails(mounting(self._programs, self._folder.path, overlays, ["true"])) is None

    def _root_of(self, path: str) -> str | None:
        """Return the innermost root that contains `path`."""
        return next((root for root in reversed(self._shown) if within(path, [root])), None)

    def _rules_at(self, root: str) -> FolderRules | None:
        """Return the ignore rules at the top of a root, which may be a mount inside a workspace folder; None if
        ignored.
        """
        folder = max((path for path in self._folders if within(root, [path])), key=len)
        here = self._rules[folder].at_root()
        for name in Path(root).relative_to(folder).parts:
            if here.ignores(name, is_dir=True):
                return None
            here = here.enter(name)
        return here


def _renew(folder: str) -> None:
    """Replace a folder by an empty one."""
    remove_tree(folder)
    Path(folder).mkdir(mode=0o700)


# Selection of the folders outside of the workspace that a command reads through an overlay.


def overlaid_folders(hidden: Hidden, table: bytes | None = None) -> tuple[str, ...]:
    """Return the folders outside the workspace to read through an overlay: absolute real paths, none inside another, at
    most 24. Folders with a mount inside are replaced by folders in them, since only root can overlay them.

    `table` is the text of `/proc/self/mountinfo`, which is read if None.
    """
    table = _mount_table() if table is None else table
    mounted = nested_mounts(["/"], table)
    remote = [line for line in table.splitlines() if _REMOTE.match(line.partition(b" - ")[2])]
    left_out = (*hidden.areas, *hidden.masked, *nested_mounts(["/"], b"\n".join(remote)))
    found = [path for path in _below("/", mounted, left_out) if _PLAIN.fullmatch(path)]
    found.extend(_homes(hidden, mounted))
    return tuple(found[:_MOST])


def _below(folder: str, mounted: Sequence[str], left_out: Iterable[str]) -> Iterator[str]:
    for path in _folders(folder):
        if path in _OTHERWISE or path in _PROGRAMS or path in left_out:
            continue
        if _has_mounts(path, mounted):
            yield from _below(path, mounted, left_out)
        else:
            yield path


def _homes(hidden: Hidden, mounted: Sequence[str]) -> Iterator[str]:
    """Yield the home folders of which a command sees a part, or these parts."""
    outermost = [area for area in hidden.areas if not within(area, [other for other in hidden.areas if other != area])]
    for area in outermost:
        parts = [path for path in map(os.path.realpath, hidden.visible) if within(path, [area])]
        if parts and not _has_mounts(area, mounted):
            yield area
        else:
            yield from (path for path in parts if os.path.isdir(path) and not _has_mounts(path, mounted))  # noqa: PTH112


def _has_mounts(folder: str, mounted: Sequence[str]) -> bool:
    return any(path != folder and within(path, [folder]) for path in mounted)


def _mount_table() -> bytes:
    try:
        return Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return b""


def _folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
