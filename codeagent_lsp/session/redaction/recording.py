"""Writes down what happens: every event into the trace, and what somebody may have to answer for into the audit.

Not here: the files and what is masked in them (`records/`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.records.audit import AuditLog
from codeagent_lsp.records.trace import TraceWriter


class Recording:
    """A listener of all sessions. `client` is the name of the editor; `close` blocks for seconds at most."""

    def __init__(self, trace: TraceWriter | None, audit: AuditLog, client: str) -> None:
        self._trace = trace
        self._audit = audit
        self._client = client
        self._open: dict[str, str] = {}  # titles of requests for approval

    def observe(self, event: events.Event) -> None:
        """Take one event."""
        if self._trace is not None:
            self._trace.event(events.to_dict(event))
        match event:
            case events.RunStarted():
                self._audit.asked(event.run_id, client=self._client, task=event.task or event.title, kind=event.kind)
            case events.ApprovalRequested():
                self._open[event.request_id] = event.title
            case events.ApprovalResolved():
                title, answer = self._open.pop(event.request_id, ""), event.answer or "no answer"
                self._audit.decided(event.run_id, tool="", subject=title, decision=answer, by="user")
            case events.ChangesApplied():
                files = [_file(change) for change in event.applied]
                self._audit.applied(event.run_id, files=files, outcome=event.outcome)

    def model(self, session_id: str, run_id: str, kind: str, data: Mapping[str, Any]) -> None:
        """A request to a model, or its reply."""
        if self._trace is not None:
            write = self._trace.request if kind == "request" else self._trace.reply
            write(session_id, run_id, data)

    def decision(self, run_id: str, tool: str, subject: str, decision: str, reason: str) -> None:
        """What the rules and the mode decided about a call."""
        self._audit.decided(run_id, tool=tool, subject=subject, decision=decision, by="rule", reasons=[reason])

    def command(self, run_id: str, command: str, cwd: str, isolation: str, exit_code: int | None) -> None:
        """A command, before it runs (no exit code) and when it has ended."""
        self._audit.command(run_id, command=command, cwd=cwd, isolation=isolation, exit_code=exit_code)

    def note(self, what: str, **details: Any) -> None:
        """What belongs to no run, such as a login."""
        self._audit.note("", what, **details)

    def close(self) -> None:
        """Write what waits."""
        if self._trace is not None:
            self._trace.close()
        self._audit.close()


def _file(change: Mapping[str, Any]) -> dict[str, Any]:
    """A change without its texts: what was done to which file, and the hashes of both sides."""
    return {
        "path": change.get("path"),
        "moved_from": change.get("moved_from"),
        "before": _digest(change.get("base")),
        "after": _digest(change.get("text")),
    }


def _digest(text: Any) -> str | None:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() if isinstance(text, str) else None
