"""Splitting text into lines the way editors and the protocol do: at LF, CRLF and CR, nowhere else.

Not here: `str.splitlines`, which also splits at form feed, vertical tab, NEL, U+2028 and others and so shifts
every line number after them.
"""

from __future__ import annotations

import re

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")


def split_lines(text: str) -> list[str]:
    """The lines of `text` with their endings; joining them gives `text` back. Empty text has no lines."""
    return _LINE.findall(text)


def content_of(line: str) -> str:
    """A line from `split_lines` without its ending."""
    return line.rstrip("\r\n")


def ending_of(line: str) -> str:
    """The ending of a line from `split_lines`: LF, CRLF, CR, or nothing for a last line without one."""
    return line[len(line.rstrip("\r\n")) :]


def dominant_newline(text: str) -> str:
    """The line ending used most in `text`; LF when it has none, or on a tie with LF."""
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    return max(counts, key=lambda ending: counts[ending])


def with_newlines(text: str, newline: str) -> str:
    """`text` with every line ending written as `newline`."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return unified if newline == "\n" else unified.replace("\n", newline)
