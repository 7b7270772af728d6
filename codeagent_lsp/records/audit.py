"""The audit log `audit.jsonl`: every request, permission decision, command and applied change, each with a trace id.

A line is `{"ts", "type", "event", "trace_id", …}`. The trace id is the run's: it refers to the run's records in the
trace. `event` is `user_message` for a request, `tool_call` for a decision about one, else the type again. Not here:
requests to models (`trace.py`).
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

_EVENT_NAMES: Mapping[str, str] = {"asked": "user_message", "decided": "tool_call"}


class AuditLog:
    """Writes the audit log of one workspace; `folder` is its state folder.

    Recording never blocks or raises; `flush` and `close` wait.
    """

    def __init__(self, folder: Path, sanitizer: Sanitizer, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        # `durable`: synced, so that a crash of the machine loses none of it.
        self._writer = RecordWriter(folder / AUDIT_FILE, sanitizer, max_bytes=MAX_BYTES, keep=KEEP, durable=True)

    def asked(self, trace_id: str, *, client: str, task: str, kind: str = "run") -> None:
        """Record a request: the user of this machine, the client and the task's text."""
        self._write("asked", trace_id, user=_user(), client=client, kind=kind, task=task, text=task)

    def decided(
        self, trace_id: str, *, tool: str, subject: str, decision: str, by: str, reasons: Sequence[str] = ()
    ) -> None:
        """Record a permission decision: `decision` is `allow`, `ask` or `deny`; `by` is `rule`, `mode` or `user`."""
        self._write("decided", trace_id, tool=tool, subject=subject, decision=decision, by=by, reasons=list(reasons))

    def command(self, trace_id: str, *, command: str, cwd: str, isolation: str, exit_code: int | None = None) -> None:
        """Record a command: once before it runs, with `exit_code` None, and once after it has ended."""
        self._write("command", trace_id, command=command, cwd=cwd, isolation=isolation, exit_code=exit_code)

    def applied(self, trace_id: str, *, files: Sequence[Mapping[str, Any]], outcome: str) -> None:
        """Record changes written to files: per file its path, the change and hashes; `outcome` as in the event."""
        self._write("applied", trace_id, files=[dict(file) for file in files], outcome=outcome)

    def note(self, trace_id: str, what: str, **details: Any) -> None:
        """Record another security-relevant event, such as a refused setting or a stored key (never the key itself)."""
        self._write(what, trace_id, **details)

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until all records are on disk, at most `timeout` seconds, and return whether they are."""
        return self._writer.flush(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Write the remaining records and stop, in at most `timeout` seconds."""
        self._writer.close(timeout)

    def _write(self, what: str, trace_id: str, **details: Any) -> None:
        head = {"ts": self._clock(), "type": what, "event": _EVENT_NAMES.get(what, what), "trace_id": trace_id}
        self._writer.write({**head, **details})


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user in the password file
        return ""
