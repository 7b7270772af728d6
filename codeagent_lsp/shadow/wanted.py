"""What a command must see that is not on the disk: unsaved buffers and staged changes, as the bytes of their files.

Reads, and changes nothing; call it in a thread. Not here: how it is laid over the disk (the layers) and what a
command makes of it (`collect.py`).
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
"""Paths, and for each in English why it was left out."""


@dataclass(frozen=True, slots=True)
class UnsavedState:
    """What differs from the disk, by absolute real path (None: no such file).

    `read` has the text of every file that is open or staged, whether it differs or not: the base of what a command
    makes of it. `moment` is when it was looked at, in nanoseconds since 1970; `left_out` could not be brought along.
    """

    files: Mapping[str, bytes | None] = field(default_factory=dict)
    read: Mapping[str, FileText] = field(default_factory=dict)
    moment: int = 0
    left_out: LeftOut = ()


def wanted(view: FileView) -> UnsavedState:
    """What of the workspace folders a run sees in another state than the disk has."""
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
    """The bytes of the file; None when there is none, or nothing that a text could be equal to."""
    try:
        return view.roots.read_bytes(path, view.max_bytes)
    except (FileRefused, PathRefused):
        return None
