"""Safe reading of folders with skills and agents: bounded, without following links, open buffers before the disk.

There are two kinds: folders of the workspace, which are untrusted and read through the file view, and folders of the
user, which are read from the disk. Not here: what the files mean (`shelf.py`).
"""

# ruff: noqa: PTH118 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from codeagent_lsp.errors import AgentError
from codeagent_lsp.workspace.files.file_view import FileView

MAX_FILES = 100
MAX_BYTES = 2 << 20
MAX_ENTRIES = 200
MAX_DEPTH = 6


class TooMuch(ValueError):
    """Raised for a folder with too many files, or with a link; the message is one English sentence."""


def project_entries(view: FileView, inner: str) -> Iterator[str]:
    """Yield the absolute paths of the entries in `inner` (such as `.codeagent/skills`) of each workspace folder."""
    for root in view.roots.folders:
        names = (name for name in _names(view, os.path.join(root, inner)) if not name.startswith("."))
        for name in sorted(names)[:MAX_ENTRIES]:
            yield os.path.join(root, inner, name)


def project_file(view: FileView, path: str) -> bytes | None:
    """Return the user's version of a file (not a staged one) as bytes; None if there is no such file."""
    try:
        found = view.base(path)
    except AgentError:
        return _raw(view, path)
    return None if found is None else found.text.encode("utf-8", "surrogatepass")


def project_tree(view: FileView, folder: str, depth: int = MAX_DEPTH) -> dict[str, bytes]:
    """Return every file below a folder of the workspace, also ignored ones, by its name relative to it. TooMuch."""
    found: dict[str, bytes] = {}
    pending = [("", folder)]
    while pending:
        above, path = pending.pop()
        for name in _names(view, path):
            inner, place = f"{above}{name}", os.path.join(path, name)
            if view.roots.kind(place) == "link":
                raise TooMuch(f"{inner} is a link.")
            if view.roots.kind(place) == "folder":
                if inner.count("/") + 1 >= depth:
                    raise TooMuch(f"it is more than {depth} folders deep.")
                pending.append((f"{inner}/", place))
                continue
            data = project_file(view, place)
            if data is None:
                raise TooMuch(f"{inner} cannot be read.")
            found[inner] = data
            _check(found)
    return found


def user_tree(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder of the user by its name relative to it. TooMuch, also for a link; OSError."""
    found: dict[str, bytes] = {}
    for above, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git")
        inside = Path(above).relative_to(folder)
        if len(inside.parts) >= MAX_DEPTH and folders:
            raise TooMuch(f"it is more than {MAX_DEPTH} folders deep.")
        for name in sorted((*names, *(each for each in folders if (Path(above) / each).is_symlink()))):
            path = Path(above) / name
            if path.is_symlink() or not path.is_file():
                raise TooMuch(f"{(inside / name).as_posix()} is a link or no plain file.")
            with path.open("rb") as file:
                found[(inside / name).as_posix()] = file.read(MAX_BYTES + 1)
            _check(found)
    return found


def user_folders(folder: Path) -> list[Path]:
    """Return the folders in `folder`, sorted; none if it cannot be read."""
    try:
        folders = (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        return sorted(folders)[:MAX_ENTRIES]
    except OSError:
        return []


def _names(view: FileView, folder: str) -> set[str]:
    """Return the names in a folder: on the disk, and of open buffers without a file."""
    try:
        names = {child.name for child in view.roots.scan(folder)}
    except AgentError:
        names = set()
    prefix = folder + os.sep
    opened = (path for path in view.over_disk() if path.startswith(prefix))
    names |= {inner.partition(os.sep)[0] for path in opened if (inner := path[len(prefix) :]) and _has(view, path)}
    return names - {".git"}


def _has(view: FileView, path: str) -> bool:
    try:
        return view.base(path) is not None
    except AgentError:
        return True


def _raw(view: FileView, path: str) -> bytes | None:
    try:
        return view.roots.read_bytes(path, MAX_BYTES)
    except AgentError:
        return None


def _check(found: dict[str, bytes]) -> None:
    if len(found) > MAX_FILES:
        raise TooMuch(f"it holds more than {MAX_FILES} files.")
    if sum(map(len, found.values())) > MAX_BYTES:
        raise TooMuch(f"it holds more than {MAX_BYTES >> 20} MiB.")
