"""What the list of runs and the search know of one run, gathered from its stored events. Pure.

Not here: the database (`run_history.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Any

RUN_CHARS, MESSAGE_CHARS, RESULT_CHARS = 24_000, 4_000, 600
"""Most characters that can be found of a run, of one message, and of one tool's result."""


@dataclass(slots=True)
class RecordedRun:
    """One run: times in seconds since the epoch, tokens read and written, cost in USD (None where no price is known);
    of the tokens those of the prompts, and what of these came from a cache.

    `status` is `queued`, `running` (it has no end), or how it ended; `step` is the title of the plan's last step;
    `text` is what can be found.
    """

    run_id: str
    session_id: str
    kind: str = "run"
    title: str = ""
    status: str = "running"
    started: float = 0.0
    changed: float = 0.0
    step: str = ""
    tokens: int = 0
    prompt: int = 0
    cached: int = 0
    cost: float | None = None
    text: str = ""

    def absorb(self, record: Mapping[str, Any]) -> None:
        """Update by a stored event of the run."""
        self.changed = max(self.changed, float(record.get("ts", 0)))
        match record.get("type"):
            case "task_queued":
                self.status, self.title = "queued", str(record.get("title", ""))
                self._add(str(record.get("task", "")), MESSAGE_CHARS)
            case "steered":
                self._add(str(record.get("text", "")), MESSAGE_CHARS)
            case "item_withdrawn" if record.get("item_id") == self.run_id:
                self.status = "withdrawn"
            case "run_started":
                self.kind, self.title = str(record.get("kind", "run")), str(record.get("title", ""))
                self.status, self.started = "running", float(record.get("ts", 0))
                self._add(str(record.get("task", "")), MESSAGE_CHARS)
            case "response_start":
                self.status = "running"
            case "step_started":
                self.step = str(record.get("description") or record.get("step_id", ""))
            case "usage":
                self._use(record)
            case "message":
                self._hear(record.get("message") or {})
            case "file_change":
                self._add(PurePath(str(record.get("path", ""))).name, 200)
            case "run_completed":
                self.status = str(record.get("status", ""))
                if isinstance(record.get("usage"), Mapping):  # with that of its attempts, which are other sessions
                    self.tokens, self.prompt, self.cached, self.cost = 0, 0, 0, None
                    self._use(record["usage"])
            case "run_interrupted":
                self.status = "interrupted"

    def _use(self, record: Mapping[str, Any]) -> None:
        prompt = int(record.get("prompt_tokens", 0))
        self.tokens += prompt + int(record.get("completion_tokens", 0))
        self.prompt += prompt
        self.cached += int(record.get("cached_tokens", 0))
        if record.get("cost") is not None:
            self.cost = (self.cost or 0.0) + float(record["cost"])

    def _hear(self, message: Mapping[str, Any]) -> None:
        """Keep what was said: answers and the user's words, a little of what tools gave, no notes of the program."""
        role = message.get("role")
        # Notes and summaries have a name; words of the program would be found in every run.
        if role == "user" and message.get("name"):
            return
        self._add(str(message.get("content", "")), RESULT_CHARS if role == "tool" else MESSAGE_CHARS)

    def _add(self, words: str, limit: int) -> None:
        room = min(limit, RUN_CHARS - len(self.text))
        # The task comes twice, with the request and as a message; it would count double in the ranking.
        if words.strip() and room > 0 and words[:limit] not in self.text:
            self.text = f"{self.text}\n{words[:room]}".lstrip("\n")


COLUMNS = tuple(item.name for item in fields(RecordedRun))
