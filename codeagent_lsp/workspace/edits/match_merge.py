"""The text of a match after an edit: the file's own lines, with only the edit's changes applied.

A line that is the same in the old and the new block keeps the file's bytes, also where the edit writes its quotes,
dashes and blanks in other characters; so does what is the same in a line that is changed. A new line is indented by the
match's shift and takes the line ending used there. Wherever two readings of the edit would give different files,
`Unsafe` is raised. Not here: finding the match (`match_block.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from codeagent_lsp.workspace.edits.line_matching import likeness
from codeagent_lsp.workspace.edits.match_block import Block, BlockMatch, Part, fold
from codeagent_lsp.workspace.text.position import content_of, dominant_newline, ending_of, runs_together

__all__ = ["Merged", "Unsafe", "merge"]
# Words that go on with the statement above; a closing bracket does, too.
_GOES_ON = re.compile(
    r"(?:else|elif|elsif|elseif|except|catch|rescue|finally|ensure|then|end|case|when|default)\b|[)\]}:.]"
)
# Words that begin a declaration, which stands apart from what is above it.
_DECLARES = re.compile(
    r"@|(?:async |pub |public |private |export |static )*(?:def|class|func|function|fn|interface|struct)\b"
)
ALIKE = 0.6  # of two lines, so that one stands for the other
_MOST_LETTERS = 2000  # of a line that is compared letter by letter
_WORD = re.compile(r"\w+")
Name = tuple[str, str]


@dataclass(frozen=True)
class Merged:
    """The result: the file's lines `start` to `stop` (0-based, half-open) become `text`."""

    start: int
    stop: int
    text: str


def merge(file: Block, place: BlockMatch, old: Block, new: Block) -> Merged:
    """Return the change from `old` to `new`, applied to the file at `place`. Unsafe if the result is not certain."""
    return _Merge(file, place, old, new).run()


class _Merge:
    """One merge: the blocks and the values derived from them once."""

    def __init__(self, file: Block, place: BlockMatch, old: Block, new: Block) -> None:
        self.file, self.place, self.old, self.new = file, place, old, new
        self.pairing = pairing = Pairing(file, place, old, new)
        self.theirs, self.ours, self.fresh = pairing.theirs, pairing.ours, pairing.fresh
        self.noisy = pairing.noisy
        self.newline = dominant_newline("".join(file.lines))

    def run(self) -> Merged:
        self.pairing.check()
        self._check_repeats()
        lead = self._claim(0)
        trail = self._claim(self.place.size)
        start = self.file.at[self.place.first] - lead
        stop = self.file.at[self.place.stop - 1] + 1 + trail
        out: list[str] = []
        for region in self.pairing.regions():
            out += self._region(region)
            if region.i2 < self.place.size:
                out.append(self._kept_line(region.i2, region.j2))
        return Merged(start, stop, _join(out, start, stop, self.file, self.old, self.new))

    def _check_repeats(self) -> None:
        """Raise `Unsafe` if `old` has a blank line at its edge where the file has the line that `new` repeats."""
        size = self.place.size
        # The upper and the lower edge: the gap, the new line there, and the file's token beyond.
        for t, j, beyond in ((0, 0, self.place.first - 1), (size, len(self.fresh) - 1, self.place.stop)):
            # Blank lines of old_str that the file lacks at this edge: there it has the line beyond at once.
            left_out = len(self.old.gap(t)) > self._claim(t) and 0 <= beyond < len(self.file.keys)
            if left_out and j not in self.pairing.pairs and self.new.keys[j : j + 1] == [self.file.keys[beyond]]:
                raise Unsafe("new_str begins or ends with a line that the file has next to the block")

    # --- lines

    def _kept_line(self, i: int, j: int) -> str:
        ours, theirs, fresh = self.ours[i], self.theirs[i], self.fresh[j]
        trail = _three_way(theirs.trail, ours.trail, fresh.trail)
        return theirs.indent + theirs.body + trail + self._ending(i)

    def _added_line(self, j: int, near: int, *, replaces: bool) -> str:
        """Return a new line, which `replaces` the old one `near`, or stands near it."""
        fresh = self.fresh[j]
        indent = self.place.shift.apply(fold(fresh.indent) if self.place.folded else fresh.indent)
        if indent is None:
            raise Unsafe("a new line cannot be indented as the file is with certainty")
        body = self.pairing.name(fresh)[1]
        if replaces and body == fresh.body:
            body = _spelled(self.theirs[near].body, self.ours[near].body, body)
        # A model that adds trailing blanks to the lines it copies adds them to new ones too.
        trail = "" if self.noisy else fresh.trail
        return indent + body + trail + self._ending(near)

    def _ending(self, token: int) -> str:
        # Lines added at an edge take the line ending of the nearest line of the match.
        token = min(max(token, 0), self.place.size - 1)
        return ending_of(self.file.lines[self.file.at[self.place.first + token]]) or self.newline

    # --- blank lines

    def _file_gap(self, t: int) -> list[str]:
        """Return the file's blank lines in gap `t`; at the two edges only as many as the old block has."""
        gap = self.file.gap(self.place.first + t)
        claimed = self._claim(t)
        if t == 0:
            return gap[len(gap) - claimed :]
        return gap[:claimed] if t == self.place.size else gap

    def _claim(self, t: int) -> int:
        run = len(self.file.gap(self.place.first + t))
        return min(len(self.old.gap(t)), run) if t in (0, self.place.size) else run

    def _region(self, region: Region) -> list[str]:
        """Return the lines between two kept lines after the edit."""
        if region.untouched:
            return self._untouched_gap(region.i2, region.j2)
        out: list[str] = []
        for j, number in enumerate(self._gaps(region), region.j + 1):
            # The old line in whose place the new one comes; the last one where there are more new lines than old.
            near = min(region.i + 1 + j - region.j - 1, region.i2 - 1) if region.i2 > region.i + 1 else region.i
            out += self._gap(region, j, number, near)
            if j < region.j2:
                replaces = region.i2 - region.i == region.j2 - region.j
                out.append(self._added_line(j, near, replaces=replaces))
        return out

    def _untouched_gap(self, i: int, j: int) -> list[str]:
        file, old, new = self._file_gap(i), self.old.gap(i), self.new.gap(j)
        if len(old) == len(new):
            return self._blend(file, old, new)
        if len(new) == len(file):
            return file
        # The file is between the two: the edit wants more blank lines than it has, and gets as many as it wrote.
        if len(old) < len(file) < len(new):
            return self._blanks(new, i)
        if len(old) != len(file):
            raise Unsafe("the blank lines of old_str, new_str and the file all differ")
        # Blank lines that the file has at this edge and the edit does not speak of.
        left_out = len(self.file.gap(self.place.first + i)) > self._claim(i)
        if left_out and i in (0, self.place.size) and len(new) > len(old):
            raise Unsafe("new_str begins or ends with a blank line that the file already has there")
        return self._blanks(new, i)

    def _gaps(self, region: Region) -> tuple[int, ...]:
        """Return the number of blank lines in each gap of a region after the edit; raises `Unsafe`."""
        gaps = range(region.i + 1, region.i2 + 1)
        return after_edit(
            Gaps(
                file=tuple(len(self._file_gap(t)) for t in gaps),
                old=tuple(len(self.old.gap(t)) for t in gaps),
                new=tuple(len(self.new.gap(j)) for j in range(region.j + 1, region.j2 + 1)),
                removed=self.ours[region.i + 1 : region.i2],
                added=self.fresh[region.j + 1 : region.j2],
                above=self.ours[region.i] if region.i >= 0 else None,
                below=self.ours[region.i2] if region.i2 < self.place.size else None,
            )
        )

    def _gap(self, region: Region, j: int, number: int, near: int) -> list[str]:
        """Return so many blank lines next to a change: the file's where their number stays, else the new ones."""
        new = self.new.gap(j)
        for mine, t in ((region.j + 1, region.i + 1), (region.j2, region.i2)):
            if j != mine:
                continue
            file, old = self._file_gap(t), self.old.gap(t)
            # Only then is it known which blank line of the file is which of the edit.
            if len(file) == len(old) == len(new) == number:
                return self._blend(file, old, new)
            if len(file) == number != len(old):
                return file
        return self._blanks(new[:number], near) + self._blanks([""] * (number - len(new)), near)

    def _blend(self, file: list[str], old: list[str], new: list[str]) -> list[str]:
        """Return as many blank lines as before; their whitespace changes only where the new block changes it."""
        if len(file) != len(old):
            return file
        return [
            _three_way(content_of(f), content_of(o), content_of(n)) + (ending_of(f) or self.newline)
            for f, o, n in zip(file, old, new, strict=True)
        ]

    def _blanks(self, lines: list[str], near: int) -> list[str]:
        """Return new lines without text: their blanks are kept, and shifted as indentation is."""
        # None: the indentation is not certain, but a blank line without any is right everywhere.
        shifted = ((blanks := content_of(line)) and self.place.shift.apply(blanks) for line in lines)
        return [("" if self.noisy or blanks is None else blanks) + self._ending(near) for blanks in shifted]


def _join(out: list[str], start: int, stop: int, file: Block, old: Block, new: Block) -> str:
    """Return the text, with or without final newline as the file has it, unless the edit itself changes that."""
    if runs_together([*file.lines[max(start - 1, 0) : start], *out, *file.lines[stop : stop + 1]]):
        raise Unsafe("the mixed line ends of the file would run together")
    text = "".join(out)
    if stop < len(file.lines) or not out:
        return text
    had = bool(ending_of(file.lines[-1]))
    asked = bool(ending_of(old.lines[-1]))
    wanted = bool(new.lines and ending_of(new.lines[-1]))
    # new_str speaks of the file's last line end only if old_str has it as the file does; often both just leave it out.
    final = wanted if asked == had else had
    return text if final else text[: len(text) - len(ending_of(out[-1]))]


def _three_way(file: str, old: str, new: str) -> str:
    """Merge the trailing blanks of a kept line: the file's, unless the edit changes them."""
    if new in (old, file):
        return file
    if old == file or not new:
        return new
    raise Unsafe("trailing blanks differ between old_str, new_str and the file")


# Numbers of blank lines beside the changed lines of an edit whose old block has other ones than the file.


@dataclass(frozen=True, slots=True)
class Gaps:
    """One changed region, as numbers of blank lines: of the file and of the old block around each of the n `removed`
    lines (n + 1 numbers each), and of the new block around each of the m `added` lines (m + 1 numbers). `above` and
    `below` are the kept lines around it, None at the beginning or end of the block.
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
        """Whether the changed region is at the beginning or the end of the block, so that there is no kept line on one
        side.
        """
        return self.above is None or self.below is None


def after_edit(gaps: Gaps) -> tuple[int, ...]:
    """Return the number of blank lines in each gap of the added lines; raises `Unsafe` if they are not certain."""
    if gaps.file == gaps.old:
        return gaps.new
    if not gaps.added and not gaps.edge:
        return (_after_removal(gaps),)
    if gaps.removed:
        return _around_replacement(gaps)
    if gaps.above is None or gaps.below is None:
        return _at_the_edge(gaps)
    return _around_insertion(gaps, _belongs(gaps.above, gaps.added[0], gaps.below))


def _spelled(theirs: str, ours: str, fresh: str) -> str:
    """Return a changed line with the quotes, dashes and blanks of the file's line where `ours`, which stands for that,
    has the same.
    """
    # Letter for letter: an ellipsis stands for three.
    if theirs == ours or len(theirs) != len(ours) or fold(theirs) != fold(ours) or len(ours) > _MOST_LETTERS:
        return fresh
    # Where a quote comes or goes, the others may open and close something else.
    if any(ours.count(quote) != fresh.count(quote) for quote in "\"'"):
        return fresh
    runs = SequenceMatcher(None, ours, fresh, autojunk=False)
    if runs.ratio() < ALIKE:
        return fresh
    return "".join(
        theirs[first:end] if kind == "equal" else fresh[start:stop]
        for kind, first, end, start, stop in runs.get_opcodes()
    )


def _after_removal(gaps: Gaps) -> int:
    """Return the blank lines that stay where lines were removed: also those that both blocks leave out."""
    (new,) = gaps.new
    _check_inside(gaps)
    # The gap above what goes and the one below it, each with the other.
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
        # Before a deeper line a blank one is inside of what goes; before a line of the outer depth it may part two
        # blocks.
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
            alike = [likeness(body, part.body) for part in gaps.added]
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
    # The blank lines that the old block leaves out go behind the new lines or before them.
    above, below = (*gaps.new[:-1], trail + left_out), (lead + left_out, *gaps.new[1:])
    if left_out > 0 and lead == trail == claimed and sum(gaps.new) != there:
        return below if side == "below" else above
    # It asks for a gap below the new lines only: the left-out one is above, as between declarations.
    if left_out > 0 and lead == claimed < trail and (trail != there or _DECLARES.match(gaps.added[0].body)):
        return below
    # The new block has the file's number on one side: it was written with the file in view.
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
    # As `import` or `case`: lines of one kind stand together.
    if new and (new == top) != (new == bottom):
        return "above" if new == top else "below"
    return ""


def _deeper(one: Part, other: Part) -> bool:
    return len(one.indent) > len(other.indent)


# Pairing of the old and the new block of an edit line by line: which lines are kept.


class Unsafe(Exception):
    """Raised when the match is clear but the text after the edit is not; the message says why, in English."""


@dataclass(frozen=True)
class Region:
    """The tokens between two kept lines: the old tokens after `i` and before `i2`, the new ones after `j` and before
    `j2`; -1 and the number of tokens stand for the ends.
    """

    i: int
    i2: int
    j: int
    j2: int

    @property
    def untouched(self) -> bool:
        """Whether there is no line between the kept ones, neither before nor after the edit."""
        return self.i2 == self.i + 1 and self.j2 == self.j + 1


class Pairing:
    """The lines of a match (`theirs`), of the old block (`ours`) and of the new one (`fresh`). `pairs` are the indexes
    in `ours` of those lines of `fresh` that were there before. Raises `Unsafe` if one old line stands for two different
    lines of the file.
    """

    def __init__(self, file: Block, place: BlockMatch, old: Block, new: Block) -> None:
        self.place = place
        self.ours = [old.part(t) for t in range(place.size)]
        self.theirs = [file.part(place.first + t) for t in range(place.size)]
        self.fresh = [new.part(t) for t in range(len(new.at))]
        self.names = self._class_names()
        self.pairs = self._pair_up()

    def check(self) -> None:
        """Raise `Unsafe`, with the reason, unless the lines alone determine the result; the blank lines between them
        are not judged here.
        """
        self._check_typos()
        self._check_both_spellings()
        self._check_copies()
        self._check_frame()
        self._check_punctuation()

    @property
    def noisy(self) -> bool:
        """Whether kept lines of the new block have trailing blanks that the file does not have."""
        kept = ((self.fresh[j].trail, self.ours[i].trail, self.theirs[i].trail) for j, i in self.pairs.items())
        return any(fresh and fresh == ours != theirs for fresh, ours, theirs in kept)

    def _class_names(self) -> dict[Name, Name]:
        """Map each old line to the file's line in the block's indentation, so that both read as the same line."""
        names: dict[Name, Name] = {}
        for ours, theirs in zip(self.ours, self.theirs, strict=True):
            mine, other = (ours.indent, ours.body), (ours.indent, theirs.body)
            if mine != other and names.setdefault(mine, other) != other:
                raise Unsafe("the same line of old_str stands for two different lines of the file")
        if any(other in names for other in names.values()):
            raise Unsafe("lines of old_str are each other's typo")
        return names

    def _check_both_spellings(self) -> None:
        """Raise `Unsafe` if the file has a line in two spellings, one of them that of `old`, and not all stay."""
        kept = set(self.pairs.values())
        spelled = {(ours.indent, ours.body) for ours, theirs in self._lines() if ours.body == theirs.body}
        # Spelled as in old_str at one place and otherwise at another: only lines that are all kept are safe.
        both = spelled & self.names.keys()
        if any((part.indent, part.body) in both for t, part in enumerate(self.ours) if t not in kept):
            raise Unsafe("the same line of old_str stands for two different lines of the file")

    def _lines(self) -> Iterator[tuple[Part, Part]]:
        return zip(self.ours, self.theirs, strict=True)

    def _check_copies(self) -> None:
        """Raise `Unsafe` if a line that the file spells differently is duplicated.

        The file's own copy would be unknown.
        """
        mine = [(part.indent, part.body) for part in self.ours]
        fresh = Counter(self.name(part) for part in self.fresh)
        for other in self.names.values():
            own = [self.name(part) for part in self.ours].count(other)
            if fresh[other] > own or (other in mine and fresh[other]):
                raise Unsafe("a line that the file spells differently occurs more than once")

    def name(self, part: Part) -> Name:
        """Return the pair of indentation and body of the line that `part` stands for, the body as the file spells it;
        that of `part` itself if the file spells it no other way.
        """
        name = (part.indent, part.body)
        return self.names.get(name, name)

    def _pair_up(self) -> dict[int, int]:
        """Map new tokens to old tokens, for the lines that are kept."""
        before = [self.name(part) for part in self.ours]
        after = [self.name(part) for part in self.fresh]
        pairs = {}
        # By default difflib disregards lines that are frequent in a long block, such as a lone bracket.
        for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
            for step in range(block.size):
                pairs[block.b + step] = block.a + step
        return pairs

    def regions(self) -> Iterator[Region]:
        """Yield the regions before, between and after the kept lines, in order, those without any line included."""
        i = j = -1
        # The pair behind the last lines closes the last region.
        for j2, i2 in [*sorted(self.pairs.items()), (len(self.fresh), self.place.size)]:
            yield Region(i, i2, j, j2)
            i, j = i2, j2

    def _check_typos(self) -> None:
        kept = set(self.pairs.values())
        # A line with a typo can only be kept: which letters a change of it means is a guess.
        if any(typo not in kept for typo in self.place.typos):
            raise Unsafe("a line to be changed differs from the file")

    def _check_frame(self) -> None:
        """Raise `Unsafe` for a shifted block whose old and new text assume different indentations."""
        if self.place.shift.none or not self.fresh:
            return
        ends = ((self.ours[0], self.fresh[0]), (self.ours[-1], self.fresh[-1]))
        # A first or last line that is kept shows that both blocks count from the same indentation.
        if any(self.name(before) == self.name(after) for before, after in ends):
            return
        moved = any(before.body == after.body for before, after in ends)
        if moved or min(len(part.indent) for part in self.ours) != min(len(part.indent) for part in self.fresh):
            raise Unsafe("old_str and new_str are indented differently, and old_str not as in the file")

    def _check_punctuation(self) -> None:
        """Raise `Unsafe` if new lines have typographic characters and copied lines have some that the file lacks."""
        invented = any(
            any(fold(letter) != letter and letter not in theirs.body for letter in ours.body)
            for ours, theirs in zip(self.ours, self.theirs, strict=True)
        )
        added = (part for j, part in enumerate(self.fresh) if j not in self.pairs)
        if invented and any(fold(part.body) != part.body for part in added):
            raise Unsafe("old_str has typographic quotes or dashes that the file does not have")
