"""The place of a completion (one version of one text, and the cursor in it), and what a model sees for it: the text
around the cursor, and pieces of other places within a budget, definitions of near names and what looks alike.

Not here: reading texts and the index (`workspace_source.py`), whether the file may be sent at all (`server/inline.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import log
from pathlib import PurePosixPath
from typing import Protocol

from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.llm.fill.filler import Piece

LINES = 4
"""Lines before the cursor whose names are looked up."""
NAMES = 24
MOST_DEFINING = 3
"""The most files that define a name that is looked up; a name that more files define says nothing."""
MEMBERS = 8

_CLASSES = ("class", "interface", "struct", "enum", "type")
# A name before a bracket or a dot: `f(`, `a[`, `T<`, `x.`
_CALLED = re.compile(r"([^\W\d]\w*)\s*[(<{.\[]")
LOOKED_BACK = 8
"""Lines before the cursor that are compared, the cursor's own with them."""
FOLLOWING = 6
"""The lines of a piece that follow those that are similar."""
STRIDE = 2
MOST_LINES = 4000
"""The most lines of one text that are looked at, from its start."""

_WORD = re.compile(r"[^\W\d]\w+")
_STOP_WORDS = """
    self this return if else elif for while in not and or def class function func fn let const var new import from
    public private protected static void int str string bool true false none null the to of is as with
"""
_STOP = frozenset(_STOP_WORDS.split())
LONGEST_TEXT = 2_000_000
LONGEST_LINE = 2_000
"""The most characters of a text, and of the cursor's line, that are completed: longer ones were not written by hand."""

DRAFT_CHARS, DRAFT_LINES, DRAFT_REST = 10, 3, 3
"""The least characters of a begun line, the least other lines that begin with them, and the least characters by which
all of these continue, for a draft. On lines of six public histories such a draft held for 88 to 98 of 100.
"""
_BEGUN = re.compile(r"\w\W+\w*$")

_HASH = ".py .pyi .rb .sh .bash .yaml .yml .toml .r .pl .ex .exs .mk .cmake .dockerfile .tf .nim .jl"
_DASHES = ".lua .sql .hs .elm .ada"
_MARKS = {
    **dict.fromkeys(_HASH.split(), "#"),
    **dict.fromkeys(_DASHES.split(), "--"),
    **dict.fromkeys((".lisp", ".clj", ".el", ".scm"), ";;"),
    **dict.fromkeys((".tex", ".erl"), "%"),
}


class Symbols(Protocol):
    """Port: the part of the index that completions need; see `index/view.py`."""

    def defining(self, name: str) -> tuple[str, ...]: ...

    def symbols(self, path: str) -> tuple[SymbolInfo, ...]: ...


def names_near(place: Place) -> list[str]:
    """Return at most 24 names of the 4 lines before the cursor, the nearest first; in a line called ones come before
    others.
    """
    lines = place.text[max(0, place.offset - 4000) : place.offset].splitlines()[-LINES:]
    names: list[str] = []
    for line in reversed(lines):
        called = _CALLED.findall(line)
        names += [*reversed(called), *reversed(words_in(line))]
    return list(dict.fromkeys(names))[:NAMES]


def definitions(place: Place, index: Symbols, shown: Iterable[str] = ()) -> list[Piece]:
    """Return the definitions of the names near the cursor, nearest first, one piece each; none from the cursor's own
    file, nor of a name whose definition is in one of the `shown` texts.
    """
    pieces: list[Piece] = []
    texts = [*shown]
    for name in names_near(place):
        paths = index.defining(name)
        # What the cursor's own file defines is mostly in the text around it already.
        if not paths or len(paths) > MOST_DEFINING or place.path in paths:
            continue
        for path in paths:
            symbols = index.symbols(path)
            for symbol in symbols:
                if symbol.name == name and not symbol.parent and symbol.signature:
                    text = _describe(symbol, symbols)
                    if not any(symbol.signature in each for each in texts):
                        pieces.append(Piece(path, text))
                    break
    return pieces


def _describe(symbol: SymbolInfo, others: Sequence[SymbolInfo]) -> str:
    """Return the signature of a definition; of a class also those of its members."""
    lines = [symbol.signature]
    if symbol.kind in _CLASSES:
        members = [each for each in others if each.parent == symbol.qualified and each.signature]
        lines += [f"    {each.signature}" for each in members[:MEMBERS]]
    return "\n".join(lines)


DEFINITION_SHARE = 0.35
"""The largest share of the pieces' budget that goes to definitions."""
MOST_SIMILAR = 4
# A piece that shares fewer of the cursor's words, by their weight, is beside the point.
LEAST_SIMILAR = 0.12


@dataclass(frozen=True)
class Material:
    """The sources of pieces: texts by the path that the model is shown, the cursor's own among them, and the index
    (None if it is not ready).
    """

    texts: tuple[tuple[str, str], ...] = ()
    symbols: Symbols | None = field(default=None, compare=False)


def pieces_for(place: Place, material: Material, budget: Budget) -> tuple[Piece, ...]:
    """Return the pieces of other places for a prompt, within `budget.pieces` characters, the most useful last, next to
    the text itself; () if there are none.
    """
    # First, so that no definition is sent that a similar piece shows anyway.
    alike = similar(place, material.texts, MOST_SIMILAR)
    known = [] if material.symbols is None else definitions(place, material.symbols, [each.text for each in alike])
    first = within(known, int(budget.pieces * DEFINITION_SHARE))
    left = budget.pieces - sum(_size(piece) for piece in first)
    second = within((Piece(each.path, _trim(each)) for each in alike), left)
    # Models weigh what stands nearest to the cursor most.
    return (*reversed(first), *reversed(second))


def within(pieces: Iterable[Piece], limit: int) -> list[Piece]:
    """Return the first pieces that fit, with their paths, into `limit` characters, and of the next one its first lines
    if more than one fits.
    """
    taken: list[Piece] = []
    for piece in pieces:
        size = _size(piece)
        if size <= limit:
            taken.append(piece)
            limit -= size
            continue
        lines: list[str] = []
        left = limit - len(piece.path)
        for line in piece.text.splitlines():
            left -= len(line) + 1
            if left < 0:
                break
            lines.append(line)
        if len(lines) > 1:
            taken.append(Piece(piece.path, "\n".join(lines)))
        break
    return taken


def _trim(piece: Similar) -> str:
    lines = piece.text.splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines)


def _size(piece: Piece) -> int:
    return len(piece.path) + len(piece.text) + 2


# The pieces of other places that are most like the lines at the cursor, each with the lines that follow it.


@dataclass(frozen=True, slots=True)
class Similar:
    """A piece of a text: the path, the 0-based lines from `start` to before `end`, their text, and how similar it is to
    the cursor's lines (0 to 1).
    """

    path: str
    start: int
    end: int
    text: str
    score: float


def similar(place: Place, texts: Iterable[tuple[str, str]], limit: int) -> list[Similar]:
    """Return at most `limit` pieces of `texts` (pairs of path and text) that are like the lines around the cursor, best
    first, one of two that overlap; [] if nothing is. In the cursor's own file the lines around the cursor are left out.
    """
    asked = _asked_words(place)
    if not asked:
        return []
    windows = [window for path, text in texts for window in _windows(place, path, text)]
    rarity = _rarity(windows)
    weights = {word: weight * rarity.get(word, 0.0) for word, weight in asked.items()}
    total = sum(weights.values())
    if not total:
        return []
    scored = [
        (sum(weights[word] for word in words if word in weights) / total, path, start, lines)
        for path, start, lines, words in windows
    ]
    # By path and line too: equal scores in another order would change the prompt, and with it what the cache holds.
    scored.sort(key=lambda each: (-each[0], each[1], each[2]))
    return _apart([each for each in scored if each[0] >= LEAST_SIMILAR], limit)


def words_in(text: str) -> list[str]:
    """Return the words of a piece of code in order, with repetitions, without common ones such as keywords."""
    return [word for word in _WORD.findall(text) if word.lower() not in _STOP]


def _asked_words(place: Place) -> Mapping[str, float]:
    """Return the words of the lines before the cursor; those of the last lines weigh more."""
    lines = place.text[: place.offset].splitlines()[-LOOKED_BACK:]
    weights: dict[str, float] = {}
    for age, line in enumerate(reversed(lines)):
        for word in words_in(line):
            weights[word] = max(weights.get(word, 0.0), 1.0 / (1 + 0.4 * age))
    return weights


Window = tuple[str, int, Sequence[str], frozenset[str]]
"""Path, first line, the lines up to the end of what follows, and the words of the lines that are compared."""


def _windows(place: Place, path: str, text: str) -> list[Window]:
    lines = text.splitlines()[:MOST_LINES]
    here = place.text.count("\n", 0, place.offset) if path == place.path else -1
    found: list[Window] = []
    for start in range(0, max(1, len(lines) - 1), STRIDE):
        whole = lines[start : start + LOOKED_BACK + FOLLOWING]
        # Around the cursor the text itself is sent, and what follows it must not be told as if it stood elsewhere.
        if here >= 0 and start - FOLLOWING <= here <= start + len(whole) + 2 * FOLLOWING:
            continue
        compared = frozenset(words_in("\n".join(whole[:LOOKED_BACK])))
        if compared:
            found.append((path, start, whole, compared))
    return found


def _rarity(windows: Sequence[Window]) -> Mapping[str, float]:
    """Return how telling each word is: 1 for one in a single window, near 0 for one in all."""
    often = Counter(word for _, _, _, words in windows for word in words)
    count = len(windows) + 1
    return {word: log(count / (1 + seen)) / log(count) if count > 2 else 1.0 for word, seen in often.items()}


def _apart(scored: Sequence[tuple[float, str, int, Sequence[str]]], limit: int) -> list[Similar]:
    taken: list[Similar] = []
    for score, path, start, lines in scored:
        end = start + len(lines)
        if all(each.path != path or end <= each.start or each.end <= start for each in taken):
            taken.append(Similar(path, start, end, "\n".join(lines), score))
        if len(taken) == limit:
            break
    return taken


# How much of a text is sent: the budget, and the part of the text around the cursor that fits in it.


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one request: characters of the text before and after the cursor, and of pieces of other places; tokens
    of the answer.
    """

    prefix: int
    suffix: int
    pieces: int
    tokens: int


SLOW = Budget(900, 240, 700, 96)
"""For a model on a processor: some 550 tokens, of which few change from key to key."""

FAST = Budget(6000, 2000, 6000, 256)

_STEP = 0.5
"""Share of the prefix's budget by which its beginning jumps on, instead of moving with every line."""


def prefix_of(place: Place, budget: Budget) -> str:
    """Return the text before the cursor, about `budget.prefix` characters at most. It begins at a line that stays the
    same for many keys, so that the model's server finds it in its cache.
    """
    start = place.offset - budget.prefix
    if start <= 0:
        return place.text[: place.offset]
    step = max(1, int(budget.prefix * _STEP))
    start = -(-start // step) * step  # the next of fixed places, so never more than the budget
    # A prefix that begins at the same place at the next key is in the server's cache but for its end.
    begins = place.text.find("\n", start, place.line_start) + 1
    return place.text[begins or place.line_start : place.offset][-2 * budget.prefix :]


def suffix_of(place: Place, budget: Budget) -> str:
    """Return the text after the cursor, at most `budget.suffix` characters; if it is cut, up to the end of its last
    whole line.
    """
    text = place.text[place.offset : place.offset + budget.suffix]
    if place.offset + budget.suffix >= len(place.text):
        return text
    end = text.rfind("\n")
    return text[: end + 1] if end >= 0 else text


@dataclass(frozen=True)
class Place:
    """A cursor at `offset` characters into `text`, the text of a file at one version. `path` is the one that the model
    is shown, `file` the absolute path on the disk, None for a text without a file.
    """

    path: str
    text: str
    offset: int
    version: int | None = None
    file: str | None = None

    @cached_property
    def line_start(self) -> int:
        """The offset, in characters, of the first character of the cursor's line."""
        return self.text.rfind("\n", 0, self.offset) + 1

    @cached_property
    def line_end(self) -> int:
        """The offset, in characters, of the end of the cursor's line, before its line break (LF or CRLF)."""
        end = self.text.find("\n", self.offset)
        end = len(self.text) if end < 0 else end
        return end - 1 if end > self.offset and self.text[end - 1] == "\r" else end

    @property
    def line_before(self) -> str:
        """The cursor's line up to the cursor, '' at its beginning."""
        return self.text[self.line_start : self.offset]

    @property
    def line_after(self) -> str:
        """The rest of the cursor's line, without its line break."""
        return self.text[self.offset : self.line_end]

    @property
    def after(self) -> str:
        """All text after the cursor, the rest of its line included."""
        return self.text[self.offset :]

    @property
    def indentation(self) -> str:
        """The blanks and tabs that the cursor's line begins with, no further than the cursor."""
        before = self.line_before
        return before[: len(before) - len(before.lstrip(" \t"))]

    @property
    def comment(self) -> str:
        """The sign that begins a comment to the end of the line in this file, by the suffix of its path, such as `#`;
        `//` if unknown.
        """
        return _MARKS.get(PurePosixPath(self.path).suffix.lower(), "//")

    @property
    def line_break(self) -> str:
        """The line break of this text: CRLF if its first line ends so, else LF."""
        first = self.text.find("\n")
        return "\r\n" if first > 0 and self.text[first - 1] == "\r" else "\n"


def draft_of(place: Place) -> str:
    """Return how a line that is begun at the cursor continues, if at least 3 other lines of the text begin like it and
    all of them continue alike; else ''. No model is needed for that.
    """
    begun = place.line_before.strip()
    # Inside a first word anything may follow.
    if place.line_after.strip() or len(begun) < DRAFT_CHARS or not _BEGUN.search(begun):
        return ""
    # A blank at the end is part of what is typed.
    begun = place.line_before.lstrip()
    found, count, at = "", 0, -1
    while (at := place.text.find(begun, at + 1)) >= 0:
        start, end = place.text.rfind("\n", 0, at) + 1, place.text.find("\n", at)
        if start == place.line_start or place.text[start:at].strip():
            continue
        rest = place.text[at + len(begun) : end if end >= 0 else None].rstrip()
        if count and rest != found:
            return ""
        found, count = rest, count + 1
    return found if count >= DRAFT_LINES and len(found) >= DRAFT_REST else ""


def worth_asking(place: Place, *, invoked: bool) -> bool:
    """Return whether a completion can be of use here: not inside a word, unless the user `invoked` it, and not in very
    long texts (2,000,000 characters) or lines (2,000).
    """
    if len(place.text) > LONGEST_TEXT or place.line_end - place.line_start > LONGEST_LINE:
        return False
    follows = place.line_after[:1]
    inside_word = follows.isalnum() or follows == "_"
    return invoked or not inside_word
