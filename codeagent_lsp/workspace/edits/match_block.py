"""Search for a block of lines in a file that does not contain it literally.

A block is seen as its non-blank lines, *tokens*, and the blank lines in the gaps between them. A match is a run of the
file's tokens equal to the block's, one to one, so no line is ever skipped or invented. How far the two differ (line
ends, trailing blanks, one shift of the indentation, look-alike punctuation, blank lines, a small typo) is the match's
tier. Not here: the text after the edit (`match_merge.py`), and the exact tier (`match.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from codeagent_lsp.workspace.text.position import content_of, shared_ends, split_lines

BLANKS = " \t"
MANY = 40  # so many matches are ambiguous, even if one of them is closer


class Tier(IntEnum):
    """The degree to which a match agrees with the block that was searched for, from equal (`EXACT`) to a small typo
    (`TYPO`); smaller is closer.
    """

    EXACT = 0
    LINE_ENDS = 1
    TRAILING_BLANKS = 2
    INDENTATION = 3
    PUNCTUATION = 4
    BLANK_LINES = 5
    TYPO = 6

    @property
    def label(self) -> str:
        """The name used in results and messages, for example `trailing_blanks`."""
        return self.name.lower()


# Characters that models, and texts copied from documents, have in place of the ASCII ones.
_DOUBLE = "\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb\uff02"
_SINGLE = "\u2018\u2019\u201a\u201b\u2032\u2035\uff07"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_SPACES = "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_FOLD = {
    **dict.fromkeys(map(ord, _DOUBLE), '"'),
    **dict.fromkeys(map(ord, _SINGLE), "'"),
    **dict.fromkeys(map(ord, _DASHES), "-"),
    **dict.fromkeys(map(ord, _SPACES), " "),
    0x2026: "...",
}
_WORD = re.compile(r"\w")


def fold(text: str) -> str:
    """Return `text` with typographic quotes, dashes, spaces and the ellipsis replaced by ASCII; only the ellipsis
    becomes longer.
    """
    return text if text.isascii() else text.translate(_FOLD)


@dataclass(frozen=True, slots=True)
class Part:
    """The parts of one line without its ending: indentation, body and trailing blanks."""

    indent: str
    body: str
    trail: str


def part_of(line: str) -> Part:
    """Split a line, with or without its ending, into its parts. Only spaces and tabs count as blank."""
    content = content_of(line)
    bare = content.rstrip(BLANKS)
    folded = fold(bare)
    # Each space folds to one character, so this width is also that of the line as it is; only `…` becomes longer.
    width = len(folded) - len(folded.lstrip(BLANKS))
    return Part(bare[:width], bare[width:].rstrip(BLANKS), content[len(bare) :])


@dataclass(frozen=True)
class Block:
    """The lines of a text for the search, immutable. `lines` are with their endings; `at` are the 0-based numbers of
    the non-blank ones, the tokens, and `keys` their folded text without blanks at the ends. `seen` is a cache.
    """

    lines: list[str]
    at: list[int]
    keys: list[str]
    seen: dict[int, Part] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, text: str) -> Block:
        """Return the block of `text`: its lines split, and those that are not blank folded for the comparison."""
        lines = split_lines(text)
        at, keys = [], []
        # Folded as one text, which is faster than line by line; no character that is folded ends a line.
        for number, line in enumerate(lines if text.isascii() else split_lines(fold(text))):
            key = line.strip(" \t\r\n")
            if key:
                at.append(number)
                keys.append(key)
        return cls(lines, at, keys)

    def part(self, token: int) -> Part:
        """Return the parts of the line of a token, which is counted from 0 among the non-blank lines."""
        if token not in self.seen:
            self.seen[token] = part_of(self.lines[self.at[token]])
        return self.seen[token]

    def gap(self, index: int) -> list[str]:
        """Return the blank lines, with their endings, before token `index` (from 0); after the last token for `index ==
        len(at)`.
        """
        start = self.at[index - 1] + 1 if index else 0
        stop = self.at[index] if index < len(self.at) else len(self.lines)
        return self.lines[start:stop]


@dataclass(frozen=True)
class Shift:
    """A change of indentation from the block to the file: a prefix added or removed, or tabs from or to spaces.

    `known` holds the pairs seen in the matched lines. `width` is the number of spaces per tab (0: no
    conversion), `offset` the spaces to add before converting.
    """

    known: dict[str, str]
    add: str = ""
    remove: str = ""
    width: int = 0
    offset: int = 0

    @property
    def none(self) -> bool:
        """Whether the indentation stays as it is: nothing is added, removed or converted."""
        return not (self.add or self.remove or self.width)

    def apply(self, indent: str) -> str | None:
        """Return the indentation in the file for `indent`, blanks and tabs, in the block; None if it is not certain."""
        if indent in self.known:
            return self.known[indent]
        if self.width:
            return self._convert(indent)
        if self.remove:
            return indent[len(self.remove) :] if indent.startswith(self.remove) else None
        # Tabs before spaces, or the reverse: how the file would write the deeper level is not known.
        mixed = self.add and indent and set(self.add) != set(indent)
        return None if mixed else self.add + indent

    def _convert(self, indent: str) -> str | None:
        if all(set(file) <= {"\t"} for file in self.known.values()):
            tabs, rest = divmod(len(indent) + self.offset, self.width)
            return "\t" * tabs if set(indent) <= {" "} and not rest and tabs >= 0 else None
        blanks = len(indent) * self.width + self.offset
        return " " * blanks if set(indent) <= {"\t"} and blanks >= 0 else None


def shift_between(pairs: Sequence[tuple[str, str]]) -> Shift | None:
    """Return the one shift that turns every first indentation into its second; None if there is none. `pairs` are those
    of the block's and the file's lines, at least one.
    """
    known: dict[str, str] = {}
    for block, file in pairs:
        if known.setdefault(block, file) != file:
            return None
    # Two depths of the block that are one in the file: shifted back, the structure would be lost.
    if len(set(known.values())) != len(known):
        return None
    # Any pair will do: a single shift turns all of them, which is checked right after.
    block, file = next(iter(known.items()))
    if file.endswith(block):
        add = file[: len(file) - len(block)]
        if all(f == add + b for b, f in known.items()):
            return Shift(known, add=add)
    if block.endswith(file):
        remove = block[: len(block) - len(file)]
        if all(b == remove + f for b, f in known.items()):
            return Shift(known, remove=remove)
    return _conversion(known)


def _conversion(known: dict[str, str]) -> Shift | None:
    to_tabs = all(set(b) <= {" "} and set(f) <= {"\t"} for b, f in known.items())
    to_blanks = all(set(b) <= {"\t"} and set(f) <= {" "} for b, f in known.items())
    # Both are true where nothing is indented, neither where one side mixes tabs and spaces.
    if to_tabs == to_blanks:
        return None
    rows = sorted((len(f), len(b)) if to_tabs else (len(b), len(f)) for b, f in known.items())
    (tabs, blanks), (last_tabs, last_blanks) = rows[0], rows[-1]
    # With one depth alone, a line without tabs is taken as one without spaces.
    if last_tabs == tabs:
        tabs, blanks = 0, 0
    width, rest = divmod(last_blanks - blanks, last_tabs - tabs) if last_tabs > tabs else (0, 1)
    # Widths that people set for a tab; any other fits by chance.
    if rest or width not in (2, 3, 4, 8):
        return None
    offset = last_blanks - width * last_tabs
    if offset % width or any(width * t + offset != b for t, b in rows):
        return None
    return Shift(known, width=width, offset=-offset if to_tabs else offset)


@dataclass(frozen=True)
class BlockMatch:
    """One match of a block in a file: its first token there, its number of tokens (`size`), its tier, its shift, and
    the tokens of the block that hold a typo. With `folded`, its lines are indented with other blanks, such as
    non-breaking ones, and the shift is between plain ones.
    """

    first: int
    size: int
    tier: Tier
    shift: Shift
    typos: tuple[int, ...] = ()
    folded: bool = False

    @property
    def stop(self) -> int:
        """The number of the file's token after the last one of the match, counted from 0."""
        return self.first + self.size


def places(file: Block, block: Block, *, limit: Tier = Tier.TYPO) -> list[BlockMatch]:
    """Return every match of `block` at the closest tier that has any, up to `limit`; [] for a block without a non-blank
    line. Typos are only allowed in blocks of three lines or more, in at most one of ten lines, rounded up.
    """
    if not block.keys:
        return []
    # Without typos first: with them, each place costs a comparison of lines, letter by letter.
    found = _evaluate(file, block, _starts(file, block, 0))
    if not found and limit >= Tier.TYPO:
        # One for each ten lines begun. Blocks of one or two lines have too little else to be known by.
        allowed = -(-len(block.keys) // 10)
        found = _evaluate(file, block, _starts(file, block, allowed)) if len(block.keys) > 2 else []
    # Only the nearest tier counts: a place that differs in blanks is no rival of one that is exact.
    nearest = min((place.tier for place in found), default=limit)
    return [place for place in found if place.tier == nearest and place.tier <= limit]


def rival(file: Block, block: Block, place: BlockMatch) -> int | None:
    """Return the 0-based number of a line of the file, blank lines not counted, at which the block also matches with
    one or two extra lines in between; None if it matches only at `place`.
    """
    # From the first line on, which a block with extra lines still begins with.
    for start, key in enumerate(file.keys):
        if key != block.keys[0] or place.first <= start < place.stop:
            continue
        stop = start + len(block.keys) + 2
        # `in` on an iterator goes on where it stopped, so the lines have to come in their order.
        window = iter(file.keys[start : min(stop, place.first) if start < place.first else stop])
        if all(wanted in window for wanted in block.keys):
            return start
    return None


def _starts(file: Block, block: Block, typos: int) -> Iterable[int]:
    """Return the file's tokens at which the block may begin with at most `typos` unequal tokens."""
    positions: dict[str, list[int]] = {key: [] for key in block.keys}
    for number, key in enumerate(file.keys):
        if key in positions:
            positions[key].append(number)
    # With n typos, one of any n + 1 lines is equal; the rarest lines leave the fewest places to look at.
    rarest = sorted(range(len(block.keys)), key=lambda i: len(positions[block.keys[i]]))[: typos + 1]
    last = len(file.keys) - len(block.keys)
    starts = {at - i for i in rarest for at in positions[block.keys[i]] if 0 <= at - i <= last}
    return sorted(starts) if typos else (s for s in sorted(starts) if _equal_at(file, block, s))


def _equal_at(file: Block, block: Block, start: int) -> bool:
    return file.keys[start : start + len(block.keys)] == block.keys


def _evaluate(file: Block, block: Block, starts: Iterable[int]) -> list[BlockMatch]:
    allowed = -(-len(block.keys) // 10)
    parts = [block.part(token) for token in range(len(block.keys))]
    found = []
    for start in starts:
        typos = _typos_at(file, block, start, allowed)
        place = None if typos is None else _place_at(file, block, parts, start, typos)
        if place:
            found.append(place)
        if len(found) > MANY:
            # So many are ambiguous whatever their tiers: one tier for all keeps `places` from choosing the nearest.
            return [replace(place, tier=Tier.LINE_ENDS) for place in found]
    return found


def _typos_at(file: Block, block: Block, start: int, allowed: int) -> tuple[int, ...] | None:
    typos: list[int] = []
    for token, key in enumerate(block.keys):
        there = file.keys[start + token]
        if there == key:
            continue
        if len(typos) == allowed or not small_typo(key, there):
            return None
        typos.append(token)
    return tuple(typos)


def _place_at(file: Block, block: Block, parts: list[Part], start: int, typos: tuple[int, ...]) -> BlockMatch | None:
    theirs = [file.part(start + token) for token in range(len(parts))]
    indents = [(ours.indent, other.indent) for ours, other in zip(parts, theirs, strict=True)]
    plain = [(fold(ours), fold(other)) for ours, other in indents]
    shift = shift_between(indents)
    folded = shift is None and plain != indents
    shift = shift_between(plain) if folded else shift
    if shift is None:
        return None
    tier = Tier.LINE_ENDS
    if any(ours.trail != other.trail for ours, other in zip(parts, theirs, strict=True)):
        tier = Tier.TRAILING_BLANKS
    if not shift.none:
        tier = Tier.INDENTATION
    pairs = enumerate(zip(parts, theirs, strict=True))
    if folded or any(ours.body != other.body for token, (ours, other) in pairs if token not in typos):
        tier = Tier.PUNCTUATION
    if _blanks_differ(file, block, start):
        tier = Tier.BLANK_LINES
    elif tier == Tier.LINE_ENDS and _blank_trails_differ(file, block, start):
        tier = Tier.TRAILING_BLANKS
    return BlockMatch(start, len(parts), Tier.TYPO if typos else tier, shift, typos, folded)


def _blanks_differ(file: Block, block: Block, start: int) -> bool:
    size = len(block.keys)
    # A block may begin and end amid the file's blank lines, so it may have fewer at its edges, but not within.
    if len(block.gap(0)) > len(file.gap(start)) or len(block.gap(size)) > len(file.gap(start + size)):
        return True
    return any(len(block.gap(t)) != len(file.gap(start + t)) for t in range(1, size))


def _blank_trails_differ(file: Block, block: Block, start: int) -> bool:
    return any(
        [content_of(line) for line in block.gap(t)] != [content_of(line) for line in file.gap(start + t)]
        for t in range(1, len(block.keys))
    )


def small_typo(ours: str, theirs: str) -> bool:
    """Return whether two lines differ only by one character that was added, dropped or replaced, or by two swapped
    ones, and that carries no meaning. Digits, backslashes, whole words of one letter and lines of less than three
    characters are never a typo; equal lines are not one.
    """
    if min(len(ours), len(theirs)) < 3 or abs(len(ours) - len(theirs)) > 1 or ours == theirs:
        return False
    head, tail = shared_ends(ours, theirs)
    mine, other = ours[head : len(ours) - tail], theirs[head : len(theirs) - tail]
    swapped = len(mine) == len(other) == 2 and mine == other[::-1]
    if not swapped and max(len(mine), len(other)) > 1:
        return False
    if (mine + other).isdigit() or "\\" in mine + other:
        return False
    return not (_is_whole_word(ours, head, len(mine)) and _is_whole_word(theirs, head, len(other)))


def _is_whole_word(line: str, at: int, size: int) -> bool:
    """Return whether the changed letters are a word of their own, such as a variable `x`."""
    if not size or not _WORD.match(line[at]):
        return False
    before = at > 0 and _WORD.match(line[at - 1])
    after = at + size < len(line) and _WORD.match(line[at + size])
    return not before and not after
