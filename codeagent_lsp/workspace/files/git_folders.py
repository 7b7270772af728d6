"""Locations of a git repository: its top, the folder behind its `.git`, and whether that belongs to it.

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
_LEVELS, _MOST_BORROWED = 5, 64
_ESCAPE = re.compile(r'\\([0-7]{3}|[abfnrtv"\\])')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", '"': '"', "\\": "\\"}
_WORKTREE = re.compile(r"^[ \t]*worktree[ \t]*=[ \t]*\"?([^\"\n]+?)\"?[ \t]*$", re.MULTILINE | re.IGNORECASE)


def top_of(path: str) -> str | None:
    """Return the innermost folder at or above an absolute path that is the top of a repository (with a `.git` file, or
    folder with a `HEAD`); None if there is none.
    """
    here = Path(path)
    for folder in (here, *here.parents):
        marker = folder / ".git"
        # A file in worktrees and submodules; a folder without HEAD is no repository for git either.
        if marker.is_file() or (marker / "HEAD").exists():
            return str(folder)
    return None


def outer_folders(folder: str) -> tuple[str, ...]:
    """Return the absolute real paths of the folders outside of a workspace `folder` that git reads for it; () if it is
    in no repository. They are the top of its repository, the folders of its data, unless a `.git` file names some that
    do not belong to it, and the object folders of repositories from which it borrows (`git clone --shared`,
    `--reference`).
    """
    top = top_of(folder)
    if top is None:
        return ()
    data = data_of(top)
    places = [os.path.realpath(top)]
    # The `.git` file of a repository from elsewhere could name any folder of the user.
    if data is not None and (within(data, places) or belongs(data, top)):
        common = common_of(data)
        places += [data, common, *borrowed_by(common)]
    return tuple(path for path in dict.fromkeys(places) if not within(path, [os.path.realpath(folder)]))


def common_of(data: str) -> str:
    """Return the real path of the data folder that all worktrees of a repository share, by the data folder of one of
    them; `data` itself if that is the shared one.
    """
    common = _first_line(os.path.join(data, "commondir"))
    return os.path.realpath(os.path.join(data, common)) if common else data


def borrowed_by(common: str) -> tuple[str, ...]:
    """Return the real paths of the object folders that a repository borrows from others, also indirectly, as far as git
    follows them. Folders without a repository's objects are left out, as the list could name any folder of the user.
    """
    found: dict[str, None] = {}
    level = [os.path.realpath(os.path.join(common, "objects"))]
    for _ in range(_LEVELS):
        named = [path for objects in level for path in _alternates(objects) if path not in found and _is_objects(path)]
        level = list(dict.fromkeys(named))[: _MOST_BORROWED - len(found)]
        found.update(dict.fromkeys(level))
    return tuple(found)


def _alternates(objects: str) -> list[str]:
    """Return the folders that `info/alternates` of a folder of objects names, absolute and real."""
    lines = _read(os.path.join(objects, "info", "alternates"), _LARGE).split("\n")
    names = (_unquote(line) for line in lines if line and not line.startswith("#"))
    return [os.path.realpath(os.path.join(objects, name)) for name in names]


def _unquote(line: str) -> str:
    """Return a name as git writes it: in double quotes and with escapes where it has characters of its own."""
    if not (len(line) > 1 and line[0] == line[-1] == '"'):
        return line
    raw = _ESCAPE.sub(lambda match: _ESCAPES.get(match[1]) or os.fsdecode(bytes([int(match[1], 8) & 255])), line[1:-1])
    # Bytes of one character may have come in several escapes.
    return os.fsdecode(os.fsencode(raw))


def _is_objects(path: str) -> bool:
    """Return whether a folder has the objects of a repository, by what git always puts beside and into it."""
    folder = Path(path)
    return folder.name == "objects" and (folder / "pack").is_dir() and (folder.parent / "HEAD").is_file()


def data_of(top: str) -> str | None:
    """Return the real path of the folder behind `.git` in `top`, which may be a folder, a link or a file that names
    one; None if there is none or the file is invalid. The folder that a file names may not exist.
    """
    marker = os.path.join(top, ".git")
    if Path(marker).is_dir():
        return os.path.realpath(marker)
    line = _first_line(marker)
    if not line.startswith("gitdir:"):
        return None
    return os.path.realpath(os.path.join(top, line.removeprefix("gitdir:").strip()))


def belongs(data: str, top: str) -> bool:
    """Return whether a data folder elsewhere (absolute path) belongs to a worktree at `top`, as git has noted in it, or
    to a submodule of an outer repository.
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
