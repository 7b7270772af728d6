"""Splitting of texts into lines as editors and LSP do: at LF, CRLF and CR, and nowhere else.

Not here: `str.splitlines`, which also splits at form feed, vertical tab, NEL, U+2028 and others, and so shifts every
line number after them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_DIRECTIVE = re.compile(
    r"#[ \t]*(?:if|ifn?def|elif|else|endif|define|undef|include|import|pragma|(?:end)?region|error|line|warning)\b"
)
_NUMBERED = re.compile(r"[ \t]*(\d{1,7})\|")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


def split_lines(text: str) -> list[str]:
    """Split `text` into lines with their endings; joining them gives `text`. Empty text has no lines."""
    return _LINE.findall(text)


def content_of(line: str) -> str:
    """Return a line from `split_lines` without its ending."""
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
    """Return `text` with every line ending replaced by `newline`."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return unified if newline == "\n" else unified.replace("\n", newline)


def margin_lines(lines: Sequence[str], before: str) -> frozenset[int]:
    """Return the 0-based numbers of the lines that stand at the margin in the text `before`, too, which they replace:
    directives of a preprocessor, labels, old code in comments. They do not move with the code around them.
    """
    there = {content_of(line) for line in split_lines(before)[1:] if line[:1].strip()}
    directives = any(map(_DIRECTIVE.match, there))
    return frozenset(
        number
        for number, line in enumerate(lines)
        if line[:1].strip() and (line in there or (directives and _DIRECTIVE.match(line)))
    )


def without_line_numbers(text: str) -> str:
    """Remove `12|` prefixes, as in the results of the read tool, if every line has one and they count up by one.

    Any other text is returned unchanged.
    """
    lines = split_lines(text)
    numbers = [_NUMBERED.match(line) for line in lines]
    found = [int(match[1]) for match in numbers if match is not None]
    if not lines or len(found) != len(lines) or found != list(range(found[0], found[0] + len(found))):
        return text
    return "".join(line[match.end() :] for line, match in zip(lines, numbers, strict=True) if match is not None)
