"""Detects when a model is in a loop: the same tool calls with the same results, or text that repeats itself.

It only reports; the agent loop nudges the model once and then stops. Calls with different arguments or different
results are progress and never count, so batch work over many files is not stopped; nor are rows that share a part and
differ in the rest. Code, tables and rules (lines of dashes) repeat by nature, so their thresholds are higher.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

REPEATS = 3
UNREADABLE_REPLIES = 6
"""Replies in a row whose calls cannot be understood, however they differ."""
LONGEST_CYCLE = 5
# No code has so many in a row; a model that lost its way in JSON closes brackets without end.
BRACKET_RUN = 50
CHUNK = 50
CHUNK_REPEATS = 10
DIFFERENT_FILLINGS = 5
LONGEST_GAP = 1000
MEAN_GAP = 250
ROOM_IN_CODE = 5000
TEXT_WINDOW = 8000
# Half of a chunk: a server that sends long pieces is checked as often as one that sends tokens.
PIECE = 25

_BRACKET = frozenset("()[]{}<>")
_BRACKETS = re.compile(rf"[()\[\]{{}}<>]{{{BRACKET_RUN + 1},}}")
_FENCE = re.compile(r"[ \t]*(```|~~~)")


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One detected repetition; `kind` is `repeated_call`, `call_cycle`, `unreadable_calls`, `repeated_text` or
    `bracket_run`.
    """

    kind: str
    detail: str


class LoopGuard:
    """Watches one run for repetition. It must get every finished call and every piece of streamed text, reasoning
    included.
    """

    def __init__(self) -> None:
        self._calls: deque[str] = deque(maxlen=REPEATS * LONGEST_CYCLE)
        self._text = ""
        self._line = ""
        self._in_code = False
        self._unchecked = 0
        self._unreadable = 0

    def observe_call(self, name: str, arguments: Mapping[str, Any], result: str) -> Anomaly | None:
        """Record a finished call; return an anomaly when it completes a cycle of at most 5 calls for the third time."""
        # With the result: the same call after an edit gives something else, and is progress.
        self._calls.append(_signature(name, arguments, result))
        for length in range(1, LONGEST_CYCLE + 1):
            if self._cycles(length):
                if length == 1:
                    return Anomaly("repeated_call", f"{name} was called {REPEATS} times and gave the same each time")
                detail = f"the same {length} calls, the last of them {name}, gave the same {REPEATS} times over"
                return Anomaly("call_cycle", detail)
        return None

    def observe_reply(self, *, understood: bool) -> Anomaly | None:
        """Record a finished reply; return an anomaly when too many in a row had calls that nobody understands."""
        self._unreadable = 0 if understood else self._unreadable + 1
        if self._unreadable < UNREADABLE_REPLIES:
            return None
        return Anomaly("unreadable_calls", f"the calls of {self._unreadable} replies in a row could not be understood")

    def observe_text(self, chunk: str) -> Anomaly | None:
        """Record streamed text; return an anomaly when the text repeats itself."""
        for start in range(0, len(chunk), PIECE):
            anomaly = self._observe_piece(chunk[start : start + PIECE])
            if anomaly is not None:
                return anomaly
        return None

    def new_reply(self) -> None:
        """Forget the text of earlier replies, because a new reply begins."""
        self._text = self._line = ""
        self._in_code = False
        self._unchecked = 0

    def _observe_piece(self, piece: str) -> Anomaly | None:
        self._text += piece
        if len(self._text) > 2 * TEXT_WINDOW:  # cut now and then: a copy for every piece would cost too much
            self._text = self._text[-TEXT_WINDOW:]
        self._unchecked += len(piece)
        if "\n" in piece:
            self._note_lines(piece)
        elif len(self._line) < CHUNK:
            self._line += piece
        if not _BRACKET.isdisjoint(piece) and _BRACKETS.search(self._text, max(0, len(self._text) - 2 * CHUNK)):
            return Anomaly("bracket_run", f"more than {BRACKET_RUN} brackets in a row")
        return self._repetition()

    def _note_lines(self, piece: str) -> None:
        """Record whether the text is inside a fenced code block."""
        *ended, self._line = (self._line + piece).split("\n")
        for line in ended:
            self._in_code ^= _FENCE.match(line) is not None

    def _cycles(self, length: int) -> bool:
        recent = list(self._calls)[-length * REPEATS :]
        if len(recent) < length * REPEATS:
            return False
        return all(recent[index] == recent[index % length] for index in range(len(recent)))

    def _repetition(self) -> Anomaly | None:
        text, size = self._text, len(self._text)
        chunk = text[-CHUNK:]
        # A cheap look first: nearly all text ends here.
        if text.find(chunk, max(0, size - LONGEST_GAP), size - 1) < 0:
            return None
        natural = self._repeats_by_nature(chunk)
        # Searching the whole window is dear, and in code, where chunks do repeat, it would be done at every piece.
        if natural and self._unchecked < CHUNK_REPEATS * CHUNK:
            return None
        self._unchecked = 0
        places = _occurrences(text, chunk)
        latest = places[-CHUNK_REPEATS:]
        if len(latest) < CHUNK_REPEATS or (latest[-1] - latest[0]) / (len(latest) - 1) > MEAN_GAP:
            return None
        # What stands between the repeats: rows of a list differ there, a loop does not.
        if len({text[start + CHUNK : end] for start, end in pairwise(latest)}) > DIFFERENT_FILLINGS:
            return None
        # Boilerplate repeats for a screen or two; a loop goes on.
        if natural and places[-1] - places[0] < ROOM_IN_CODE:
            return None
        return Anomaly("repeated_text", f"the same {CHUNK} characters came {len(places)} times")

    def _repeats_by_nature(self, chunk: str) -> bool:
        row = self._line.lstrip().startswith("|") or chunk.count("|") > 1
        # A table's row, or a rule such as `-----`, which has hardly a letter.
        return self._in_code or row or sum(map(str.isalnum, chunk)) < 5


def _signature(name: str, arguments: Mapping[str, Any], result: str) -> str:
    canonical = json.dumps([name, arguments, result], sort_keys=True, default=str)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _occurrences(text: str, chunk: str) -> list[int]:
    """Return the offsets of `chunk` in the last 8,000 characters of `text`, found from the end, without overlaps."""
    places: list[int] = []
    start = max(0, len(text) - TEXT_WINDOW)
    position = text.rfind(chunk, start)
    while position >= 0:
        places.append(position)
        position = text.rfind(chunk, start, position)
    return places[::-1]
