"""Matching blocks of lines between two texts, with a bounded amount of work. Pure.

`difflib` alone takes minutes on long texts with many repeated lines. Here the cost of each step is known beforehand; a
range that is too expensive is first split at lines that are unique on both sides (as in patience diff), and what is
still too expensive counts as wholly different. Not here: hunks and merging (`merge.py`).
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

WORK = 3_000_000  # pairs of lines compared: less than a second


class Stretch(NamedTuple):
    """Lines `start:end` of the old text against lines `other_start:other_end` of the new one (0-based, half-open)."""

    start: int
    end: int
    other_start: int
    other_end: int


class LineMatcher:
    """A matcher with the interface of `difflib.SequenceMatcher` that `merge3` uses.

    `isjunk` and `autojunk` are ignored.
    """

    def __init__(
        self, isjunk: object = None, a: Sequence[str] = (), b: Sequence[str] = (), autojunk: bool = False
    ) -> None:
        self._before, self._after = a, b

    def get_matching_blocks(self) -> list[tuple[int, int, int]]:
        """Return triples `(i, j, n)`: n lines from i in `a` equal those from j in `b`.

        Ascending, the last `(len, len, 0)`.
        """
        before, after = self._before, self._after
        whole = Stretch(0, len(before), 0, len(after))
        joined: list[tuple[int, int, int]] = []
        for i, j, size in (*sorted(_Search(before, after).blocks(whole)), (len(before), len(after), 0)):
            if joined and size and joined[-1][0] + joined[-1][2] == i and joined[-1][1] + joined[-1][2] == j:
                i, j, size = joined[-1][0], joined[-1][1], joined[-1][2] + size
                joined.pop()
            joined.append((i, j, size))
        return joined


class _Search:
    """One search for matching blocks, with its remaining budget in pairs of lines."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        self._before, self._after = before, after
        self._budget = WORK
        self._matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        often = Counter(after)
        self._prices = [0, *accumulate(1 + often[line] for line in before)]

    def blocks(self, whole: Stretch) -> list[tuple[int, int, int]]:
        """Return the matching blocks inside `whole`, in any order."""
        found: list[tuple[int, int, int]] = []
        pending = [whole]
        while pending:
            middle, ends = self._without_ends(pending.pop())
            found.extend(ends)
            if middle.start < middle.end and middle.other_start < middle.other_end:
                block, rest = self._step(middle)
                found.extend(block)
                pending.extend(rest)
        return found

    def _step(self, area: Stretch) -> tuple[list[tuple[int, int, int]], list[Stretch]]:
        """Return the longest match and the ranges on both sides of it, or unique lines and the ranges between them."""
        price = self._prices[area.end] - self._prices[area.start]
        if price > self._budget or price > WORK // 8:
            anchors = self._anchors(area)
            if anchors or price > self._budget:
                return [(i, j, 1) for i, j in anchors], _between(area, anchors) if anchors else []
        self._budget -= price
        i, j, size = self._matcher.find_longest_match(*area)
        if not size:
            return [], []
        sides = [Stretch(area.start, i, area.other_start, j), Stretch(i + size, area.end, j + size, area.other_end)]
        return [(i, j, size)], sides

    def _without_ends(self, area: Stretch) -> tuple[Stretch, list[tuple[int, int, int]]]:
        """Return the range without its common prefix and suffix, and these as blocks."""
        start, end, other_start, other_end = area
        while start < end and other_start < other_end and self._before[start] == self._after[other_start]:
            start, other_start = start + 1, other_start + 1
        while start < end and other_start < other_end and self._before[end - 1] == self._after[other_end - 1]:
            end, other_end = end - 1, other_end - 1
        head = (area.start, area.other_start, start - area.start)
        tail = (end, other_end, area.end - end)
        return Stretch(start, end, other_start, other_end), [block for block in (head, tail) if block[2]]

    def _anchors(self, area: Stretch) -> list[tuple[int, int]]:
        """Return the pairs of lines that are unique on both sides: a longest subset in the same order."""
        ours = _unique(self._before, area.start, area.end)
        theirs = _unique(self._after, area.other_start, area.other_end)
        return _ascending([(i, theirs[line]) for line, i in ours.items() if line in theirs])


def _unique(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    often = Counter(lines[start:end])
    return {lines[place]: place for place in range(start, end) if often[lines[place]] == 1}


def _ascending(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest increasing subsequence of `pairs` by the second number; they ascend by the first."""
    tails: list[int] = []
    last: list[int] = []
    previous: list[int] = []
    for number, (_, j) in enumerate(pairs):
        at = bisect_left(tails, j)
        previous.append(last[at - 1] if at else -1)
        tails[at : at + 1] = [j]
        last[at : at + 1] = [number]
    chosen: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = previous[number]
    return chosen[::-1]


def _between(area: Stretch, anchors: list[tuple[int, int]]) -> list[Stretch]:
    starts = [(area.start, area.other_start), *((i + 1, j + 1) for i, j in anchors)]
    ends = [*anchors, (area.end, area.other_end)]
    return [Stretch(start, end, j, k) for (start, j), (end, k) in zip(starts, ends, strict=True)]
