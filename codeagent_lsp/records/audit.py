"""`audit.jsonl`: who asked what, every decision, every command and every applied change, each with a trace id.

The trace id is the run's: it leads to the run's records in the trace. Not here: details of models (`trace.py`).
"""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codeagent_lsp.records.sanitizer import Sanitizer
from codeagent_lsp.records.writer import RecordWriter

AUDIT_FILE = "audit.jsonl"
MAX_BYTES = 8 * 1024 * 1024
KEEP = 5


class AuditLog:
    """The audit of one workspace; `folder` is its state folder. Nothing here blocks or raises."""

    def __init__(
        self,
        folder: Path,
        sanitizer: Sanitizer,
        *,
        max_bytes: int = MAX_BYTES,
        keep: int = KEEP,
        on_problem: Callable[[OSError], None] = lambda error: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._writer = RecordWriter(
            folder / AUDIT_FILE, sanitizer, max_bytes=max_bytes, keep=keep, durable=True, on_problem=on_problem
        )

    def asked(self, trace_id: str, *, client: str, task: str, kind: str = "run") -> None:
        """A request: the user of this machine, through which client, in which words."""
        self._write("asked", trace_id, user=_user(), client=client, kind=kind, task=task)

    def decided(
        self, trace_id: str, *, tool: str, subject: str, decision: str, by: str, reasons: Sequence[str] = ()
    ) -> None:
        """A permission: `decision` is `allow`, `ask` or `deny`; `by` says whose it was: `rule`, `mode`, `user`."""
        self._write("decided", trace_id, tool=tool, subject=subject, decision=decision, by=by, reasons=list(reasons))

    def command(self, trace_id: str, *, command: str, cwd: str, isolation: str, exit_code: int | None = None) -> None:
        """A command: once before it runs, with `exit_code` None, and once when it has ended."""
        self._write("command", trace_id, command=command, cwd=cwd, isolation=isolation, exit_code=exit_code)

    def applied(self, trace_id: str, *, files: Sequence[Mapping[str, Any]], outcome: str) -> None:
        """Changes that reached files: per file its path, what was done and hashes; `outcome` as the event has it."""
        self._write("applied", trace_id, files=[dict(file) for file in files], outcome=outcome)

    def note(self, trace_id: str, what: str, **details: Any) -> None:
        """Anything else worth keeping: a setting that was refused, a key that was stored (never the key)."""
        self._write(what, trace_id, **details)

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until everything so far is on the disk, at most `timeout` seconds; whether it is."""
        return self._writer.flush(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Write what waits and stop, in at most `timeout` seconds."""
        self._writer.close(timeout)

    def _write(self, what: str, trace_id: str, **details: Any) -> None:
        self._writer.write({"ts": self._clock(), "type": what, "trace_id": trace_id, **details})


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user in the password file
        return ""
