"""The users' own commands in a stock editor: offered as actions, called by name and by `/name`, trusted first."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.server.replies import say
from tests.server.stock_editor import StockEditor


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / ".claude" / "commands").mkdir(parents=True)
    (folder / "a.py").write_text("x = 1\n")
    (folder / ".claude" / "commands" / "greet.md").write_text("---\ndescription: Greets\n---\nGreet $1 warmly.")
    return folder


def own(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "commands"
    folder.mkdir(parents=True, mode=0o700)
    (tmp_path / "state").chmod(0o700)
    (folder / "count.md").write_text("Count to $ARGUMENTS.")


def actions(editor: StockEditor, uri: str) -> list[dict[str, Any]]:
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
    about = {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": []}}
    found: list[dict[str, Any]] = editor.client.result("textDocument/codeAction", about)
    return found


@pytest.mark.slow
def test_listed_offered_and_called(place: Path, tmp_path: Path) -> None:
    own(tmp_path)
    script = [{"text": "One.", "expect": "Count to 3."}, {"text": "Two.", "expect": "Count to 4."}, say("Five.")]
    with StockEditor(place, tmp_path / "state", script=script) as editor:
        uri = editor.open(place / "a.py")
        rows = {row["name"]: row for row in editor.command("codeagent.commands.list")}
        assert (rows["count"]["approved"], rows["greet"]["approved"], rows["greet"]["description"]) == (True, False, "")
        for _ in range(100):
            titles = [action["title"] for action in actions(editor, uri)]
            if "/greet" in titles:
                break
            time.sleep(0.05)
        assert {"/greet", "/count: Count to $ARGUMENTS."} <= set(titles)
        editor.run("codeagent.command", name="count", arguments="3")
        editor.run("codeagent.run", task="/count 4")
        editor.run("codeagent.run", task="/cuont 5")
        told = [str(params) for params in editor.notifications("$/progress")]
        assert any("There is no command /cuont" in words for words in told)
        assert "There are: count, greet" in editor.refusal("codeagent.command", {"name": "nothing"})
        markdown = editor.command("codeagent.session.export")["markdown"]
        assert "One." in markdown and "Two." in markdown and "/count 3" in markdown


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "used"), [("Trust this content", True), ("Deny", False), (None, False)])
def test_one_of_the_workspace_is_trusted_first(place: Path, tmp_path: Path, answer: str | None, used: bool) -> None:
    script = [{"text": "Hello!", "expect": "Greet Bob warmly."}] * 2

    def choose(params: dict[str, Any]) -> str | None:
        return answer if "/greet" in params["message"] else None

    with StockEditor(place, tmp_path / "state", script=script, choose=choose) as editor:
        run_id = editor.command("codeagent.run", task="/greet Bob")["runId"]
        editor.ended(run_id)
        markdown = editor.command("codeagent.session.export")["markdown"]
        assert ("Hello!" in markdown) == used
        if used:
            count = len(editor.prompts)
            editor.run("codeagent.run", task="/greet Bob")
            assert len(editor.prompts) == count, "asked once"
        else:
            assert "was not used" in markdown
