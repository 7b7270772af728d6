"""Parts of files, definitions or chunks, and their relevance to a query: its words in the part and in its names.

A file is split into chunks along its definitions, and those that answer a query are chosen. Pure apart from the
callbacks that read. Not here: the choice of files (`rank.py`), the text of a map (`repomap.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log1p, sqrt
from typing import NamedTuple
from zlib import crc32

from codeagent_lsp.index.symbols import CALLABLE, SymbolInfo
from codeagent_lsp.index.words import QueryTerms, as_word, lines_of_tokens, terms_of

MOST_FILES = 20  # whose parts are looked at; more found no more functions

# How much more a part counts that is the best in something, as powers of e: for the words of the query in its text, and
# again for those of its first line alone, which says what the rest is about; for those in its own names, and in the
# names of what it is in; and if the query names it as code. Fitted to six histories, see tests/bench/README.md.
TEXT_POWER, NAME_POWER, AROUND_POWER, ASKED_POWER = 1.0, 0.75, 0.75, 0.75
LENGTH_POWER = 0.25  # of its lines: in a long function more can be meant
NO_FUNCTION, NAMELESS = 0.5, 0.35  # of its score, for a part without a function, and for one outside of any definition

TYPES = frozenset(("class", "interface", "struct", "enum", "module", "type"))

_CENTRAL_FILES, _CENTRAL_DEFINITIONS = 24, 8

Read = Callable[[str], str | None]
Outline = Callable[[str], Sequence[SymbolInfo]]

MOST_LINES = 60
LEAST_LINES = 12
PER_FILE = 3  # chunks near in meaning


class FilePart(NamedTuple):
    """A part of a file as it is weighed: the file's score times what its kind is worth, how often the part has each
    word of the query (by word), the words of the query in its own names and in those of what it is in, whether the
    query names it as code, and how many lines it has.
    """

    score: float
    counts: Mapping[str, int]
    named: frozenset[str] = frozenset()
    around: frozenset[str] = frozenset()
    asked: bool = False
    lines: int = MOST_LINES


class WordLines:
    """The lines (1-based) of one text that have words of a query, in order, once for every occurrence."""

    def __init__(self, found: Iterable[tuple[int, str]]) -> None:
        pairs = list(found)
        self._lines = [line for line, _ in pairs]
        self._words = [word for _, word in pairs]

    def counts(self, start: int, end: int) -> dict[str, int]:
        """Return how often each word of the query occurs from line `start` to `end`, 1-based and inclusive; {} for
        none.
        """
        counts: dict[str, int] = {}
        for word in self._words[bisect_left(self._lines, start) : bisect_right(self._lines, end)]:
            counts[word] = counts.get(word, 0) + 1
        return counts


class QueryWords:
    """Finds the words of one query in texts, however they are inflected. It remembers every token, so use one for all
    texts of the query, in one thread.
    """

    def __init__(self, asking: QueryTerms) -> None:
        self._asked = _searched(asking)
        self._known: dict[str, tuple[str, ...]] = {}
        # A stem that ends in y may stand for `ies`. The pattern only saves the splitting of most tokens.
        keys = sorted({re.escape(word.strip("_").removesuffix("y")) for word in self._asked} - {""})
        self._may_have = re.compile("|".join(keys)) if keys else None

    def lines(self, text: str) -> WordLines:
        """Return the lines of a text (1-based, ended by LF) that have words of the query."""
        return WordLines(self._found(text))

    def named(self, name: str) -> frozenset[str]:
        """Return the words of the query that a dotted name contains."""
        return frozenset(word for token in name.split(".") for word in self._words(token))

    def _found(self, text: str) -> Iterator[tuple[int, str]]:
        lines = lines_of_tokens(text)
        tokens = set[str]().union(*lines)
        having = frozenset(token for token in tokens if self._words(token))
        for number, line in enumerate(lines, 1):
            if not having.isdisjoint(line):  # most lines have none: this is what makes it fast
                yield from ((number, word) for token in line if token in having for word in self._known[token])

    def _words(self, token: str) -> tuple[str, ...]:
        words = self._known.get(token)
        if words is None:
            words = self._known[token] = self._words_in(token)
        return words

    def _words_in(self, token: str) -> tuple[str, ...]:
        # Cheap, before a token is split and stemmed.
        if self._may_have is None or (token.isascii() and self._may_have.search(token.lower()) is None):
            return ()
        return tuple(word for word in terms_of(token) if word in self._asked)


def weigh_parts(parts: Sequence[FilePart], subject: frozenset[str]) -> list[float]:
    """Return the score of each part, in order, at most its own: scaled down by how far its words and names are behind
    those of the best of these parts. A word counts the more the rarer it is among them; how often a part has it is
    dampened. `subject` are the words of the query's first line.
    """
    having = Counter(word for part in parts for word in part.counts)
    # Rare among these parts, not in the whole workspace: the files were chosen by that already.
    weights = {word: log1p(len(parts) / count) for word, count in having.items()}
    unseen = log1p(len(parts))

    def of_text(part: FilePart, *, first: bool) -> float:
        counts = part.counts.items()
        return sum(weights[w] * min(2.0, 1 + log1p(many - 1) / 2) for w, many in counts if not first or w in subject)

    def of_name(words: frozenset[str]) -> float:
        return sum(weights.get(word, unseen) for word in words)

    text = _relative([of_text(part, first=False) for part in parts])
    first = _relative([of_text(part, first=True) for part in parts])
    named = _relative([of_name(part.named) for part in parts])
    around = _relative([of_name(part.around) for part in parts])
    powers = [
        TEXT_POWER * (text[at] + first[at])
        + NAME_POWER * named[at]
        + AROUND_POWER * around[at]
        + ASKED_POWER * part.asked
        for at, part in enumerate(parts)
    ]
    top = max(powers, default=0.0)
    return [
        part.score * (part.lines / MOST_LINES) ** LENGTH_POWER * exp(power - top)
        for part, power in zip(parts, powers, strict=True)
    ]


def definitions(
    ranked: Sequence[tuple[str, float]],
    read: Read,
    outline: Outline,
    asking: QueryTerms,
    subject: QueryTerms | None = None,
) -> list[tuple[SymbolInfo, float]]:
    """Return pairs of definition and score for the functions and types of the 20 best files, in the order of the files.
    `ranked` has paths and scores, best first; `subject` are the terms of the query's first line, if it has others. If
    `read` returns None, only the words of signature and docstring count.
    """
    words, names = QueryWords(asking), frozenset(asking.names)
    found: list[SymbolInfo] = []
    parts: list[FilePart] = []
    for path, score in ranked[:MOST_FILES]:
        symbols = [each for each in outline(path) if each.kind in CALLABLE or each.kind in TYPES]
        text = read(path) if symbols else None
        lines = words.lines(text) if text is not None else None
        for symbol in symbols:
            found.append(symbol)
            parts.append(
                FilePart(
                    score,
                    _counts(symbol, lines, words),
                    words.named(symbol.name),
                    words.named(symbol.parent),
                    symbol.name in names,
                )
            )
    return list(zip(found, weigh_parts(parts, _searched(subject or asking)), strict=True))


def central(ranked: Sequence[tuple[str, float]], outline: Outline) -> list[tuple[SymbolInfo, float]]:
    """Return pairs of definition and score for the top-level definitions of the 24 best files, at most 8 each, for a
    map without a task; types count more than functions. `ranked` has paths and scores, best first.
    """
    found: list[tuple[SymbolInfo, float]] = []
    # No words to choose by, so it is the top of each file; what is inside of a type is read with it.
    for path, score in ranked[:_CENTRAL_FILES]:
        top = [each for each in outline(path) if not each.parent]
        types = [each for each in top if each.kind in TYPES]
        both = [*types, *(each for each in top if each.kind in CALLABLE)][:_CENTRAL_DEFINITIONS]
        found += [(each, score * (0.6 if each.kind in TYPES else 0.3)) for each in both]
    return found


def _counts(symbol: SymbolInfo, lines: WordLines | None, words: QueryWords) -> Mapping[str, int]:
    """Return the words in a definition; of a type only those in its first line, as the rest is its members'."""
    if lines is None:
        return words.lines(f"{symbol.signature} {symbol.docstring}").counts(1, 1)
    return lines.counts(symbol.line_start, symbol.line_end if symbol.kind in CALLABLE else symbol.line_start)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file by its index path. Lines are 1-based and inclusive; `symbol` is the dotted name of the
    definition it is or is in, '' for none; `score` is comparable only within one search.
    """

    path: str
    line_start: int
    line_end: int
    text: str
    score: float = 0.0
    symbol: str = ""


def answers(
    ranked: Sequence[tuple[str, float]],
    read: Read,
    outline: Outline,
    asking: QueryTerms,
    subject: QueryTerms | None = None,
    *,
    limit: int = 10,
) -> list[Chunk]:
    """Return the best chunks of the 20 best files, best first. `ranked` has paths and scores; `subject` are the terms
    of the query's first line, if it has others; `read` returns None for a missing file, which is skipped. Each further
    chunk of a file counts for less, so that several files are among the first.
    """
    words, names = QueryWords(asking), frozenset(asking.names)
    pieces: list[Chunk] = []
    parts: list[FilePart] = []
    for path, score in ranked[:MOST_FILES]:
        text = read(path)
        symbols = outline(path)
        lines, functions = words.lines(text or ""), _Functions(symbols)
        for piece in split(path, text, symbols) if text is not None else ():
            pieces.append(piece)
            around, _, name = piece.symbol.rpartition(".")
            inside = functions.of(piece)
            worth = 1.0 if inside else NO_FUNCTION if piece.symbol else NAMELESS
            parts.append(
                FilePart(
                    score * worth,
                    lines.counts(piece.line_start, piece.line_end),
                    words.named(".".join((name, *inside))),
                    words.named(around),
                    not names.isdisjoint(inside),
                    piece.line_end - piece.line_start + 1,
                )
            )
    weighed = zip(pieces, weigh_parts(parts, _searched(subject or asking)), strict=True)
    return _by_file([replace(piece, score=score) for piece, score in weighed])[:limit]


class _Functions:
    """The names of the functions of one file by where they begin."""

    def __init__(self, symbols: Sequence[SymbolInfo]) -> None:
        found = sorted((each.line_start, each.name, each.qualified) for each in symbols if each.kind in CALLABLE)
        self._starts = [start for start, _, _ in found]
        self._names = [name for _, name, _ in found]
        self._qualified = {qualified for _, _, qualified in found}

    def of(self, piece: Chunk) -> list[str]:
        """Return the names of the functions that begin in a chunk, and of the one that it is a part of."""
        begun = self._names[bisect_left(self._starts, piece.line_start) : bisect_right(self._starts, piece.line_end)]
        return [*begun, piece.symbol.rpartition(".")[2]] if piece.symbol in self._qualified else begun


def split(path: str, text: str, symbols: Sequence[SymbolInfo]) -> list[Chunk]:
    """Split a text into chunks along its definitions, none longer than 60 lines; they contain all lines, in order. []
    for an empty text.
    """
    lines = rows(text)
    names = _innermost(symbols)
    chunks = []
    for start, end in _spans(lines, symbols):
        chunks.append(Chunk(path, start, end, "\n".join(lines[start - 1 : end]), symbol=names(start, end)))
    return chunks


def rows(text: str) -> list[str]:
    """Return the lines of a text without line ends (LF or CRLF), as the parser counts them: only LF ends one, unlike
    `splitlines`. A final line end starts no other line.
    """
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]


def _spans(lines: Sequence[str], symbols: Iterable[SymbolInfo]) -> list[tuple[int, int]]:
    """Cut before and after each definition; short spans join the following one, long ones are cut again."""
    behind = len(lines) + 1
    cuts = {1, behind}
    for symbol in symbols:
        cuts.update(cut for cut in (symbol.line_start, symbol.line_end + 1) if 1 < cut < behind)
    spans: list[tuple[int, int]] = []
    start = 1
    for cut in sorted(cuts)[1:]:
        # A chunk of a line or two is found by chance and says nothing by itself.
        if cut - start < LEAST_LINES and cut < behind:
            continue
        spans += _shorter(lines, start, cut)
        start = cut
    return spans


def _shorter(lines: Sequence[str], start: int, cut: int) -> Iterator[tuple[int, int]]:
    """Yield spans of 30 to 60 lines before `cut`, cut at content-defined lines (blank line before, then lowest CRC).

    A line added at the top of a long text must not change all chunks below: each would be embedded again.
    """
    while cut - start > MOST_LINES:
        seams = range(start + MOST_LINES // 2, start + MOST_LINES + 1)
        seam = min(seams, key=lambda at: (bool(lines[at - 2].strip()), crc32(lines[at - 1].encode("utf-8", "replace"))))
        yield start, seam - 1
        start = seam
    yield start, cut - 1


def _innermost(symbols: Sequence[SymbolInfo]) -> Callable[[int, int], str]:
    """Return a function that names the smallest definition around a span, else the first that begins in it."""

    def name(start: int, end: int) -> str:
        around = [each for each in symbols if each.line_start <= start and end <= each.line_end]
        if around:
            return min(around, key=lambda each: each.line_end - each.line_start).qualified
        return next((each.qualified for each in symbols if start <= each.line_start <= end), "")

    return name


def _by_file(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks best first, the second of a file at 1/√2 of its score, the third at 1/√3, and so on."""
    before: dict[str, int] = {}
    spread: list[Chunk] = []
    for chunk in sorted(chunks, key=_order):
        before[chunk.path] = place = before.get(chunk.path, 0) + 1
        spread.append(replace(chunk, score=round(chunk.score / sqrt(place), 4)))
    # Sorted again: the second chunk of a file may stand behind the first of another now.
    return sorted(spread, key=_order)


def _searched(asking: QueryTerms) -> frozenset[str]:
    """Return the words that are looked for in texts, as `terms_of` gives them."""
    wholes = {as_word(name) for name in asking.names} - {""}
    return frozenset((*(word for word, _ in asking.words), *wholes, *asking.joined))


def _relative(amounts: Sequence[float]) -> list[float]:
    top = max(amounts, default=0.0) or 1.0
    return [amount / top for amount in amounts]


def _order(chunk: Chunk) -> tuple[float, str, int]:
    return -chunk.score, chunk.path, chunk.line_start
