"""Splitting of files into chunks along their definitions, and choice of the chunks that answer a query.

Pure apart from the callback that reads. Not here: the choice of files (`rank.py`), the scores (`relevance.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

from codeagent_lsp.index.relevance import MOST_FILES, FilePart, Outline, QueryWords, Read, weighed
from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.index.words import QueryTerms

MOST_LINES = 60
LEAST_LINES = 5
PER_FILE = 3  # chunks near in meaning
NEXT_OF_FILE = 0.8  # of its score, for each chunk of a file after the best
NAMELESS = 0.7  # of its file's score, for a chunk outside of any definition


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
    ranked: Sequence[tuple[str, float]], read: Read, outline: Outline, asking: QueryTerms, limit: int = 10
) -> list[Chunk]:
    """Return the best chunks of the best files, best first.

    `ranked` has paths and scores; `read` returns None for a missing file, which is skipped. Each further chunk of a
    file counts for less, so that several files are among the first.
    """
    words = QueryWords(asking)
    pieces: list[Chunk] = []
    parts: list[FilePart] = []
    for path, score in ranked[:MOST_FILES]:
        text = read(path)
        lines = words.lines(text or "")
        for piece in split(path, text, outline(path)) if text is not None else ():
            pieces.append(piece)
            counts = lines.counts(piece.line_start, piece.line_end)
            parts.append(FilePart(score if piece.symbol else NAMELESS * score, counts, words.named(piece.symbol)))
    scored = [replace(piece, score=score) for piece, score in zip(pieces, weighed(parts), strict=True)]
    return _spread(scored)[:limit]


def split(path: str, text: str, symbols: Sequence[SymbolInfo]) -> list[Chunk]:
    """Split a text into chunks along its definitions, none longer than 60 lines; they contain all lines, in order."""
    lines = rows(text)
    names = _innermost(symbols)
    chunks = []
    for start, end in _spans(lines, symbols):
        chunks.append(Chunk(path, start, end, "\n".join(lines[start - 1 : end]), symbol=names(start, end)))
    return chunks


def rows(text: str) -> list[str]:
    """Return the lines of a text as the parser counts them: only LF ends one; `splitlines` knows form feeds, too."""
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


def _spread(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Return the chunks best first, the second of a file at 0.8 of its score, the third at 0.64, and so on."""
    before: dict[str, int] = {}
    spread: list[Chunk] = []
    for chunk in sorted(chunks, key=_order):
        earlier = before.get(chunk.path, 0)
        before[chunk.path] = earlier + 1
        spread.append(replace(chunk, score=round(chunk.score * NEXT_OF_FILE**earlier, 4)))
    return sorted(spread, key=_order)


def _order(chunk: Chunk) -> tuple[float, str, int]:
    return -chunk.score, chunk.path, chunk.line_start
