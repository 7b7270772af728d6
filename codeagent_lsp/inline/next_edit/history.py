"""The user's last edits: of each open file the text it began with, and the text of now; and what an edit has changed,
as pairs of syntax nodes: of each changed place, the nodes around it before and after. Immutable.

What is undone leaves no trace, and keys that are typed one after the other are one edit. Not here: what the edits have
in common (`rewrites.py`, `renamings.py`).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from codeagent_lsp.inline.next_edit.parsed_text import LARGEST, ParsedText, parsed_text

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_FILES = 8
MOST_OTHERS = 24
MOST_HUNKS = 40
MOST_LINES = 20_000
LONGEST_HUNK = 12
"""The most lines of one side of a change: longer ones are not small edits that should be made elsewhere, too."""
LONGEST_NODE = 600
"""The most bytes of a node around a change that is looked at."""


@dataclass(frozen=True, slots=True)
class Edited:
    """One open file: its absolute path, the text before the edits (`base`), the text of now, and what was changed last,
    the characters `at` to `end` (0-based, half-open) of the text of now.
    """

    path: str
    base: str
    text: str
    at: int = 0
    end: int = 0


@dataclass(frozen=True)
class History:
    """The last edits in the open files, at most 8 of them, those edited last first. Immutable: methods return a new
    history.
    """

    files: tuple[Edited, ...] = ()

    def opened(self, path: str, text: str) -> History:
        """Return the history with a file, by its absolute path, that begins with this text; later texts are compared
        with it. Of more than 8 files some are dropped, those without an edit first.
        """
        # Behind those that were edited: opening a file is no edit.
        return self._with(Edited(path, text, text), first=False)

    def noted(self, path: str, text: str) -> History:
        """Return the history with the new text of a file, by its path, which is now the one edited last; a file that is
        not known is opened with it, and the same text changes nothing.
        """
        known = self.of(path)
        if known is None:
            return self.opened(path, text)
        if known.text == text:
            return self
        at = _first_difference(text, known.text)
        end = len(text) - _common_end(text[at:], known.text[at:])
        return self._with(replace(known, text=text, at=at, end=end), first=True)

    def closed(self, path: str) -> History:
        """Return the history without a file; the same if it is not known."""
        return History(tuple(each for each in self.files if each.path != path))

    def of(self, path: str) -> Edited | None:
        """Return the known texts of a file by its path, as it was given; None if it is not known."""
        return next((each for each in self.files if each.path == path), None)

    def last(self) -> tuple[Example, list[Example]] | None:
        """Return the newest edit and at most 24 others, the nearest first; None if there are not two. Parses and
        blocks.
        """
        newest: Example | None = None
        others: list[Example] = []
        for each in self.files:
            found = list(_examples(each))
            if newest is None:
                if not found:
                    return None
                # The change nearest to the last key is the newest one: the texts have no times.
                found.sort(key=lambda example: _distance(example, example.after.byte(each.at)))
                newest, *found = found
            others += found
        return (newest, others[:MOST_OTHERS]) if newest is not None and others else None

    def _with(self, edited: Edited, *, first: bool) -> History:
        if len(edited.text) > LARGEST or len(edited.base) > LARGEST:
            return self.closed(edited.path)
        others = tuple(each for each in self.files if each.path != edited.path)
        files = (edited, *others) if first else (*others, edited)
        # Files that were only opened go first: they have no examples.
        unchanged = [each for each in files if each.base == each.text]
        while len(files) > MOST_FILES and unchanged:
            files = tuple(each for each in files if each is not unchanged[0])
            unchanged.pop(0)
        return History(files[:MOST_FILES])


class Pair(NamedTuple):
    """A syntax node before the edit, and the node after it that differs only by the edit."""

    old: Node
    new: Node


@dataclass(frozen=True)
class Example:
    """A changed place: both texts, the changed range in each in bytes (half-open), and the nodes around it, the
    smallest first.
    """

    before: ParsedText
    after: ParsedText
    old_range: tuple[int, int]
    new_range: tuple[int, int]
    pairs: tuple[Pair, ...]


def examples(before: ParsedText, after: ParsedText) -> list[Example]:
    """Return the changed places of a text, in their order; [] if there are more than 40. A place without a node around
    it that both texts have is left out.
    """
    found: list[Example] = []
    for old, new in _hunks(before.text, after.text):
        example = _example(before, after, old, new)
        if example is not None and example.pairs:
            found.append(example)
        if len(found) > MOST_HUNKS:
            return []
    return found


def _examples(edited: Edited) -> Iterator[Example]:
    if edited.base == edited.text:
        return
    before, after = parsed_text(edited.path, edited.base), parsed_text(edited.path, edited.text)
    if before is not None and after is not None:
        yield from examples(before, after)


def _first_difference(one: str, other: str) -> int:
    """Return the length of the common beginning, by comparing slices: this runs with every key."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(one: str, other: str) -> int:
    """Return the length of the common end, as above."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle :] == other[len(other) - middle :]:
            low = middle
        else:
            high = middle - 1
    return low


def _distance(example: Example, at: int) -> int:
    start, end = example.new_range
    return 0 if start <= at <= end else min(abs(at - start), abs(at - end))


def _hunks(before: str, after: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the ranges of changed lines, in characters of both texts; as many lines for as many are changes of a line
    each.
    """
    old_lines, new_lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if max(len(old_lines), len(new_lines)) > MOST_LINES:
        return
    old_at, new_at = [0, *accumulate(map(len, old_lines))], [0, *accumulate(map(len, new_lines))]
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
