"""Joining of events that stream a text, so that a secret split between two of them is recorded as one text.

Pieces of one type and one run become one event, emitted when another event comes in that run or when the text gets
long. Not here: masking (`writer.py` does that with the joined event).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

PIECES = frozenset(("token", "stdout", "stderr", "step_output"))
LONG, TOO_LONG = 65_536, 262_144


@dataclass
class _Joined:
    """The pieces so far: the first event, the texts, their length in characters."""

    first: Mapping[str, Any]
    texts: list[str] = field(default_factory=list)
    length: int = 0


class Pieces:
    """Joins streamed events by session and run. Events come in by `add` and are yielded joined."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], _Joined] = {}

    def add(self, event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Take an event and yield the events that can be written now, in order."""
        key = (str(event.get("session_id", "")), str(event.get("run_id", "")))
        waiting = self._waiting.get(key)
        if waiting is not None and waiting.first.get("type") != event.get("type"):
            yield _whole(self._waiting.pop(key))
            waiting = None
        content = event.get("content")
        if event.get("type") not in PIECES or not isinstance(content, str):
            yield event
            return
        if waiting is None:
            waiting = self._waiting[key] = _Joined(event)
        waiting.texts.append(content)
        waiting.length += len(content)
        if waiting.length > LONG and ("\n" in content or waiting.length > TOO_LONG):
            yield self._cut(waiting)

    def rest(self) -> Iterator[Mapping[str, Any]]:
        """Yield all joined events that are still waiting, and forget them."""
        for key in tuple(self._waiting):
            yield _whole(self._waiting.pop(key))

    def _cut(self, waiting: _Joined) -> Mapping[str, Any]:
        """Return an event with the complete lines so far; the unfinished last line stays."""
        text = "".join(waiting.texts)
        end = max(text.rfind("\n"), text.rfind(" ") if waiting.length > TOO_LONG else -1) + 1 or len(text)
        waiting.texts, waiting.length = [text[end:]], len(text) - end
        return {**waiting.first, "content": text[:end]}


def _whole(joined: _Joined) -> Mapping[str, Any]:
    return {**joined.first, "content": "".join(joined.texts)}
