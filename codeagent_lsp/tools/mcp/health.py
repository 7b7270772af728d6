"""What a transport has of a server's raw output: lines of bounded length, and facts besides its messages.

Of a line that is too long only the ends are kept. The facts (noise, exit, stderr) are written by transports and read to
explain a failure. Not here: the failures (`errors.py`), what a line means (`stdio.py`).
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field

from codeagent_lsp.errors import UserError
from codeagent_lsp.workspace.text.visible import one_line

MAX_MESSAGE = 8 << 20
"""Most bytes of one message; larger ones are not read."""
MAX_SKIPPED = 256 << 20
"""Most bytes of an oversized message to skip before the server is given up."""
MAX_NOISE = 100
"""Number of consecutive invalid messages after which a server is given up."""

SAMPLE = 200
TAIL = 4096

_KEPT_END = 512
_ID = rb'"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,100})")'
# `{"jsonrpc": "2.0", "id": 7,` or `, "id": 7}`: further inside, an `"id"` may belong to the content.
_AT_HEAD = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID)
_AT_TAIL = re.compile(_ID + rb'(?:\s*,\s*"jsonrpc"\s*:\s*"2\.0")?\s*\}\s*$')


class Unreadable(ValueError):
    """Raised when a server's messages can no longer be separated."""


@dataclass(slots=True)
class Health:
    """Facts about one connection. `noise` counts invalid messages since the last valid one, `garbled` all of them;
    `status` is the last HTTP error status, 0 for none; `login` is the reason why a login failed; `refused` is what a
    certificate or the proxy refused; `ending` is how its process ended; `gone` is set when nothing more can arrive.
    """

    noise: int = 0
    garbled: int = 0
    sample: str = ""
    status: int = 0
    ending: str = ""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    problem: BaseException | None = None
    login: UserError | None = None
    refused: UserError | None = None
    stderr: bytes = b""

    def good(self) -> None:
        """Record a valid message."""
        self.noise = 0

    def garbage(self, data: bytes) -> None:
        """Record an invalid message. Unreadable after MAX_NOISE in a row."""
        self.noise += 1
        self.garbled += 1
        if data.strip():
            self.sample = one_line(data[: 2 * SAMPLE].decode("utf-8", "replace"), SAMPLE)
        if self.noise >= MAX_NOISE:
            raise Unreadable(f"{self.noise} lines in a row that are no messages, such as: {self.sample}")

    def printed(self, data: bytes) -> None:
        """Record output on standard error; the last TAIL bytes are kept."""
        self.stderr = (self.stderr + data)[-TAIL:]

    @property
    def last_words(self) -> str:
        """Return the last lines of its standard error, on one line."""
        lines = [line for line in self.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        return one_line(" | ".join(lines[-3:]), 2 * SAMPLE)


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
        self._tail = ((self._tail or bytes(self._kept[-_KEPT_END:])) + piece)[-_KEPT_END:]
        self._kept += piece[: max(0, _KEPT_END - len(self._kept))]
        del self._kept[_KEPT_END:]

    def _line(self) -> bytes | TooLong:
        long = self._size > self._limit
        line = TooLong(bytes(self._kept), self._tail, self._size) if long else bytes(self._kept)
        self._kept.clear()
        self._tail, self._size = b"", 0
        return line
