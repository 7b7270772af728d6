"""Three-way merge of texts by lines (diff3, by the `merge3` library), and the hunks between two texts. Pure.

Where both sides changed the same lines differently, the user's text is kept and the conflict is reported. `diff3` and
git also report a conflict when the two sides changed adjacent lines, for example when the user types a comment above
the line that a waiting change is about. Such a conflict is split here, and changes of different lines are made on both
sides. Not here: files, versions, whole changesets (`changes/changeset.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from merge3 import Merge3

from codeagent_lsp.workspace.edits.line_matching import LineMatcher, likeness, runs_of
from codeagent_lsp.workspace.edits.line_matching import Run as Run
from codeagent_lsp.workspace.edits.spelling import in_spelling_of
from codeagent_lsp.workspace.text.position import content_of, dominant_newline, ending_of, split_lines, with_newlines

CONTEXT = 3
Lines = Sequence[str]
Sides = tuple[Lines, Lines, Lines]
"""The lines of the base, of ours and of theirs at one conflict."""

Piece = tuple[Lines, Sides | None]
"""Merged lines, and None; or for a conflict the lines of theirs, and what the three sides have there."""

ALIKE = 0.5
"""The least share of two lines, 0 to 1, that is the same if one was made from the other by typing."""

_END = re.compile(r"\r\n|\r|\n")
# Words and signs that go on with the statement above.
_GOES_ON = re.compile(r"\s*(?:(?:else|elif|except|finally|catch|then|and|or|case|end|fi|done|esac)\b|[)\]}.,&|?:+*/])")


@dataclass(frozen=True, slots=True)
class Conflict:
    """Lines that both sides changed differently. `line` (0-based) is their position in the merged text, `base` the text
    that both have changed; it does not count in comparisons.
    """

    line: int
    ours: str
    theirs: str
    base: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged text; at each conflict it holds `theirs`. `conflicts` are in the text's order, () if
    there are none.
    """

    text: str
    conflicts: tuple[Conflict, ...]


def merge(base: str, ours: str, theirs: str, *, beside: bool = False, formatted: bool = False) -> Merged:
    """Return `theirs` with the changes, by lines, that `ours` made to `base`. If both sides changed the same lines in
    different ways, those of `theirs` stay and a conflict is reported; so too for changes of adjacent lines, unless
    `beside` is True. With `formatted`, lines that `theirs` changed only in their format count as unchanged.
    """
    # The common cases first: the matching of lines is what takes time.
    if theirs == base:
        return Merged(ours, ())
    if ours in (base, theirs):
        return Merged(theirs, ())
    # An editor or a formatter has given all lines one end: what the lines say is what both sides have changed.
    if len(others := _ends(theirs)) == 1 and (ends := _ends(base)) and ends != others:
        base, ours = with_line_ends_of(theirs, base), with_line_ends_of(theirs, ours)
    if formatted:
        base, ours = in_spelling_of(base, ours, theirs)
    merged: list[str] = []
    conflicts: list[Conflict] = []
    before, left, right = map(split_lines, (base, ours, theirs))
    merging = Merge3(before, left, right, sequence_matcher=LineMatcher)
    for kind, *parts in merging.merge_groups():
        if kind != "conflict":
            merged.extend(parts[0])
            continue
        for lines, sides in pieces(*parts) if beside else [(parts[2], parts)]:
            # The position is that of the merged text, in which earlier conflicts take as many lines as theirs has.
            if sides is not None:
                was, wanted, kept = map("".join, sides)
                conflicts.append(Conflict(len(merged), wanted, kept, was))
            merged.extend(lines)
    return Merged("".join(merged), tuple(conflicts))


def _ends(text: str) -> frozenset[str]:
    """Return the kinds of line ends that a text has."""
    return frozenset(_END.findall(text)) if "\r" in text else frozenset(("\n",) if "\n" in text else ())


@lru_cache(maxsize=8)  # one change is asked for them by its title, its diff, its hunks and its proof
def runs(old: str, new: str) -> tuple[Run, ...]:
    """Return the runs of lines (0-based, half-open) in which the texts differ, in order, separated by equal lines; ()
    if they are equal.
    """
    return () if old == new else runs_of(split_lines(old), split_lines(new))


def select_hunks(old: str, new: str, chosen: Collection[int]) -> str:
    """Return `old` with only the runs of the given numbers (0-based, in the order of `runs(old, new)`) changed to
    `new`; other numbers are ignored.
    """
    return select_runs(old, new, {run for number, run in enumerate(runs(old, new)) if number in chosen})


def select_runs(old: str, new: str, chosen: Collection[Run]) -> str:
    """Return `old` with the changes of the `chosen` runs, which are some of `runs(old, new)`, in any order; `old`
    itself for none.
    """
    before, after = split_lines(old), split_lines(new)
    return "".join(_change_lines(before, sorted(chosen), 0, len(before), after))


def with_line_ends_of(old: str, new: str) -> str:
    """Return `new` with the line ends of `old`: unchanged lines keep their own, lines in the place of as many others
    get theirs, all others the dominant one.
    """
    before, after = split_lines(old), split_lines(with_newlines(new, dominant_newline(old)))
    uniform = "".join(after)
    # By content: the line ends are what may differ.
    matcher = LineMatcher(None, [*map(content_of, before)], [*map(content_of, after)])
    i_end = j_end = 0
    for i, j, size in matcher.get_matching_blocks():
        if i - i_end == j - j_end:
            for old_line, place in zip(before[i_end:i], range(j_end, j), strict=True):
                if ending_of(old_line) and ending_of(after[place]):
                    after[place] = content_of(after[place]) + ending_of(old_line)
        for old_line, place in zip(before[i : i + size], range(j, j + size), strict=True):
            if ending_of(old_line) and ending_of(after[place]):
                after[place] = old_line
        i_end, j_end = i + size, j + size
    mixed = "".join(after)
    return mixed if len(split_lines(mixed)) == len(after) else uniform  # a CR and the LF after it would be one end


def unified_diff(
    old: str, new: str, old_name: str, new_name: str, labels: Sequence[str] = (), *, apart: bool = False
) -> str:
    """Return a unified diff with the given names and three lines of context; '' when the texts are equal.

    `labels`, if not empty, has one label for each hunk, which ends its header. Runs whose context lines would meet form
    one hunk; with `apart` each run has its own, and they share the lines between them.
    """
    lines: list[str] = []
    before, after = split_lines(old), split_lines(new)
    found = runs(old, new)
    hunks = _single(found, len(before)) if apart else _group(found, len(before))
    for number, hunk in enumerate(hunks):
        title = f" {labels[number]}" if labels else ""
        lines.append(_header(hunk, title))
        lines.extend(_body(hunk, before, after))
    if not lines:
        return ""
    return f"--- {old_name}\n+++ {new_name}\n" + "".join(lines)


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Runs that a diff shows together, with so many equal lines before and after them."""

    runs: tuple[Run, ...]
    lead: int
    trail: int


def _group(found: Sequence[Run], length: int) -> list[_Hunk]:
    """Return hunks of runs that have at most twice the context between them; `length` is that of the old text."""
    grouped: list[list[Run]] = []
    for run in found:
        if grouped and run.old_start - grouped[-1][-1].old_end <= 2 * CONTEXT:
            grouped[-1].append(run)
        else:
            grouped.append([run])
    return [
        _Hunk(tuple(each), min(CONTEXT, each[0].old_start), min(CONTEXT, length - each[-1].old_end)) for each in grouped
    ]


def _single(found: Sequence[Run], length: int) -> list[_Hunk]:
    """Return a hunk for each run; `length` is that of the old text."""
    return [_Hunk((run,), *_room(found, number, length)) for number, run in enumerate(found)]


def _room(found: Sequence[Run], number: int, length: int) -> tuple[int, int]:
    """Return how many lines before and after a run are its context if each run is a hunk. Of lines between two, the
    upper hunk has the odd one: programs that apply diffs take one without lines after it for the end of the file.
    """
    run = found[number]
    lead = (run.old_start - found[number - 1].old_end) // 2 if number else run.old_start
    more = number + 1 < len(found)
    trail = (found[number + 1].old_start - run.old_end + 1) // 2 if more else length - run.old_end
    return min(CONTEXT, lead), min(CONTEXT, trail)


def _header(hunk: _Hunk, title: str) -> str:
    first, last = hunk.runs[0], hunk.runs[-1]
    old = _span(first.old_start - hunk.lead, last.old_end + hunk.trail)
    new = _span(first.new_start - hunk.lead, last.new_end + hunk.trail)
    return f"@@ -{old} +{new} @@{title}\n"


def _span(start: int, end: int) -> str:
    count = end - start
    # Of an empty range, unified diffs name the line above it.
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def _body(hunk: _Hunk, before: list[str], after: list[str]) -> list[str]:
    position = hunk.runs[0].old_start - hunk.lead
    lines: list[str] = []
    for run in hunk.runs:
        lines.extend(_mark_lines(" ", before[position : run.old_start]))
        lines.extend(_mark_lines("-", before[run.old_start : run.old_end]))
        lines.extend(_mark_lines("+", after[run.new_start : run.new_end]))
        position = run.old_end
    lines.extend(_mark_lines(" ", before[position : position + hunk.trail]))
    return lines


def _mark_lines(mark: str, lines: list[str]) -> list[str]:
    return [mark + _row(line) for line in lines]


def _row(line: str) -> str:
    """Return a line as a row of a diff: it always ends with LF, also after a lone CR."""
    if line.endswith("\n"):
        return line
    return f"{line}\n" if line.endswith("\r") else f"{line}\n\\ No newline at end of file\n"


class _Change(NamedTuple):
    """One run of one side; compared by its place in the base."""

    run: Run
    is_ours: bool


def pieces(old: Lines, ours: Lines, theirs: Lines) -> list[Piece]:
    """Split a conflict into parts, in order: merged lines and None where the sides touch different lines; where they
    touch the same ones, the lines of `theirs` and what the three sides have there. It stays whole if two lines would be
    joined into one.
    """
    found = list(_apart(old, ours, theirs))
    # A last line without an end, put in front of another line, would run into it.
    whole = [line for lines, _ in found for line in lines]
    if all(ending_of(line) for line in whole[:-1]):
        return found
    return [(theirs, (old, ours, theirs))]  # two lines would become one


def _apart(old: Lines, ours: Lines, theirs: Lines) -> Iterator[Piece]:
    position = 0
    for cluster in _clusters(old, ours, theirs):
        # The changes are sorted by where they begin, not by where they end.
        start, end = cluster[0].run.old_start, max(change.run.old_end for change in cluster)
        yield old[position:start], None
        # The lines of each side that changes something here; if only one does, there is no conflict.
        sides = {
            is_ours: _change_lines(old, [change.run for change in changes], start, end, ours if is_ours else theirs)
            for is_ours, changes in groupby(sorted(cluster, key=lambda each: each.is_ours), lambda each: each.is_ours)
        }
        if len(sides) == 1:
            yield next(iter(sides.values())), None
        else:
            agreed = _agreed_lines(old[start:end], sides[True], sides[False])
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
        # With any of the group, not only the last: a long run may reach over several short ones.
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
    return bare in typed or typed in bare or likeness(bare, typed) >= ALIKE


def _meets(before: _Change, after: _Change, old: Lines, theirs: Lines) -> bool:
    """Return whether a change touches the lines or the place of one that is not behind it."""
    first, second = before.run, after.run
    # Two changes of one side were made together and never conflict.
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


def _change_lines(old: Lines, runs: Sequence[Run], start: int, end: int, new: Lines) -> list[str]:
    """Return the lines `start:end` of the base with the changes of one side."""
    lines: list[str] = []
    for run in runs:
        lines.extend(old[start : run.old_start])
        lines.extend(new[run.new_start : run.new_end])
        start = run.old_end
    lines.extend(old[start:end])
    return lines


def _agreed_lines(old: Lines, ours: Lines, theirs: Lines) -> Lines | None:
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
