"""The end of the log that a language server writes to its standard error. Not here: its messages (`connection.py`)."""

from __future__ import annotations

import asyncio
from collections import deque

LINES = 20
LINE = 500


class ServerLog:
    """The last lines of one server's log."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LINES)

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Read a log to its end; of a line without end, only the last part."""
        rest = b""
        while chunk := await stream.read(65536):
            *lines, rest = (rest + chunk[-65536:]).split(b"\n")
            self._lines.extend(line.decode("utf-8", "replace")[:LINE] for line in [*lines, rest] if line)

    @property
    def last_line(self) -> str:
        """Return the last line that is not blank; '' for none."""
        return next((line for line in reversed(self._lines) if line.strip()), "")
