"""Location of the git repository around a path, and the check that its data is where it may be for this workspace.

Reads names and small files only. Not here: running git (`calls.py`).
"""

# ruff: noqa: PTH118 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.workspace.files.paths import Roots

_SMALL = 4096
_PARTS = ("HEAD", "config", "index", "objects", "packed-refs", "refs")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository by the folder that holds its `.git`, an absolute real path."""

    top: str

    def inner(self, path: str) -> str:
        """Return `path` relative to the top, as git names it; '' for the top itself."""
        name = os.path.relpath(path, self.top)
        return "" if name == "." else name


def repository_of(path: str, roots: Roots) -> Repository:
    """Return the innermost repository around `path` (absolute, real). ToolFailed if there is none that may be used."""
    top = top_of(path)
    if top is None:
        raise ToolFailed(f"{roots.relative(path)} is not in a git repository.", ErrorCode.NOT_FOUND)
    if not _is_at_home(top, roots.root_of(path) or top):
        raise ToolFailed(
            f"The repository at {top} keeps its data outside the workspace, in a place that does not belong to it."
            " It is not read."
        )
    return Repository(top)


def top_of(path: str) -> str | None:
    """Return the innermost folder at or above `path` that is the top of a repository; None if there is none."""
    here = Path(path)
    for folder in (here, *here.parents):
        marker = folder / ".git"
        if marker.is_file() or (marker / "HEAD").exists():
            return str(folder)
    return None


def _is_at_home(top: str, root: str) -> bool:
    """Return whether the data is below the top or the workspace folder, or provably belongs to this top.

    A `.git` file can point to any repository of the user; a real worktree or submodule is known to the repository that
    it belongs to.
    """
    data = _data_folder(top)
    if data is None:
        return False
    homes = (os.path.realpath(top), os.path.realpath(root))
    if not _below_any(data, homes):
        return _belongs(data, top)
    common = _first_line(os.path.join(data, "commondir"))
    shared = os.path.realpath(os.path.join(data, common)) if common else data
    if not _below_any(shared, homes):
        return False
    parts = (os.path.realpath(os.path.join(folder, name)) for folder in (data, shared) for name in _PARTS)
    return all(_below_any(part, homes) for part in parts)


def _data_folder(top: str) -> str | None:
    """Return the real folder behind `.git`, which may be a folder, a link or a file that names one; None if invalid."""
    marker = os.path.join(top, ".git")
    if Path(marker).is_dir():
        return os.path.realpath(marker)
    line = _first_line(marker)
    if not line.startswith("gitdir:"):
        return None
    return os.path.realpath(os.path.join(top, line.removeprefix("gitdir:").strip()))


def _belongs(data: str, top: str) -> bool:
    """Return whether a data folder elsewhere belongs to a worktree at `top`, or to a submodule of
    an outer repository.
    """
    back = _first_line(os.path.join(data, "gitdir"))
    if back and os.path.realpath(os.path.join(data, back)) == os.path.realpath(os.path.join(top, ".git")):
        return True
    around = (str(folder / ".git" / "modules") for folder in Path(os.path.realpath(top)).parents)
    return _below_any(data, tuple(map(os.path.realpath, around)))


def _below_any(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _first_line(path: str) -> str:
    """Return the first line of a small file, '' if it cannot be read; never blocks on a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.fsdecode(os.read(descriptor, _SMALL)).split("\n", 1)[0]
    except OSError:
        return ""
    finally:
        os.close(descriptor)
