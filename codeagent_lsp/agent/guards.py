"""Sees when a model goes in circles: the same calls with the same results, or text that repeats itself.

Pure bookkeeping: it only tells; the loop nudges once and then stops. Different arguments or different results
are progress and never count, so batch work over many files goes through.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

REPEATS = 3
LONGEST_CYCLE = 5
BRACKET_RUN = 50
CHUNK = 50
CHUNK_REPEATS = 10
CHUNK_REPEATS_IN_CODE = 30
MEAN_GAP = 250
TEXT_WINDOW = 8000
CHECK_EVERY = 25

_BRACKETS = frozenset("()[]{}<>")


@dataclass(frozen=True, slots=True)
class Anomaly:
    """What was seen: `kind` is `repeated_call`, `call_cycle`, `repeated_text` or `bracket_run`."""

    kind: str
    detail: str


class LoopGuard:
    """Watches one run. Feed it every finished call and every piece of streamed text, reasoning included."""

    def __init__(self) -> None:
        self._calls: deque[str] = deque(maxlen=REPEATS * LONGEST_CYCLE)
        self._text = ""
        self._unchecked = 0
        self._run = 0

    def observe_call(self, name: str, arguments: Mapping[str, Any], result: str) -> Anomaly | None:
        """Note a finished call; an anomaly when it completes a cycle for the third time."""
        self._calls.append(_signature(name, arguments, result))
        for length in range(1, LONGEST_CYCLE + 1):
            if self._cycles(length):
                kind = "repeated_call" if length == 1 else "call_cycle"
                return Anomaly(kind, f"{name} and the {length} call(s) of its cycle gave the same {REPEATS} times")
        return None

    def observe_text(self, chunk: str) -> Anomaly | None:
        """Note streamed text; an anomaly when it repeats itself."""
        for char in chunk:
            self._run = self._run + 1 if char in _BRACKETS else 0
            if self._run > BRACKET_RUN:
                return Anomaly("bracket_run", f"more than {BRACKET_RUN} brackets in a row")
        self._text = (self._text + chunk)[-TEXT_WINDOW:]
        self._unchecked += len(chunk)
        if self._unchecked < CHECK_EVERY:
            return None
        self._unchecked = 0
        return self._repetition()

    def new_reply(self) -> None:
        """A new reply begins; text of earlier ones does not count for it."""
        self._text = ""
        self._run = 0
        self._unchecked = 0

    def _cycles(self, length: int) -> bool:
        recent = list(self._calls)[-length * REPEATS :]
        if len(recent) < length * REPEATS:
            return False
        if length > 1 and len(set(recent[:length])) == 1:
            return False
        return all(recent[index] == recent[index % length] for index in range(len(recent)))

    def _repetition(self) -> Anomaly | None:
        chunk = self._text[-CHUNK:]
        if len(chunk) < CHUNK or sum(char.isalnum() for char in chunk) < 5:
            return None
        in_code = self._text.count("```") % 2 == 1
        needed = CHUNK_REPEATS_IN_CODE if in_code else CHUNK_REPEATS
        places = _occurrences(self._text, chunk)
        if len(places) < needed:
            return None
        gaps = [later - earlier for earlier, later in pairwise(places)][-(needed - 1) :]
        if sum(gaps) / len(gaps) > MEAN_GAP or len(set(gaps)) > 5:
            return None
        return Anomaly("repeated_text", f"the same {CHUNK} characters came {len(places)} times")


def _signature(name: str, arguments: Mapping[str, Any], result: str) -> str:
    canonical = json.dumps([name, dict(arguments), result], sort_keys=True, default=str)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _occurrences(text: str, chunk: str) -> list[int]:
    places: list[int] = []
    position = text.find(chunk)
    while position >= 0:
        places.append(position)
        position = text.find(chunk, position + 1)
    return places
