"""Takes a conflict of a three-way merge apart: what touches different lines is made on both sides. Pure.

`diff3` and git call it a conflict when the two sides changed lines that stand beside each other, as when somebody types
a comment above the line that a waiting change is about. Only what touches the same lines is one, or what would stand at
one place in an order that nobody knows. Not here: finding the conflicts (`merge.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from codeagent_lsp.workspace.edits.line_matching import Run, runs_of
from codeagent_lsp.workspace.text.lines import ending_of

Lines = Sequence[str]
Sides = tuple[Lines, Lines, Lines]
"""The lines of the base, of ours and of theirs at one conflict."""

Piece = tuple[Lines, Sides | None]
"""Merged lines, and for a conflict what the sides have there; the lines are those of theirs then."""

ALIKE = 0.5
"""How much of two lines is the same where one was made from the other."""

# Words and signs that go on with the statement above.
_GOES_ON = re.compile(r"\s*(?:(?:else|elif|except|finally|catch|then|and|or|case|end|fi|done|esac)\b|[)\]}.,&|?:+*/])")


class _Change(NamedTuple):
    """One run of one side; compared by its place in the base."""

    run: Run
    is_ours: bool


def pieces(old: Lines, ours: Lines, theirs: Lines) -> list[Piece]:
    """Return the parts of a conflict, in order: merged as far as the sides touch different lines."""
    found = list(_apart(old, ours, theirs))
    whole = [line for lines, _ in found for line in lines]
    if all(ending_of(line) for line in whole[:-1]):
        return found
    return [(theirs, (old, ours, theirs))]  # two lines would become one


def _apart(old: Lines, ours: Lines, theirs: Lines) -> Iterator[Piece]:
    position = 0
    for cluster in _clusters(old, ours, theirs):
        start, end = cluster[0].run.old_start, max(change.run.old_end for change in cluster)
        yield old[position:start], None
        # The lines of each side that changes something here; if only one does, there is no conflict.
        sides = {
            is_ours: _changed(old, [change.run for change in changes], start, end, ours if is_ours else theirs)
            for is_ours, changes in groupby(sorted(cluster, key=lambda each: each.is_ours), lambda each: each.is_ours)
        }
        if len(sides) == 1:
            yield next(iter(sides.values())), None
        else:
            agreed = _agreed(old[start:end], sides[True], sides[False])
            yield (sides[False], (old[start:end], sides[True], sides[False])) if agreed is None else (agreed, None)
        position = end
    yield old[position:], None


def _clusters(old: Lines, ours: Lines, theirs: Lines) -> list[list[_Change]]:
    """Return the changes of both sides in groups that meet each other."""
    changes = sorted(
        [*(_Change(run, True) for run in _by_line(old, ours)), *(_Change(run, False) for run in _by_line(old, theirs))],
        key=lambda change: (change.run[:2], change.is_ours),
    )
    grouped: list[list[_Change]] = []
    for change in changes:
        if grouped and any(_meets(before, change, old, theirs) for before in grouped[-1]):
            grouped[-1].append(change)
        else:
            grouped.append([change])
    return grouped


def _by_line(old: Lines, new: Lines) -> Iterator[Run]:
    """Yield the runs between two texts; lines that were typed into, one below the other, are runs of their own."""
    for run in runs_of(old, new):
        size = run.old_end - run.old_start
        pairs = list(zip(old[run.old_start : run.old_end], new[run.new_start : run.new_end], strict=False))
        if size == run.new_end - run.new_start and all(_alike(*pair) for pair in pairs):
            starts = ((run.old_start + at, run.new_start + at) for at in range(size))
            yield from (Run(start, start + 1, other, other + 1) for start, other in starts)
        else:
            yield run


def _alike(line: str, other: str) -> bool:
    """Return whether one of two lines may have been made by typing into the other one."""
    # Without the indentation, which alone makes short lines unlike.
    bare, typed = line.strip(), other.strip()
    if not bare or not typed:
        return bare == typed
    return bare in typed or typed in bare or SequenceMatcher(None, bare, typed, autojunk=False).ratio() >= ALIKE


def _meets(before: _Change, after: _Change, old: Lines, theirs: Lines) -> bool:
    """Return whether a change touches the lines or the place of one that is not behind it."""
    first, second = before.run, after.run
    if before.is_ours == after.is_ours:
        return False
    if second.old_start < first.old_end or first[:2] == second[:2]:
        return True
    # What they typed right behind lines that ours takes away may be the rest of these, as an `else` or a body.
    took = first.old_end - first.old_start > first.new_end - first.new_start
    behind = second[:2] == (first.old_end, first.old_end)
    typed = theirs[second.new_start : second.new_end]
    return before.is_ours and took and behind and _goes_on(old[first.old_start : first.old_end], typed)


def _goes_on(gone: Lines, typed: Lines) -> bool:
    """Return whether what was typed right behind lines that ours takes away belongs to these."""
    head, first = (next((line for line in lines if line.strip()), "") for lines in (gone, typed))
    return bool(head and first) and (_indent(first) > _indent(head) or _GOES_ON.match(first) is not None)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _changed(old: Lines, runs: Sequence[Run], start: int, end: int, new: Lines) -> list[str]:
    """Return the lines `start:end` of the base with the changes of one side."""
    lines: list[str] = []
    for run in runs:
        lines.extend(old[start : run.old_start])
        lines.extend(new[run.new_start : run.new_end])
        start = run.old_end
    lines.extend(old[start:end])
    return lines


def _agreed(old: Lines, ours: Lines, theirs: Lines) -> Lines | None:
    """Return the lines where one side has all that the other has done, as when a change is made that was made already
    and typed beside since; None if both have done something else.
    """
    if list(ours) == list(theirs) or _has(theirs, old, ours):
        return theirs
    return ours if _has(ours, old, theirs) else None


def _has(lines: Lines, old: Lines, other: Lines) -> bool:
    """Return whether all that the other side changed stands in these lines, in its order."""
    position = 0
    for run in runs_of(old, other):
        new = other[run.new_start : run.new_end]
        place = _index(lines, new, position)
        # Lines of punctuation alone are found everywhere, so they are no evidence.
        if place is None or not any(any(map(str.isalnum, line)) for line in new):
            return False
        position = place + len(new)
    return True


def _index(lines: Lines, part: Lines, start: int) -> int | None:
    """Return where the lines of `part` stand in a row, from `start` on; None if they do not, or are none."""
    size = len(part)
    places = range(start, len(lines) - size + 1) if size else ()
    return next((place for place in places if list(lines[place : place + size]) == list(part)), None)
