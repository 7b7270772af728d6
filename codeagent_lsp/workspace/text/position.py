"""Lines of a text as editors and LSP split them, and conversion between offsets and LSP positions, in the position
encodings UTF-8, UTF-16 and UTF-32.

An offset counts code points from the start of the text, as Python's slices do. A line ends at `\\n`, `\\r\\n` or `\\r`
only; form feed and U+2028 are ordinary characters, unlike for `str.splitlines`. Every function clamps as LSP requires
and none raises on invalid positions. Not here: documents and their versions (`document.py`).
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_LINE_END = re.compile(r"\r\n|\n|\r")
_CODEC = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
_DIRECTIVE = re.compile(
    r"#[ \t]*(?:if|ifn?def|elif|else|endif|define|undef|include|import|pragma|(?:end)?region|error|line|warning)\b"
)
_NUMBERED = re.compile(r"[ \t]*(\d{1,7})\|")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


class Position(NamedTuple):
    """A 0-based line and a 0-based character, counted in code units of the position encoding."""

    line: int
    character: int


class LineIndex:
    """The offsets, in code points, at which the lines of one text start, ascending from 0. Immutable; `spliced` returns
    the index after an edit.
    """

    __slots__ = ("starts",)

    def __init__(self, starts: array[int]) -> None:
        self.starts = starts

    @classmethod
    def of(cls, text: str) -> LineIndex:
        """Return the index of `text`, made in one pass over it; the empty text has one line."""
        # Splitting is several times faster than a pattern, and most texts have no CR.
        if "\r" in text:
            starts = array("Q", [0])
            starts.extend(match.end() for match in _LINE_END.finditer(text))
        else:
            lengths = (len(line) + 1 for line in text.split("\n"))
            starts = array("Q", accumulate(lengths, initial=0))
            starts.pop()  # the last line has no line end
        return cls(starts)

    def __len__(self) -> int:
        return len(self.starts)

    def line_at(self, offset: int) -> int:
        """Return the 0-based number of the line that contains `offset`; the first or last one for an offset outside of
        the text.
        """
        return bisect_right(self.starts, max(offset, 0)) - 1

    def spliced(self, text: str, start: int, removed: int, inserted: int) -> LineIndex:
        """Return the index of `text`, which has `inserted` characters at `start` in place of `removed` ones.

        Whether a line starts at p depends on the characters p-1 and p only, so only the starts from `start` to the end
        of the insertion are searched again; the others are kept or shifted.
        """
        end = start + inserted
        # The first line starts without a line end before it.
        head = self.starts[: max(1, bisect_left(self.starts, start))]
        tail = self.starts[bisect_right(self.starts, start + removed) :]
        window = max(start - 1, 0)
        head.extend(
            place
            # One character more: a CR at the end of the insertion may have its LF there.
            for match in _LINE_END.finditer(text, window, min(end + 1, len(text)))
            if max(start, 1) <= (place := match.end()) <= end
        )
        shift = inserted - removed
        head.extend(tail if shift == 0 else array("Q", [place + shift for place in tail]))
        return LineIndex(head)


def line_span(text: str, lines: LineIndex, line: int) -> tuple[int, int]:
    """Return start and end offset, in code points, of the 0-based line without its line end. Past the last line, the
    text's end twice.
    """
    if line >= len(lines):
        return len(text), len(text)
    start = lines.starts[line]
    if line + 1 == len(lines):
        return start, len(text)
    end = lines.starts[line + 1] - 1
    return start, end - 1 if end > start and text[end] == "\n" and text[end - 1] == "\r" else end


def offset_at(text: str, lines: LineIndex, position: tuple[int, int], encoding: Encoding) -> int:
    """Return the offset of a position, a 0-based line and character in code units of `encoding`: clamped to its line
    and to the text, rounded down inside a character.
    """
    line, character = position
    if line < 0:
        return 0
    start, end = line_span(text, lines, line)
    return start + _points(text, start, end, character, encoding)


def offsets_of_range(
    text: str, lines: LineIndex, start: tuple[int, int], end: tuple[int, int], encoding: Encoding
) -> tuple[int, int]:
    """Return the offsets of both ends of a range, each as `offset_at` does. An empty range, as typing makes it, is
    converted only once.
    """
    first = offset_at(text, lines, start, encoding)
    if start == end:
        return first, first
    return first, offset_at(text, lines, end, encoding)


def is_in_text(text: str, lines: LineIndex, start: tuple[int, int], end: tuple[int, int], encoding: Encoding) -> bool:
    """Return whether a range lies in this text, as a client with the same text means it. False if it ends before it
    starts, is in lines that do not exist, or cuts a character in two. A character behind the end of its line is
    allowed, as in LSP; so are (number of lines, 0) for the end of the text, and any end for a range that begins with
    the text.
    """
    if min(*start, *end) < 0 or end < start:
        return False
    behind = (len(lines), 0)
    if start > behind or (end > behind and start != (0, 0)):
        return False
    return not any(_is_cut(text, lines, place, encoding) for place in {start, end})


def _is_cut(text: str, lines: LineIndex, position: tuple[int, int], encoding: Encoding) -> bool:
    """Return whether a position is inside of a character."""
    line, character = position
    start, end = line_span(text, lines, line)
    # No more than the text before it is measured, so that this costs what finding the offset costs.
    before = _points(text, start, end, character, encoding)
    return start + before < end and units(text, start, start + before, encoding) < character


def position_at(text: str, lines: LineIndex, offset: int, encoding: Encoding) -> Position:
    """Return the position (0-based, in code units of `encoding`) of an offset in code points, clamped to the text. An
    offset inside a line end counts as the line end's start.
    """
    offset = min(max(offset, 0), len(text))
    line = lines.line_at(offset)
    start, end = line_span(text, lines, line)
    return Position(line, units(text, start, min(offset, end), encoding))


def units(text: str, start: int, end: int, encoding: Encoding) -> int:
    """Return the length of `text[start:end]`, offsets in characters, in code units of the encoding."""
    if encoding == "utf-32" or text.isascii():
        return end - start
    codec, size = _CODEC[encoding]
    return len(text[start:end].encode(codec, "surrogatepass")) // size


def split_lines(text: str) -> list[str]:
    """Split `text` into lines with their endings; joining them gives `text`. Empty text has no lines."""
    return _LINE.findall(text)


def content_of(line: str) -> str:
    """Return a line from `split_lines` without its ending; other text without all CR and LF at its end."""
    return line.rstrip("\r\n")


def ending_of(line: str) -> str:
    """Return the ending of a line from `split_lines`: LF, CRLF, CR, or '' for a last line without one."""
    return line[len(line.rstrip("\r\n")) :]


def runs_together(lines: list[str]) -> bool:
    """Return whether joining the lines would merge two of them: one ends with CR and the next starts with LF."""
    return any(before.endswith("\r") and line.startswith("\n") for before, line in pairwise(lines))


def dominant_newline(text: str) -> str:
    """Return the line ending used most in `text`; LF when it has none, or on a tie with LF."""
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    return max(counts, key=lambda ending: counts[ending])


def shared_ends(one: Sequence[str], other: Sequence[str]) -> tuple[int, int]:
    """Return the lengths of the common prefix and, in what is left after it, of the common suffix of two sequences."""
    shorter = min(len(one), len(other))
    head = 0
    while head < shorter and one[head] == other[head]:
        head += 1
    tail = 0
    while tail < shorter - head and one[-1 - tail] == other[-1 - tail]:
        tail += 1
    return head, tail


def with_newlines(text: str, newline: str) -> str:
    """Return `text` with every line ending (CRLF, CR or LF) replaced by `newline`."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return unified if newline == "\n" else unified.replace("\n", newline)


def margin_lines(lines: Sequence[str], before: str) -> frozenset[int]:
    """Return the 0-based numbers of those `lines` (without their ends) that have no indentation and stand so in the
    replaced text `before` as well, after its first line, such as directives of a preprocessor, labels and old code in
    comments: they are not to be re-indented.
    """
    there = {content_of(line) for line in split_lines(before)[1:] if line[:1].strip()}
    directives = any(map(_DIRECTIVE.match, there))
    return frozenset(
        number
        for number, line in enumerate(lines)
        if line[:1].strip() and (line in there or (directives and _DIRECTIVE.match(line)))
    )


def without_line_numbers(text: str, numbered: re.Pattern[str] | None = None) -> str:
    """Remove the numbers before lines, if every line has one and they count up by one: `12|`, as in the results of the
    read tool, or what `numbered` matches, with the number as its first group. Any other text is returned unchanged.
    """
    lines = split_lines(text)
    numbers = [(numbered or _NUMBERED).match(line) for line in lines]
    found = [int(match[1]) for match in numbers if match is not None]
    if not lines or len(found) != len(lines) or found != list(range(found[0], found[0] + len(found))):
        return text
    return "".join(line[match.end() :] for line, match in zip(lines, numbers, strict=True) if match is not None)


def _points(text: str, start: int, end: int, count: int, encoding: Encoding) -> int:
    """Return how many whole code points of `text[start:end]` fit into `count` code units."""
    count = max(count, 0)
    end = min(end, start + count)  # a code point has at least one unit
    if encoding == "utf-32" or text.isascii():
        return end - start
    part = text[start:end]
    if part.isascii():
        return end - start
    if encoding == "utf-8":
        return _points_utf8(part, count)
    return _points_utf16(part, count)


def _points_utf8(part: str, count: int) -> int:
    data = part.encode("utf-8", "surrogatepass")
    if len(data) <= count:
        return len(part)
    # Continuation bytes: the position is inside of a character.
    while count > 0 and data[count] & 0xC0 == 0x80:
        count -= 1
    return len(data[:count].decode("utf-8", "surrogatepass"))


def _points_utf16(part: str, count: int) -> int:
    data = part.encode("utf-16-le", "surrogatepass")
    if len(data) == 2 * len(part):
        return min(count, len(part))  # nothing above U+FFFF, one unit each
    if len(data) <= 2 * count:
        return len(part)
    # Between the halves of a surrogate pair.
    if _is_high(data, count - 1) and _is_low(data, count):
        count -= 1
    return len(data[: 2 * count].decode("utf-16-le", "surrogatepass"))


def _is_high(data: bytes, unit: int) -> bool:
    return unit >= 0 and data[2 * unit + 1] & 0xFC == 0xD8


def _is_low(data: bytes, unit: int) -> bool:
    return data[2 * unit + 1] & 0xFC == 0xDC
