"""Recognizes lines that differ only in their format, and writes a text in the format of another one.

Formatters change blanks, quotes, line breaks, parentheses around broken lines, and the last comma before a bracket; the
rest of a line stays the same. Pure. Not here: merging (`merge.py`), what of a change is in a text (`presence.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from codeagent_lsp.workspace.edits.line_matching import LineMatcher, runs_of
from codeagent_lsp.workspace.text.position import split_lines

# The comma that formatters put before a bracket on a line of its own, as in `f(a,` and `)` below.
_LAST_COMMA = re.compile(r",(?=\s*[)\]}])")
# Also the backslash that continues a line, and the semicolon at a line's end.
_LAYOUT = re.compile(r"[\s()\\]+|;(?=\s*$)", re.MULTILINE)
_QUOTES = str.maketrans({"'": '"', "`": '"'})


LONGEST = 400  # lines between two that are the same, in which such are looked for that are broken otherwise


class Segment(NamedTuple):
    """Lines `start:end` of a text that correspond to the lines `other_start:other_end` of another one (0-based,
    half-open).
    """

    start: int
    end: int
    other_start: int
    other_end: int


def bare(text: str) -> str:
    """Return a text without what formatters change: blanks, line ends, parentheses, backslashes, semicolons at the end
    of a line and commas before a closing bracket are left out, and all quotes become `"`. Texts that differ only in
    these become equal.
    """
    return _LAYOUT.sub("", _LAST_COMMA.sub("", text)).translate(_QUOTES)


def segments(lines: Sequence[str], other: Sequence[str], *, exact: bool) -> list[Segment]:
    """Return the lines of a text that are also in another one, in order: line for line if `exact`; else also lines that
    differ only in their format, and code that is formatted on more or fewer lines there.
    """
    if exact:
        blocks = LineMatcher(None, lines, other).get_matching_blocks()
        return [Segment(i, i + size, j, j + size) for i, j, size in blocks if size]
    told, others = _filled_lines(lines), _filled_lines(other)  # of empty lines, formatters make more and fewer
    matcher = LineMatcher(None, [_key(lines[at]) for at in told], [_key(other[at]) for at in others])
    pairs = [(told[i + at], others[j + at]) for i, j, size in matcher.get_matching_blocks() for at in range(size)]
    found: list[Segment] = []
    i = j = 0
    for at, at_other in pairs:
        found.extend(_between(lines, other, Segment(i, at, j, at_other)))
        found.append(Segment(at, at + 1, at_other, at_other + 1))
        i, j = at + 1, at_other + 1
    return [*found, *_between(lines, other, Segment(i, len(lines), j, len(other)))]


def _filled_lines(lines: Sequence[str]) -> list[int]:
    return [at for at, line in enumerate(lines) if line.strip()]


def _between(lines: Sequence[str], other: Sequence[str], gap: Segment) -> Iterator[Segment]:
    """Yield what says the same in two gaps: empty lines at their ends, and what is broken otherwise."""
    start, end, j, stop = gap
    if bare("".join(lines[start:end])) != bare("".join(other[j:stop])):
        while start < end and j < stop and not (lines[start].strip() or other[j].strip()):
            start, j = start + 1, j + 1
        while start < end and j < stop and not (lines[end - 1].strip() or other[stop - 1].strip()):
            end, stop = end - 1, stop - 1
    yield from [Segment(gap.start, start, gap.other_start, j)] if start > gap.start else []
    yield from _broken_otherwise(lines, other, Segment(start, end, j, stop))
    yield from [Segment(end, gap.end, stop, gap.other_end)] if end < gap.end else []


def _broken_otherwise(lines: Sequence[str], other: Sequence[str], gap: Segment) -> Iterator[Segment]:
    """Yield what says the same in two gaps in other lines: as a call that is written over several."""
    start, j = gap.start, gap.other_start
    if bare("".join(lines[start : gap.end])) == bare("".join(other[j : gap.other_end])):
        yield from [gap] if (start, j) != (gap.end, gap.other_end) else []
        return
    if gap.end - start + gap.other_end - j > LONGEST:
        return
    while start < gap.end:
        places = (place for place in range(j, gap.other_end) if bare(lines[start]))
        part = next(filter(None, (_same_from(lines, other, gap, start, place) for place in places)), None)
        if part is not None:
            yield part
        start, j = (start + 1, j) if part is None else (part.end, part.other_end)


def _same_from(lines: Sequence[str], other: Sequence[str], gap: Segment, start: int, place: int) -> Segment | None:
    """Return the fewest lines from two places on that say the same; None if they begin to differ."""
    end, stop = start + 1, place + 1
    while end <= gap.end and stop <= gap.other_end:
        one, two = bare("".join(lines[start:end])).rstrip(","), bare("".join(other[place:stop])).rstrip(",")
        if one == two:
            return Segment(
                start, _end_of_closing(lines, end, gap.end), place, _end_of_closing(other, stop, gap.other_end)
            )
        if not (one.startswith(two) or two.startswith(one)):
            return None
        # The shorter one takes a line more, as long as one begins with the other.
        end, stop = (end + 1, stop) if len(one) < len(two) else (end, stop + 1)
    return None


def _end_of_closing(lines: Sequence[str], end: int, most: int) -> int:
    """Return where the lines end that only close the brackets of those before `end`."""
    while end < most and lines[end].strip() and not bare(lines[end]):
        end += 1
    return end


def _key(line: str) -> str:
    """Return by what a line is known: a bracket alone is not an empty line."""
    return bare(line) or line.strip()


def in_spelling_of(base: str, changed: str, other: str) -> tuple[str, str]:
    """Return the pair of `base` and `changed`, a change of it, with the lines that `other` only formats differently
    written as they are there. Lines that the change adds among such lines stay as they are if their indentation there
    is not certain.
    """
    before, after, wanted = split_lines(base), split_lines(changed), split_lines(other)
    kept = segments(before, after, exact=True)
    own = [run for run in runs_of(before, after) if run.new_start < run.new_end]
    made: list[str] = []
    new: list[str] = []
    at = at_new = 0
    for part in segments(before, wanted, exact=False):
        spelled = wanted[part.other_start : part.other_end]
        place = _place(part, kept)
        is_replaced = any(run.old_start < part.end and part.start < run.old_end for run in own)
        # Its own lines would stand at the old indentation beside lines at the new one.
        if place is None and is_replaced and _is_moved(before[part.start : part.end], spelled):
            continue
        made.extend((*before[at : part.start], *spelled))
        at = part.end
        if place is not None:
            new.extend((*after[at_new:place], *spelled))
            at_new = place + part.end - part.start
    return "".join((*made, *before[at:])), "".join((*new, *after[at_new:]))


def _place(part: Segment, kept: Sequence[Segment]) -> int | None:
    """Return where the lines of a part of the base stand in the changed text; None if they are not all there."""
    inside = (each for each in kept if each.start <= part.start and part.end <= each.end)
    found = next((each for each in inside if part.start < part.end or each.start < part.start < each.end), None)
    return None if found is None else part.start + found.other_start - found.start


def _is_moved(lines: Sequence[str], spelled: Sequence[str]) -> bool:
    return next(_indents(lines), "") != next(_indents(spelled), "")


def _indents(lines: Sequence[str]) -> Iterator[str]:
    return (line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line.strip())
