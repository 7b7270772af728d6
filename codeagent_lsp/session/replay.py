"""Gives a session its state back from its stored events. Pure apart from filling the session it is given.

What is staged is told by `file_change` alone; a record that makes no sense is skipped, whatever it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.agent.history import History
from codeagent_lsp.messages import Message, ToolCall
from codeagent_lsp.session.session import RunRecord, Session
from codeagent_lsp.workspace.changeset import Changeset, FileChange


def replay(session: Session, records: Iterable[Mapping[str, Any]]) -> None:
    """Fill `session` with what the records say; records that make no sense are skipped."""
    for record in records:
        try:
            event = events.from_dict(record)
            session.next_seq = max(session.next_seq, event.seq + 1)
            _absorb(session, event)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    for run in session.runs.values():
        history = History(run.messages)
        if run.status == "running":
            run.status = "interrupted"
            history.close_turn()
        run.messages = list(history.messages)
        session.join(run)


def message_to_dict(message: Message) -> dict[str, Any]:
    """A message as the log stores it."""
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        data["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in message.tool_calls
        ]
    if message.tool_call_id:
        data["tool_call_id"] = message.tool_call_id
    if message.name:
        data["name"] = message.name
    return data


def message_from_dict(data: Mapping[str, Any]) -> Message:
    """The message that `message_to_dict` wrote."""
    calls = tuple(ToolCall(call["name"], call["arguments"], call["id"]) for call in data.get("tool_calls", ()))
    return Message(data["role"], data["content"], calls, data.get("tool_call_id", ""), data.get("name", ""))


def _absorb(session: Session, event: events.Event) -> None:
    if isinstance(event, events.RunStarted):
        session.begin(RunRecord(event.run_id, event.kind, event.title))
        return
    run = session.record(event.run_id)
    if run is None:
        return
    match event:
        case events.MessageAdded():
            run.messages.append(message_from_dict(event.message))
        case events.FileChanged():
            run.staged = _staged(run.staged, event)
        case events.ChangesApplied():
            _apply(run, event)
        case events.RunCompleted():
            run.status = event.status


def _staged(staged: Changeset, event: events.FileChanged) -> Changeset:
    if event.change is None:
        return staged.without([event.path])
    return staged.with_change(FileChange.from_dict(event.change))


def _apply(run: RunRecord, event: events.ChangesApplied) -> None:
    done = Changeset(tuple(FileChange.from_dict(change) for change in event.applied))
    if event.undo:
        if event.outcome in ("full", "partial"):
            run.applied.clear()
    elif done:
        run.applied.append(done)
