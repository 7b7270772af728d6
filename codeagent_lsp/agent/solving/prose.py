"""Filters a streamed answer: its prose passes, its code is held back, since that is shown as a change instead.

Works line by line. Not here: reading the code (`agent/forms`).
"""

from __future__ import annotations

import re

from codeagent_lsp.agent.forms.fences import path_in

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_BLOCK_START, _BLOCK_END = re.compile(r"^<{5,9} ?SEARCH"), re.compile(r"^>{5,9} ?REPLACE")
_LINE = re.compile(r"^[\s>*-]*(?:WRONG|RIGHT):")
_BLANK = re.compile(r"\s")


class ProseFilter:
    """Filters one answer: `feed` takes its pieces in order, `close` ends it."""

    def __init__(self) -> None:
        self._line = ""
        self._fence = ""
        self._in_block = False

    def feed(self, piece: str) -> str:
        """Return the prose that this piece completes, in whole lines only."""
        *lines, self._line = (self._line + piece).split("\n")
        return "".join(self._shown(line) for line in lines)

    def close(self) -> str:
        """Return the prose of the last, incomplete line."""
        line, self._line = self._line, ""
        return self._shown(line) if line else ""

    def _shown(self, line: str) -> str:
        if self._in_block:
            self._in_block = not _BLOCK_END.match(line)
            return ""
        fence = _FENCE.match(line)
        if self._fence:
            if fence is not None and fence[1].startswith(self._fence) and line.strip() == fence[1]:
                self._fence = ""
            return ""
        if fence is not None:
            self._fence = fence[1]
            return ""
        if _LINE.match(line):
            return ""
        if _BLOCK_START.match(line):
            self._in_block = True
            return ""
        is_path = bool(path_in(line)) and not _BLANK.search(line.strip("*#` :"))
        return f"{line}\n" if line.strip() and not is_path else ""
