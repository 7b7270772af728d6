"""Matching blocks of lines between two texts, with a bounded amount of work. Pure.

Ranges are split at the lines that are unique on both sides (as in patience diff), small ones by their longest common
block (`difflib`). Where nothing is unique and `difflib` would take minutes, as in long tables of repeated lines, the
greedy algorithm of Myers (1986) goes on from the furthest point that it reaches within some differences, as git does.
So a line that occurs a thousand times costs no more than others, and no range is given up as wholly different. Not
here: hunks and merging (`merge.py`).
"""

from __future__ import annotations

import difflib
import os.path
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

CHEAP = 3_000  # pairs of lines compared by difflib: a millisecond
CHEAP_TEXTS = 250_000  # pairs of characters compared by difflib: some milliseconds
MOST_CHARACTERS = 20_000  # of a text that are compared: half a second
FAR, NEAR = 192, 16  # after so many differences the way to the furthest point is taken: beyond, looking on is slow
STEPS = 300_000  # diagonals looked at as FAR as that, less than a second; then texts are too different for it to matter

Block = tuple[int, int, int]


class Run(NamedTuple):
    """One run of changed lines: `old_start:old_end` became `new_start:new_end` (0-based, half-open)."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class Stretch(NamedTuple):
    """Lines `start:end` of the old text against lines `other_start:other_end` of the new one (0-based, half-open)."""

    start: int
    end: int
    other_start: int
    other_end: int


TELLING = 5
"""Letters and digits of a line that hardly occurs twice by chance, as a lone bracket would."""


def is_telling(line: str) -> bool:
    """Return whether a line has so many letters and digits (5) that it hardly occurs twice by chance."""
    return sum(map(str.isalnum, line)) >= TELLING


def likeness(one: str, other: str) -> float:
    """Return how alike two texts are, from 0 to 1 (1.0 for two empty ones), as the ratio of difflib, by characters; in
    bounded time: of long ones only what stands between their common beginning and end is compared, and at most 20,000
    characters of that.
    """
    if len(one) * len(other) <= CHEAP_TEXTS:
        return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
    same = 0
    left, right = one, other
    for _ in range(2):  # from the beginning, then from the end
        common = len(os.path.commonprefix((left, right)))  # noqa: RUF071 - the characters are what is meant
        same, left, right = same + common, left[common:][::-1], right[common:][::-1]
    matcher = LineMatcher(None, left[:MOST_CHARACTERS], right[:MOST_CHARACTERS])
    return 2 * (same + sum(size for _, _, size in matcher.get_matching_blocks())) / (len(one) + len(other))


class LineMatcher:
    """A matcher of two sequences of lines with the interface of `difflib.SequenceMatcher` that `merge3` uses, in
    bounded time. `isjunk` and `autojunk` are ignored.
    """

    def __init__(
        self, isjunk: object = None, a: Sequence[str] = (), b: Sequence[str] = (), autojunk: bool = False
    ) -> None:
        self._before, self._after = a, b

    def get_matching_blocks(self) -> list[Block]:
        """Return triples `(i, j, n)`, as difflib does: `n` lines from `i` in `a` equal those from `j` in `b`, counted
        from 0. They ascend, no two are adjacent, and the last is `(len(a), len(b), 0)`.
        """
        before, after = self._before, self._after
        whole = Stretch(0, len(before), 0, len(after))
        joined: list[Block] = []
        for i, j, size in (*sorted(_Search(before, after).blocks(whole)), (len(before), len(after), 0)):
            if joined and size and joined[-1][0] + joined[-1][2] == i and joined[-1][1] + joined[-1][2] == j:
                i, j, size = joined[-1][0], joined[-1][1], joined[-1][2] + size
                joined.pop()
            joined.append((i, j, size))
        return joined


def runs_of(old: Sequence[str], new: Sequence[str]) -> tuple[Run, ...]:
    """Return the runs in which two sequences of lines differ, in order, separated by equal lines; () if
    they are equal.
    """
    found: list[Run] = []
    i = j = 0
    for block_i, block_j, size in LineMatcher(None, old, new).get_matching_blocks():
        if i < block_i or j < block_j:
            found.append(Run(i, block_i, j, block_j))
        i, j = block_i + size, block_j + size
    return tuple(found)


class _Search:
    """One search for matching blocks."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        self._before, self._after = before, after
        self._steps = STEPS
        # Sums of the pairs of equal lines up to each line, and one for the line itself: so a range in which nothing
        # matches costs exactly its length.
        often = Counter(after)
        self._prices = [0, *accumulate(1 + often[line] for line in before)]

    def blocks(self, whole: Stretch) -> list[Block]:
        """Return the matching blocks inside `whole`, in any order."""
        found: list[Block] = []
        pending = [whole]
        while pending:
            middle, ends = self._without_ends(pending.pop())
            found.extend(ends)
            if middle.start < middle.end and middle.other_start < middle.other_end:
                blocks, rest = self._step(middle)
                found.extend(blocks)
                pending.extend(rest)
        return found

    def _step(self, area: Stretch) -> tuple[list[Block], list[Stretch]]:
        """Return some matches in a range whose ends differ, and the ranges between them that are to be looked at."""
        price = self._prices[area.end] - self._prices[area.start]
        if price <= CHEAP:
            return self._longest(area)
        anchors = self._anchors(area)
        if anchors:
            return [(i, j, 1) for i, j in anchors], _between(area, anchors)
        if price == area.end - area.start:  # not one of these lines is in the other text
            return [], []
        return self._walk(area), []

    def _longest(self, area: Stretch) -> tuple[list[Block], list[Stretch]]:
        before, after = self._before[area.start : area.end], self._after[area.other_start : area.other_end]
        found = difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        return [(area.start + i, area.other_start + j, size) for i, j, size in found if size], []

    def _without_ends(self, area: Stretch) -> tuple[Stretch, list[Block]]:
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

    def _walk(self, area: Stretch) -> list[Block]:
        """Return the matches on a way through a range that is gone from one furthest point to the next."""
        found: list[Block] = []
        while area.start < area.end and area.other_start < area.other_end:
            blocks, area = self._furthest(area)
            found.extend(blocks)
        return found

    def _furthest(self, area: Stretch) -> tuple[list[Block], Stretch]:
        """Return the matches on the way to the end of a range, or to the furthest point that is reached within some
        differences, and what is left behind that.

        `reach[k]` is how far in the old lines one gets on the diagonal k (old minus new lines) with d differences;
        `steps` keeps it for each d, to find the way back.
        """
        before, after = self._before, self._after
        width, height = area.end - area.start, area.other_end - area.other_start
        # As if the way came down from the diagonal 1, so that the first step enters at the origin.
        reach = {1: 0}
        steps: list[dict[int, int]] = []
        best = (0, 0)
        # Each walk costs the square of its differences: once the budget is spent, ways are short.
        for d in range((FAR if self._steps > 0 else NEAR) + 1):
            self._steps -= d + 1
            now: dict[int, int] = {}
            for k in range(-d, d + 1, 2):
                # Down takes a line of the new text, right skips one of the old; from the neighbour that is further
                # along.
                down = k == -d or (k != d and reach.get(k - 1, -1) < reach.get(k + 1, -1))
                x = reach.get(k + 1, -1) if down else reach.get(k - 1, -1) + 1
                y = x - k
                if x < 0 or x > width or y < 0 or y > height:
                    continue
                while x < width and y < height and before[area.start + x] == after[area.other_start + y]:
                    x, y = x + 1, y + 1
                now[k] = x
                best = max(best, (x + y, k))
            steps.append(now)
            if best[0] == width + height:
                break
            reach = now
        far, k = best
        # On the diagonal k, x + y is 2x - k. The way back begins in the round that got there.
        d = next(number for number, now in enumerate(steps) if k in now and 2 * now[k] - k == far)
        x, y = steps[d][k], steps[d][k] - k
        rest = Stretch(area.start + x, area.end, area.other_start + y, area.other_end)
        return _way_back(steps, d, k, area), rest


def _way_back(steps: Sequence[dict[int, int]], d: int, k: int, area: Stretch) -> list[Block]:
    """Return the equal lines on the way from the start of a range to where d differences lead on the diagonal k."""
    found: list[Block] = []
    x = steps[d][k]
    for number in range(d, -1, -1):
        earlier = steps[number - 1] if number else {1: 0}
        # The same choice as on the way there, or the way would not be found again.
        down = k == -number or (k != number and earlier.get(k - 1, -1) < earlier.get(k + 1, -1))
        begun = earlier.get(k + 1, -1) if down else earlier.get(k - 1, -1) + 1
        if x > begun:
            found.append((area.start + begun, area.other_start + begun - k, x - begun))
        k = k + 1 if down else k - 1
        x = begun if down else begun - 1
    return found


def _unique(lines: Sequence[str], start: int, end: int) -> dict[str, int]:
    often = Counter(lines[start:end])
    return {lines[place]: place for place in range(start, end) if often[lines[place]] == 1}


def _ascending(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest increasing subsequence of `pairs` by the second number; they ascend by the first."""
    # Patience sorting: `tails[n]` is the least end of an ascending row of n + 1 pairs and `last[n]` its pair, and
    # `previous` leads from each pair to the one before it.
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
