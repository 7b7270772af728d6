"""Words for later in a stock editor: queued tasks, words to a run at work, the list of runs, the search."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.living import contents
from tests.server.stock_editor import StockEditor

LOOK: dict[str, Any] = {"tool_calls": [{"name": "list_dir", "arguments": {}}], "delay": 0.4}
DONE: dict[str, Any] = {"text": "Done.", "delay": 0.2}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    return folder


def test_a_task_is_queued_told_taken_back_and_begun(place: Path, tmp_path: Path) -> None:
    with StockEditor(place, tmp_path / "state", script=[LOOK, DONE, DONE]) as editor:
        one = editor.command("codeagent.run", task="the first")
        assert "queued" not in one
        two = editor.command("codeagent.run", task="the second")
        three = editor.command("codeagent.enqueue", task="the third")
        assert two["queued"] and three["queued"]
        assert "the second" in editor.told("the second")
        waiting = [item for item in editor.command("codeagent.pending") if item["kind"] == "queued"]
        assert [item["runId"] for item in waiting] == [two["runId"], three["runId"]]
        assert editor.command("codeagent.withdraw", itemId=two["runId"]) == {"ok": True}
        editor.ended(one["runId"])
        editor.ended(three["runId"])
        rows = {row["runId"]: row for row in editor.command("codeagent.runs")}
        assert rows[one["runId"]]["state"] == rows[three["runId"]]["state"] == "completed"
        assert rows[two["runId"]]["state"] == "withdrawn"
        assert editor.command("codeagent.pending") == []


def test_words_reach_the_run(place: Path, tmp_path: Path) -> None:
    with StockEditor(place, tmp_path / "state", script=[LOOK, DONE]) as editor:
        run_id = editor.command("codeagent.run", task="look around")["runId"]
        said = editor.command("codeagent.steer", runId=run_id, text="and be brief, my friend")
        (item,) = (item for item in editor.command("codeagent.pending") if item["kind"] == "steer")
        assert (item["itemId"], item["runId"], item["title"]) == (said["itemId"], run_id, "and be brief, my friend")
        (row,) = editor.command("codeagent.runs", limit=1)
        assert (row["runId"], row["state"]) == (run_id, "running")
        editor.ended(run_id)
        assert "and be brief, my friend" in editor.command("codeagent.session.export")["markdown"]
        assert "is over" in editor.refusal("codeagent.steer", {"runId": run_id})
        (found,) = editor.command("codeagent.session.search", query="my friend")
        assert (found["runId"], "brief, my friend" in found["excerpt"]) == (run_id, True)


def test_words_that_are_sent_after_the_end_are_the_next_task(place: Path, tmp_path: Path) -> None:
    with StockEditor(place, tmp_path / "state", script=[DONE, DONE]) as editor:
        run_id = editor.command("codeagent.run", task="look around")["runId"]
        editor.ended(run_id)
        late = editor.command("codeagent.steer", runId=run_id, text="and the other file")
        assert late["runId"] != run_id and "itemId" not in late
        editor.ended(late["runId"])
        row = next(row for row in editor.command("codeagent.runs") if row["runId"] == late["runId"])
        assert (row["title"], row["sessionId"]) == ("and the other file", late["sessionId"])


def test_a_free_session_begins_at_once(place: Path, tmp_path: Path) -> None:
    with StockEditor(place, tmp_path / "state", script=[{"text": "Hi."}]) as editor:
        answer = editor.command("codeagent.enqueue", task="hello")
        assert answer["queued"] is False
        editor.ended(answer["runId"])


def test_what_waits_outlives_the_server_and_is_asked_about(place: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with StockEditor(place, state, script=[{**LOOK, "delay": 30}]) as editor:
        one = editor.command("codeagent.run", task="the first")
        editor.command("codeagent.run", task="the second")
        editor.command("codeagent.steer", runId=one["runId"], text="one more word")
    with StockEditor(place, state, script=[DONE, DONE], choose=lambda params: "Begin") as editor:
        assert {row["state"] for row in editor.command("codeagent.runs")} == {"interrupted", "queued"}
        editor.command("codeagent.session.resume", sessionId=one["sessionId"])
        told = editor.told("one more word")  # it is a task of its own now
        assert "one more word" in told
        waiting = [item["task"] for item in editor.command("codeagent.pending") if item["kind"] == "queued"]
        assert set(waiting) <= {"the second", "one more word"}
        for _ in range(100):
            rows = editor.command("codeagent.runs")
            if sorted(row["state"] for row in rows) == ["completed", "completed", "interrupted"]:
                break
            time.sleep(0.1)
        assert sorted(row["state"] for row in rows) == ["completed", "completed", "interrupted"], rows
        assert any("2" in prompt["message"] for prompt in editor.prompts)


def test_secrets_are_not_found(place: Path, tmp_path: Path) -> None:
    secret = "gh" + "p_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    with StockEditor(place, tmp_path / "state", script=[{"text": f"the token is {secret}"}]) as editor:
        editor.run("codeagent.ask", question=f"is {secret} a token?")
        assert editor.command("codeagent.session.search", query=secret) == []
        assert editor.command("codeagent.session.search", query="token")
    assert not any(secret.encode() in held for held in contents(tmp_path / "state", "runs.sqlite*").values())


def test_secrets_in_the_first_words_after_a_restart_are_not_found(place: Path, tmp_path: Path) -> None:
    secret = "gh" + "p_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    with StockEditor(place, tmp_path / "state", script=[{"text": "Done."}]) as editor:
        editor.run("codeagent.run", task="first")
        (first,) = (row["runId"] for row in editor.command("codeagent.runs"))
    with StockEditor(place, tmp_path / "state", script=[{"text": "Done."}]) as editor:
        editor.ended(editor.command("codeagent.steer", runId=first, text=f"the token is {secret}")["runId"])
    kept = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert kept and not any(secret[:12].encode() in path.read_bytes() for path in kept)


def test_a_deleted_session_is_not_found(place: Path, tmp_path: Path) -> None:
    with StockEditor(place, tmp_path / "state", script=[{"text": "a needle"}, {"text": "hay"}]) as editor:
        editor.run("codeagent.ask", question="what?")
        (found,) = editor.command("codeagent.session.search", query="needle")
        editor.command("codeagent.session.delete", sessionId=found["sessionId"])
        assert editor.command("codeagent.session.search", query="needle") == []


def test_a_stock_editor_says_something_by_a_code_action(place: Path, tmp_path: Path) -> None:
    """The action asks; where a prompt cannot take text, the answer is written into a document and saved."""
    script = [LOOK, {**LOOK, "delay": 4}, {"text": "Done.", "expect": "be brief"}]
    with StockEditor(place, tmp_path / "state", script=script) as editor:
        uri = editor.open(place / "a.py")
        run_id = editor.command("codeagent.run", task="look around")["runId"]
        span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        about = {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": []}}
        found = editor.client.result("textDocument/codeAction", about)
        (action,) = (item for item in found if "Say something" in item["title"])
        assert "look around" in action["title"]
        lenses = editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}})
        assert lenses == [], "no lens comes and goes in every file while a run works"
        order = action["command"]
        editor.command(order["command"], **order["arguments"][0])
        (question,) = (item for item in editor.command("codeagent.pending") if item["kind"] == "question")
        editor.command("codeagent.respond", requestId=question["requestId"], answer="be brief")
        assert "be brief" not in editor.ended(run_id)["message"]
        assert "expected" not in editor.command("codeagent.session.export")["markdown"]
