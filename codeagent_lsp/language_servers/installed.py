"""Selection of the language servers that a workspace has for a file: installed in the project or on PATH.

Reads names only; blocks. Not here: which servers are known (`known.py`), starting them (`session_servers.py`).
"""

# ruff: noqa: PTH118, PTH120 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from codeagent_lsp.language_servers.known import KnownServer
from codeagent_lsp.workspace.files.file_view import FileView

BINARIES = (".venv/bin", "venv/bin", "node_modules/.bin")


@dataclass(frozen=True, slots=True)
class Installed:
    """A server that can be started: its program as an absolute path, and its project's folder."""

    server: KnownServer
    program: str
    folder: str


def servers_for(
    view: FileView,
    path: str,
    known: Iterable[KnownServer],
    which: Callable[[str], str | None] = shutil.which,
) -> tuple[Installed, ...]:
    """Return the servers for a file, absolute path: at most one that knows types and one linter, the first installed of
    each. `which` finds programs on PATH.
    """
    above = folders_above(view, path)
    found: dict[str, Installed] = {}
    for server in known:
        if not above or server.role in found or server.language_of(path) is None:
            continue
        folder = _project(view, above, server)
        program = _program(view, server.command[0], above, which) if folder else None
        if folder and program:
            found[server.role] = Installed(server, program, folder)
    return tuple(found.values())


def folders_above(view: FileView, path: str) -> list[str]:
    """Return the folders that contain a file, innermost first, up to its workspace folder."""
    root = view.roots.root_of(path)
    folders: list[str] = []
    folder = os.path.dirname(path)
    while root is not None and (folder == root or folder.startswith(f"{root}/")):
        folders.append(folder)
        folder = os.path.dirname(folder)
    return folders


def _project(view: FileView, above: list[str], server: KnownServer) -> str | None:
    """Return the innermost folder with a marker, else the workspace folder; None if a marker is needed."""
    for folder in above:
        if any(view.exists(os.path.join(folder, marker)) for marker in server.markers):
            return folder
    return None if server.needs_marker else above[-1]


def _program(view: FileView, name: str, above: list[str], which: Callable[[str], str | None]) -> str | None:
    if os.path.isabs(name):  # noqa: PTH117 - what the user wrote
        return name if os.access(name, os.X_OK) else None
    for folder in above:
        for binaries in BINARIES:
            path = os.path.join(folder, binaries, name)
            if _is_own_program(view, path):
                return path
    return which(name)


def _is_own_program(view: FileView, path: str) -> bool:
    """Return whether a path is a program of the workspace; a link to a place outside is not, PATH decides then."""
    if view.roots.stat(path) is None:
        return False
    real = os.path.realpath(path)
    return view.roots.root_of(real) is not None and os.path.isfile(real) and os.access(real, os.X_OK)  # noqa: PTH113
