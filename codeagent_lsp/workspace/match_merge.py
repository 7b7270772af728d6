"""What a matched place looks like after an edit: the file's own lines, with only the changes carried over.

A line that is the same in the old and the new block keeps the file's bytes. A line that is new is moved by
the place's shift and takes the line ending used there. Wherever two readings of the edit would give different
files, `Unsafe` is raised. Not here: finding the place (`match_block.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from codeagent_lsp.workspace.lines import content_of, dominant_newline, ending_of
from codeagent_lsp.workspace.match_block import Block, Part, Place, fold

Name = tuple[str, str]


class Unsafe(Exception):
    """The place is clear but the result is not; the message says why."""


@dataclass(frozen=True)
class Merged:
    """The file's lines `start` to `stop` (not included) become `text`."""

    start: int
    stop: int
    text: str


@dataclass(frozen=True)
class _Region:
    """What lies between two kept lines: old tokens `i..i2`, new tokens `j..j2`, both ends not included."""

    i: int
    i2: int
    j: int
    j2: int

    @property
    def untouched(self) -> bool:
        return self.i2 == self.i + 1 and self.j2 == self.j + 1


def merge(file: Block, place: Place, old: Block, new: Block) -> Merged:
    """The change of `old` into `new`, carried over to the file at `place`; raises `Unsafe`."""
    return _Merge(file, place, old, new).run()


class _Merge:
    """One merge: the blocks and what is derived from them once."""

    def __init__(self, file: Block, place: Place, old: Block, new: Block) -> None:
        self.file, self.place, self.old, self.new = file, place, old, new
        self.theirs = [file.part(place.first + t) for t in range(place.size)]
        self.ours = [old.part(t) for t in range(place.size)]
        self.fresh = [new.part(t) for t in range(len(new.at))]
        self.names = self._class_names()
        self.pairs = self._pair_up()
        self.newline = dominant_newline("".join(file.lines))

    def run(self) -> Merged:
        self._check_typos()
        self._check_copies()
        self._check_frame()
        self._check_punctuation()
        regions = list(self._regions())
        lead = self._claimed(0)
        trail = self._claimed(self.place.size)
        start = self.file.at[self.place.first] - lead
        stop = self.file.at[self.place.stop - 1] + 1 + trail
        out: list[str] = []
        for region in regions:
            out += self._region(region)
            if region.i2 < self.place.size:
                out.append(self._kept(region.i2, region.j2))
        return Merged(start, stop, self._finish(out, start, stop))

    # --- pairing of old and new lines

    def _class_names(self) -> dict[Name, Name]:
        """Old line -> the file's line in the block's indentation, so that both read as the same line."""
        names: dict[Name, Name] = {}
        for ours, theirs in zip(self.ours, self.theirs, strict=True):
            mine, other = (ours.indent, ours.body), (ours.indent, theirs.body)
            if mine != other and names.setdefault(mine, other) != other:
                raise Unsafe("the same line of old_str stands for two different lines of the file")
        if any(other in names for other in names.values()):
            raise Unsafe("lines of old_str are each other's typo")
        return names

    def _check_copies(self) -> None:
        """A line that reads differently in the file may not be multiplied: which copy is the file's own?"""
        mine = [(part.indent, part.body) for part in self.ours]
        fresh = Counter(self._name(part) for part in self.fresh)
        for other in self.names.values():
            own = [self._name(part) for part in self.ours].count(other)
            if fresh[other] > own or (other in mine and fresh[other]):
                raise Unsafe("a line that the file spells differently occurs more than once")

    def _name(self, part: Part) -> Name:
        name = (part.indent, part.body)
        return self.names.get(name, name)

    def _pair_up(self) -> dict[int, int]:
        """New token -> old token, for the lines that stay."""
        before = [self._name(part) for part in self.ours]
        after = [self._name(part) for part in self.fresh]
        pairs = {}
        for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
            for step in range(block.size):
                pairs[block.b + step] = block.a + step
        return pairs

    def _regions(self) -> Iterator[_Region]:
        i = j = -1
        for j2, i2 in [*sorted(self.pairs.items()), (len(self.fresh), self.place.size)]:
            yield _Region(i, i2, j, j2)
            i, j = i2, j2

    # --- checks before anything is written

    def _check_typos(self) -> None:
        kept = set(self.pairs.values())
        if any(typo not in kept for typo in self.place.typos):
            raise Unsafe("a line to be changed differs from the file")

    def _check_frame(self) -> None:
        """A shifted block: old and new must have been written with the same indentation in mind."""
        if self.place.shift.none or not self.fresh:
            return
        ends = ((self.ours[0], self.fresh[0]), (self.ours[-1], self.fresh[-1]))
        if any(self._name(before) == self._name(after) for before, after in ends):
            return
        if min(len(part.indent) for part in self.ours) != min(len(part.indent) for part in self.fresh):
            raise Unsafe("old_str and new_str are indented differently, and old_str not as in the file")

    def _check_punctuation(self) -> None:
        """Typographic characters that the model put into code it copied are not to be spread further."""
        invented = any(
            any(fold(letter) != letter and letter not in theirs.body for letter in ours.body)
            for ours, theirs in zip(self.ours, self.theirs, strict=True)
        )
        added = (part for j, part in enumerate(self.fresh) if j not in self.pairs)
        if invented and any(fold(part.body) != part.body for part in added):
            raise Unsafe("old_str has typographic quotes or dashes that the file does not have")

    # --- lines

    def _kept(self, i: int, j: int) -> str:
        ours, theirs, fresh = self.ours[i], self.theirs[i], self.fresh[j]
        trail = _three_way(theirs.trail, ours.trail, fresh.trail)
        return theirs.indent + theirs.body + trail + self._ending(i)

    def _added(self, j: int, near: int) -> str:
        fresh = self.fresh[j]
        indent = self.place.shift.apply(fresh.indent)
        if indent is None:
            raise Unsafe("a new line cannot be indented as the file is with certainty")
        body = self._name(fresh)[1]
        trail = "" if self._noisy else fresh.trail
        return indent + body + trail + self._ending(near)

    @property
    def _noisy(self) -> bool:
        """Whether the model wrote trailing blanks on kept lines of the new block that the file does not have."""
        kept = ((self.fresh[j].trail, self.ours[i].trail, self.theirs[i].trail) for j, i in self.pairs.items())
        return any(fresh and fresh == ours != theirs for fresh, ours, theirs in kept)

    def _ending(self, token: int) -> str:
        token = min(max(token, 0), self.place.size - 1)
        return ending_of(self.file.lines[self.file.at[self.place.first + token]]) or self.newline

    # --- blank lines

    def _file_gap(self, t: int) -> list[str]:
        """The file's blank lines in gap `t`; at the two edges only those that the old block claims."""
        gap = self.file.gap(self.place.first + t)
        claimed = self._claimed(t)
        if t == 0:
            return gap[len(gap) - claimed :]
        return gap[:claimed] if t == self.place.size else gap

    def _claimed(self, t: int) -> int:
        run = len(self.file.gap(self.place.first + t))
        return min(len(self.old.gap(t)), run) if t in (0, self.place.size) else run

    def _region(self, region: _Region) -> list[str]:
        """Everything between two kept lines, as it is after the edit."""
        if region.untouched:
            return self._untouched_gap(region.i2, region.j2)
        self._check_gaps(region)
        out: list[str] = []
        for j in range(region.j + 1, region.j2 + 1):
            near = min(region.i + 1 + j - region.j - 1, region.i2 - 1) if region.i2 > region.i + 1 else region.i
            out += self._touched_gap(region, j, near)
            if j < region.j2:
                out.append(self._added(j, near))
        return out

    def _untouched_gap(self, i: int, j: int) -> list[str]:
        file, old, new = self._file_gap(i), self.old.gap(i), self.new.gap(j)
        if len(old) == len(new):
            return self._blend(file, old, new)
        if len(new) == len(file):
            return file
        if len(old) < len(file) < len(new):
            return self._blanks(new, i)
        if len(old) != len(file):
            raise Unsafe("the blank lines of old_str, new_str and the file all differ")
        self._check_edge(i, j)
        return self._blanks(new, i)

    def _check_edge(self, i: int, j: int) -> None:
        """A blank line is added at the edge while the file has one there that old_str left out."""
        if i in (0, self.place.size) and len(self.new.gap(j)) > len(self.old.gap(i)):
            run = len(self.file.gap(self.place.first + i))
            if run > self._claimed(i):
                raise Unsafe("new_str begins or ends with a blank line that the file already has there")

    def _check_gaps(self, region: _Region) -> None:
        gaps = range(region.i + 1, region.i2 + 1)
        new = [len(self.new.gap(j)) for j in range(region.j + 1, region.j2 + 1)]
        file = [len(self._file_gap(t)) for t in gaps]
        old = [len(self.old.gap(t)) for t in gaps]
        deletion_only = region.j2 == region.j + 1
        for index, (there, claimed) in enumerate(zip(file, old, strict=True)):
            if there == claimed:
                continue
            edge = gaps[index] in (0, self.place.size)
            if len(file) == 1 and not edge and self._repeats_claim(region, claimed, there):
                raise Unsafe("blank lines next to the new lines differ between old_str and the file")
            seen = {new[0] if index == 0 else -1, new[-1] if index == len(file) - 1 else -1}
            if there in seen or (edge and claimed in seen):
                continue
            interior = 0 < index < len(file) - 1
            if not interior or not (deletion_only or (claimed < there and sum(new) >= sum(file))):
                raise Unsafe("blank lines next to the change differ between old_str and the file")

    def _repeats_claim(self, region: _Region, claimed: int, there: int) -> bool:
        """Lines put into one gap, with as few blank lines as old_str has there and the file has not.

        Fewer before the new lines are meant where those belong to the block above, as a method to its class.
        """
        first, last = len(self.new.gap(region.j + 1)), len(self.new.gap(region.j2))
        if claimed == 0 or {first, last} == {there}:
            return False
        belongs_above = len(self.fresh[region.j + 1].indent) > len(self.ours[region.i2].indent)
        return last == claimed or (first == claimed and not belongs_above)

    def _touched_gap(self, region: _Region, j: int, near: int) -> list[str]:
        """A gap next to a change: the file's blank lines where their number stays, else the new ones."""
        new = self.new.gap(j)
        for mine, t in ((region.j + 1, region.i + 1), (region.j2, region.i2)):
            if j != mine:
                continue
            file, old = self._file_gap(t), self.old.gap(t)
            spurious_edge = t in (0, self.place.size) and len(old) > len(file) and len(old) == len(new)
            if spurious_edge or (len(file) == len(new) and len(old) != len(new)):
                return file
            if len(file) == len(new) == len(old):
                return self._blend(file, old, new)
        return self._blanks(new, near)

    def _blend(self, file: list[str], old: list[str], new: list[str]) -> list[str]:
        """As many blank lines as before: whitespace on them changes only where the new block changes it."""
        if len(file) != len(old):
            return file
        return [
            _three_way(content_of(f), content_of(o), content_of(n)) + (ending_of(f) or self.newline)
            for f, o, n in zip(file, old, new, strict=True)
        ]

    def _blanks(self, lines: list[str], near: int) -> list[str]:
        return [self._blank(content_of(line)) + self._ending(near) for line in lines]

    def _blank(self, blanks: str) -> str:
        """A new line of nothing but blanks; those are kept, and shifted as indentation is."""
        shifted = self.place.shift.apply(blanks) if blanks else ""
        return "" if self._noisy or shifted is None else shifted

    def _finish(self, out: list[str], start: int, stop: int) -> str:
        """The text, with the file's final newline, or none, unless the edit itself changes it."""
        text = "".join(out)
        if stop < len(self.file.lines) or not out:
            return text
        had = bool(ending_of(self.file.lines[-1]))
        asked = bool(ending_of(self.old.lines[-1]))
        wanted = bool(self.new.lines and ending_of(self.new.lines[-1]))
        final = wanted if asked == had else had
        if final:
            return text
        return text[: len(text) - len(ending_of(out[-1]))]


def _three_way(file: str, old: str, new: str) -> str:
    """Trailing blanks of a kept line: the file's, unless the edit is about them."""
    if new in (old, file):
        return file
    if old == file or not new:
        return new
    raise Unsafe("trailing blanks differ between old_str, new_str and the file")
