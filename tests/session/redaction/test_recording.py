"""What goes into the trace and what into the audit: who was asked, what was said, what changed, and no texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, Reply
from codeagent_lsp.messages import Message
from codeagent_lsp.records.rotation import read_records
from codeagent_lsp.records.sanitizer import Sanitizer
from codeagent_lsp.records.trace import TRACE_FILE, TraceWriter
from codeagent_lsp.session.redaction.recording import AUDIT_FILE, Recording, audit_writer, reply_data, request_data


def recorded(folder: Path, act: Callable[[Recording], None], *, traced: bool = True) -> list[dict[str, Any]]:
    """The audit of what `act` did; its trace lies in the folder."""
    sanitizer = Sanitizer(homes=())
    trace = TraceWriter(folder, sanitizer) if traced else None
    recording = Recording(trace, audit_writer(folder, sanitizer), "an editor", lambda: 5.0)
    act(recording)
    recording.close()
    return list(read_records(folder / AUDIT_FILE))


def observed(folder: Path, *stream: events.Event) -> list[dict[str, Any]]:
    def act(recording: Recording) -> None:
        for event in stream:
            recording.observe(event)

    return recorded(folder, act)


def test_a_request_names_the_client_and_the_words(tmp_path: Path) -> None:
    (row,) = observed(tmp_path, events.RunStarted(run_id="r", task="do it", title="t", kind="fix"))
    assert (row["ts"], row["type"], row["trace_id"], row["client"]) == (5.0, "asked", "r", "an editor")
    assert (row["task"], row["kind"]) == ("do it", "fix")
    assert row["user"]


def test_lines_of_the_audit_say_what_happened_in_the_turn(tmp_path: Path) -> None:
    def act(recording: Recording) -> None:
        recording.observe(events.RunStarted(run_id="r", task="do it"))
        recording.decision("r", "run_cmd", "make", "deny", "a rule")
        recording.command("r", "make", "/w", "overlay", None)

    asked, decided, command = recorded(tmp_path, act)
    assert (asked["event"], asked["text"]) == ("user_message", "do it")
    assert (decided["event"], command["event"]) == ("tool_call", "command")


def test_a_request_without_words_is_told_by_its_title(tmp_path: Path) -> None:
    (row,) = observed(tmp_path, events.RunStarted(run_id="r", title="Explain a.py"))
    assert row["task"] == "Explain a.py"


def test_an_answer_stands_with_what_was_asked(tmp_path: Path) -> None:
    rows = observed(
        tmp_path,
        events.ApprovalRequested(run_id="r", request_id="1", title="Run make?", detail="make all"),
        events.ApprovalRequested(run_id="r", request_id="2", title="Apply?"),
        events.ApprovalResolved(run_id="r", request_id="2", answer="Apply"),
        events.ApprovalResolved(run_id="r", request_id="1"),
        events.ApprovalResolved(run_id="r", request_id="1", answer="Allow once"),
    )
    assert [(row["subject"], row["decision"], row["by"]) for row in rows] == [
        ("Apply?", "Apply", "user"),
        ("Run make?", "no answer", "user"),
        ("", "Allow once", "user"),  # what was decided is told even where the question is not known
    ]


def test_applied_changes_are_told_by_hash_and_never_by_text(tmp_path: Path) -> None:
    change = {"path": "/w/b", "moved_from": "/w/a", "base": "the old text", "text": "the new text"}
    gone = {"path": "/w/c", "base": "\ud800", "text": None}
    (row,) = observed(tmp_path, events.ChangesApplied(run_id="r", outcome="partial", applied=(change, gone)))
    first, second = row["files"]
    assert (row["outcome"], first["path"], first["moved_from"]) == ("partial", "/w/b", "/w/a")
    assert first["after"] == hashlib.sha256(b"the new text").hexdigest()
    assert first["before"] == hashlib.sha256(b"the old text").hexdigest()
    assert second["after"] is None
    assert len(second["before"]) == 64
    assert "the new text" not in json.dumps(row)


def test_decisions_and_commands_are_told_too(tmp_path: Path) -> None:
    def act(recording: Recording) -> None:
        recording.decision("r", "run_cmd", "make", "deny", "a rule")
        recording.command("r", "make", "/w", "overlay", None)
        recording.command("r", "make", "/w", "overlay", 2)

    decision, begun, ended = recorded(tmp_path, act)
    assert (decision["tool"], decision["decision"], decision["reasons"]) == ("run_cmd", "deny", ["a rule"])
    assert (begun["exit_code"], ended["exit_code"], ended["isolation"]) == (None, 2, "overlay")


def test_every_event_and_both_sides_of_the_model_are_traced(tmp_path: Path) -> None:
    def act(recording: Recording) -> None:
        recording.observe(events.StatusChanged(session_id="s", run_id="r", message="hello"))
        recording.model("s", "r", "request", {"messages": []})
        recording.model("s", "r", "reply", {"text": "yes"})

    assert recorded(tmp_path, act) == []
    rows = [(row["type"], row["event"]) for row in read_records(tmp_path / TRACE_FILE)]
    assert rows == [("event", "status"), ("request", "llm_request"), ("reply", "llm_response")]


def test_a_request_and_a_reply_have_a_summary(tmp_path: Path) -> None:
    def act(recording: Recording) -> None:
        info = ModelInfo("coder", "openai", "http://127.0.0.1:1/v1")
        recording.model("s", "r", "request", request_data(ModelRequest((Message("user", "hi"),)), info))
        recording.model("s", "r", "reply", reply_data(Reply("cut off", finish_reason="length")))

    recorded(tmp_path, act)
    request, reply = (row["data"] for row in read_records(tmp_path / TRACE_FILE))
    assert (request["base_url"], request["messages_count"]) == ("http://127.0.0.1:1/v1", 1)
    assert request["api_mode"] == "chat"
    assert (request["model"], request["provider"]) == ("coder", "openai")
    assert (reply["text_length"], reply["truncated"], reply["has_tool_call"]) == (7, True, False)


def test_without_a_trace_only_the_audit_is_written(tmp_path: Path) -> None:
    def act(recording: Recording) -> None:
        recording.observe(events.RunStarted(run_id="r", task="t"))
        recording.model("s", "r", "request", {})

    assert [row["type"] for row in recorded(tmp_path, act, traced=False)] == ["asked"]
    assert not (tmp_path / TRACE_FILE).exists()


def test_a_line_of_the_trace_says_when_what_and_in_which_step(tmp_path: Path) -> None:
    observed(tmp_path, events.StepStarted(run_id="r", step_id="2", description="x"), events.Failure(error="e"))
    rows = list(read_records(tmp_path / TRACE_FILE))
    assert [(row["type"], row["event"], row["step"]) for row in rows] == [
        ("event", "step_started", 2), ("event", "error", 0)
    ]  # fmt: skip
    stream = [
        events.RunStarted(task="t"),
        events.ToolCalls(),
        events.ToolFinished(),
        events.MessageAdded(message={"role": "tool", "content": "x"}),
        events.MessageAdded(message={"role": "assistant", "content": "", "tool_calls": [{}]}),
        events.MessageAdded(message={"role": "assistant", "content": "done"}),
        events.ChangesProposed(),
        events.ApprovalRequested(),
        events.RunCompleted(),
    ]
    observed(tmp_path / "turn", *stream)
    assert [row["event"] for row in read_records(tmp_path / "turn" / TRACE_FILE)] == [
        "user_message", "tool_call_parsed", "tool_result", "tool_result_fed_back", "message", "final_text",
        "confirm_write", "confirm_exec", "stop_reason",
    ]  # fmt: skip
    assert all(row["time"].endswith("Z") and datetime.fromisoformat(row["time"]).timestamp() > 0 for row in rows)
