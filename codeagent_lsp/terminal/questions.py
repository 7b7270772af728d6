"""Answers to prompts: from the keyboard, by `--yes`, or a denial if there is no user.

Not here: how a question looks (`screen.py`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from codeagent_lsp.system import hidden_input, is_terminal
from codeagent_lsp.texts import pair

_YES_KEYS = (
    "choice.apply",
    "choice.once",
    "choice.session",
    "choice.delete",
    "choice.start_plan",
)  # the narrowest consent that will do
_STANDING_KEY = "choice.always"
RISKY = "⚠"  # marks a choice that has risks
_REVIEW_KEY = "choice.review"
_CHUNK = 4096


def accepted(choices: Sequence[str]) -> str | None:
    """Return the choice with which `--yes` continues: the narrowest consent, for this call before the whole session,
    and never one that outlives it; None without choices.

    A recommended choice is preferred, and one without risks to those with risks. If none is known, it is the second
    one, as the first is the safe one.
    """
    choices = [title for title in choices if title not in pair(_STANDING_KEY)]
    marked = [title for title in choices if any(word in title for word in pair("decision.recommended"))]
    safe = [title for title in choices if RISKY not in title and title not in pair("choice.neither")]
    if len(safe) < len(choices) and any(RISKY in title for title in choices):
        return next((title for title in marked if title in safe), (safe or choices)[0])
    if marked:
        return marked[0]
    for key in _YES_KEYS:
        for title in pair(key):
            if title in choices:
                return title
    return choices[min(1, len(choices) - 1)] if choices else None


def without_review(choices: Sequence[str]) -> tuple[str, ...]:
    """Return the choices without the one that shows the changes, for a user who sees them already."""
    return tuple(choice for choice in choices if choice not in pair(_REVIEW_KEY))


def picked(line: str, choices: Sequence[str]) -> str | None:
    """Return the choice that an entered line means: by its 1-based number, or its unique prefix; None if it is
    unclear.
    """
    words = line.strip().casefold()
    if words.isdecimal():
        return choices[int(words) - 1] if 1 <= int(words) <= len(choices) else None
    fitting = [choice for choice in choices if words and choice.casefold().startswith(words)]
    return fitting[0] if len(fitting) == 1 else None


class Keyboard:
    """Reads lines from standard input without blocking the event loop, so that Ctrl-C and the server are handled
    meanwhile.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._rest = b""

    @property
    def present(self) -> bool:
        """Whether standard input is a terminal."""
        return is_terminal(self._descriptor)

    async def line(self) -> str | None:
        """Return the next line without its end; None at the end of input."""
        while b"\n" not in self._rest:
            chunk = await self._chunk()
            if not chunk:
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(sys.stdin.encoding or "utf-8", "replace")

    async def secret_line(self) -> str | None:
        """Return the next line without its end, not shown while it is typed; None at the end of input."""
        with hidden_input(self._descriptor):
            return await self.line()

    async def _chunk(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        # a thread that reads could not be stopped, and would take the line that the next question waits for
        loop.add_reader(self._descriptor, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._descriptor)
        try:
            return os.read(self._descriptor, _CHUNK)
        except OSError:  # the terminal is gone
            return b""
