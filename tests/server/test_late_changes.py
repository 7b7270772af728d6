"""Accepted changes whose outcome an editor leaves open, or gets wrong, and that are in its text after all: the user is
told, they can be undone, and nothing waits for a decision any more.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.server.editor import APPLY_SECONDS
from tests.clock import sooner_than
from tests.server.conftest import StartEditor
from tests.server.rawclient import NO_ANSWER, Refusal
from tests.server.replies import calls, edit, say
from tests.server.stock_editor import StockEditor

pytestmark = pytest.mark.slow  # whole servers at work

TEXT = "one\ntwo\nthree\n"
CHANGED = "one\n2\nthree\n"
SCRIPT = [edit("a.py", "two\n", "2\n"), say("Changed.")]
ANSWERS = {
    "it says nothing": NO_ANSWER,
    "it says yes": {"applied": True},
    "it says no": {"applied": False},
    "it fails": Refusal(-32603, "quit"),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_what_is_there_at_once_counts_whatever_is_said(start: StartEditor, workspace: Path, answer: Any) -> None:
    def applies(params: dict[str, Any]) -> Any:
        editor._apply(params)
        return answer

    editor = start(*SCRIPT, answers={"workspace/applyEdit": applies})
    editor.open(workspace / "a.py", TEXT)
    with sooner_than(APPLY_SECONDS, "an editor that has made the changes is not waited for"):
        assert editor.run("codeagent.run", task="change it")["message"] == "Applied 1 file."
    assert editor.text(workspace / "a.py") == CHANGED
    assert editor.command("codeagent.pending") == []


@pytest.mark.parametrize("answer", [{"applied": True}, {"applied": False}, Refusal(-32603, "quit")], ids=str)
@pytest.mark.parametrize("typed", ["", "mine\n"], ids=["", "typed"])
def test_what_comes_later_is_told_and_no_longer_waits(
    start: StartEditor, workspace: Path, answer: Any, typed: str
) -> None:
    editor = start(*SCRIPT, answers={"workspace/applyEdit": lambda params: answer})
    uri = editor.open(workspace / "a.py", TEXT)
    run_id = editor.command("codeagent.run", task="change it")["runId"]
    assert "Applied" not in editor.ended(run_id)["message"]
    assert [item["kind"] for item in editor.command("codeagent.pending")] == ["changes"]
    if typed:
        editor.type(uri, (0, 0), (0, 0), typed)
    place = 2 if typed else 1
    editor.type(uri, (place, 0), (place, 3), "2")  # the editor, at last
    editor.told("Applied 1")
    assert editor.command("codeagent.pending") == []
    editor.client.answers["workspace/applyEdit"] = editor._apply
    editor.command("codeagent.undo")
    editor.told("Undone")
    assert editor.text(workspace / "a.py") == f"{typed}{TEXT}"
    assert editor.close() == 0


def test_of_two_files_the_one_that_came_is_told_and_the_other_waits(start: StartEditor, workspace: Path) -> None:
    both = calls(
        ("edit_file", {"path": "a.py", "old_str": "two\n", "new_str": "2\n"}),
        ("edit_file", {"path": "b.py", "old_str": "two\n", "new_str": "2\n"}),
    )
    editor = start(both, say("Changed."), answers={"workspace/applyEdit": lambda params: {"applied": False}})
    uris = [editor.open(workspace / name, TEXT) for name in ("a.py", "b.py")]
    run_id = editor.command("codeagent.run", task="change both")["runId"]
    editor.ended(run_id)
    editor.type(uris[1], (1, 0), (1, 3), "2")
    editor.told("Applied 1")
    (waits,) = editor.command("codeagent.pending")
    assert [Path(path).name for path in waits["files"]] == ["a.py"]
    editor.client.answers["workspace/applyEdit"] = editor._apply
    editor.command("codeagent.apply", runId=run_id)
    editor.wait_until(lambda: editor.text(workspace / "a.py") == CHANGED)
    assert editor.text(workspace / "b.py") == CHANGED


def test_two_hunks_come_one_after_the_other(start: StartEditor, workspace: Path) -> None:
    both = calls(
        ("edit_file", {"path": "a.py", "old_str": "one\n", "new_str": "1\n"}),
        ("edit_file", {"path": "a.py", "old_str": "five\n", "new_str": "5\n"}),
    )
    text = "one\ntwo\nthree\nfour\nfive\n"
    editor = start(both, say("Changed."), answers={"workspace/applyEdit": lambda params: {"applied": False}})
    uri = editor.open(workspace / "a.py", text)
    editor.ended(editor.command("codeagent.run", task="change both")["runId"])
    editor.type(uri, (0, 0), (0, 3), "1")
    editor.told("Applied 1")
    editor.type(uri, (4, 0), (4, 4), "5")
    editor.told("Applied 1")
    assert editor.command("codeagent.pending") == []
    editor.client.answers["workspace/applyEdit"] = editor._apply
    editor.command("codeagent.undo")
    editor.told("Undone")
    assert editor.text(workspace / "a.py") == text


def test_what_comes_while_another_file_is_applied_is_told_then(start: StartEditor, workspace: Path) -> None:
    both = calls(
        ("edit_file", {"path": "a.py", "old_str": "two\n", "new_str": "2\n"}),
        ("edit_file", {"path": "b.py", "old_str": "two\n", "new_str": "2\n"}),
    )
    editor = start(both, say("Changed."), answers={"workspace/applyEdit": lambda params: {"applied": False}})
    uri, _ = (editor.open(workspace / name, TEXT) for name in ("a.py", "b.py"))
    run_id = editor.command("codeagent.run", task="change both")["runId"]
    editor.ended(run_id)

    def slowly(params: dict[str, Any]) -> Any:
        editor.type(uri, (1, 0), (1, 3), "2")
        time.sleep(1)
        return editor._apply(params)

    editor.client.answers["workspace/applyEdit"] = slowly
    editor.command("codeagent.apply", runId=run_id, files=["b.py"])
    editor.told("Applied 1")
    editor.told("Applied 1")
    assert editor.command("codeagent.pending") == []


def test_an_editor_that_takes_back_what_it_made_is_not_asked_for_ever(start: StartEditor, workspace: Path) -> None:
    def takes_back(params: dict[str, Any]) -> Any:
        editor._apply(params)
        editor.type(uri, (1, 0), (1, 1), "two")
        return {"applied": False, "failureReason": "a hook refused it"}

    editor = start(*SCRIPT, answers={"workspace/applyEdit": takes_back})
    uri = editor.open(workspace / "a.py", TEXT)
    run_id = editor.command("codeagent.run", task="change it")["runId"]
    assert "a hook refused it" in editor.told("a hook")
    editor.ended(run_id)
    assert len(editor.edits) < 6
    assert [item["kind"] for item in editor.command("codeagent.pending")] == ["changes"]


def test_typing_something_else_tells_nothing(start: StartEditor, workspace: Path) -> None:
    editor = start(*SCRIPT, answers={"workspace/applyEdit": lambda params: {"applied": False}})
    uri = editor.open(workspace / "a.py", TEXT)
    editor.ended(editor.command("codeagent.run", task="change it")["runId"])
    for number in range(5):
        editor.type(uri, (0, 0), (0, 0), f"mine {number}\n")
    assert [item["kind"] for item in editor.command("codeagent.pending")] == ["changes"]
    assert not told(editor)


def told(editor: StockEditor) -> bool:
    shown = editor.notifications("window/showMessage")
    return any("Applied" in each["message"] for each in shown)
