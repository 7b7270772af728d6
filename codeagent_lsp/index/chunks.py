"""Splitting of files into chunks along their definitions, and choice of the chunks that answer a query.

Pure apart from the callback that reads. Not here: the choice of files (`rank.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log1p
from zlib import crc32

from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.index.words import QueryTerms, as_word, counted

MOST_LINES = 60
LEAST_LINES = 5
MOST_FILES = 30
PER_FILE = 3

Read = Callable[[str], str | None]
Outline = Callable[[str], Sequence[SymbolInfo]]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file. Lines are 1-based and inclusive; `symbol` is the definition it is or lies in, '' for none."""

    path: str
    line_start: int
    line_end: int
    text: str
    score: float = 0.0
    symbol: str = ""


def answers(
    ranked: Iterable[tuple[str, float]], read: Read, outline: Outline, asking: QueryTerms, limit: int = 10
) -> list[Chunk]:
    """Return the best chunks of the best files, best first; at most three per file.

    `ranked` has paths and scores; `read` returns None for a missing file, which is skipped.
    """
    pieces = [
        (file, piece)
        for file in list(ranked)[:MOST_FILES]
        if (text := read(file[0])) is not None
        for piece in split(file[0], text, outline(file[0]))
    ]
    found = _scored(pieces, asking)
    kept: list[Chunk] = []
    per_file: dict[str, int] = {}
    for chunk in sorted(found, key=lambda each: (-each.score, each.path, each.line_start)):
        per_file[chunk.path] = per_file.get(chunk.path, 0) + 1
        if per_file[chunk.path] <= PER_FILE:
            kept.append(chunk)
    return kept[:limit]


def split(path: str, text: str, symbols: Sequence[SymbolInfo]) -> list[Chunk]:
    """Split a text into chunks along its definitions, none longer than 60 lines; they contain all lines, in order."""
    lines = text.splitlines()
    names = _innermost(symbols)
    chunks = []
    for start, end in _spans(lines, symbols):
        chunks.append(Chunk(path, start, end, "\n".join(lines[start - 1 : end]), symbol=names(start, end)))
    return chunks


def _spans(lines: Sequence[str], symbols: Iterable[SymbolInfo]) -> list[tuple[int, int]]:
    """Cut before and after each definition; short spans join the following one, long ones are cut again."""
    behind = len(lines) + 1
    cuts = {1, behind}
    for symbol in symbols:
        cuts.update(cut for cut in (symbol.line_start, symbol.line_end + 1) if 1 < cut < behind)
    spans: list[tuple[int, int]] = []
    start = 1
    for cut in sorted(cuts)[1:]:
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


def _scored(pieces: Sequence[tuple[tuple[str, float], Chunk]], asking: QueryTerms) -> list[Chunk]:
    """Score each chunk: its file's score, scaled by the query's words in the chunk, weighted by rarity (IDF)."""
    asked = {word for word, _ in asking.words} | {as_word(name) for name in asking.names} - {""}
    have = [_present(chunk, asked) for _, chunk in pieces]
    seen: dict[str, int] = {}
    for words in have:
        for word in words:
            seen[word] = seen.get(word, 0) + 1
    weights = {word: log1p(len(pieces) / count) for word, count in seen.items()}
    raw = [sum(weights[word] * amount for word, amount in words.items()) for words in have]
    top = max(raw, default=0.0) or 1.0
    return [
        replace(chunk, score=round(score * (0.3 + amount / top), 4))
        for ((_, score), chunk), amount in zip(pieces, raw, strict=True)
    ]


def _present(chunk: Chunk, asked: set[str]) -> Mapping[str, float]:
    """Return the weight of each query word in a chunk: dampened by frequency, plus 1 if it is in the symbol's name."""
    counts = counted(chunk.text)
    named = counted(chunk.symbol)
    return {
        word: min(2.0, 1 + log1p(counts[word] - 1) / 2) + (1.0 if word in named else 0.0)
        for word in asked
        if word in counts
    }
