"""Computes the smallest text edits that turn one text into another, as LSP ranges. Pure functions.

Equal lines are not touched, nor are the common beginning and end of a changed run of lines, so that marks and cursors
stay where they are.
"""

from __future__ import annotations

from itertools import accumulate

from lsprotocol import types

from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.text.position import Encoding, LineIndex, position_at, split_lines


def minimal_edits(old: str, new: str, encoding: Encoding, *, ended_lines: bool = False) -> list[types.TextEdit]:
    """Return edits in ascending order, none overlapping another, with ranges in `old`.

    `ended_lines` is for editors whose buffers are lines that all end: there a range that reaches beyond the text says
    that the newline at the end of the new text is the one that the buffer has anyway.
    """
    index = LineIndex.of(old)
    edits = []
    for start, end, text in _changes(old, new):
        stop = _position(old, index, end, encoding)
        # `len(index)` is one line past the last, which Neovim takes for the end of the buffer.
        if ended_lines and end == len(old) and text.endswith(("\n", "\r")):
            stop = types.Position(len(index), 0)
        edits.append(types.TextEdit(types.Range(_position(old, index, start, encoding), stop), text))
    return edits


def _changes(old: str, new: str) -> list[tuple[int, int, str]]:
    """Return start, end and new text of each change, as offsets in `old`; no two are adjacent."""
    before, after = split_lines(old), split_lines(new)
    starts = [0, *accumulate(map(len, before))]
    changes: list[tuple[int, int, str]] = []
    for run in merge.runs(old, new):
        removed = "".join(before[run.old_start : run.old_end])
        added = "".join(after[run.new_start : run.new_end])
        lead, trail = _common(removed, added)
        start, end = starts[run.old_start] + lead, starts[run.old_end] - trail
        start, end, text = _before_last_newline(old, start, end, added[lead : len(added) - trail])
        if changes and changes[-1][1] == start:  # moved before the last line end, it meets the one before it
            first, _, earlier = changes.pop()
            start, text = first, earlier + text
        changes.append((start, end, text))
    return changes


def _before_last_newline(old: str, start: int, end: int, text: str) -> tuple[int, int, str]:
    """Return new last lines as an insertion before the last line end: some editors add a line for one after it."""
    newline = "\r\n" if old.endswith("\r\n") else old[-1:]
    if start < len(old) or newline not in ("\n", "\r\n", "\r") or not text.endswith(newline):
        return start, end, text
    if newline == "\n" and text.endswith("\r\n"):  # some editors make two ends of a CR before it
        return start, end, text
    place = len(old) - len(newline)
    return place, place, newline + text.removesuffix(newline)


def _position(text: str, index: LineIndex, offset: int, encoding: Encoding) -> types.Position:
    found = position_at(text, index, offset, encoding)
    return types.Position(found.line, found.character)


def _common(removed: str, added: str) -> tuple[int, int]:
    """Return the lengths of the common beginning and end; never inside a CRLF or a combined character."""
    # The two ends share this limit, so that they never overlap: of "aa" to "aaa", one "a" is new.
    limit = min(len(removed), len(added))
    lead = 0
    while lead < limit and removed[lead] == added[lead]:
        lead += 1
    while lead and (removed[lead - 1] == "\r" or _combines(removed, lead) or _combines(added, lead)):
        lead -= 1
    trail = 0
    while trail < limit - lead and removed[-1 - trail] == added[-1 - trail]:
        trail += 1
    while trail and (_parts_line_end(removed, trail) or _parts_line_end(added, trail)):
        trail -= 1
    return lead, trail


def _parts_line_end(text: str, trail: int) -> bool:
    """Return whether the common end would begin inside a CRLF or a combined character."""
    place = len(text) - trail
    return (place > 0 and text[place - 1 : place + 1] == "\r\n") or _combines(text, place)


def _combines(text: str, place: int) -> bool:
    """Return whether a cut at `place` would separate a character from the one that modifies it."""
    # Combining accents, the joiner of emoji sequences, and the selectors of text or emoji form.
    return place < len(text) and (0x300 <= ord(text[place]) <= 0x36F or text[place] in "\u200d\ufe0e\ufe0f")
