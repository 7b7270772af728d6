"""Answers prompts: by the user at the keyboard, by `--yes`, or not at all when there is nobody.

Nobody there means no: nothing is allowed and nothing applied. Not here: how a question looks (`screen.py`).
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import Sequence

from codeagent_lsp.texts import pair

_YES_KEYS = ("choice.apply", "choice.session", "choice.once", "choice.delete")
RISKY = "⚠"  # marks a choice that has risks
_REVIEW_KEY = "choice.review"
_CHUNK = 4096


def accepted(choices: Sequence[str]) -> str | None:
    """The choice that says yes the most; the second one when none is known, since the safe one stands first.

    Where one is recommended it is that; of choices with risks it is one that has none, for who says yes to
    everything has not weighed them.
    """
    marked = [title for title in choices if any(word in title for word in pair("decision.recommended"))]
    safe = [title for title in choices if RISKY not in title and title not in pair("choice.neither")]
    if len(safe) < len(choices) and any(RISKY in title for title in choices):
        return next((title for title in marked if title in safe), (safe or list(choices))[0])
    if marked:
        return marked[0]
    for key in _YES_KEYS:
        for title in pair(key):
            if title in choices:
                return title
    return choices[min(1, len(choices) - 1)] if choices else None


def without_review(choices: Sequence[str]) -> tuple[str, ...]:
    """The choices for somebody who sees the changes already."""
    return tuple(choice for choice in choices if choice not in pair(_REVIEW_KEY))


def picked(line: str, choices: Sequence[str]) -> str | None:
    """What a typed line means: a number, or the beginning of exactly one choice."""
    words = line.strip().casefold()
    if words.isdecimal():
        return choices[int(words) - 1] if 1 <= int(words) <= len(choices) else None
    fitting = [choice for choice in choices if words and choice.casefold().startswith(words)]
    return fitting[0] if len(fitting) == 1 else None


class Keyboard:
    """Lines from a terminal, read without blocking, so that Ctrl-C and the server are heard meanwhile."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._rest = b""

    @property
    def present(self) -> bool:
        """Whether somebody can type."""
        return os.isatty(self._descriptor)

    async def line(self) -> str | None:
        """The next line without its end; None at the end of input."""
        while b"\n" not in self._rest:
            chunk = await self._chunk()
            if not chunk:
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(sys.stdin.encoding or "utf-8", "replace")

    async def secret_line(self) -> str | None:
        """The next line, not shown while it is typed."""
        shown = termios.tcgetattr(self._descriptor)
        hidden = [*shown[:3], shown[3] & ~termios.ECHO, *shown[4:]]
        termios.tcsetattr(self._descriptor, termios.TCSADRAIN, hidden)
        try:
            return await self.line()
        finally:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, shown)

    async def _chunk(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._descriptor, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._descriptor)
        try:
            return os.read(self._descriptor, _CHUNK)
        except OSError:  # the terminal is gone
            return b""
