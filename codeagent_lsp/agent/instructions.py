"""Reads the instructions of a project for agents: `AGENTS.md`, in the workspace folders and in folders below them.

The text is read with unsaved changes from the editor, never with changes that a run has staged. Text of a workspace is
untrusted: invisible characters are written out and its size is bounded. Not here: when it is sent to the model
(`session/memory/background.py`).
"""

# ruff: noqa: PTH118, PTH120 - paths of the workspace are plain strings and may be any bytes

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from codeagent_lsp.errors import AgentError
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.files.paths import is_untitled
from codeagent_lsp.workspace.text.lines import split_lines
from codeagent_lsp.workspace.text.visible import has_unseen, visible

INSTRUCTIONS_FILE = "AGENTS.md"
INSTRUCTIONS_LIMIT = 32 * 1024


@dataclass(frozen=True, slots=True)
class Instructions:
    """One instruction file; `unseen` is true when it holds characters that a reader would not see."""

    path: str
    name: str
    text: str
    unseen: bool = False


def root_instructions(view: FileView, limit: int = INSTRUCTIONS_LIMIT) -> tuple[Instructions, ...]:
    """Return the instruction files of the workspace folders, in their order, together at most `limit` bytes."""
    return _bounded(view, (os.path.join(folder, INSTRUCTIONS_FILE) for folder in view.roots.folders), limit)


def nested_instructions(
    view: FileView, paths: Iterable[str], limit: int = INSTRUCTIONS_LIMIT
) -> tuple[Instructions, ...]:
    """Return the instruction files of the folders between the workspace folders and `paths`, the nearest folder first;
    the workspace folders' own are left out. Together at most `limit` bytes.
    """
    places = dict.fromkeys(place for path in paths for place in _between(view, path))
    return _bounded(view, (os.path.join(place, INSTRUCTIONS_FILE) for place in places), limit)


def rendered(found: Iterable[Instructions]) -> str:
    """Format the instructions for the model, each with the name of its file."""
    return "\n\n".join(f"Project instructions ({item.name}):\n{item.text}" for item in found)


def _between(view: FileView, path: str) -> list[str]:
    """Return the folders that contain `path`, the nearest first, up to but without the workspace folder."""
    if is_untitled(path) or (root := view.roots.root_of(path)) is None:
        return []
    found, folder = [], os.path.dirname(path) if path != root else path
    while folder != root and view.roots.root_of(folder) == root:
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


def _bounded(view: FileView, paths: Iterable[str], limit: int) -> tuple[Instructions, ...]:
    found = []
    left = min(limit, INSTRUCTIONS_LIMIT)
    for path in paths:
        item = _read(view, path, left)
        if item is not None:
            left -= len(item.text.encode("utf-8", "replace"))
            found.append(item)
    return tuple(found)


def _read(view: FileView, path: str, limit: int) -> Instructions | None:
    try:
        file = view.base(path)
    except AgentError:  # a link, a folder, no text, or far too large: nothing to go by
        return None
    if file is None or not file.text.strip() or limit <= 0:
        return None
    return Instructions(path, view.roots.relative(path), _cut(visible(file.text).strip(), limit), has_unseen(file.text))


def _cut(text: str, limit: int) -> str:
    """Return the first whole lines within `limit` bytes, or a part of the first line."""
    if len(text.encode("utf-8", "replace")) <= limit:
        return text
    kept = text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
    lines = split_lines(kept)
    return ("".join(lines[:-1]) if len(lines) > 1 else kept).rstrip() + "\n(… cut)"
