"""What is kept of a run: a trace and an audit, and no secret in any file of ours, whatever a run comes across."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.records.formats import TOKENS
from tests.server.conftest import StartEditor
from tests.server.replies import call, say, write
from tests.server.stock_editor import STOCK, StockEditor

pytestmark = pytest.mark.slow  # whole servers at work

EVENTS = {**STOCK, "experimental": {"codeagent": {"event": True}}}
FORMATS = 30


def some_secrets() -> list[str]:
    """One secret of each of the first formats that are a single line."""
    rng = random.Random(7)
    made = [make(rng) for make in TOKENS.values()]
    return [secret for secret in made if "\n" not in secret][:FORMATS]


def records(tmp_path: Path, name: str) -> list[dict[str, Any]]:
    (found,) = (tmp_path / "state" / "workspaces").glob(f"*/{name}")
    return [json.loads(line) for line in found.read_text().splitlines()]


def results(editor: StockEditor) -> list[str]:
    told = [params for params in editor.notifications("codeagent/event") if params["type"] == "tool_result"]
    return [params["output"] for params in told]


def test_no_secret_reaches_a_file_of_ours_or_an_event(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    secrets = some_secrets()
    assert len(secrets) == FORMATS
    lines = "".join(f"key_{number} = '{secret}'\n" for number, secret in enumerate(secrets))
    (workspace / "settings.py").write_text(lines)
    editor = start(
        call("read_file", path="settings.py"),
        call("run_cmd", command="cat settings.py"),
        call("grep", pattern="key_"),
        say(f"I use {secrets[0]} now."),
        capabilities=EVENTS,
        choose=lambda params: "Allow once" if "run_cmd" in params["message"] else "Discard",
    )
    editor.run("codeagent.run", task=f"look into settings.py, my key is {secrets[1]}")
    told = "\n".join(results(editor))
    assert "<secret:" in told
    assert editor.close() == 0
    ours = b"".join(
        path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file() and path.name != "script.json"
    )
    assert [secret for secret in secrets if secret in told or secret.encode() in ours] == []


def test_an_edit_beside_a_secret_keeps_it(start: StartEditor, workspace: Path) -> None:
    secret = some_secrets()[0]
    (workspace / "settings.py").write_text(f"key = '{secret}'\nlimit = 1\n")
    editor = start(
        call("read_file", path="settings.py"),
        call("edit_file", path="settings.py", old_str="limit = 1\n", new_str="limit = 2\n"),
        say("Done."),
    )
    editor.run("codeagent.run", task="raise the limit")
    assert editor.text(workspace / "settings.py") == f"key = '{secret}'\nlimit = 2\n"
    assert editor.close() == 0


def test_the_audit_tells_who_asked_what_was_decided_and_what_changed(
    start: StartEditor, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    editor = start(
        call("run_cmd", command="echo two > a.txt"),
        write("b.txt", "b\n"),
        say("Done."),
        env={"CODEAGENT_NO_NAMESPACES": "1"},
        choose=lambda params: "Allow once" if "run_cmd" in params["message"] else "Apply",
    )
    editor.run("codeagent.run", task="change it")
    assert editor.close() == 0
    kept = records(tmp_path, "audit.jsonl")
    kinds = [record["type"] for record in kept]
    assert kinds[0] == "asked"
    assert kept[0]["task"] == "change it"
    assert [record["decision"] for record in kept if record["type"] == "decided" and record["by"] == "user"] == [
        "Allow once",
        "Apply",
    ]
    commands = [record for record in kept if record["type"] == "command"]
    assert [(record["command"], record["isolation"], record["exit_code"]) for record in commands] == [
        ("echo two > a.txt", "copy", None),
        ("echo two > a.txt", "copy", 0),
    ]
    (applied,) = [record for record in kept if record["type"] == "applied"]
    assert applied["outcome"] == "full"
    assert {Path(file["path"]).name for file in applied["files"]} == {"a.txt", "b.txt"}
    assert len({record["trace_id"] for record in kept}) == 1


def test_the_trace_has_every_event_and_both_sides_of_the_model(
    start: StartEditor, workspace: Path, tmp_path: Path
) -> None:
    editor = start(call("list_dir", path="."), say("Nothing."))
    editor.run("codeagent.run", task="look")
    assert editor.close() == 0
    kept = records(tmp_path, "trace.jsonl")
    kinds = [record["type"] for record in kept]
    assert (kinds.count("request"), kinds.count("reply")) >= (2, 2)
    told = [record["data"]["type"] for record in kept if record["type"] == "event"]
    assert told[0] == "run_started"
    assert told[-1] == "run_completed"
    request = next(record["data"] for record in kept if record["type"] == "request")
    assert request["messages"][0]["role"] == "system"
    assert "read_file" in request["tools"]


def test_without_a_trace_the_audit_is_still_kept(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    editor = start(say("Hello."), settings={"trace": {"enabled": False}})
    editor.run("codeagent.run", task="hello")
    assert editor.close() == 0
    assert list((tmp_path / "state" / "workspaces").glob("*/trace.jsonl")) == []
    assert records(tmp_path, "audit.jsonl")[0]["type"] == "asked"
