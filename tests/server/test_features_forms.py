"""A whole run of a model that calls every tool by other spellings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import StartEditor
from tests.server.replies import call, say
from tests.server.stock_editor import STOCK

pytestmark = pytest.mark.slow  # a whole server at work

OURS = {**STOCK, "experimental": {"codeagent": {"event": True}}}
PATCH = "@@ -1 +1 @@\n-RATE = 7\n+RATE = 19\n"
CHAIN = [
    {"tool_name": "glob", "parameters": {"pattern": "*.py"}},
    {"tool_name": "file_read", "transformation": {"aggregate": "first", "field_mapping": {"": "path"}}},
]
STEPS = [{"index": 2, "title": "Do it"}, {"index": 1, "title": "Look"}]
SCRIPT = [
    call("create_plan", plan={"goal": "Raise the rate", "steps": STEPS}),
    call("todo_write", session_id="s", action="add", todos=[{"content": "look"}, {"content": "change"}]),
    call("list", path=".", recursive=True),
    call("grep", **{"pattern": "rate", "path": ".", "-i": True, "-n": True, "-C": 1}),
    call("read", file_path="tax.py", offset=0, limit=20),
    call("compose", steps=CHAIN),
    say("Looked."),
    call("patch", file_path="tax.py", patch_content=PATCH),
    call("edit", file_path="tax.py", old_string="RATE = 19", new_string="RATE = 21"),
    call("file_write", file_path="note.txt", content="raised\n"),
    call("todowrite", action="update", todo_id="2", todos=[{"status": "completed"}]),
    call("todoread", session_id="s", status="completed"),
    say("Done."),
    say("The rate is 21."),
]  # fmt: skip


def apply(params: dict[str, Any]) -> str | None:
    return next((item["title"] for item in params["actions"] if item["title"].startswith("Apply")), None)


def test_a_run_in_other_spellings_comes_to_its_end(start: StartEditor, workspace: Path) -> None:
    tax = workspace / "tax.py"
    tax.write_text("RATE = 7\n")
    settings = {"enable_planning": True, "max_tokens": 900}
    editor = start(*SCRIPT, choose=apply, capabilities=OURS, settings=settings)
    run_id = editor.command("codeagent.run", task="Plan it in steps: raise the rate")["runId"]
    editor.ended(run_id)
    told = editor.notifications("codeagent/event")
    results = [event for event in told if event["type"] == "tool_result"]
    assert [(event["tool"], event.get("error")) for event in results if not event["success"]] == []
    assert [event["tool"] for event in results] == [
        "create_plan", "todowrite", "list_dir", "grep", "read_file", "compose",
        "apply_patch", "edit_file", "write_file", "todowrite", "todoread",
    ]  # fmt: skip
    assert {event.get("step_id") for event in results} == {None, "1", "2"}
    assert (editor.text(tax), editor.text(workspace / "note.txt")) == ("RATE = 21\n", "raised\n")
    [created] = [event for event in told if event["type"] == "plan_created"]
    assert (created["plan"]["id"], created["plan"]["goal"]) == (run_id, "Raise the rate")
    [ended] = [event for event in told if event["type"] == "run_completed"]
    assert (ended["status"], ended["outcome"]) == ("completed", "full")


def test_a_wrong_call_is_told_with_its_code(start: StartEditor, workspace: Path) -> None:
    editor = start(call("read", file_path="none.py"), say("Not there."), capabilities=OURS)
    editor.run("codeagent.run", task="read none.py")
    [result] = [event for event in editor.notifications("codeagent/event") if event["type"] == "tool_result"]
    assert (result["status"], result["error_code"], result["error_type"]) == ("failed", "NOT_FOUND", "param_error")
