"""Where a git repository is: its top, the folder behind its `.git`, and whether that belongs to it.

Reads names and small files only. Not here: which repositories the tools use (`tools/git/calls.py`), running git.
"""

# ruff: noqa: PTH118 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import os
import re
from pathlib import Path

from codeagent_lsp.system import open_following
from codeagent_lsp.workspace.files.paths import within

_SMALL, _LARGE = 4096, 1 << 16
_WORKTREE = re.compile(r"^[ \t]*worktree[ \t]*=[ \t]*\"?([^\"\n]+?)\"?[ \t]*$", re.MULTILINE | re.IGNORECASE)


def top_of(path: str) -> str | None:
    """Return the innermost folder at or above `path` that is the top of a repository; None if there is none."""
    here = Path(path)
    for folder in (here, *here.parents):
        marker = folder / ".git"
        # A file in worktrees and submodules; a folder without HEAD is no repository for git either.
        if marker.is_file() or (marker / "HEAD").exists():
            return str(folder)
    return None


def outer_folders(folder: str) -> tuple[str, ...]:
    """Return what git and programs read of a repository outside of a workspace `folder` in it, absolute and real: its
    top, if that is above, and the folders of its data, unless a `.git` file names some that do not belong to it.
    """
    top = top_of(folder)
    if top is None:
        return ()
    data = data_of(top)
    places = [os.path.realpath(top)]
    # The `.git` file of a repository from elsewhere could name any folder of the user.
    if data is not None and (within(data, places) or belongs(data, top)):
        places += [data, common_of(data)]
    return tuple(path for path in dict.fromkeys(places) if not within(path, [os.path.realpath(folder)]))


def common_of(data: str) -> str:
    """Return the real folder of what the worktrees of a repository share."""
    common = _first_line(os.path.join(data, "commondir"))
    return os.path.realpath(os.path.join(data, common)) if common else data


def data_of(top: str) -> str | None:
    """Return the real folder behind `.git`, which may be a folder, a link or a file that names one; None if invalid."""
    marker = os.path.join(top, ".git")
    if Path(marker).is_dir():
        return os.path.realpath(marker)
    line = _first_line(marker)
    if not line.startswith("gitdir:"):
        return None
    return os.path.realpath(os.path.join(top, line.removeprefix("gitdir:").strip()))


def belongs(data: str, top: str) -> bool:
    """Return whether a data folder elsewhere belongs to a worktree at `top`, or to a submodule of
    an outer repository.
    """
    # git notes the way back in the data, where only somebody with access to them can have put it.
    back = _first_line(os.path.join(data, "gitdir"))
    if back and os.path.realpath(os.path.join(data, back)) == os.path.realpath(os.path.join(top, ".git")):
        return True
    # Submodules have it in their settings: also those of a worktree, whose data lie elsewhere again. Whoever keeps the
    # data of a repository apart can note it in the same way.
    settings = _read(os.path.join(data, "config"), _LARGE)
    if any(_same(os.path.join(data, named), top) for named in _WORKTREE.findall(settings)):
        return True
    around = (str(folder / ".git" / "modules") for folder in Path(os.path.realpath(top)).parents)
    return within(data, tuple(map(os.path.realpath, around)))


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _first_line(path: str) -> str:
    """Return the first line of a small file, '' if it cannot be read."""
    return _read(path, _SMALL).split("\n", 1)[0]


def _read(path: str, most: int) -> str:
    """Return the first `most` bytes of a file, '' if it cannot be read; never blocks on a pipe."""
    try:
        descriptor = open_following(path)
    except OSError:
        return ""
    try:
        return os.fsdecode(os.read(descriptor, most))
    except OSError:
        return ""
    finally:
        os.close(descriptor)
