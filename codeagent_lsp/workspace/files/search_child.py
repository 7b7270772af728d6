"""The other half of `search.py`: a child process that matches lines, so that it can be killed.

A regular expression can take for ever and holds the interpreter's lock while it does, so no thread can stop it.
Run as a script with nothing but the standard library. Reads one JSON value a line: first `[pattern, flags, limit
of lines per text]`, then lists of texts; answers each list with, for every text, the `[line, column]` of its
matching lines, from 0. Not here: choosing and reading files, limits of time.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TextIO

_LINE_END = re.compile(r"\r\n|\n|\r")


def main(source: TextIO, sink: TextIO) -> None:
    """Serve until `source` ends."""
    pattern, flags, limit = json.loads(source.readline())
    compiled = re.compile(pattern, flags)
    for request in source:
        json.dump([find(compiled, text, limit) for text in json.loads(request)], sink)
        sink.write("\n")
        sink.flush()


def find(compiled: re.Pattern[str], text: str, limit: int) -> list[tuple[int, int]]:
    """The lines of `text` that match, at most `limit`, with the column of the first match."""
    found: list[tuple[int, int]] = []
    for number, line in enumerate(lines_of(text)):
        match = compiled.search(line)
        if match is not None:
            found.append((number, match.start()))
            if len(found) == limit:
                break
    return found


def lines_of(text: str) -> list[str]:
    """The lines of `text` without their ends; what follows a final end is no line."""
    lines = _LINE_END.split(text)
    return lines[:-1] if lines[-1] == "" else lines


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
