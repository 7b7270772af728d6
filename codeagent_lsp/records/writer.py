"""Sanitizing and writing of records in a background thread, so that callers wait neither for patterns nor for a disk.

Bounded: when records come faster than they can be written, the newest are dropped, and their number is recorded. A full
disk is logged once; writing continues when there is room again. Not here: files (`rotation.py`) and the content of
records (`trace.py`, `session/redaction/recording.py`).
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from codeagent_lsp.records.rotation import RotatingFile
from codeagent_lsp.records.sanitizer import Sanitizer

_LOG = logging.getLogger(__name__)

MOST_WAITING = 2000
LONGEST_RECORD = 4 * 1024 * 1024


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


def _encode(record: object) -> bytes:
    try:
        return json.dumps(record, ensure_ascii=True, separators=(",", ":"), default=str).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:  # keys of odd types, for instance
        return json.dumps({"type": "unwritable", "error": type(error).__name__}).encode("ascii")
