"""Answers to prompts: from the keyboard, by `--yes`, or a denial if there is no user; and decisions about changes, as a
whole or part by part.

Not here: how a question looks (`screen.py`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from codeagent_lsp.system import drop_typed, hidden_input, is_terminal
from codeagent_lsp.texts import pair
from codeagent_lsp.workspace.changes.reviewed import places_in_diff

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
    """Return the choices, in their order, without the one that shows the changes, for a user who sees them already."""
    return tuple(choice for choice in choices if choice not in pair(_REVIEW_KEY))


def picked(line: str, choices: Sequence[str]) -> str | None:
    """Return the choice that an entered line means: by its 1-based number, its words, or its unique prefix; None if it
    is unclear.
    """
    words = line.strip().casefold()
    if words.isdecimal():
        return choices[int(words) - 1] if 1 <= int(words) <= len(choices) else None
    fitting = [choice for choice in choices if words and choice.casefold().startswith(words)]
    whole = [choice for choice in fitting if choice.casefold() == words]
    return (whole or fitting)[0] if len(fitting) == 1 or whole else None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a diff that can be decided about alone: a hunk, by its id `path#id`, or a file as a whole, by the name
    that the diff gives it. `diff` has the file's head.
    """

    name: str
    is_hunk: bool
    diff: str


def parts_of(diff: str) -> tuple[Part, ...]:
    """Return the parts of a review's diff, as `Changeset.diff` writes it, in its order: one for each hunk with an id,
    else one for the file; () for no diff.
    """
    lines, found = diff.splitlines(), list[Part]()
    for file in places_in_diff(lines):
        named = [hunk for hunk in file.hunks if hunk.hunk]
        head = lines[file.first : named[0].first] if named else []
        if not named:
            found.append(Part(file.name, is_hunk=False, diff="\n".join(lines[file.first : file.last + 1])))
        for hunk in named:
            shown = "\n".join((*head, *lines[hunk.first : hunk.last + 1]))
            found.append(Part(str(hunk.hunk), is_hunk=True, diff=shown))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of staged changes, as arguments for the commands: {} for all of them, None for none of them. What is
    in neither stays staged.
    """

    apply: Mapping[str, Any] | None = None
    discard: Mapping[str, Any] | None = None


def decision_of(parts: Sequence[Part], apply: Iterable[Part], discard: Iterable[Part]) -> Decision:
    """Return the decision by which of all these `parts` some are applied and some discarded; what is in neither stays
    staged.
    """

    def chosen(some: Sequence[Part]) -> Mapping[str, Any] | None:
        if not some or len(some) == len(parts):
            return {} if some else None
        named = {"hunks": [part.name for part in some if part.is_hunk]}
        named["files"] = [part.name for part in some if not part.is_hunk]
        return {key: names for key, names in named.items() if names}

    return Decision(chosen(tuple(apply)), chosen(tuple(discard)))


class Keyboard:
    """Reads lines from standard input without blocking the event loop, so that Ctrl-C and the server are handled
    meanwhile.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._rest = b""

    @property
    def present(self) -> bool:
        """Whether standard input is a terminal, at which somebody can answer."""
        return is_terminal(self._descriptor)

    def forget(self) -> None:
        """Drop what was typed so far, on a terminal also what was not read yet: nobody has agreed to a question that
        they had not seen.
        """
        self._rest = b""
        if is_terminal(self._descriptor):
            drop_typed(self._descriptor)

    async def line(self) -> str | None:
        """Wait for the next line and return it without its end; None at the end of input, also if a line was begun.
        Cancelling keeps what was typed.
        """
        while b"\n" not in self._rest:
            chunk = await self._chunk()
            if not chunk:
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(sys.stdin.encoding or "utf-8", "replace")

    async def secret_line(self) -> str | None:
        """Wait for the next line, not shown while it is typed, and return it without its end; None at the end of input.
        To be called only if `present`.
        """
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
