"""Bundles the output of a command into few events: whole lines, ten times a second, limited in total. A line
that has no end for half a second, as a prompt has none, is passed on as it is.

Not here: the output that a command's result keeps (`shadow/output.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from codeagent_lsp.shadow.shell import Stream
from codeagent_lsp.texts import text

INTERVAL = 0.1
PATIENCE = 5
"""How many intervals the beginning of a line waits for its end."""
# Small enough that one event does not hold up the others behind it on the wire.
PIECE = 8 * 1024
TOTAL = 256 * 1024


class OutputStream:
    """Buffers text and passes it to `emit` in pieces of at most `PIECE` characters, in order and whole, up to `total`
    characters until `close`. Of what is printed beyond that, `close` passes on how much it was and its end.
    """

    def __init__(self, emit: Callable[[Stream, str], None], total: int = TOTAL, left_out: str = "") -> None:
        self._emit = emit
        self._total = self._left = total
        self._left_out = left_out or text("output.left_out")
        self._beyond = 0
        self._end: tuple[Stream, str] = ("stdout", "")
        self._waiting: list[tuple[Stream, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._waited = 0

    def write(self, stream: Stream, printed: str) -> None:
        """Buffer printed text; whole lines are passed on within a tenth of a second."""
        within = self._within(stream, printed)
        # Joined only with the same stream: across a change of streams the order in which they were printed is kept.
        if self._waiting and self._waiting[-1][0] == stream:
            within = self._waiting.pop()[1] + within
        if within:
            self._waiting.append((stream, within))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._tick)

    def close(self) -> None:
        """Pass on the rest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pass_on(self._waiting)
        self._waiting = []
        if self._beyond:
            stream, end = self._end
            left_out = self._beyond - len(end)
            self._pass_on([(stream, ("\n" + self._left_out.format(count=left_out) + "\n" if left_out else "") + end)])
        # A stream is used for one command after the other; each has the whole limit.
        self._left, self._beyond, self._end = self._total, 0, ("stdout", "")

    def _within(self, stream: Stream, printed: str) -> str:
        """Return what may still be passed on, and keep the end of what may not."""
        within, beyond = printed[: self._left], printed[self._left :]
        self._left -= len(within)
        if beyond:
            self._beyond += len(beyond)
            self._end = (stream, (self._end[1] + beyond)[-PIECE:])
        return within

    def _tick(self) -> None:
        """Pass on whole lines; the beginning of a line waits for its end, but not for long."""
        self._timer = None
        ready = self._waiting
        self._waiting = []
        # A tick with whole lines shows that output flows, so the line begun last may soon end; only silence means a
        # prompt.
        self._waited = 0 if any("\n" in text for _, text in ready) else self._waited + 1
        if ready and not ready[-1][1].endswith("\n") and self._waited < PATIENCE:
            stream, text = ready.pop()
            head, newline, tail = text.rpartition("\n")
            ready = [*ready, (stream, head + newline)] if newline else ready
            self._waiting = [(stream, tail)]
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._tick)
        self._pass_on(ready)

    def _pass_on(self, pieces: list[tuple[Stream, str]]) -> None:
        for stream, printed in pieces:
            for at in range(0, len(printed), PIECE):
                self._emit(stream, printed[at : at + PIECE])
