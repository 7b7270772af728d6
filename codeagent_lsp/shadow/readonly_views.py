"""Selection of the folders outside of the workspace that a command reads through an overlay.

A bind mount shows the same sockets and named pipes as the folder itself, also those that appear while a command
runs, and a read-only mount does not protect them: connecting changes no file. Through an overlay they are other
objects, which no service has open, so a connection is refused. Reads names only. Not here: the mounts (`mounts.py`),
the sockets that exist already (`sandbox.py`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from codeagent_lsp.shadow.hiding import Hidden
from codeagent_lsp.shadow.mounts import nested_mounts
from codeagent_lsp.workspace.files.folder_names import within

_OTHERWISE = frozenset({"/proc", "/sys", "/dev", "/run", "/tmp", "/var/run", "/var/tmp"})  # noqa: S108
"""Folders that the sandbox replaces."""
_PROGRAMS = frozenset({"/usr", "/etc", "/boot", "/nix", "/gnu", "/snap", "/lost+found"})
"""Folders that only the system's own installer writes; each overlay costs every command two milliseconds."""
_REMOTE = re.compile(rb"(?:nfs\d?|cifs|smb\w*|9p|ceph|glusterfs|lustre|afs|autofs|fuse(?:\.\S+)?) ")
"""File systems that are not asked to mount: a server that does not answer would keep every command from starting."""
_MOST = 24
_PLAIN = re.compile(r"[^,:\\\"]+")  # the others would need escapes, which not every `mount` knows


def overlaid_folders(hidden: Hidden, table: bytes | None = None) -> tuple[str, ...]:
    """Return absolute real paths, none inside another. `table` is the text of `/proc/self/mountinfo`.

    Only a folder in which nothing is mounted can be overlaid by an ordinary user; of others, the folders inside are
    taken.
    """
    table = _mount_table() if table is None else table
    mounted = nested_mounts(["/"], table)
    remote = [line for line in table.splitlines() if _REMOTE.match(line.partition(b" - ")[2])]
    left_out = (*hidden.areas, *nested_mounts(["/"], b"\n".join(remote)))
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
