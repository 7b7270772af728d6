"""The parts of a changeset that can be left out alone: its hunks, and files that come, go or move as a whole.

Pure. Not here: which of them matter (`minimizing.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from codeagent_lsp.index.enclosing import enclosing_symbol
from codeagent_lsp.session.proving.minimizing import PartTraits
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.edits.merge import Hunk
from codeagent_lsp.workspace.text.lines import split_lines

WHOLE = -1
"""The number of a part that is a whole file."""

_UNLIKELY, _USUAL = 0.02, 0.3
_WORD = re.compile(r"[^\W\d]\w{2,}")
_COMMENT = re.compile(r"\s*(?:#|//|/\*|\*|--|<!--|;|$)")
_PROSE = frozenset({".md", ".rst", ".txt", ".adoc"})


@dataclass(frozen=True, slots=True)
class HunkPart:
    """A part of a changeset: absolute path, 0-based number of a hunk or `WHOLE`, and what is known of it."""

    path: str
    hunk: int
    traits: PartTraits


def hunk_parts(changeset: Changeset) -> list[HunkPart]:
    """Return the parts of a changeset, in order."""
    return [each for change in changeset for each in _parts(change)]


def chosen(changeset: Changeset, parts: Iterable[HunkPart]) -> Changeset:
    """Return the changes with these parts alone."""
    files: set[str] = set()
    hunks: dict[str, set[int]] = {}
    for each in parts:
        if each.hunk == WHOLE:
            files.add(each.path)
        else:
            hunks.setdefault(each.path, set()).add(each.hunk)
    return changeset.split(files, {path: frozenset(numbers) for path, numbers in hunks.items()})[0]


def _parts(change: FileChange) -> Iterator[HunkPart]:
    if change.kind != "edit":
        yield HunkPart(change.path, WHOLE, _traits(change, change.text or change.base or ""))
        return
    old, new = split_lines(change.base or ""), split_lines(change.text or "")
    for number, hunk in enumerate(change.hunks()):
        around = _enclosing(change, hunk[0].new_start, new)
        yield HunkPart(change.path, number, _traits(change, "".join(_changed(hunk, old, new)), around))


def _changed(hunk: Hunk, old: list[str], new: list[str]) -> Iterator[str]:
    for run in hunk:
        yield from old[run.old_start : run.old_end]
        yield from new[run.new_start : run.new_end]


def _enclosing(change: FileChange, line: int, lines: list[str]) -> frozenset[str]:
    """Return the words of the first line of the function or class around a line (0-based)."""
    text = change.text or ""
    span = enclosing_symbol(change.path, text, sum(map(len, lines[:line])))
    return frozenset(_WORD.findall(text[span[0] : span[1]].partition("\n")[0])) if span is not None else frozenset()


def _traits(change: FileChange, text: str, around: frozenset[str] = frozenset()) -> PartTraits:
    path = PurePath(change.path)
    means_nothing = path.suffix.lower() in _PROSE or all(_COMMENT.match(line) for line in text.splitlines())
    words = frozenset({*_WORD.findall(text), path.stem}) | around
    return PartTraits(words, _UNLIKELY if means_nothing else _USUAL)
