"""Bundles the output of a command into few events: whole lines, at most ten times a second, limited in total. A line
that has no end for half a second, as a prompt has none, is passed on as it is.

Not here: the output that a command's result keeps (`shadow/output.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from codeagent_lsp.shadow.shell import Stream

INTERVAL = 0.1
PATIENCE = 5
"""How many intervals the beginning of a line waits for its end."""
PIECE = 8 * 1024
TOTAL = 256 * 1024


class OutputStream:
    """Buffers text and passes it to `emit` in pieces, at most `total` characters in all. The beginning of a piece that
    is too long is left out.
    """

    def __init__(self, emit: Callable[[Stream, str], None], total: int = TOTAL) -> None:
        self._emit = emit
        self._left = total
        self._waiting: list[tuple[Stream, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._waited = 0

    def write(self, stream: Stream, text: str) -> None:
        """Buffer printed text; whole lines are passed on within a tenth of a second."""
        if self._waiting and self._waiting[-1][0] == stream:
            text = (self._waiting.pop()[1] + text)[-2 * PIECE :]
        self._waiting.append((stream, text))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._tick)

    def close(self) -> None:
        """Pass on the rest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pass_on(self._waiting)
        self._waiting = []

    def _tick(self) -> None:
        """Pass on whole lines; the beginning of a line waits for its end, but not for long."""
        self._timer = None
        ready = self._waiting
        self._waiting = []
        self._waited = 0 if any("\n" in text for _, text in ready) else self._waited + 1
        if ready and not ready[-1][1].endswith("\n") and self._waited < PATIENCE:
            stream, text = ready.pop()
            head, newline, tail = text.rpartition("\n")
            ready = [*ready, (stream, head + newline)] if newline else ready
            self._waiting = [(stream, tail)]
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._tick)
        self._pass_on(ready)

    def _pass_on(self, pieces: list[tuple[Stream, str]]) -> None:
        for stream, text in pieces:
            piece = text[-min(PIECE, self._left) :] if self._left > 0 else ""
            self._left -= len(piece)
            if piece:
                self._emit(stream, piece)
