"""The text of a match after an edit: the file's own lines, with only the edit's changes applied.

A line that is the same in the old and the new block keeps the file's bytes, except for typographic punctuation that
the edit writes in plain ASCII: there the edit's own characters are taken. A new line is indented by
the match's shift and takes the line ending used there. Wherever two readings of the edit would give different
files, `Unsafe` is raised. Not here: finding the match (`match_block.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from codeagent_lsp.workspace.edits.match_block import Block, BlockMatch
from codeagent_lsp.workspace.edits.match_pairs import Pairing, Region, Unsafe
from codeagent_lsp.workspace.text.lines import content_of, dominant_newline, ending_of, runs_together

__all__ = ["Merged", "Unsafe", "merge"]


@dataclass(frozen=True)
class Merged:
    """The result: the file's lines `start` to `stop` (0-based, half-open) become `text`."""

    start: int
    stop: int
    text: str


def merge(file: Block, place: BlockMatch, old: Block, new: Block) -> Merged:
    """Return the change from `old` to `new`, applied to the file at `place`; raises `Unsafe`."""
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
        lead = self._claimed(0)
        trail = self._claimed(self.place.size)
        start = self.file.at[self.place.first] - lead
        stop = self.file.at[self.place.stop - 1] + 1 + trail
        out: list[str] = []
        for region in self.pairing.regions():
            out += self._region(region)
            if region.i2 < self.place.size:
                out.append(self._kept(region.i2, region.j2))
        return Merged(start, stop, self._finish(out, start, stop))

    def _check_repeats(self) -> None:
        """Raise `Unsafe` if `old` has a blank line at its edge where the file has the line that `new` repeats."""
        size = self.place.size
        for t, j, beyond in ((0, 0, self.place.first - 1), (size, len(self.fresh) - 1, self.place.stop)):
            left_out = len(self.old.gap(t)) > self._claimed(t) and 0 <= beyond < len(self.file.keys)
            if left_out and j not in self.pairing.pairs and self.new.keys[j : j + 1] == [self.file.keys[beyond]]:
                raise Unsafe("new_str begins or ends with a line that the file has next to the block")

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
        body = self.pairing.name(fresh)[1]
        trail = "" if self.noisy else fresh.trail
        return indent + body + trail + self._ending(near)

    def _ending(self, token: int) -> str:
        token = min(max(token, 0), self.place.size - 1)
        return ending_of(self.file.lines[self.file.at[self.place.first + token]]) or self.newline

    # --- blank lines

    def _file_gap(self, t: int) -> list[str]:
        """Return the file's blank lines in gap `t`; at the two edges only as many as the old block has."""
        gap = self.file.gap(self.place.first + t)
        claimed = self._claimed(t)
        if t == 0:
            return gap[len(gap) - claimed :]
        return gap[:claimed] if t == self.place.size else gap

    def _claimed(self, t: int) -> int:
        run = len(self.file.gap(self.place.first + t))
        return min(len(self.old.gap(t)), run) if t in (0, self.place.size) else run

    def _region(self, region: Region) -> list[str]:
        """Return the lines between two kept lines after the edit."""
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
        """Raise `Unsafe` if a blank line is added at the edge where the file has one that `old` left out."""
        if i in (0, self.place.size) and len(self.new.gap(j)) > len(self.old.gap(i)):
            run = len(self.file.gap(self.place.first + i))
            if run > self._claimed(i):
                raise Unsafe("new_str begins or ends with a blank line that the file already has there")

    def _check_gaps(self, region: Region) -> None:
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

    def _repeats_claim(self, region: Region, claimed: int, there: int) -> bool:
        """Return whether new lines repeat the blank lines of `old` in a gap where the file has other ones.

        Fewer before the new lines are meant where those belong to the block above, as a method to its class.
        """
        first, last = len(self.new.gap(region.j + 1)), len(self.new.gap(region.j2))
        if claimed == 0 or {first, last} == {there}:
            return False
        belongs_above = len(self.fresh[region.j + 1].indent) > len(self.ours[region.i2].indent)
        return last == claimed or (first == claimed and not belongs_above)

    def _touched_gap(self, region: Region, j: int, near: int) -> list[str]:
        """Return the blank lines next to a change: the file's where their number stays, else the new ones."""
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
        """Return as many blank lines as before; their whitespace changes only where the new block changes it."""
        if len(file) != len(old):
            return file
        return [
            _three_way(content_of(f), content_of(o), content_of(n)) + (ending_of(f) or self.newline)
            for f, o, n in zip(file, old, new, strict=True)
        ]

    def _blanks(self, lines: list[str], near: int) -> list[str]:
        return [self._blank(content_of(line)) + self._ending(near) for line in lines]

    def _blank(self, blanks: str) -> str:
        """Return a new whitespace-only line: its blanks are kept, and shifted as indentation is."""
        shifted = self.place.shift.apply(blanks) if blanks else ""
        return "" if self.noisy or shifted is None else shifted

    def _finish(self, out: list[str], start: int, stop: int) -> str:
        """Return the text, with or without final newline as the file has it, unless the edit itself changes that."""
        if runs_together([*self.file.lines[max(start - 1, 0) : start], *out, *self.file.lines[stop : stop + 1]]):
            raise Unsafe("the mixed line ends of the file would run together")
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
    """Merge the trailing blanks of a kept line: the file's, unless the edit changes them."""
    if new in (old, file):
        return file
    if old == file or not new:
        return new
    raise Unsafe("trailing blanks differ between old_str, new_str and the file")
