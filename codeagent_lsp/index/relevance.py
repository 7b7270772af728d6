"""Relevance of parts of files, definitions or chunks, to a query: its words in the part and in the part's name.

Pure apart from the callbacks that read. Not here: the choice of files (`rank.py`), splitting into chunks
(`chunks.py`), the text of a map (`repomap.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import log1p
from typing import NamedTuple

from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.index.words import QueryTerms, as_word, lines_of_tokens, terms_of

MOST_FILES = 20  # whose parts are looked at; more found no more functions
FLOOR = 0.3  # of a file's score, for a part of it without any word of the query

TYPES = frozenset(("class", "interface", "struct", "enum", "module", "type"))
CALLABLE = frozenset(("function", "method"))

_CENTRAL_FILES, _CENTRAL_DEFINITIONS = 24, 8

Read = Callable[[str], str | None]
Outline = Callable[[str], Sequence[SymbolInfo]]


class FilePart(NamedTuple):
    """A part of a file: the file's score, how often it has each word of the query, and those in its name."""

    file_score: float
    counts: Mapping[str, int]
    named: frozenset[str]


class WordLines:
    """The lines (1-based) of one text that have words of a query, in order, once for every occurrence."""

    def __init__(self, found: Iterable[tuple[int, str]]) -> None:
        pairs = list(found)
        self._lines = [line for line, _ in pairs]
        self._words = [word for _, word in pairs]

    def counts(self, start: int, end: int) -> dict[str, int]:
        """Return how often each word occurs from line `start` to `end`, inclusive."""
        counts: dict[str, int] = {}
        for word in self._words[bisect_left(self._lines, start) : bisect_right(self._lines, end)]:
            counts[word] = counts.get(word, 0) + 1
        return counts


class QueryWords:
    """Finds the words of one query in texts. It knows each token of all texts, so use one for all of them."""

    def __init__(self, asking: QueryTerms) -> None:
        wholes = {as_word(name) for name in asking.names} - {""}
        self._asked = frozenset((*(word for word, _ in asking.words), *wholes, *asking.joined))
        self._known: dict[str, tuple[str, ...]] = {}
        # A stem that ends in y may stand for `ies`. The pattern only saves the splitting of most tokens.
        keys = sorted({re.escape(word.strip("_").removesuffix("y")) for word in self._asked} - {""})
        self._may_have = re.compile("|".join(keys)) if keys else None

    def lines(self, text: str) -> WordLines:
        """Return where the words are in a text."""
        return WordLines(self._found(text))

    def named(self, name: str) -> frozenset[str]:
        """Return the words that a dotted name has."""
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


def weighed(parts: Sequence[FilePart]) -> list[float]:
    """Return the score of each part: its file's score, scaled by its words, which count the more the rarer they are.

    How often a part has a word is dampened; a word in its name counts as much again, even if it is not in its text.
    """
    having: dict[str, int] = {}
    for part in parts:
        for word in part.named.union(part.counts):
            having[word] = having.get(word, 0) + 1
    weights = {word: log1p(len(parts) / count) for word, count in having.items()}
    raw = [
        sum(weights[word] * min(2.0, 1 + log1p(count - 1) / 2) for word, count in part.counts.items())
        + sum(weights[word] for word in part.named)
        for part in parts
    ]
    top = max(raw, default=0.0) or 1.0
    return [part.file_score * (FLOOR + amount / top) for part, amount in zip(parts, raw, strict=True)]


def definitions(
    ranked: Sequence[tuple[str, float]], read: Read, outline: Outline, asking: QueryTerms
) -> list[tuple[SymbolInfo, float]]:
    """Return the functions and types of the best files with scores, in the order of the files.

    `ranked` has paths and scores; where `read` returns None, the words of signature and docstring have to do.
    """
    words = QueryWords(asking)
    found: list[SymbolInfo] = []
    parts: list[FilePart] = []
    for path, score in ranked[:MOST_FILES]:
        symbols = [each for each in outline(path) if each.kind in CALLABLE or each.kind in TYPES]
        text = read(path) if symbols else None
        lines = words.lines(text) if text is not None else None
        for symbol in symbols:
            found.append(symbol)
            parts.append(FilePart(score, _counts(symbol, lines, words), words.named(symbol.qualified)))
    return list(zip(found, weighed(parts), strict=True))


def central(ranked: Sequence[tuple[str, float]], outline: Outline) -> list[tuple[SymbolInfo, float]]:
    """Return the definitions at the top of the best files with scores, for a map of no task: types before functions."""
    found: list[tuple[SymbolInfo, float]] = []
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
