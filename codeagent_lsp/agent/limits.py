"""What ends a model's work on a task: its limits, which follow the window of the model, and the detection of loops: the
same tool calls with the same results, or text that repeats itself.

A small window is worked in with the small numbers that a small model needs; above it there is room for long work, and
only the window itself and the user's own settings hold a model back. A loop is only reported here; the agent loop
nudges the model once and then stops. Calls with different arguments or different results are progress and never count,
so batch work over many files is not stopped; nor are rows that share a part and differ in the rest. Code, tables and
rules (lines of dashes) repeat by nature, so their thresholds are higher. Not here: keeping a conversation within its
limits (`context/window.py`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from codeagent_lsp.config import Settings
from codeagent_lsp.llm.model import ModelInfo

DEFAULT_WINDOW = 8192
SMALL_WINDOW = 16_000
"""The largest window, in tokens, with the numbers of a small model."""

SMALL_ITERATIONS, ITERATIONS = 20, 200
SMALL_MESSAGES = 30
SHORTEST_REPLY, SMALL_REPLY, LONG_REPLY = 512, 4096, 32_000
MARGIN = 32
"""The window is this many times as large as the room that is left for errors of the estimate."""


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """Limits of one run. `iterations` counts model calls; `messages` (None: any number) and `window` (tokens) bound the
    prompt; `reply_tokens` is the largest reply at first, and `longest_reply` after one was cut; `compact_at` is the
    share of the window at which old turns are summarised; `thought_tokens` (None: any number) is how long a model may
    think before it is asked once more, without thinking; with `closes` the model is told when few calls are left.
    """

    iterations: int = SMALL_ITERATIONS
    messages: int | None = SMALL_MESSAGES
    window: int = DEFAULT_WINDOW
    reply_tokens: int = 2048
    temperature: float = 0.0
    compact_at: float = 0.8
    longest_reply: int = 0
    thought_tokens: int | None = None
    closes: bool = False

    @property
    def reserved(self) -> int:
        """The tokens of the window that are kept free for a reply. In a large window a reply may be longer than that
        while there is room.
        """
        if self.window <= SMALL_WINDOW:
            return self.reply_tokens
        # More would have the conversation compacted before it reaches `compact_at`.
        return min(self.reply_tokens, int(self.window * (1 - self.compact_at)) - self.window // MARGIN)


def limits_for(settings: Settings, info: ModelInfo, iterations: int | None = None) -> LoopLimits:
    """Return the limits of a run with this model by the settings; `auto` means by the model's window. `iterations`
    replaces the setting `agent.maxIterations`; None or 0 leaves it. Pure.
    """
    window = window_of(info)
    small = window <= SMALL_WINDOW
    reply = reply_tokens(settings, info)
    return LoopLimits(
        iterations or _number(settings.agent.max_iterations) or (SMALL_ITERATIONS if small else ITERATIONS),
        _number(settings.context.max_messages) or (SMALL_MESSAGES if small else None),
        window,
        reply,
        settings.model.temperature,
        settings.context.compact_at,
        longest_reply=reply if small else _longest(settings, info),
        # Servers of a provider end long thoughts themselves; local ones let a model think until the window is full.
        thought_tokens=window // 4 if info.local else None,
        # A loop of a few calls is over before the note could help.
        closes=not small and iterations is None,
    )


def window_of(info: ModelInfo) -> int:
    """Return the window of a model in tokens; 8,192 if it is unknown."""
    return info.context_window or DEFAULT_WINDOW


def reply_tokens(settings: Settings, info: ModelInfo) -> int:
    """Return the most tokens of a reply: the setting, but at most half of the window. For `auto` in a window of at most
    16,000 tokens a quarter of it, from 512 to 4,096; in others the longest reply that the model is known to give, else
    a quarter of the window, at most 32,000.
    """
    window, known = window_of(info), info.facts.longest_reply
    if (wanted := _number(settings.model.max_tokens)) is not None:
        return min(wanted, window // 2)
    if window <= SMALL_WINDOW:
        return max(SHORTEST_REPLY, min(SMALL_REPLY, window // 4))
    return min(known, window // 2) if known else min(LONG_REPLY, window // 4)


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
    """One detected repetition; `detail` is a clause in English for the model and the user; `kind` is `repeated_call`,
    `call_cycle`, `unreadable_calls`, `repeated_text` or `bracket_run`.
    """

    kind: str
    detail: str


class LoopGuard:
    """Detects repetition in one run. It must be given every finished call and every piece of streamed text, reasoning
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
        """Record a finished call; return an anomaly (`repeated_call`, `call_cycle`) if it completes a cycle of at most
        5 calls, the same arguments and results each time, for the third time; else None.
        """
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
        """Record a finished reply; return the anomaly `unreadable_calls` if it is at least the sixth in a row whose
        calls could not be understood, else None.
        """
        self._unreadable = 0 if understood else self._unreadable + 1
        if self._unreadable < UNREADABLE_REPLIES:
            return None
        return Anomaly("unreadable_calls", f"the calls of {self._unreadable} replies in a row could not be understood")

    def observe_text(self, chunk: str) -> Anomaly | None:
        """Record streamed text; return an anomaly (`repeated_text`, `bracket_run`) when the text of this reply repeats
        itself, else None. `new_reply` begins another one.
        """
        for start in range(0, len(chunk), PIECE):
            anomaly = self._observe_piece(chunk[start : start + PIECE])
            if anomaly is not None:
                return anomaly
        return None

    def new_reply(self) -> None:
        """Forget the text of earlier replies, because a new reply begins; calls are remembered."""
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


def _longest(settings: Settings, info: ModelInfo) -> int:
    """Return the most tokens that a reply may get after one was cut: the user's own limit or a known one stays."""
    reply, fixed = reply_tokens(settings, info), _number(settings.model.max_tokens)
    return reply if fixed is not None or info.facts.longest_reply else max(reply, window_of(info) // 2)


def _number(setting: int | Literal["auto"]) -> int | None:
    return None if setting == "auto" else setting


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
