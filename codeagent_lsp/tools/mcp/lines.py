"""Splitting of bytes into lines of bounded length; only the ends of a line that is too long are kept. Pure.

Not here: what a line means (`stdio.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from codeagent_lsp.tools.mcp.health import MAX_MESSAGE, MAX_SKIPPED, Unreadable

_END = 512
_ID = rb'"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,100})")'
# `{"jsonrpc": "2.0", "id": 7,` or `, "id": 7}`: further inside, an `"id"` may belong to the content.
_AT_HEAD = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_AT_TAIL = re.compile(_ID + rb'(?:\s*,\s*"jsonrpc"\s*:\s*"2\.0")?\s*\}\s*$')


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line that exceeded the limit: its first and last bytes and its size in bytes."""

    head: bytes
    tail: bytes
    size: int

    @property
    def answers(self) -> int | str | None:
        """Return the id of the request that the line seems to answer; None if it cannot be determined."""
        match = _AT_HEAD.match(self.head) or _AT_TAIL.search(self.tail)
        if match is None:
            return None
        return int(match[1]) if match[1] else match[2].decode("utf-8", "replace")


class Lines:
    """An incremental splitter of bytes into lines."""

    def __init__(self, limit: int = MAX_MESSAGE, most: int = MAX_SKIPPED) -> None:
        self._limit = limit
        self._most = most
        self._kept = bytearray()
        self._tail = b""
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Return the lines completed by `data`, without LF. Unreadable if a line exceeds the hard limit."""
        *ended, rest = data.split(b"\n")
        found: list[bytes | TooLong] = []
        for piece in ended:
            self._take(piece)
            found.append(self._line())
        self._take(rest)
        return found

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._kept += piece
            return
        if self._size > self._most:
            raise Unreadable(f"a message of more than {self._most >> 20} MiB")
        self._tail = ((self._tail or bytes(self._kept[-_END:])) + piece)[-_END:]
        self._kept += piece[: max(0, _END - len(self._kept))]
        del self._kept[_END:]

    def _line(self) -> bytes | TooLong:
        long = self._size > self._limit
        line = TooLong(bytes(self._kept), self._tail, self._size) if long else bytes(self._kept)
        self._kept.clear()
        self._tail, self._size = b"", 0
        return line
