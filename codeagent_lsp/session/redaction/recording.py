"""Records what happens: events in the trace, and requests, commands, decisions and changes in the audit log; and the
model of a run, wrapped so that its requests contain no secrets and are recorded with their replies.

A line of the audit log `audit.jsonl` is `{"ts", "type", "event", "trace_id", …}`. The trace id is the run's: it refers
to the run's records in the trace. `event` is `user_message` for a request, `tool_call` for a decision about one, else
the type again. Imported late, as its imports are heavy. Not here: the files, and the masking in them (`records/`).
"""

from __future__ import annotations

import getpass
import hashlib
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.config import TraceSettings
from codeagent_lsp.errors import CodeAgentError
from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest, Reply, StreamItem, WrappedModel
from codeagent_lsp.messages import Message, ToolCall
from codeagent_lsp.records.masking import Masking
from codeagent_lsp.records.sanitizer import Sanitizer
from codeagent_lsp.records.trace import RecordWriter, TraceWriter

AUDIT_FILE = "audit.jsonl"
MAX_BYTES = 8 * 1024 * 1024
KEEP = 5

_EVENT_NAMES: Mapping[str, str] = {"asked": "user_message", "decided": "tool_call"}


class Recording:
    """Receives the events of all sessions. `trace` is None if tracing is off; `client` is the name of the editor.

    Recording never blocks or raises; `close` waits.
    """

    def __init__(
        self, trace: TraceWriter | None, audit: RecordWriter, client: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._trace = trace
        self._audit = audit
        self._client = client
        self._clock = clock
        self._open: dict[str, str] = {}  # titles of open approvals by request id

    def observe(self, event: events.Event) -> None:
        """Queue one event for the trace, and for the audit log if it is one of those (requests, approvals, applied
        changes); returns at once and never raises.
        """
        if self._trace is not None:
            self._trace.event(events.to_dict(event))
        match event:
            case events.RunStarted():
                task = event.task or event.title
                asked = {"user": _user(), "client": self._client, "kind": event.kind, "task": task, "text": task}
                self._write("asked", event.run_id, **asked)
            case events.ApprovalRequested():
                # The answer names the question by its id only; the audit log has to say what was approved.
                self._open[event.request_id] = event.title
            case events.ApprovalResolved():
                title = self._open.pop(event.request_id, "")
                self._write_decision(event.run_id, "", title, event.answer or "no answer", "user")
            case events.ChangesApplied():
                files = [_file(change) for change in event.applied]
                self._write("applied", event.run_id, files=files, outcome=event.outcome)

    def model(self, session_id: str, run_id: str, kind: str, data: Mapping[str, Any]) -> None:
        """Record a request to a model (`kind` is `request`), or its reply, as plain data in the trace; nothing if
        tracing is off.
        """
        if self._trace is not None:
            write = self._trace.request if kind == "request" else self._trace.reply
            write(session_id, run_id, data)

    def decision(self, run_id: str, tool: str, subject: str, decision: str, reason: str) -> None:
        """Record how the permission rules and the mode decided about a tool call (`allow`, `ask` or `deny`) in the
        audit log.
        """
        self._write_decision(run_id, tool, subject, decision, "rule", reason)

    def command(self, run_id: str, command: str, cwd: str, isolation: str, exit_code: int | None) -> None:
        """Record a command, in the audit log, before it runs (`exit_code` None) and after it has ended. `cwd` is an
        absolute path.
        """
        self._write("command", run_id, command=command, cwd=cwd, isolation=isolation, exit_code=exit_code)

    def note(self, what: str, **details: Any) -> None:
        """Record something that belongs to no run, such as a login or a stored key (never the key itself), in the audit
        log; `what` is its type.
        """
        self._write(what, "", **details)

    def close(self) -> None:
        """Write the remaining records and stop; blocks up to 10 s, 5 s each for trace and audit log. Records that are
        not written by then may be lost.
        """
        if self._trace is not None:
            self._trace.close()
        self._audit.close()

    def _write_decision(self, run_id: str, tool: str, subject: str, decision: str, by: str, *reasons: str) -> None:
        told = {"tool": tool, "subject": subject, "decision": decision, "by": by, "reasons": list(reasons)}
        self._write("decided", run_id, **told)

    def _write(self, what: str, trace_id: str, **details: Any) -> None:
        head = {"ts": self._clock(), "type": what, "event": _EVENT_NAMES.get(what, what), "trace_id": trace_id}
        self._audit.write({**head, **details})


@dataclass(frozen=True, slots=True)
class OpenRecords:
    """The masking and the recording of one server, once they are loaded."""

    masking: Masking
    recording: Recording


def open_records(folder: Path, settings: TraceSettings, secrets: Iterable[str], client: str) -> OpenRecords:
    """Open the trace and the audit log in `folder`, and the masking; the caller closes the recording. What a model
    reads is always masked, records unless the settings turn that off. `secrets` are our own keys, `client` is the name
    of the editor.
    """
    masking = Masking(secrets)
    sanitizer = Sanitizer(settings.sanitize, secrets=masking.own, marker=masking.marker)
    trace = TraceWriter(folder, sanitizer) if settings.enabled else None
    return OpenRecords(masking, Recording(trace, audit_writer(folder, sanitizer), client))


def audit_writer(folder: Path, sanitizer: Sanitizer) -> RecordWriter:
    """Return the writer of the audit log `audit.jsonl` in the state folder of a workspace, in files of at most 8 MiB,
    of which 5 are kept, synced to the disk.
    """
    # Synced, so that a crash of the machine loses none of it.
    return RecordWriter(folder / AUDIT_FILE, sanitizer, max_bytes=MAX_BYTES, keep=KEEP, durable=True)


Hide = Callable[[str], str]
Record = Callable[[str, Mapping[str, Any]], None]
"""Receives the kind (`request` or `reply`) and the data."""


class GuardedModel(WrappedModel):
    """The `Model` port around another model. `hide` masks secrets in a text; `record` gets requests and replies."""

    def __init__(self, model: Model, hide: Hide, record: Record) -> None:
        super().__init__(model)
        self._hide = hide
        self._record = record

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Stream the wrapped model's reply to the request with its secrets masked; record request, reply and error.
        ModelError as the wrapped model.
        """
        hidden = replace(request, messages=tuple(map(self._hidden, request.messages)))
        # Before the call, so that a request whose answer never comes is in the trace.
        self._record("request", request_data(hidden, self.info))
        try:
            async with aclosing(self._model.stream(hidden)) as stream:
                async for item in stream:
                    if isinstance(item, Reply):
                        self._record("reply", reply_data(item))
                    yield item
        except CodeAgentError as error:
            self._record("reply", {"error": str(error)})
            raise

    def _hidden(self, message: Message) -> Message:
        content = self._hide(message.content)
        return message if content == message.content else replace(message, content=content)


def request_data(request: ModelRequest, info: ModelInfo) -> dict[str, Any]:
    """Return a model request as plain data for the trace (`model`, `provider`, `messages`, …); tools only by name,
    since their descriptions are part of the program.
    """
    return {
        "model": info.name,
        "provider": info.provider,
        "base_url": info.url,
        "api_mode": info.api_mode,
        "messages_count": len(request.messages),
        "messages": [_message(message) for message in request.messages],
        "tools": [tool["name"] for tool in request.tools],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
    }


def reply_data(reply: Reply) -> dict[str, Any]:
    """Return a model's reply as plain data for the trace, with its token usage (`text`, `tool_calls`, `finish_reason`,
    `usage`, …).
    """
    usage = reply.usage
    return {
        "text_length": len(reply.text),
        "truncated": reply.finish_reason == "length",
        "has_tool_call": bool(reply.tool_calls),
        "text": reply.text,
        "tool_calls": [_call(call) for call in reply.tool_calls],
        "finish_reason": reply.finish_reason,
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "completion_tokens": usage.completion_tokens,
        },
    }


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


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user in the password file
        return ""


def _message(message: Message) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        data["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.name:
        data["name"] = message.name
    return data


def _call(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name, "arguments": dict(call.arguments)}
