"""Answers that are known, and the rest of one for a text that was typed on along it. Pure.

Not here: asking for answers (`completer.py`).
"""

from __future__ import annotations

from collections import deque

from codeagent_lsp.inline.place import Place

KEPT = 24


def typed_since(place: Place, earlier: Place) -> str | None:
    """Return what was typed at the earlier place to come to this one; None if anything else has changed."""
    if place.path != earlier.path or place.offset < earlier.offset:
        return None
    typed = place.text[earlier.offset : place.offset]
    if len(place.text) != len(earlier.text) + len(typed):
        return None
    same_before = place.text.startswith(earlier.text[: earlier.offset])
    return typed if same_before and place.text[place.offset :] == earlier.text[earlier.offset :] else None


def rest_of(answer: str, typed: str) -> str | None:
    """Return what is left of an answer after some of it was typed; None if something else was typed."""
    return answer[len(typed) :] if answer.startswith(typed) else None


class Suggestions:
    """The last answers, each with the place that it was made for. An empty answer is one, too: nothing fits there."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Place, str]] = deque(maxlen=KEPT)

    def keep(self, place: Place, answer: str) -> None:
        """Remember an answer."""
        self._kept.appendleft((place, answer))

    def known(self, place: Place) -> str | None:
        """Return the answer for a place, or the rest of one that was typed along; None if none is known.

        Of an answer that was typed to its end nothing is known: another may follow.
        """
        for earlier, answer in self._kept:
            typed = typed_since(place, earlier)
            rest = None if typed is None else rest_of(answer, typed)
            if rest or (rest is not None and not typed):
                return rest
        return None

    def forget(self, path: str) -> None:
        """Forget the answers for a file."""
        self._kept = deque((each for each in self._kept if each[0].path != path), maxlen=KEPT)
