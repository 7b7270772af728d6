"""Pairing of the old and the new block of an edit line by line: which lines are kept.

Each old line corresponds to one line of the file. Not here: finding the match (`match_block.py`), and writing the
result (`match_merge.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from codeagent_lsp.workspace.edits.match_block import Block, BlockMatch, Part, fold

Name = tuple[str, str]


class Unsafe(Exception):
    """Raised when the match is clear but the result is not; the message says why."""


@dataclass(frozen=True)
class Region:
    """The tokens between two kept lines: old tokens `i..i2`, new tokens `j..j2`, both ends excluded."""

    i: int
    i2: int
    j: int
    j2: int

    @property
    def untouched(self) -> bool:
        """Return whether there is no line between them, neither before nor after the edit."""
        return self.i2 == self.i + 1 and self.j2 == self.j + 1


class Pairing:
    """The lines of a match (`theirs`), of the old block (`ours`) and of the new one (`fresh`), and their pairs."""

    def __init__(self, file: Block, place: BlockMatch, old: Block, new: Block) -> None:
        self.place = place
        self.ours = [old.part(t) for t in range(place.size)]
        self.theirs = [_plain(file.part(place.first + t), self.ours[t]) for t in range(place.size)]
        self.fresh = [new.part(t) for t in range(len(new.at))]
        self.names = self._class_names()
        self.pairs = self._pair_up()

    def check(self) -> None:
        """Raise `Unsafe` unless the lines alone determine the result."""
        self._check_typos()
        self._check_copies()
        self._check_frame()
        self._check_punctuation()

    @property
    def noisy(self) -> bool:
        """Return whether kept lines of the new block have trailing blanks that the file does not have."""
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
        """Return the line that `part` stands for, as the file spells it."""
        name = (part.indent, part.body)
        return self.names.get(name, name)

    def _pair_up(self) -> dict[int, int]:
        """Map new tokens to old tokens, for the lines that are kept."""
        before = [self.name(part) for part in self.ours]
        after = [self.name(part) for part in self.fresh]
        pairs = {}
        for block in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
            for step in range(block.size):
                pairs[block.b + step] = block.a + step
        return pairs

    def regions(self) -> Iterator[Region]:
        """Yield the regions before, between and after the kept lines, in order."""
        i = j = -1
        for j2, i2 in [*sorted(self.pairs.items()), (len(self.fresh), self.place.size)]:
            yield Region(i, i2, j, j2)
            i, j = i2, j2

    def _check_typos(self) -> None:
        kept = set(self.pairs.values())
        if any(typo not in kept for typo in self.place.typos):
            raise Unsafe("a line to be changed differs from the file")

    def _check_frame(self) -> None:
        """Raise `Unsafe` for a shifted block whose old and new text assume different indentations."""
        if self.place.shift.none or not self.fresh:
            return
        ends = ((self.ours[0], self.fresh[0]), (self.ours[-1], self.fresh[-1]))
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


def _plain(theirs: Part, ours: Part) -> Part:
    """Return the file's line, with its typographic punctuation in ASCII where the edit writes it so."""
    if theirs.body == ours.body or fold(theirs.body) != fold(ours.body):
        return theirs
    return replace(theirs, body=ours.body) if _typographic(ours.body) < _typographic(theirs.body) else theirs


def _typographic(body: str) -> int:
    return 0 if body.isascii() else sum(fold(letter) != letter for letter in body)
