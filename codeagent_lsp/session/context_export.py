"""The state of a session as plain data for JSON, as programs get it: ids, task, plan, files, results, memory, safety,
conversation.

The conversation is the stored one, in full, with the time of each message. Secrets are not masked here: the caller
does that with all of it. Not here: the state itself (`state.py`), the Markdown export (`transcript.py`).
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import UNCHANGED
from codeagent_lsp.agent.limits import SMALL_MESSAGES
from codeagent_lsp.config import Settings
from codeagent_lsp.errors import AgentError
from codeagent_lsp.session.memory.remembering import MemoryEntry
from codeagent_lsp.session.state import CodeAgentContext, RunRecord
from codeagent_lsp.workspace.files.file_view import FileView

MOST_RESULTS = 50
RESULT_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class SessionSurroundings:
    """The values that an export needs besides the session: its ids, the settings in force, the files as the user has
    them, the project's memory.
    """

    session_id: str
    project_id: str
    settings: Settings
    view: FileView
    memory: tuple[MemoryEntry, ...] = ()


def to_dict(context: CodeAgentContext, stored: Iterable[events.Event], around: SessionSurroundings) -> dict[str, Any]:
    """Return the state as plain data with the keys `session_id`, `project_id`, `task`, `plan`, `todos`, `code_context`,
    `execution_context`, `memory`, `environment`, `safety` and `conversation`, with secrets. `stored` are the recorded
    events of the session. Reads files, so it blocks.
    """
    told = tuple(stored)
    return {
        "session_id": around.session_id,
        "project_id": around.project_id,
        "task": _task(told),
        "plan": _plan(tuple(context.runs.values())),
        "todos": list(context.todos.to_data()),
        "code_context": _code(context, around.view),
        "execution_context": {"runs": _runs(context), "results": _results(told)},
        "memory": _memory(around.memory),
        "environment": _environment(context),
        "safety": _safety(told, around),
        "conversation": {"messages": _messages(told), "max_messages": _most(around.settings)},
    }


def _most(settings: Settings) -> int:
    """Return the most messages of a conversation, for `auto` that of a small window."""
    most = settings.context.max_messages
    return SMALL_MESSAGES if most == "auto" else most


def _task(told: Sequence[events.Event]) -> dict[str, str] | None:
    """Return the latest request; None before the first."""
    asked = next((event for event in reversed(told) if isinstance(event, events.RunStarted)), None)
    return None if asked is None else {"run_id": asked.run_id, "title": asked.title, "description": asked.task}


def _plan(runs: Sequence[RunRecord]) -> dict[str, Any] | None:
    """Return the plan of the latest run that has one; None if none has."""
    record = next((run for run in reversed(runs) if run.plan is not None), None)
    if record is None or record.plan is None:
        return None
    plan = record.plan
    head = {"id": record.run_id, "goal": plan.goal, "status": plan.status}
    return {**head, "steps": list(plan.steps.to_data()), "estimated_complexity": plan.complexity}


def _code(context: CodeAgentContext, view: FileView) -> dict[str, Any]:
    folders, focused = context.environment.folders, context.focused
    texts = ((file, _now(file.path, context, view)) for file in focused.files)
    files = [
        {"path": file.path, "content": text, "is_editing": file.editing} for file, text in texts if text is not None
    ]
    return {
        "workspace_root": folders[0] if folders else "",
        "focused_files": files,
        "max_total_chars": focused.limit,
    }


def _now(name: str, context: CodeAgentContext, view: FileView) -> str | None:
    """Return the text of a file in focus as it is now, with what waits for the user's decision; None if it is gone, or
    may not be read any more.
    """
    try:
        path = view.roots.resolve(name)
    except AgentError:
        return None
    # Newest first: later runs have staged on the text of earlier ones.
    staged = (change for run in reversed(context.runs.values()) if (change := run.staged.get(path)) is not None)
    # It was put in focus while it might be read; rules and names can have changed since.
    if view.roots.is_secret(path):
        return None
    waiting = next(staged, None)
    return view.text(path) if waiting is None else waiting.text


def _runs(context: CodeAgentContext) -> list[dict[str, Any]]:
    return [
        {"run_id": run.run_id, "kind": run.kind, "status": run.status, "files_changed": list(run.changed_paths)}
        for run in context.runs.values()
    ]


def _results(told: Iterable[events.Event]) -> list[dict[str, Any]]:
    """Return the last results of tools, each cut, with the full length of its output."""
    results = [event for event in told if isinstance(event, events.ToolFinished)][-MOST_RESULTS:]
    return [
        {
            "tool": event.tool,
            "success": event.success,
            "run_id": event.run_id,
            "call_id": event.call_id,
            "output": event.output[:RESULT_CHARACTERS],
            "length": len(event.output),
            "error": event.error,
        }
        for event in results
    ]


def _memory(entries: Iterable[MemoryEntry]) -> dict[str, Any]:
    known = tuple(entries)
    return {
        "project_conventions": [entry.text for entry in known if entry.kind == "convention"],
        "recent_decisions": [
            {"decision": entry.text, "reason": entry.reason} for entry in known if entry.kind == "decision"
        ],
    }


def _environment(context: CodeAgentContext) -> dict[str, Any]:
    where = context.environment
    system = {"os": platform.system(), "os_version": platform.release()}
    return {**system, "folders": list(where.folders), "editor": where.editor, "commands": where.commands}


def _safety(told: Iterable[events.Event], around: SessionSurroundings) -> dict[str, Any]:
    rules = around.settings.permissions
    return {
        "mode": rules.mode,
        "allow": list(rules.allow),
        "ask": list(rules.ask),
        "deny": list(rules.deny),
        "anomalies": [event.anomaly or event.kind for event in told if isinstance(event, events.AnomalyDetected)],
    }


def _messages(told: Iterable[events.Event]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    paths: dict[str, str] = {}
    for event in told:
        if isinstance(event, events.MessageAdded):
            paths |= _read_paths(event.message)
            messages.append(_message(event, paths))
    return messages


def _message(event: events.MessageAdded, paths: Mapping[str, str]) -> dict[str, Any]:
    """Return a message with its time, and with the place of the full text if it only refers to it."""
    data = dict(event.message)
    if data.get("role") == "tool" and "name" in data:
        data["tool_name"] = data.pop("name")
    data["timestamp"] = datetime.fromtimestamp(event.ts, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    data["is_abbreviated"] = str(data.get("content", "")).startswith(UNCHANGED)
    # The result alone does not say which file it is about: its call does, in a message before it.
    path = paths.get(str(data.get("tool_call_id", "")))
    if data["is_abbreviated"] and path:
        data["full_content_ref"] = f"focused_files[{path}]"
    return data


def _read_paths(message: Mapping[str, Any]) -> dict[str, str]:
    """Return the paths that the calls of a message name, by the calls' ids."""
    return {
        str(call.get("id")): str(call["arguments"]["path"])
        for call in message.get("tool_calls", ())
        if isinstance(call.get("arguments"), Mapping) and "path" in call["arguments"]
    }
