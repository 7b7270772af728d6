"""The trace `trace.jsonl`: every event, model request and model reply of a workspace, to reproduce what happened; and
the writer of all records, which sanitizes and writes them in a background thread, so that callers wait neither for
patterns nor for a disk.

A line is `{"ts", "time", "type", "event", "session", "run_id", "step", "data"}`: `ts` are seconds since the epoch,
`time` the same in UTC as ISO 8601 has it; `type` is `event`, `request` or `reply`, and `event` what happened in the
turn (`EVENT_NAMES`, else the type of the event, which `data` has in any case); `session` is shortened; `step` is the
number of the plan's step, 0 if there is none.

The writer is bounded: when records come faster than they can be written, the newest are dropped, and their number is
recorded. A full disk is logged once; writing continues when there is room again. Not here: files (`rotation.py`),
sessions, which are resumed from their own files, and the audit log (`session/redaction/recording.py`).
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from codeagent_lsp.records.mark import mask_id
from codeagent_lsp.records.rotation import RotatingFile, read_records
from codeagent_lsp.records.sanitizer import Sanitizer

_LOG = logging.getLogger(__name__)
MOST_WAITING = 2000
LONGEST_RECORD = 4 * 1024 * 1024
TRACE_FILE = "trace.jsonl"
MAX_BYTES = 16 * 1024 * 1024
KEEP = 3
EVENT_NAMES: Mapping[str, str] = {
    "request": "llm_request",
    "reply": "llm_response",
    "run_started": "user_message",
    "tool_calls": "tool_call_parsed",
    "changes_proposed": "confirm_write",
    "approval_requested": "confirm_exec",
    "run_completed": "stop_reason",
}
"""The names of what happens in a turn, by our own type of record or event."""
PIECES = frozenset(("token", "thought", "stdout", "stderr", "step_output"))
LONG, TOO_LONG = 65_536, 262_144


class RecordWriter:
    """Writes one file of records with a background thread that `close` ends. At most 2,000 records wait; newer ones are
    dropped and counted. A record is sanitized later, so it must not change once it was given.

    `durable` syncs to disk after every batch, and restores a file that was removed.
    """

    def __init__(
        self,
        path: Path,
        sanitizer: Sanitizer,
        *,
        max_bytes: int,
        keep: int,
        durable: bool = False,
    ) -> None:
        self._file = RotatingFile(path, max_bytes=max_bytes, keep=keep, restores=durable)
        self._sanitizer = sanitizer
        self._durable = durable
        self._name = path.name
        self._told = False
        self._dropped = 0
        self._closed = False
        self._busy = False
        self._waiting: deque[Mapping[str, Any]] = deque()
        # Guards all but the file, which is the thread's alone.
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def write(self, record: Mapping[str, Any]) -> None:
        """Queue a record and return at once. Dropped without an error if 2,000 are waiting or the writer is closed."""
        with self._changed:
            if self._closed:
                return
            if len(self._waiting) >= MOST_WAITING:
                self._dropped += 1
                return
            self._waiting.append(record)
            if self._thread is None:
                # A daemon, as a disk that hangs must not keep the process from ending.
                self._thread = threading.Thread(target=self._work, name="records", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self, timeout: float = 5.0) -> bool:
        """Block until all queued records are written, at most `timeout` seconds, and return whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Write the remaining records, end the thread and close the file; blocks at most `timeout` seconds, and what is
        not written by then may be lost.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout)

    def _work(self) -> None:
        while batch := self._next():
            for record in batch:
                self._attempt(lambda record=record: self._file.append(self._line(record)))  # type: ignore[misc]
            if self._durable:
                self._attempt(self._file.sync)
            with self._changed:
                self._busy = False
                self._changed.notify_all()
        self._file.close()

    def _next(self) -> list[Mapping[str, Any]]:
        """Wait for records and return them; an empty list when the writer is closed and everything is written."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting) or self._closed)
            batch = list(self._waiting)
            self._waiting.clear()
            if self._dropped:
                batch.append({"ts": time.time(), "type": "dropped", "count": self._dropped})
                self._dropped = 0
            # In the same step as the emptying, or `flush` could see neither.
            self._busy = bool(batch)
            return batch

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError as error:
            if not self._told:
                self._told = True
                _LOG.warning("%s is not written: %s", self._name, error.strerror or error)

    def _line(self, record: Mapping[str, Any]) -> bytes:
        line = _encode(self._sanitizer.sanitize(record))
        if len(line) <= LONGEST_RECORD:
            return line
        # Numbers and the type alone, which hold no secret: this line is not sanitized.
        head = {key: value for key, value in record.items() if isinstance(value, int | float) or key == "type"}
        return _encode({**head, "too_large": len(line)})


class TraceWriter:
    """Writes the trace of one workspace, `trace.jsonl` in its state folder, with a background thread that `close` ends.
    Recording never blocks or raises; when records come too fast, the newest are dropped.

    Use from one thread only. Events that stream a text are joined to one record each.
    """

    def __init__(self, folder: Path, sanitizer: Sanitizer, *, max_bytes: int = MAX_BYTES, keep: int = KEEP) -> None:
        self._pieces = Pieces()
        self._writer = RecordWriter(folder / TRACE_FILE, sanitizer, max_bytes=max_bytes, keep=keep)

    def event(self, event: Mapping[str, Any]) -> None:
        """Record an event in the form of `events.to_dict`; pieces of a streamed text are kept until the text ends."""
        for whole in self._pieces.add(event):
            self._write_event(whole)

    def request(self, session_id: str, run_id: str, request: Mapping[str, Any]) -> None:
        """Queue the record of a request to a model and return at once. `request` must not change afterwards, as it is
        sanitized later.
        """
        self._write("request", session_id, run_id, request)

    def reply(self, session_id: str, run_id: str, reply: Mapping[str, Any]) -> None:
        """Queue the record of a model's complete reply, or `{"error": …}`, and return at once. `reply` must not change
        afterwards, as it is sanitized later.
        """
        self._write("reply", session_id, run_id, reply)

    def flush(self, timeout: float = 5.0) -> bool:
        """Block until all records are written, at most `timeout` seconds, and return whether they are; texts that are
        still streamed are written as far as they came.
        """
        self._write_pieces()
        return self._writer.flush(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Write the remaining records and end the thread; blocks at most `timeout` seconds, and what is not written by
        then may be lost.
        """
        self._write_pieces()
        self._writer.close(timeout)

    def _write_pieces(self) -> None:
        for whole in self._pieces.rest():
            self._write_event(whole)

    def _write_event(self, event: Mapping[str, Any]) -> None:
        self._write("event", str(event.get("session_id", "")), str(event.get("run_id", "")), event)

    def _write(self, kind: str, session_id: str, run_id: str, data: Mapping[str, Any]) -> None:
        now, step = time.time(), str(data.get("step_id", ""))
        self._writer.write(
            {
                "ts": now,
                "time": datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "type": kind,
                "event": _event_name(str(data.get("type", kind)) if kind == "event" else kind, data),
                "session": mask_id(session_id),
                "run_id": run_id,
                "step": int(step) if step.isdecimal() else 0,
                "data": data,
            }
        )


def read_trace(folder: Path, *, session: str = "", run: str = "", last: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the records of a trace, the oldest first: of one session (whole id), of one run, only the `last` ones; ''
    and None mean all. Nothing if there is no trace; lines that are not records are skipped.
    """
    found = (record for record in read_records(folder / TRACE_FILE) if belongs(record, session=session, run=run))
    yield from found if last is None else deque(found, maxlen=max(0, last))


def belongs(record: Mapping[str, Any], *, session: str = "", run: str = "") -> bool:
    """Return whether a record of the trace is of the given session (whole id) and run; '' matches any. Records hold
    only the ends of a session's id, by which it is compared.
    """
    return (not session or record.get("session") == mask_id(session)) and (not run or record.get("run_id") == run)


class Pieces:
    """Joins the pieces of streamed texts, such as tokens of an answer, by session and run, to one event each; one at a
    time for each run.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], _Joined] = {}

    def add(self, event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Take an event in the form of `events.to_dict` and yield those that can be written now, in order; often none
        for a piece.
        """
        key = (str(event.get("session_id", "")), str(event.get("run_id", "")))
        waiting = self._waiting.get(key)
        # Another kind of event ends a text, so that the order of records is that of events.
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
        # At the end of a line, of very long ones at a blank, so that no secret is cut in two.
        end = max(text.rfind("\n"), text.rfind(" ") if waiting.length > TOO_LONG else -1) + 1 or len(text)
        # The rest of the line is recorded with what follows it.
        waiting.texts, waiting.length = [text[end:]], len(text) - end
        return {**waiting.first, "content": text[:end]}


def _encode(record: object) -> bytes:
    try:
        return json.dumps(record, ensure_ascii=True, separators=(",", ":"), default=str).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:  # keys of odd types, for instance
        return json.dumps({"type": "unwritable", "error": type(error).__name__}).encode("ascii")


def _event_name(kind: str, data: Mapping[str, Any]) -> str:
    message = data.get("message")
    if kind == "message" and isinstance(message, Mapping):
        if message.get("role") == "tool":
            return "tool_result_fed_back"
        if message.get("role") == "assistant" and not message.get("tool_calls"):
            return "final_text"
    return EVENT_NAMES.get(kind, kind)


# Joining of events that stream a text, so that a secret split between two of them is recorded as one text.


@dataclass
class _Joined:
    """The pieces so far: the first event, the texts, their length in characters."""

    first: Mapping[str, Any]
    texts: list[str] = field(default_factory=list)
    length: int = 0


def _whole(joined: _Joined) -> Mapping[str, Any]:
    return {**joined.first, "content": "".join(joined.texts)}
