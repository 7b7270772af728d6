"""Sessions and runs side by side, after a kill, and in lists."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import StartEditor
from tests.server.rawclient import NO_ANSWER
from tests.server.replies import call, edit, say, write
from tests.server.stock_editor import StockEditor


def never(params: dict[str, Any]) -> None:
    """Close every prompt."""


def pending_kinds(editor: StockEditor) -> list[str]:
    return [item["kind"] for item in editor.command("codeagent.pending")]


def test_several_runs_and_sessions_do_not_mix(start: StartEditor, workspace: Path) -> None:
    count = 4
    script = [write("shared.py", "x = 1\n"), say("First.", delay=0.05)]
    editor = start(*script, {"loop": True}, choose=never)
    runs = []
    for _ in range(count):
        session = editor.command("codeagent.session.new")["sessionId"]
        runs.append(editor.command("codeagent.run", task=f"task of {session}", sessionId=session))
    for run in runs:
        editor.ended(run["runId"])
    assert len({run["sessionId"] for run in runs}) == count
    for run in runs:
        markdown = editor.command("codeagent.session.export", sessionId=run["sessionId"])["markdown"]
        mentioned = {other["sessionId"] for other in runs if f"task of {other['sessionId']}" in markdown}
        assert mentioned == {run["sessionId"]}


def test_two_runs_stage_apart_and_the_second_apply_sees_the_first(start: StartEditor, workspace: Path) -> None:
    editor = start(edit("a.py", "x = 1", "x = 2"), say("A."), edit("a.py", "z = 1", "z = 2"), say("B."), choose=never)
    editor.open(workspace / "a.py", "x = 1\ny = 1\ny = 2\nz = 1\n")
    first = editor.command("codeagent.run", task="first")["runId"]
    editor.ended(first)
    second = editor.command("codeagent.run", task="second")["runId"]
    editor.ended(second)
    editor.command("codeagent.apply", runId=second)
    editor.told("Applied 1")
    editor.command("codeagent.apply", runId=first)
    editor.told("Applied 1")
    assert editor.text(workspace / "a.py") == "x = 2\ny = 1\ny = 2\nz = 2\n"
    editor.command("codeagent.undo", runId=second)
    editor.told("Undone")
    assert editor.text(workspace / "a.py") == "x = 2\ny = 1\ny = 2\nz = 1\n"


@pytest.mark.slow
def test_after_a_kill_the_staged_changes_come_back(start: StartEditor, workspace: Path) -> None:
    editor = start(edit("a.py", "x = 1", "x = 2"), write("b.py", "new\n"), say("Slow.", delay=30))
    editor.open(workspace / "a.py", "x = 1\n")
    run = editor.command("codeagent.run", task="change it")
    editor.wait_until(lambda: _log(workspace).count('"file_change"') >= 2)
    editor.client.process.kill()
    editor.client.process.wait()

    again = start(say("Back."), choose=never)
    again.open(workspace / "a.py", "x = 1\n")
    resumed = again.command("codeagent.session.resume", sessionId=run["sessionId"])
    assert resumed["runs"] == 1
    assert pending_kinds(again) == ["changes"]
    diff = again.command("codeagent.review", runId=run["runId"])["diff"]
    assert "+x = 2" in diff
    assert "+new" in diff
    again.command("codeagent.apply", runId=run["runId"])
    again.told("Applied 2")
    assert again.text(workspace / "a.py") == "x = 2\n"
    again.run("codeagent.run", task="and go on")


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_what_waits_is_told_listed_and_offered_in_the_next_editor(
    start: StartEditor, workspace: Path, killed: bool
) -> None:
    """Nothing has to be resumed by hand, and what is done next is a session of its own."""
    editor = start(edit("a.py", "x = 1", "x = 2"), say("Done."), choose=never)
    editor.open(workspace / "a.py", "x = 1\n")
    run = editor.command("codeagent.run", task="Change the x")
    editor.ended(run["runId"])
    if killed:
        editor.client.process.kill()
        editor.client.process.wait()
    else:
        editor.close()

    again = start(say("Hello."), choose=never)
    uri = again.open(workspace / "a.py", "x = 1\n")
    assert "Change the x (1)" in again.told("wait for you")
    assert [item["runId"] for item in again.command("codeagent.pending")] == [run["runId"]]
    lenses = again.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert {lens["command"]["command"] for lens in lenses} >= {"codeagent.review", "codeagent.apply"}
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    asked = {"textDocument": {"uri": uri}, "range": place, "context": {"diagnostics": []}}
    offered = again.client.result("textDocument/codeAction", asked)
    assert any((each.get("command") or {}).get("command") == "codeagent.apply" for each in offered)
    other = again.command("codeagent.run", task="Greet")
    again.ended(other["runId"])
    assert other["sessionId"] != run["sessionId"]
    again.command("codeagent.apply", runId=run["runId"])
    again.told("Applied 1")
    assert again.text(workspace / "a.py") == "x = 2\n"


@pytest.mark.slow
def test_a_question_is_asked_again_in_the_next_editor(start: StartEditor, workspace: Path) -> None:
    asks = call("AskUser", questions=[{"text": "Which name?", "options": ["Ada", "Bob"]}], format="single")
    unanswered = {"window/showMessageRequest": lambda params: NO_ANSWER}
    editor = start(asks, say("Hello."), answers=unanswered)
    editor.command("codeagent.run", task="greet")
    _until_asked(editor)
    editor.client.process.kill()
    editor.client.process.wait()
    editor = start(say("Hello, Ada."), answers=unanswered)
    _until_asked(editor)
    (question,) = editor.command("codeagent.pending")
    editor.command("codeagent.respond", requestId=question["requestId"], answer="Ada")
    editor.wait_until(lambda: "Hello, Ada." in _log(workspace))


@pytest.mark.slow
def test_a_kill_while_the_question_is_open_loses_nothing(start: StartEditor, workspace: Path) -> None:
    editor = start(
        edit("a.py", "x = 1", "x = 2"), say("Done."), answers={"window/showMessageRequest": lambda params: NO_ANSWER}
    )
    editor.open(workspace / "a.py", "x = 1\n")
    run = editor.command("codeagent.run", task="change it")
    editor.wait_until(lambda: "approval" in pending_kinds(editor))
    editor.client.process.kill()
    editor.client.process.wait()
    again = start(say("Back."), choose=never)
    again.open(workspace / "a.py", "x = 1\n")
    resumed = again.command("codeagent.session.resume", sessionId=run["sessionId"])
    assert [(item["kind"], item["runId"]) for item in resumed["lapsed"]] == [("approval", run["runId"])]
    assert resumed["lapsed"][0]["title"] in again.told("interrupted")
    assert pending_kinds(again) == ["changes"]
    again.command("codeagent.apply", runId=run["runId"])
    again.told("Applied 1")
    assert again.text(workspace / "a.py") == "x = 2\n"


@pytest.mark.slow
def test_what_the_agent_wants_to_know_survives_kills(start: StartEditor, workspace: Path) -> None:
    """It is asked again in every new process, and the answer begins a run of the session."""
    asks = call("AskUser", questions=[{"text": "Which name?", "options": ["Ada", "Bob"]}], format="single")
    unanswered = {"window/showMessageRequest": lambda params: NO_ANSWER}
    editor = start(asks, say("Hello."), answers=unanswered)
    run = editor.command("codeagent.run", task="greet")
    for _ in range(2):
        _until_asked(editor)
        editor.client.process.kill()
        editor.client.process.wait()
        editor = start(say("Hello, Ada."), answers=unanswered)
        editor.command("codeagent.session.resume", sessionId=run["sessionId"])
        editor.command("codeagent.session.resume", sessionId=run["sessionId"])
    _until_asked(editor)
    (question,) = editor.command("codeagent.pending")
    assert "Which name?" in question["title"]
    editor.command("codeagent.respond", requestId=question["requestId"], answer="Ada")
    editor.wait_until(lambda: "Hello, Ada." in _log(workspace))
    assert pending_kinds(editor) == []


@pytest.mark.slow
def test_an_answer_after_a_restart_is_stored_without_its_secret(start: StartEditor, workspace: Path) -> None:
    key = "ghp_" + "aB3dE5gH7j" * 4
    unanswered = {"window/showMessageRequest": lambda params: NO_ANSWER}
    asks = call("AskUser", questions=[{"text": "Which way?", "options": []}], format="single")
    editor = start(asks, say("Hello."), answers=unanswered)
    run = editor.command("codeagent.run", task="greet")
    _until_asked(editor)
    editor.client.process.kill()
    editor.client.process.wait()
    editor = start(say("Hello again."), answers=unanswered)
    editor.command("codeagent.session.resume", sessionId=run["sessionId"])
    (question,) = editor.command("codeagent.pending")
    editor.command("codeagent.respond", requestId=question["requestId"], answer=f"this way, with {key}")
    editor.wait_until(lambda: "Hello again." in _log(workspace))
    assert "this way, with" in _log(workspace)
    assert key not in _log(workspace)


@pytest.mark.slow
def test_an_applied_run_can_be_undone_after_a_restart(start: StartEditor, workspace: Path) -> None:
    editor = start(edit("a.py", "x = 1", "x = 2"), say("Done."))
    editor.open(workspace / "a.py", "x = 1\ny\nz\n")
    run = editor.command("codeagent.run", task="change it")
    editor.ended(run["runId"])
    assert editor.close() == 0
    again = start()
    again.open(workspace / "a.py", "x = 2\ny\nz\ntyped\n")
    again.command("codeagent.session.resume", sessionId=run["sessionId"])
    again.command("codeagent.undo", runId=run["runId"])
    again.told("Undone")
    assert again.text(workspace / "a.py") == "x = 1\ny\nz\ntyped\n"
    assert pending_kinds(again) == []


def test_list_export_and_delete(start: StartEditor, workspace: Path) -> None:
    editor = start(say("The answer is 42."), choose=never)
    first = editor.command("codeagent.run", task="what is it?")
    editor.ended(first["runId"])
    rows = editor.command("codeagent.session.list")
    assert [(row["sessionId"], row["title"]) for row in rows] == [(first["sessionId"], "what is it?")]
    markdown = editor.command("codeagent.session.export")["markdown"]
    assert "what is it?" in markdown
    assert "The answer is 42." in markdown
    known = editor.command("codeagent.session.new")["sessionId"]
    context = editor.command("codeagent.session.export", sessionId=first["sessionId"], context=True)["context"]
    assert context["task"]["description"] == "what is it?" and context["safety"]["mode"] == "ask"
    assert context["code_context"]["workspace_root"] in (str(workspace), "")
    said = context["conversation"]["messages"][-1]
    assert (said["role"], said["content"]) == ("assistant", "The answer is 42.") and said["timestamp"].endswith("Z")
    assert known in str(editor.refusal("codeagent.session.export", {}))  # the current one is another, still empty
    assert editor.command("codeagent.session.delete", sessionId=first["sessionId"]) == {"ok": True}
    assert editor.command("codeagent.session.list") == []
    assert editor.refusal("codeagent.session.export", {"sessionId": first["sessionId"]})
    assert editor.refusal("codeagent.review", {"runId": first["runId"]})


def test_deleting_a_session_stops_its_run(start: StartEditor, workspace: Path) -> None:
    editor = start(say("Slow.", delay=30))
    run = editor.command("codeagent.run", task="think")
    editor.command("codeagent.session.delete", sessionId=run["sessionId"])
    assert editor.ended(run["runId"], 1)["message"] == "Cancelled."
    assert editor.command("codeagent.session.list") == []


def test_cancel_stops_one_run_and_not_the_other(start: StartEditor, workspace: Path) -> None:
    editor = start(say("Slow.", delay=30), {"loop": True})
    sessions = [editor.command("codeagent.session.new")["sessionId"] for _ in range(2)]
    first, second = (editor.command("codeagent.run", task="think", sessionId=name)["runId"] for name in sessions)
    assert editor.command("codeagent.cancel", runId=first) == {"cancelled": [first]}
    assert editor.ended(first, 1)["message"] == "Cancelled."
    assert editor.command("codeagent.cancel") == {"cancelled": [second]}
    editor.ended(second, 1)
    assert editor.command("codeagent.cancel") == {"cancelled": []}


@pytest.mark.slow
def test_the_conversation_goes_on_after_a_restart(start: StartEditor, workspace: Path) -> None:
    editor = start(say("Hello."))
    run = editor.command("codeagent.run", task="remember the number 42")
    editor.ended(run["runId"])
    editor.close()
    again = start(say("It was 42.", expect="what was it"))
    again.command("codeagent.session.resume", sessionId=run["sessionId"])
    assert again.run("codeagent.run", task="what was it?")["message"] == "Done."


def test_undo_without_anything_applied_says_so(start: StartEditor) -> None:
    assert "nothing to undo" in start().refusal("codeagent.undo", {})


def test_undo_keeps_typing_and_says_what_it_could_not_take_back(start: StartEditor, workspace: Path) -> None:
    text = "a = 1\n" + "".join(f"line {n}\n" for n in range(20)) + "b = 1\n"
    editor = start(edit("a.py", "a = 1", "a = 2"), edit("a.py", "b = 1", "b = 2"), say("Done."))
    uri = editor.open(workspace / "a.py", text)
    editor.run("codeagent.run", task="go")
    editor.type(uri, (0, 5), (0, 5), "00")
    editor.type(uri, (10, 0), (10, 0), "typed\n")
    editor.command("codeagent.undo")
    assert "a.py:1" in editor.told("a.py:1")
    after = editor.text(workspace / "a.py")
    assert after.startswith("a = 200\n")
    assert after.endswith("b = 1\n")
    assert "typed\n" in after


def test_a_late_change_for_a_closed_file_harms_nothing(start: StartEditor, workspace: Path) -> None:
    editor = start(write("n.py", "x\n"), say("Done."))
    editor.run("codeagent.run", task="go")
    uri = next(iter(editor.buffers))
    editor.command("codeagent.undo")
    editor.told("Undone")
    editor.client.notify(
        "textDocument/didChange", {"textDocument": {"uri": uri, "version": 9}, "contentChanges": [{"text": "x"}]}
    )
    assert editor.command("codeagent.pending") == []
    assert editor.close() == 0


def test_a_tool_error_is_no_end(start: StartEditor, workspace: Path) -> None:
    editor = start(call("read_file", path="missing.py"), call("nothing_like_it"), say("I see."))
    assert editor.run("codeagent.run", task="go")["message"] == "Done."
    assert editor.told("I see.")


@pytest.mark.slow
def test_nothing_is_left_of_a_deleted_session(start: StartEditor, workspace: Path, tmp_path: Path) -> None:
    """Neither of its file nor of its transcript, review, plan, export, long outputs and the place of its commands."""
    step = {"title": "one", "description": "do one"}
    plan = {"goal": "g", "steps": [step], "estimated_complexity": "low"}
    script = [call("create_plan", **plan), call("run_cmd", command="seq 1 60000"), write("a.py", "x\n")]
    editor = start(
        *script, say("Slow.", delay=30), choose=lambda params: "Allow once" if "run_cmd" in params["message"] else None
    )
    run = editor.command("codeagent.run", task="change it")
    editor.wait_until(lambda: '"file_change"' in _log(workspace))
    editor.command("codeagent.review", runId=run["runId"])
    editor.command("codeagent.plan.show", runId=run["runId"])
    editor.command("codeagent.session.export", sessionId=run["sessionId"])
    state = tmp_path / "state"
    about = {run["sessionId"], run["runId"]}

    def left() -> list[Path]:
        walk = os.walk(state)  # it passes over what goes meanwhile
        found = [Path(folder, name) for folder, folders, files in walk for name in (*folders, *files)]
        return [path for path in found if any(name in path.name for name in about)]

    assert {path.parent.name for path in left()} == {"sessions", "outputs", "transcript", "review", "plan", "export"}
    editor.command("codeagent.session.delete", sessionId=run["sessionId"])
    editor.wait_until(lambda: left() == [] and not list(state.glob("layers/*")))
    assert editor.close() == 0
    assert left() == []


def _until_asked(editor: StockEditor) -> None:
    editor.wait_until(lambda: pending_kinds(editor) == ["question"])


def _log(workspace: Path) -> str:
    files = [
        path for depth in ("", "*/", "*/*/") for path in (workspace.parent / "state").glob(f"{depth}sessions/*.jsonl")
    ]
    return json.dumps([file.read_text() for file in files]).replace('\\"', '"')
