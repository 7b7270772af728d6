"""Numbers of blank lines beside the changed lines of an edit whose old block has other ones than the file.

A gap is the blank lines between two neighbouring lines with text. Where the old block leaves out a blank line, so does
the new one as a rule, and the file keeps it; `Unsafe` is raised where it is not certain on which side of new lines.
Not here: the lines themselves (`match_merge.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from codeagent_lsp.workspace.edits.match_block import Part
from codeagent_lsp.workspace.edits.match_pairs import Unsafe

# Words that go on with the statement above; a closing bracket does, too.
_GOES_ON = re.compile(
    r"(?:else|elif|elsif|elseif|except|catch|rescue|finally|ensure|then|end|case|when|default)\b|[)\]}:.]"
)
# Words that begin a declaration, which stands apart from what is above it.
_DECLARES = re.compile(
    r"@|(?:async |pub |public |private |export |static )*(?:def|class|func|function|fn|interface|struct)\b"
)
ALIKE = 0.6  # of two lines, so that one stands for the other
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Gaps:
    """One changed region. Blank lines of the file and of the old block around each of the n `removed` lines (n + 1
    numbers each), and of the new block around each of the m `added` lines (m + 1 numbers); the kept lines `above` and
    `below`, None where the block begins or ends.
    """

    file: tuple[int, ...]
    old: tuple[int, ...]
    new: tuple[int, ...]
    removed: Sequence[Part]
    added: Sequence[Part]
    above: Part | None
    below: Part | None

    @property
    def edge(self) -> bool:
        """Return whether the block begins or ends here."""
        return self.above is None or self.below is None


def after_edit(gaps: Gaps) -> tuple[int, ...]:
    """Return the number of blank lines in each gap of the added lines; raises `Unsafe` where they are not certain."""
    if gaps.file == gaps.old:
        return gaps.new
    if not gaps.added and not gaps.edge:
        return (_after_removal(gaps),)
    if gaps.removed:
        return _around_replacement(gaps)
    if gaps.above is None or gaps.below is None:
        return _at_the_edge(gaps)
    return _around_insertion(gaps, _belongs(gaps.above, gaps.added[0], gaps.below))


def _after_removal(gaps: Gaps) -> int:
    """Return the blank lines that stay where lines were removed: also those that both blocks leave out."""
    (new,) = gaps.new
    _check_inside(gaps)
    sides = ((0, -1), (-1, 0))
    unlike = [(side, other) for side, other in sides if gaps.file[side] != gaps.old[side]]
    if not unlike or any(new == gaps.file[side] and gaps.old[other] <= new for side, other in unlike):
        return new
    left_out = sum(gaps.file[side] - gaps.old[side] for side, _ in unlike)
    if left_out < 0 or (new > 0 and new + left_out != max(gaps.file[0], gaps.file[-1])):
        raise Unsafe("blank lines next to the removed lines differ between old_str and the file")
    return new + left_out


def _check_inside(gaps: Gaps) -> None:
    """Raise `Unsafe` if a blank line between two removed lines is not plainly inside of what is removed."""
    depths = [len(part.indent) for part in gaps.removed]
    for index in range(1, len(depths)):
        if gaps.file[index] != gaps.old[index] and depths[index] <= min(depths[:index]):
            raise Unsafe("blank lines between the removed lines differ between old_str and the file")


def _around_replacement(gaps: Gaps) -> tuple[int, ...]:
    """Return the blank lines around and between lines that replace others, or that go at an edge of the block."""
    new = list(gaps.new)
    if gaps.added and gaps.file[1:-1] != gaps.old[1:-1]:
        if len(gaps.file) == len(gaps.new):
            new[1:-1] = [_either(gaps, index) for index in range(1, len(new) - 1)]
        elif sum(gaps.new) < sum(gaps.file):
            _insert_between(gaps, new)
    for end in (0, -1):
        if gaps.file[end] != gaps.old[end]:
            new[end] = _either(gaps, end)
    return tuple(new)


def _insert_between(gaps: Gaps, new: list[int]) -> None:
    """Add blank lines that the old block leaves out between removed lines above the added line that stands for the one
    below them; raises `Unsafe` if none does.
    """
    for index in range(1, len(gaps.file) - 1):
        left_out = gaps.file[index] - gaps.old[index]
        if left_out:
            body = gaps.removed[index].body
            alike = [SequenceMatcher(None, body, part.body, autojunk=False).ratio() for part in gaps.added]
            place = max(range(len(alike)), key=alike.__getitem__)
            if left_out < 0 or not place or alike[place] < ALIKE or new[place] != gaps.old[index]:
                raise Unsafe("blank lines between the changed lines differ between old_str and the file")
            new[place] += left_out


def _either(gaps: Gaps, index: int) -> int:
    """Return the blank lines of a gap: the file's where the new block has as many, or as many as the old one."""
    there, claimed, new = gaps.file[index], gaps.old[index], gaps.new[index]
    if there == claimed:
        return new
    if new in (there, claimed):
        return there
    raise Unsafe("blank lines next to the change differ between old_str and the file")


def _at_the_edge(gaps: Gaps) -> tuple[int, ...]:
    """Return the blank lines around new lines at an edge of the block, where `old` has some that the file has not."""
    (there,), (claimed,) = gaps.file, gaps.old
    if not {there, claimed} & {gaps.new[0], gaps.new[-1]}:
        raise Unsafe("blank lines next to the change differ between old_str and the file")
    lead, trail = (there if new == claimed else new for new in (gaps.new[0], gaps.new[-1]))
    return (lead, *gaps.new[1:-1], trail)


def _around_insertion(gaps: Gaps, side: str) -> tuple[int, ...]:
    """Return the blank lines around new lines between two kept ones that the old block shows with other blank lines."""
    there, claimed = gaps.file[0], gaps.old[0]
    lead, trail = gaps.new[0], gaps.new[-1]
    left_out = there - claimed
    above, below = (*gaps.new[:-1], trail + left_out), (lead + left_out, *gaps.new[1:])
    if left_out > 0 and lead == trail == claimed and sum(gaps.new) != there:
        return below if side == "below" else above
    if left_out > 0 and lead == claimed < trail and (trail != there or _DECLARES.match(gaps.added[0].body)):
        return below
    if there in (lead, trail) and (left_out > 0 or not claimed or {lead, trail} == {there}):
        return gaps.new
    if left_out > 0 and side:
        return below if side == "below" else above
    raise Unsafe("old_str leaves out or adds blank lines where new lines come: write them as the file has them")


def _belongs(above: Part, first: Part, below: Part) -> str:
    """Return to which kept line new ones belong by indentation and first words: `above`, `below`, or neither (``)."""
    if _deeper(first, below) or _GOES_ON.match(first.body):
        return "above"
    if _deeper(above, first) or _DECLARES.match(first.body):
        return "below"
    words = [_WORD.match(part.body) for part in (above, first, below)]
    top, new, bottom = (word.group() if word else "" for word in words)
    if new and (new == top) != (new == bottom):
        return "above" if new == top else "below"
    return ""


def _deeper(one: Part, other: Part) -> bool:
    return len(one.indent) > len(other.indent)
