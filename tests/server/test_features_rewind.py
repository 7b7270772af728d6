"""Going back in a stock editor: a preview, the rewind as a run, its undoing, and a session from before a run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.server.stock_editor import StockEditor

EDIT = {"path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}
WRITES = "printf 'made\\n' > made.txt; mkdir d; cp c.py d/"
SCRIPT: list[dict[str, Any]] = [
    {
        "tool_calls": [
            {"name": "edit_file", "arguments": {"path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}}
        ]
    },
    {"text": "Done."},
    {"tool_calls": [{"name": "write_file", "arguments": {"path": "b.py", "content": "new\n"}}]},
    {"text": "Done."},
    {"text": "After."},
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n\n\ny = 1\n")
    return folder


def titles(editor: StockEditor) -> list[str]:
    return [row["title"] for row in editor.command("codeagent.session.list")]


def test_back_and_undone(place: Path, tmp_path: Path) -> None:
    with StockEditor(place, tmp_path / "state", script=SCRIPT, settings={"edits": {"apply": "auto"}}) as editor:
        uri = editor.open(place / "a.py")
        first = editor.command("codeagent.run", task="change x")["runId"]
        editor.ended(first)
        editor.run("codeagent.run", task="add b")
        editor.type(uri, (2, 0), (2, 0), "typed = True\n")
        told = editor.command("codeagent.session.rewind", runId=first, preview=True)
        assert [run["title"] for run in told["runs"]] == ["change x", "add b"]
        assert set(told["files"]) == {"a.py", "b.py"}
        assert "+x = 1" in told["diff"] and "-x = 2" in told["diff"]
        assert editor.text(place / "a.py") == "x = 2\n\ntyped = True\n\ny = 1\n", "a preview changes nothing"
        back = editor.command("codeagent.session.rewind", runId=first)
        editor.ended(back["runId"])
        assert "2 files as they were" in editor.told("2 runs taken back")
        assert editor.text(place / "a.py") == "x = 1\n\ntyped = True\n\ny = 1\n"
        assert (place / "a.py").read_text() == "x = 1\n\n\ny = 1\n", "nothing is written to the disk by us"
        assert "Undo it first" in editor.refusal("codeagent.session.rewind", {"runId": first})
        editor.command("codeagent.undo", runId=back["runId"])
        for _ in range(100):
            if editor.text(place / "a.py").startswith("x = 2"):
                break
            editor.command("codeagent.pending")
        assert editor.text(place / "a.py") == "x = 2\n\ntyped = True\n\ny = 1\n"


def test_undone_by_its_id_after_a_restart(place: Path, tmp_path: Path) -> None:
    settings = {"edits": {"apply": "auto"}}
    with StockEditor(place, tmp_path / "state", script=SCRIPT, settings=settings) as editor:
        editor.open(place / "a.py")
        editor.run("codeagent.run", task="change x")
        back = editor.command("codeagent.session.rewind")["runId"]
        editor.ended(back)
    with StockEditor(place, tmp_path / "state", script=[], settings=settings) as editor:
        editor.open(place / "a.py")
        editor.command("codeagent.undo", runId=back)
        editor.told("is undone")
        assert editor.text(place / "a.py").startswith("x = 2")


def test_a_session_from_before_a_run(place: Path, tmp_path: Path) -> None:
    with StockEditor(place, tmp_path / "state", script=SCRIPT, settings={"edits": {"apply": "auto"}}) as editor:
        first = editor.command("codeagent.run", task="change x")
        editor.ended(first["runId"])
        second = editor.command("codeagent.run", task="add b")
        editor.ended(second["runId"])
        forked = editor.command("codeagent.session.fork", runId=second["runId"])
        assert forked["sessionId"] != first["sessionId"]
        shown = editor.command("codeagent.session.events")["events"]
        assert [event["type"] for event in shown] == ["run_started", "token", "run_completed"]
        assert (shown[0]["task"], shown[0]["earlier"]) == ("change x", True)
        third = editor.command("codeagent.run", task="another way")
        assert third["sessionId"] == forked["sessionId"]
        editor.ended(third["runId"])
        markdown = editor.command("codeagent.session.export")["markdown"]
        assert "change x" in markdown and "add b" not in markdown
        assert "change x" in titles(editor)


def test_wrong_runs_are_refused(place: Path, tmp_path: Path) -> None:
    with StockEditor(place, tmp_path / "state", script=SCRIPT) as editor:
        for name in ("codeagent.session.rewind", "codeagent.session.fork"):
            assert "nobody" in editor.refusal(name, {"runId": "nobody"})


def test_moves_deletions_and_what_a_command_wrote(place: Path, tmp_path: Path) -> None:
    """As the editor sees them: files are there again under their old names, with what was typed into a moved one."""
    (place / "b.py").write_text("second\n")
    script: list[dict[str, Any]] = [
        {"tool_calls": [{"name": "move_file", "arguments": {"path": "a.py", "new_path": "c.py"}}]},
        {"tool_calls": [{"name": "delete_file", "arguments": {"path": "b.py"}}]},
        {
            "tool_calls": [
                {"name": "run_cmd", "arguments": {"command": "printf 'made\\n' > made.txt; mkdir d; cp c.py d/"}}
            ]
        },
        {"text": "Done."},
    ]
    settings = {"permissions": {"mode": "bypass"}}
    before = {path.name: path.read_text() for path in place.iterdir()}
    with StockEditor(place, tmp_path / "state", script=script, settings=settings) as editor:
        editor.open(place / "a.py")
        run_id = editor.command("codeagent.run", task="turn it over")["runId"]
        editor.ended(run_id)
        assert not (place / "a.py").exists() and not (place / "b.py").exists()
        assert editor.text(place / "made.txt") == "made\n"
        assert editor.text(place / "d" / "c.py") == before["a.py"]
        editor.type(next(uri for uri in editor.buffers if uri.endswith("/ws/c.py")), (2, 0), (2, 0), "typed = True\n")
        back = editor.command("codeagent.session.rewind", runId=run_id)["runId"]
        editor.ended(back)
        assert editor.text(place / "a.py") == "x = 1\n\ntyped = True\n\ny = 1\n"
        assert editor.text(place / "b.py") == "second\n"
        assert sorted(path.name for path in place.rglob("*.*")) == ["a.py", "b.py"]
        editor.command("codeagent.undo", runId=back)
        for _ in range(200):
            editor.command("codeagent.pending")
            if (place / "c.py").exists() and not (place / "b.py").exists():
                break
            time.sleep(0.02)
        assert editor.text(place / "c.py") == "x = 1\n\ntyped = True\n\ny = 1\n"
        assert not (place / "a.py").exists() and not (place / "b.py").exists()


def test_what_waits_for_a_decision(place: Path, tmp_path: Path) -> None:
    """It is dropped with its question and actions, and offered again when the rewind is undone."""
    with StockEditor(place, tmp_path / "state", script=SCRIPT, choose=lambda params: None) as editor:
        uri = editor.open(place / "a.py")
        first = editor.command("codeagent.run", task="change x")["runId"]
        editor.ended(first)
        assert offered(editor, uri, "Apply")
        back = editor.command("codeagent.session.rewind", runId=first)
        editor.ended(back["runId"])
        assert not offered(editor, uri, "Apply")
        assert editor.command("codeagent.pending") == []
        assert editor.text(place / "a.py").startswith("x = 1")
        editor.command("codeagent.undo", runId=back["runId"])
        until(lambda: offered(editor, uri, "Apply"))
        editor.command("codeagent.apply", runId=first)
        until(lambda: editor.text(place / "a.py").startswith("x = 2"))


def until(holds: Any) -> None:
    for _ in range(200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it never came")


def offered(editor: StockEditor, uri: str, words: str) -> list[str]:
    """The code actions with these words."""
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    about = {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": []}}
    found = editor.client.result("textDocument/codeAction", about)
    return [each["title"] for each in found if words in each["title"]]
