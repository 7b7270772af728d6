"""Three-way merge of texts by lines, and the hunks between two texts. Pure.

What both sides did is told apart by the `merge3` library; where both changed the same lines differently the
user's text stands and the conflict is reported. Not here: files, versions, whole changesets (`changeset.py`).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import NamedTuple

from merge3 import Merge3

from codeagent_lsp.workspace.lines import split_lines


@dataclass(frozen=True, slots=True)
class Conflict:
    """A place that both sides changed; `line` (0-based) is where it stands in the merged text."""

    line: int
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged text; at each conflict it holds `theirs`."""

    text: str
    conflicts: tuple[Conflict, ...]


class Hunk(NamedTuple):
    """A run of changed lines: `old_start:old_end` became `new_start:new_end` (0-based, half-open)."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def merge(base: str, ours: str, theirs: str) -> Merged:
    """`theirs` with the changes that `ours` made to `base`; conflicts keep `theirs`."""
    if theirs == base:
        return Merged(ours, ())
    if ours in (base, theirs):
        return Merged(theirs, ())
    merged: list[str] = []
    conflicts: list[Conflict] = []
    groups = Merge3(split_lines(base), split_lines(ours), split_lines(theirs)).merge_groups()
    for kind, *parts in groups:
        if kind == "conflict":
            _, our_lines, their_lines = parts
            conflicts.append(Conflict(len(merged), "".join(our_lines), "".join(their_lines)))
            merged.extend(their_lines)
        else:
            merged.extend(parts[0])
    return Merged("".join(merged), tuple(conflicts))


def hunks(old: str, new: str) -> tuple[Hunk, ...]:
    """The runs of lines in which the texts differ, in order."""
    if old == new:
        return ()
    before, after = split_lines(old), split_lines(new)
    start, end = _common_ends(before, after)
    middle = difflib.SequenceMatcher(
        None, before[start : len(before) - end], after[start : len(after) - end], autojunk=False
    )
    return tuple(
        Hunk(i1 + start, i2 + start, j1 + start, j2 + start)
        for tag, i1, i2, j1, j2 in middle.get_opcodes()
        if tag != "equal"
    )


def select_hunks(old: str, new: str, chosen: frozenset[int]) -> str:
    """`old` with only the hunks of the given numbers (0-based, in order) changed to `new`."""
    before, after = split_lines(old), split_lines(new)
    pieces: list[str] = []
    position = 0
    for number, hunk in enumerate(hunks(old, new)):
        pieces.extend(before[position : hunk.old_start])
        took = after[hunk.new_start : hunk.new_end]
        pieces.extend(took if number in chosen else before[hunk.old_start : hunk.old_end])
        position = hunk.old_end
    pieces.extend(before[position:])
    return "".join(pieces)


def unified_diff(old: str, new: str, old_name: str, new_name: str, context: int = 3) -> str:
    """A unified diff with the given names; empty when the texts are equal."""
    lines: list[str] = []
    before, after = split_lines(old), split_lines(new)
    for group in _grouped(hunks(old, new), len(before), context):
        lines.append(_header(group, context, len(before), len(after)))
        lines.extend(_body(group, before, after, context))
    if not lines:
        return ""
    return f"--- {old_name}\n+++ {new_name}\n" + "".join(lines)


def _common_ends(before: list[str], after: list[str]) -> tuple[int, int]:
    limit = min(len(before), len(after))
    start = 0
    while start < limit and before[start] == after[start]:
        start += 1
    end = 0
    while end < limit - start and before[-1 - end] == after[-1 - end]:
        end += 1
    return start, end


def _grouped(changes: tuple[Hunk, ...], length: int, context: int) -> list[list[Hunk]]:
    groups: list[list[Hunk]] = []
    for hunk in changes:
        if groups and hunk.old_start - groups[-1][-1].old_end <= 2 * context:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
    return groups


def _header(group: list[Hunk], context: int, old_length: int, new_length: int) -> str:
    first, last = group[0], group[-1]
    lead = min(context, first.old_start)
    trail = min(context, old_length - last.old_end)
    old = _span(first.old_start - lead, last.old_end + trail)
    new = _span(first.new_start - lead, last.new_end + trail)
    return f"@@ -{old} +{new} @@\n"


def _span(start: int, end: int) -> str:
    count = end - start
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def _body(group: list[Hunk], before: list[str], after: list[str], context: int) -> list[str]:
    position = max(0, group[0].old_start - context)
    lines: list[str] = []
    for hunk in group:
        lines.extend(_marked(" ", before[position : hunk.old_start]))
        lines.extend(_marked("-", before[hunk.old_start : hunk.old_end]))
        lines.extend(_marked("+", after[hunk.new_start : hunk.new_end]))
        position = hunk.old_end
    lines.extend(_marked(" ", before[position : position + context]))
    return lines


def _marked(mark: str, lines: list[str]) -> list[str]:
    marked = []
    for line in lines:
        ended = line.endswith(("\n", "\r"))
        marked.append(mark + line if ended else f"{mark}{line}\n\\ No newline at end of file\n")
    return marked
