"""Finds where files are that the user has renamed or moved since a change of them was made, so that it follows them.

Editors tell of a rename in different ways, and other programs (`git mv`) in none: so it is seen by what is there. Not
here: moves that the agent has made itself (`workspace/changes/staging.py`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from codeagent_lsp.session.rewind.rewinds import AppliedPart
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.files.file_view import FileView, own_file
from codeagent_lsp.workspace.text.lines import split_lines

ALIKE = 0.8  # share of lines; the user may have typed in the file since
CLOCK_SECONDS = 1.0  # so much the clocks of a file system may differ


def renamed_since(texts: Mapping[str, str], view: FileView, since: float, made: Collection[str] = ()) -> dict[str, str]:
    """Return the new paths of files that are gone, by their old ones. `texts` are those that they had at `since`,
    seconds since the epoch. Only one that has come since, not `made` by the agent, and is unlike all others counts.
    Blocks.
    """
    gone = {path: text for path, text in texts.items() if text.strip() and own_file(view, path) is None}
    # A file that cannot be read, such as one that grew too large, is still there.
    gone = {path: text for path, text in gone.items() if not os.path.lexists(path)}
    found: dict[str, str] = {}
    there = dict(_come_since(view, since, {*texts, *made})) if gone else {}
    for path, text in gone.items():
        likeness = {other: _likeness(text, present, path, other) for other, present in there.items()}
        best = sorted(likeness, key=lambda other: likeness[other], reverse=True)[:2]
        # Two that are equally alike decide nothing: a change that follows the wrong file is worse than one that is
        # refused.
        if best and likeness[best[0]][0] >= ALIKE and (len(best) == 1 or likeness[best[0]] > likeness[best[1]]):
            found[path] = best[0]
            del there[best[0]]
    return found


def edited_texts(changeset: Changeset) -> dict[str, str]:
    """Return the texts that the files of edits had before these."""
    return {each.path: each.base for each in changeset if each.kind == "edit" and each.base is not None}


def followed(parts: Iterable[AppliedPart], view: FileView) -> tuple[list[Changeset], dict[str, str]]:
    """Return what was applied for the files where they are now, and the new paths of those that the user has renamed,
    by the old ones: not of those that the agent itself has moved or deleted. Blocks.
    """
    parts, changes, moved = tuple(parts), list[Changeset](), dict[str, str]()
    own = [change for part in parts for change in part.changeset if change.kind != "edit"]
    removed = {change.moved_from if change.kind == "move" else change.path for change in own if change.kind != "create"}
    made = {change.path for change in own if change.kind != "delete"}
    for part in parts:
        texts = edited_texts(part.changeset.inverse())
        texts = {path: text for path, text in texts.items() if path not in removed}
        new = renamed_since(texts, view, part.ts, made)
        # Earlier parts too: all are about the file that has this name now.
        changes = [each.renamed(new) for each in (*changes, part.changeset.renamed(moved))]
        moved.update(new)
    return changes, moved


def _come_since(view: FileView, since: float, known: Iterable[str]) -> Iterator[tuple[str, str]]:
    paths = (path for root in view.roots.folders for path in view.walk(root))
    for path in dict.fromkeys((*view.open_paths(), *paths)):
        if path not in known and _is_new(path, since) and (file := own_file(view, path)) is not None:
            yield path, file.text


def _is_new(path: str, since: float) -> bool:
    """Return whether a file got its name after `since`, as far as the file system tells."""
    try:
        # Not the time of its content, which a move keeps: ctime changes with the name.
        return Path(path).stat().st_ctime >= since - CLOCK_SECONDS
    except OSError:  # only in the editor
        return True


def _likeness(text: str, present: str, path: str, other: str) -> tuple[float, bool]:
    """Return the share of lines that are the same, and whether the name is."""
    lines, others = split_lines(text), split_lines(present)
    shared = (Counter(lines) & Counter(others)).total()
    return 2 * shared / ((len(lines) + len(others)) or 1), Path(path).name == Path(other).name
