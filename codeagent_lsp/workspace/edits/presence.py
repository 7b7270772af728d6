"""Finds out, run by run, which part of a change is in a text that the user has gone on editing. Pure.

This shows which part of a change has reached a buffer, whatever was typed or formatted in it since, and after a process
died in the middle. Not here: what follows from it (`server/text_edits.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.edits.spelling import Segment, bare, segments
from codeagent_lsp.workspace.text.position import split_lines, with_newlines

_Place = tuple[int, int]  # the 0-based number of a line in one text and in the other
State = Literal["in", "out", "changed"]
"""Whether a run's new lines are there, its old ones, or neither, because they have been changed since."""

_EDGE = r"(?:(?<!\w)|(?!\w))"  # any place but within a word
_AROUND = 60  # lines that show where a run is: more than most blocks that are written twice
SHORT = 3  # so few letters are found in anything: there whole lines are compared


def run_states(base: str, text: str, now: str) -> dict[merge.Run, State]:
    """Return for each run of the change from `base` to `text` whether its new lines are in `now` (`in`), its old ones
    (`out`), or neither (`changed`); {} if there is no change. Line ends do not count, nor does the format of lines that
    are not found exactly.
    """
    base, text, now = (with_newlines(each, "\n") for each in (base, text, now))
    # The usual case, which needs no comparison by lines.
    if now in (base, text):
        return dict.fromkeys(merge.runs(base, text), "in" if now == text else "out")
    before, after, present = (_with_ends(split_lines(each)) for each in (base, text, now))
    # Of the new text and of the old one: a run is where its lines are found, in one or the other.
    new, old = _Found(after, present), _Found(before, present)
    return {run: _state(run, before, after, new, old) for run in merge.runs(base, text)}


def is_in(base: str, text: str, now: str) -> bool:
    """Return whether all of the change from `base` to `text` is in `now`, as `run_states` judges; True if there is no
    change.
    """
    return all(state == "in" for state in run_states(base, text, now).values())


def runs_in(base: str, text: str, now: str) -> list[int]:
    """Return the numbers of the runs of the change from `base` to `text` (0-based) of which each would be in `now` if
    it were the only one, as `is_in` judges.
    """
    before, after, present = map(split_lines, (base, text, now))
    ends, others = (_with_ends(split_lines(with_newlines(each, "\n"))) for each in (base, now))
    common = segments(ends, others, exact=True)
    found = []
    for number, run in enumerate(merge.runs(base, text)):
        # Around it is enough: of a long text with many runs each would take a comparison of all of it.
        above, below = _around(common, run, len(before), len(present))
        old = before[above[0] : below[0]]
        made = after[run.new_start : run.new_end]
        new = [*before[above[0] : run.old_start], *made, *before[run.old_end : below[0]]]
        if is_in("".join(old), "".join(new), "".join(present[above[1] : below[1]])):
            found.append(number)
    return found


def _around(common: Sequence[Segment], run: merge.Run, end: int, other_end: int) -> tuple[_Place, _Place]:
    """Return the places, in both texts, of common lines some way above and below a run, or the texts' ends."""
    above, below = (0, 0), (end, other_end)
    for part in common:
        highest, lowest = run.old_start - _AROUND, run.old_end + _AROUND
        if part.start <= highest:
            at = min(highest, part.end)
            above = (at, part.other_start + at - part.start)
        if part.end >= lowest:
            at = max(lowest, part.start)
            below = (at, part.other_start + at - part.start)
            break
    return above, below


def _state(run: merge.Run, before: Sequence[str], after: Sequence[str], new: _Found, old: _Found) -> State:
    was, made = before[run.old_start : run.old_end], after[run.new_start : run.new_end]
    # Exactly first: read as formatters write, more lines look alike.
    for exact in (True, False):
        is_in = new.has(run.new_start, run.new_end, was, exact=exact)
        is_out = old.has(run.old_start, run.old_end, made, exact=exact)
        if is_in != is_out:
            return "in" if is_in else "out"
        if is_in:  # such lines stand there more than once; the likelier text decides
            return "in" if new.shared >= old.shared else "out"
    # Somebody has gone on writing in the lines before they were first seen. Where both may be meant, more of it counts.
    if not was or not new.is_continued(run.new_start, run.new_end):
        return "changed"
    return (
        "in"
        if len("".join(made)) > len("".join(was)) or not old.is_continued(run.old_start, run.old_end)
        else "changed"
    )


class _Found:
    """The lines of one text that are in the present one, exactly and as formatters write them."""

    def __init__(self, lines: Sequence[str], present: Sequence[str]) -> None:
        self._lines = lines
        self._present = present

    @cached_property
    def shared(self) -> int:
        """How many lines the texts share."""
        return sum(part.end - part.start for part in self._exact)

    def has(self, start: int, end: int, others: Sequence[str], *, exact: bool) -> bool:
        """Return whether the lines `start:end` stand in the present text in a row; of none, whether `others` do not
        stand there in their place.
        """
        parts = self._exact if exact else self._loose
        if start < end:
            return any(part.start <= start and end <= part.end for part in parts)
        if any(part.start < start < part.end for part in parts):
            return True
        return not _stand_in(others, self._gap(self._loose, start))  # blank lines alone are no place

    @cached_property
    def _exact(self) -> list[Segment]:
        return segments(self._lines, self._present, exact=True)

    @cached_property
    def _loose(self) -> list[Segment]:
        """The segments that say the same, those that follow each other as one."""
        joined: list[Segment] = []
        for part in segments(self._lines, self._present, exact=False):
            if joined and joined[-1][1] == part[0] and joined[-1][3] == part[2]:
                joined[-1] = Segment(joined[-1].start, part.end, joined[-1].other_start, part.other_end)
            else:
                joined.append(part)
        return joined

    def is_continued(self, start: int, end: int) -> bool:
        """Return whether between the lines around `start:end` just these stand, with more before or behind some."""
        parts = self._exact
        # A segment that reaches into the lines counts up to them.
        above = [min(part.other_end, part.other_start + start - part.start) for part in parts if part.start < start]
        below = [part.other_start + max(0, end - part.start) for part in parts if part.end > end]
        before, behind = max(above, default=0), min(below, default=len(self._present))
        lines, gap = self._lines[start:end], self._present[before:behind]
        return 0 < len(lines) == len(gap) and all(map(_continues, gap, lines))

    def _gap(self, parts: Sequence[Segment], place: int) -> Sequence[str]:
        """Return what stands in the present text at a place between the segments, or beside one."""
        before = max((part.other_end for part in parts if part.end <= place), default=0)
        behind = min((part.other_start for part in parts if part.start >= place), default=len(self._present))
        return self._present[before:behind]


def _continues(whole: str, line: str) -> bool:
    """Return whether `whole` is `line` with more before or behind it, and not within a word of it."""
    part = line.strip()
    if len(part) <= SHORT:
        return whole == line
    name = re.escape(part)
    return re.search(rf"^\s*{name}{_EDGE}|{_EDGE}{name}\s*$", whole) is not None


def _stand_in(lines: Sequence[str], gap: Sequence[str]) -> bool:
    """Return whether lines, or one of them, are somewhere in a gap, however they are written there."""
    wanted = bare("".join(lines))
    if len(wanted) > SHORT:
        there = {*map(bare, gap)}
        return wanted in bare("".join(gap)) or any(len(line) > SHORT and line in there for line in map(bare, lines))
    spelled = [*map(bare, gap)]
    if len(lines) == 1 and any(line.startswith(wanted) or line.endswith(wanted) for line in spelled):
        return True  # somebody goes on writing in it: `}` has become `} else {`
    return any(spelled[at : at + len(lines)] == [*map(bare, lines)] for at in range(len(gap) - len(lines) + 1))


def _with_ends(lines: list[str]) -> list[str]:
    """Return lines that all end: some editors end the last one, and others do not."""
    return [*lines[:-1], lines[-1].rstrip("\n") + "\n"] if lines else lines
