"""Three-way merge of texts by lines (diff3, by the `merge3` library), and the hunks between two texts. Pure.

Where both sides changed the same lines differently, the user's text is kept and the conflict is reported. Not here:
files, versions, whole changesets (`changes/changeset.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from merge3 import Merge3

from codeagent_lsp.workspace.edits.line_matching import LineMatcher
from codeagent_lsp.workspace.text.lines import content_of, dominant_newline, ending_of, split_lines, with_newlines

CONTEXT = 3


@dataclass(frozen=True, slots=True)
class Conflict:
    """Lines that both sides changed differently; `line` (0-based) is their position in the merged text."""

    line: int
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged text; at each conflict it holds `theirs`."""

    text: str
    conflicts: tuple[Conflict, ...]


class Run(NamedTuple):
    """One run of changed lines: `old_start:old_end` became `new_start:new_end` (0-based, half-open)."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


Hunk = tuple[Run, ...]


def merge(base: str, ours: str, theirs: str, *, beside: bool = False) -> Merged:
    """Return `theirs` with the changes, by lines, that `ours` made to `base`. Where both sides changed the same lines
    in different ways, the lines of `theirs` stay and a conflict is reported. So it is for changes of adjacent lines,
    unless `beside` is true; then both are made.
    """
    if theirs == base:
        return Merged(ours, ())
    if ours in (base, theirs):
        return Merged(theirs, ())
    merged: list[str] = []
    conflicts: list[Conflict] = []
    before, left, right = map(split_lines, (base, ours, theirs))
    merging = Merge3(before, left, right, sequence_matcher=LineMatcher)
    for kind, *parts in merging.merge_groups():
        if kind == "conflict":
            old_lines, our_lines, their_lines = parts
            if beside and (both := _beside(old_lines, our_lines, their_lines)) is not None:
                merged.extend(both)
                continue
            conflicts.append(Conflict(len(merged), "".join(our_lines), "".join(their_lines)))
            merged.extend(their_lines)
        else:
            merged.extend(parts[0])
    return Merged("".join(merged), tuple(conflicts))


def runs(old: str, new: str) -> tuple[Run, ...]:
    """Return the runs of lines in which the texts differ, in order, separated by equal lines."""
    return () if old == new else _runs(split_lines(old), split_lines(new))


def _runs(old: Sequence[str], new: Sequence[str]) -> tuple[Run, ...]:
    found: list[Run] = []
    i = j = 0
    for block_i, block_j, size in LineMatcher(None, old, new).get_matching_blocks():
        if i < block_i or j < block_j:
            found.append(Run(i, block_i, j, block_j))
        i, j = block_i + size, block_j + size
    return tuple(found)


def _beside(old: Sequence[str], ours: Sequence[str], theirs: Sequence[str]) -> list[str] | None:
    """Return the lines with the changes of both sides if these touch different lines, and what is inserted has one
    place; None otherwise. What they insert right behind lines that ours takes away may go on with these.
    """
    changes = sorted([*((run, ours) for run in _runs(old, ours)), *((run, theirs) for run in _runs(old, theirs))])
    lines: list[str] = []
    position = 0
    for (run, new), (before, other) in zip(changes, [(None, ours), *changes], strict=False):
        if run.old_start < position or (before is not None and run[:2] == before[:2]):
            return None
        if before is not None and other is ours and _takes_away(before) and run[:2] == (before.old_end,) * 2:
            return None
        lines.extend(old[position : run.old_start])
        lines.extend(new[run.new_start : run.new_end])
        position = run.old_end
    lines.extend(old[position:])
    return lines if all(ending_of(line) for line in lines[:-1]) else None


def _takes_away(run: Run) -> bool:
    return run.old_end - run.old_start > run.new_end - run.new_start


def hunks(old: str, new: str) -> tuple[Hunk, ...]:
    """Return the runs grouped as in a unified diff: runs whose context lines would meet form one hunk."""
    grouped: list[list[Run]] = []
    for run in runs(old, new):
        if grouped and run.old_start - grouped[-1][-1].old_end <= 2 * CONTEXT:
            grouped[-1].append(run)
        else:
            grouped.append([run])
    return tuple(map(tuple, grouped))


def select_hunks(old: str, new: str, chosen: frozenset[int]) -> str:
    """Return `old` with only the hunks of the given numbers (0-based, in order) changed to `new`."""
    before, after = split_lines(old), split_lines(new)
    pieces: list[str] = []
    position = 0
    for number, hunk in enumerate(hunks(old, new)):
        for run in hunk:
            pieces.extend(before[position : run.old_start])
            took = after[run.new_start : run.new_end]
            pieces.extend(took if number in chosen else before[run.old_start : run.old_end])
            position = run.old_end
    pieces.extend(before[position:])
    return "".join(pieces)


def with_line_ends_of(old: str, new: str) -> str:
    """Return `new` with the line ends of `old`: unchanged lines keep their own, all others get the dominant one."""
    before, after = split_lines(old), split_lines(with_newlines(new, dominant_newline(old)))
    uniform = "".join(after)
    matcher = LineMatcher(None, [*map(content_of, before)], [*map(content_of, after)])
    for i, j, size in matcher.get_matching_blocks():
        for old_line, place in zip(before[i : i + size], range(j, j + size), strict=True):
            if ending_of(old_line) and ending_of(after[place]):
                after[place] = old_line
    mixed = "".join(after)
    return mixed if len(split_lines(mixed)) == len(after) else uniform  # a CR and the LF after it would be one end


def unified_diff(old: str, new: str, old_name: str, new_name: str, label: str = "") -> str:
    """Return a unified diff with the given names; '' when the texts are equal.

    With a `label` each hunk's header ends with `label#number` (1-based), by which it can be accepted alone.
    """
    lines: list[str] = []
    before, after = split_lines(old), split_lines(new)
    for number, hunk in enumerate(hunks(old, new), 1):
        title = f" {label}#{number}" if label else ""
        lines.append(_header(hunk, len(before), title))
        lines.extend(_body(hunk, before, after))
    if not lines:
        return ""
    return f"--- {old_name}\n+++ {new_name}\n" + "".join(lines)


def _header(hunk: Hunk, old_length: int, title: str) -> str:
    first, last = hunk[0], hunk[-1]
    lead = min(CONTEXT, first.old_start)
    trail = min(CONTEXT, old_length - last.old_end)
    old = _span(first.old_start - lead, last.old_end + trail)
    new = _span(first.new_start - lead, last.new_end + trail)
    return f"@@ -{old} +{new} @@{title}\n"


def _span(start: int, end: int) -> str:
    count = end - start
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def _body(hunk: Hunk, before: list[str], after: list[str]) -> list[str]:
    position = max(0, hunk[0].old_start - CONTEXT)
    lines: list[str] = []
    for run in hunk:
        lines.extend(_marked(" ", before[position : run.old_start]))
        lines.extend(_marked("-", before[run.old_start : run.old_end]))
        lines.extend(_marked("+", after[run.new_start : run.new_end]))
        position = run.old_end
    lines.extend(_marked(" ", before[position : position + CONTEXT]))
    return lines


def _marked(mark: str, lines: list[str]) -> list[str]:
    return [mark + _row(line) for line in lines]


def _row(line: str) -> str:
    """Return a line as a row of a diff: it always ends with LF, also after a lone CR."""
    if line.endswith("\n"):
        return line
    return f"{line}\n" if line.endswith("\r") else f"{line}\n\\ No newline at end of file\n"
