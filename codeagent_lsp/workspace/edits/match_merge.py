"""The text of a match after an edit: the file's own lines, with only the edit's changes applied.

A line that is the same in the old and the new block keeps the file's bytes, except for typographic punctuation that
the edit writes in plain ASCII: there the edit's own characters are taken. A new line is indented by
the match's shift and takes the line ending used there. Wherever two readings of the edit would give different
files, `Unsafe` is raised. Not here: finding the match (`match_block.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from codeagent_lsp.workspace.edits.match_block import Block, BlockMatch
from codeagent_lsp.workspace.edits.match_gaps import Gaps, after_edit
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
        return Merged(start, stop, _joined(out, start, stop, self.file, self.old, self.new))

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
        out: list[str] = []
        for j, number in enumerate(self._gaps(region), region.j + 1):
            near = min(region.i + 1 + j - region.j - 1, region.i2 - 1) if region.i2 > region.i + 1 else region.i
            out += self._gap(region, j, number, near)
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
        left_out = len(self.file.gap(self.place.first + i)) > self._claimed(i)
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
        shifted = ((blanks := content_of(line)) and self.place.shift.apply(blanks) for line in lines)
        return [("" if self.noisy or blanks is None else blanks) + self._ending(near) for blanks in shifted]


def _joined(out: list[str], start: int, stop: int, file: Block, old: Block, new: Block) -> str:
    """Return the text, with or without final newline as the file has it, unless the edit itself changes that."""
    if runs_together([*file.lines[max(start - 1, 0) : start], *out, *file.lines[stop : stop + 1]]):
        raise Unsafe("the mixed line ends of the file would run together")
    text = "".join(out)
    if stop < len(file.lines) or not out:
        return text
    had = bool(ending_of(file.lines[-1]))
    asked = bool(ending_of(old.lines[-1]))
    wanted = bool(new.lines and ending_of(new.lines[-1]))
    final = wanted if asked == had else had
    return text if final else text[: len(text) - len(ending_of(out[-1]))]


def _three_way(file: str, old: str, new: str) -> str:
    """Merge the trailing blanks of a kept line: the file's, unless the edit changes them."""
    if new in (old, file):
        return file
    if old == file or not new:
        return new
    raise Unsafe("trailing blanks differ between old_str, new_str and the file")
