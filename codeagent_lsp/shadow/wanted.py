"""The state that a command must see and that is not on the disk: unsaved buffers and staged changes, as bytes.

Reads, and changes nothing; call it in a thread. Not here: how it is laid over the disk (the layers) and what a command
makes of it (`collect.py`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from codeagent_lsp.errors import FileRefused, PathRefused
from codeagent_lsp.workspace.files.file_view import FileText, FileView
from codeagent_lsp.workspace.files.paths import is_untitled
from codeagent_lsp.workspace.text.encoding import encode

LeftOut = tuple[tuple[str, str], ...]
"""Pairs of a path and the reason, in English, why it was left out."""


@dataclass(frozen=True, slots=True)
class UnsavedState:
    """The differences from the disk, as bytes by absolute real path (None: no such file).

    `read` has the text of every open or staged file, whether it differs or not, as the base of a command's changes.
    `moment` is when it was read, in nanoseconds since 1970; `left_out` are the files that could not be included, with
    the reasons.
    """

    files: Mapping[str, bytes | None] = field(default_factory=dict)
    read: Mapping[str, FileText] = field(default_factory=dict)
    moment: int = 0
    left_out: LeftOut = ()


def unsaved_state(view: FileView) -> UnsavedState:
    """Return the unsaved and staged texts of the workspace folders, as bytes over the disk. A file that cannot be
    included is in `left_out`. Reads files and blocks.
    """
    # Before the reading: what changes during it counts as changed by the user.
    moment = time.time_ns()
    files: dict[str, bytes | None] = {}
    read: dict[str, FileText] = {}
    left_out = []
    for path in sorted(view.over_disk()):
        if is_untitled(path) or view.roots.root_of(path) is None:
            continue
        try:
            if view.exists(path):
                read[path] = view.read(path)
                data = encode(read[path].text, read[path].encoding)
                if data != _on_disk(view, path):
                    files[path] = data
            elif view.roots.kind(path) is not None:
                files[path] = None
        except (FileRefused, PathRefused) as error:
            left_out.append((path, f"The command saw the saved file: {error}"))
    return UnsavedState(files, read, moment, tuple(left_out))


def _on_disk(view: FileView, path: str) -> bytes | None:
    """Return the bytes of the file; None if there is none, or it cannot equal a text."""
    try:
        return view.roots.read_bytes(path, view.max_bytes)
    except (FileRefused, PathRefused):
        return None
