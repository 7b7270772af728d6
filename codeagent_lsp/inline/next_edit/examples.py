"""What an edit has changed, as pairs of syntax nodes: of each changed place, the nodes around it before and after.

Not here: what several examples have in common (`rewrites.py`, `renamings.py`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from codeagent_lsp.inline.next_edit.parsed_text import ParsedText

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_HUNKS = 40
MOST_LINES = 20_000
LONGEST_HUNK = 12
"""Lines of one side; longer changes are no small edits that are due elsewhere, too."""
LONGEST_NODE = 600
"""Bytes of the largest node around a change that is looked at."""


class Pair(NamedTuple):
    """A node before, and the node after that has all of it but the change."""

    old: Node
    new: Node


@dataclass(frozen=True)
class Example:
    """A changed place: both texts, the changed range in each in bytes, and the nodes around it, the smallest first."""

    before: ParsedText
    after: ParsedText
    old_range: tuple[int, int]
    new_range: tuple[int, int]
    pairs: tuple[Pair, ...]


def examples(before: ParsedText, after: ParsedText) -> list[Example]:
    """Return the changed places of a text, in their order; none where too much has changed."""
    found: list[Example] = []
    for old, new in _hunks(before.text, after.text):
        example = _example(before, after, old, new)
        if example is not None and example.pairs:
            found.append(example)
        if len(found) > MOST_HUNKS:
            return []
    return found


def _hunks(before: str, after: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the ranges of changed lines, in characters of both texts; as many lines for as many are changes of a line
    each.
    """
    old_lines, new_lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old_lines), len(new_lines)) > MOST_LINES:
        return
    old_at, new_at = _starts(old_lines), _starts(new_lines)
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal" or max(b - a, d - c) > LONGEST_HUNK:
            continue
        if b - a == d - c:
            for number in range(b - a):
                old, new = a + number, c + number
                yield (old_at[old], old_at[old + 1]), (new_at[new], new_at[new + 1])
        elif a < b and c < d:
            yield (old_at[a], old_at[b]), (new_at[c], new_at[d])


def _starts(lines: list[str]) -> list[int]:
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return starts


def _example(before: ParsedText, after: ParsedText, old: tuple[int, int], new: tuple[int, int]) -> Example | None:
    old_text, new_text = before.text[slice(*old)], after.text[slice(*new)]
    same = _common(old_text, new_text)
    # Of what is left: beginning and end must not share characters, as in `aa` → `aaa`.
    tail = _common(old_text[same:][::-1], new_text[same:][::-1])
    old_range = (before.byte(old[0] + same), before.byte(old[1] - tail))
    new_range = (after.byte(new[0] + same), after.byte(new[1] - tail))
    if before.between(*old_range).strip() == after.between(*new_range).strip():
        return None  # only blanks
    return Example(before, after, old_range, new_range, tuple(_pairs(before, after, old_range, new_range)))


def _common(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _pairs(
    before: ParsedText, after: ParsedText, old_range: tuple[int, int], new_range: tuple[int, int]
) -> Iterator[Pair]:
    """Yield the nodes before that cover the change and have a counterpart after, with the same around the change."""
    old = before.root.descendant_for_byte_range(*old_range)
    while old is not None and old.end_byte - old.start_byte <= LONGEST_NODE:
        # What stands around the change is the same on both sides, so the counterpart has the same distances to it.
        start = new_range[0] - (old_range[0] - old.start_byte)
        end = new_range[1] + (old.end_byte - old_range[1])
        new = _exactly(after, start, end, old.type)
        if new is not None and old.parent is not None:
            yield Pair(old, new)
        old = old.parent


def _exactly(text: ParsedText, start: int, end: int, kind: str) -> Node | None:
    """Return the node of exactly this range, of this kind if there are several."""
    if start < 0 or start >= end:
        return None
    node = text.root.descendant_for_byte_range(start, end)
    first = node
    while node is not None and (node.start_byte, node.end_byte) == (start, end):
        if node.type == kind:
            return node
        node = node.parent
    # A change may make another kind of node of the same place, such as a name of a call.
    return first if first is not None and (first.start_byte, first.end_byte) == (start, end) else None
