"""The child process of `search.py`, which matches lines so that matching can be killed.

A regular expression can take exponential time while it holds the GIL, so a thread could not be stopped. Run as a
script with nothing but the standard library. Protocol, one JSON value per line: first `[pattern, flags, limit of lines
per text, whether a match may span lines]`, then lists of texts; the answer to each list has, for every text, the
0-based `[line, column]` of its matching lines. Not here: choosing and reading files, time limits.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TextIO

_LINE_END = re.compile(r"\r\n|\n|\r")


def main(source: TextIO, sink: TextIO) -> None:
    """Read the pattern, then answer requests from `source` on `sink`, as the module's docstring has them, until
    `source` ends.
    """
    pattern, flags, limit, spanning = json.loads(source.readline())
    compiled = re.compile(pattern, flags)
    search = find_spanning if spanning else find
    for request in source:
        json.dump([search(compiled, text, limit) for text in json.loads(request)], sink)
        sink.write("\n")
        sink.flush()


def find(compiled: re.Pattern[str], text: str, limit: int) -> list[tuple[int, int]]:
    """Return pairs for the first `limit` lines that match: the 0-based number of the line, and of the character in it
    at which the first match begins.
    """
    found: list[tuple[int, int]] = []
    for number, line in enumerate(lines_of(text)):
        match = compiled.search(line)
        if match is not None:
            found.append((number, match.start()))
            if len(found) == limit:
                break
    return found


def find_spanning(compiled: re.Pattern[str], text: str, limit: int) -> list[tuple[int, int]]:
    """Return pairs for the first `limit` lines that belong to a match, which may span lines: the 0-based number of the
    line, and of the character at which the match begins there, 0 on its further lines.
    """
    text = _LINE_END.sub("\n", text)
    found: dict[int, int] = {}
    line = start = 0  # of the last match
    for match in compiled.finditer(text):
        line += text.count("\n", start, match.start())
        start = match.start()
        # A match that ends with a line feed does not touch the next line.
        last = line + text.count("\n", start, max(start, match.end() - 1))
        found.setdefault(line, start - (text.rfind("\n", 0, start) + 1))
        for number in range(line + 1, min(last, line + limit) + 1):
            found.setdefault(number, 0)
        if len(found) >= limit:
            break
    # An empty match behind the last line end is on no line.
    total = len(lines_of(text))
    return [(number, column) for number, column in found.items() if number < total][:limit]


def lines_of(text: str) -> list[str]:
    """Return the lines of `text` without their ends (LF, CRLF or CR); a final line end does not start another line, and
    '' has none.
    """
    lines = _LINE_END.split(text)
    return lines[:-1] if lines[-1] == "" else lines


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
