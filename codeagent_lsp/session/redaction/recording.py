"""Records events: all of them in the trace, and requests, commands, decisions and changes in the audit log.

Imported late, as its imports are heavy. Not here: the files, and the masking in them (`records/`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.config import TraceSettings
from codeagent_lsp.records.audit import AuditLog
from codeagent_lsp.records.masking import Masking
from codeagent_lsp.records.sanitizer import Sanitizer
from codeagent_lsp.records.trace import TraceWriter
from codeagent_lsp.state import make_private


class Recording:
    """Receives the events of all sessions. `trace` is None if tracing is off; `client` is the name of the editor."""

    def __init__(self, trace: TraceWriter | None, audit: AuditLog, client: str) -> None:
        self._trace = trace
        self._audit = audit
        self._client = client
        self._open: dict[str, str] = {}  # titles of open approvals by request id

    def observe(self, event: events.Event) -> None:
        """Record one event."""
        if self._trace is not None:
            self._trace.event(events.to_dict(event))
        match event:
            case events.RunStarted():
                self._audit.asked(event.run_id, client=self._client, task=event.task or event.title, kind=event.kind)
            case events.ApprovalRequested():
                # The answer names the question by its id only; the audit log has to say what was approved.
                self._open[event.request_id] = event.title
            case events.ApprovalResolved():
                title, answer = self._open.pop(event.request_id, ""), event.answer or "no answer"
                self._audit.decided(event.run_id, tool="", subject=title, decision=answer, by="user")
            case events.ChangesApplied():
                files = [_file(change) for change in event.applied]
                self._audit.applied(event.run_id, files=files, outcome=event.outcome)

    def model(self, session_id: str, run_id: str, kind: str, data: Mapping[str, Any]) -> None:
        """Record a request to a model, or its reply, in the trace."""
        if self._trace is not None:
            write = self._trace.request if kind == "request" else self._trace.reply
            write(session_id, run_id, data)

    def decision(self, run_id: str, tool: str, subject: str, decision: str, reason: str) -> None:
        """Record in the audit log how the permission rules and the mode decided about a tool call."""
        self._audit.decided(run_id, tool=tool, subject=subject, decision=decision, by="rule", reasons=[reason])

    def command(self, run_id: str, command: str, cwd: str, isolation: str, exit_code: int | None) -> None:
        """Record a command in the audit log, before it runs (no exit code) and after it has ended."""
        self._audit.command(run_id, command=command, cwd=cwd, isolation=isolation, exit_code=exit_code)

    def note(self, what: str, **details: Any) -> None:
        """Record in the audit log something that belongs to no run, such as a login."""
        self._audit.note("", what, **details)

    def close(self) -> None:
        """Write the remaining records, within seconds."""
        if self._trace is not None:
            self._trace.close()
        self._audit.close()


@dataclass(frozen=True, slots=True)
class OpenRecords:
    """The masking and the recording of one server."""

    masking: Masking
    recording: Recording


def open_records(folder: Path, settings: TraceSettings, secrets: Iterable[str], client: str) -> OpenRecords:
    """Open the records in `folder`, and the masking. What a model reads is always masked, records unless the settings
    turn that off. `secrets` are our own keys, `client` is the name of the editor.
    """
    masking = Masking(secrets)
    sanitizer = Sanitizer(settings.sanitize, secrets=masking.own, marker=masking.marker)
    make_private(folder)
    trace = TraceWriter(folder, sanitizer) if settings.enabled else None
    return OpenRecords(masking, Recording(trace, AuditLog(folder, sanitizer), client))


def _file(change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a change without its texts: the paths, and the SHA-256 hashes of the text before and after."""
    return {
        "path": change.get("path"),
        "moved_from": change.get("moved_from"),
        "before": _digest(change.get("base")),
        "after": _digest(change.get("text")),
    }


def _digest(text: Any) -> str | None:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() if isinstance(text, str) else None
