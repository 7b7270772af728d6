"""In a real VS Code: words to a run at work, a queued task, the list of runs, the search, going back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients.neovim.support import with_hook_and_picture
from tests.clients.vscode.support import Editor, window
from tests.clients.vscode.test_runs import buffer, call, edit, until

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

SOURCE = "def one():\n    return 1\n"


def test_words_to_a_run_and_a_task_that_waits(tmp_path: Path, editor: Editor) -> None:
    look: dict[str, Any] = {"tool_calls": [call("list_dir", path=".")], "delay": 30}
    script = [look, {"text": "Short.", "expect": "and be brief"}, {"text": "Next.", "expect": "the next thing"}]
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script) as opened:
        opened.task("look around")
        opened.wait_status("working")
        opened.command("CodeAgent: Say Something to the Run…")
        opened.answer("and be brief")
        opened.task("the next thing")
        opened.idle()
        until(lambda: "and be brief" in opened.transcript().locator(".said .words").first.inner_text(), "not shown")
        until(lambda: "Next." in opened.transcript().locator("body").inner_text(), "no transcript of the second")
        opened.command("CodeAgent: Runs…")
        rows = opened.page.locator(".quick-input-list .monaco-list-row")
        until(lambda: rows.count() == 2, "not two runs")
        assert all("done" in row for row in rows.all_inner_texts())


@pytest.mark.volume
def test_found_and_gone_back_to_before(tmp_path: Path, editor: Editor) -> None:
    script: list[dict[str, Any]] = [{"tool_calls": [edit("return 1", "return 10")]}, {"text": "Changed."}]
    with window(
        tmp_path, editor, files={"a.py": SOURCE}, script=script, settings={"codeagent.edits.apply": "auto"}
    ) as opened:
        opened.open("a.py")
        opened.task("change the number")
        opened.page.locator(".view-line").filter(has_text="return 10").first.wait_for()
        opened.idle()
        opened.command("CodeAgent: Search Sessions…")
        opened.answer("number")
        opened.pick("change the number")
        opened.pick("Go Back to Before It…")
        opened.pick("Changes and talk")
        opened.page.locator(".view-line").filter(has_text="return 10").first.wait_for(state="detached")
        assert buffer(opened) == SOURCE


@pytest.mark.volume
def test_a_hook_a_background_server_a_command_and_a_fork(tmp_path: Path, editor: Editor) -> None:
    """A formatter of the project, trusted once; a command of one's own; a session from before it; a refused picture."""
    with_hook_and_picture(tmp_path / "ws")
    commands = tmp_path / "state" / "commands"
    commands.mkdir(parents=True)
    (tmp_path / "state").chmod(0o700)
    (commands / "serve.md").write_text("serve what @$1 says")
    serve: dict[str, Any] = {
        "tool_calls": [call("run_cmd", command="echo serving; sleep 75.5", background=True, ready="serving")],
        "expect": "a.py, lines 1-2, as they are now",
    }
    script = [
        {"text": "Good morning."},
        serve,
        {"tool_calls": [call("run_beside", command="cat a.py", id="bg1")]},
        {"tool_calls": [edit("x = 3", "x=4")]},
        {"text": "Served."},
    ]
    files = {"a.py": SOURCE + "x = 3\n"}
    settings = {"codeagent.edits.apply": "auto"}
    with window(tmp_path, editor, files=files, script=script, settings=settings) as opened:
        opened.open("a.py")
        opened.task("hello")
        opened.idle()
        opened.task("/serve a.py:1-2")
        opened.pick("Trust this content")
        opened.page.locator(".view-line").filter(has_text="x = 4").first.wait_for()
        opened.idle()
        until(lambda: "Served." in opened.transcript().locator("body").inner_text(), "not answered")
        shown = opened.transcript().locator("body").inner_text()
        assert shown.index("echo serving") < shown.index("cat a.py") < shown.index("Served.")
        assert buffer(opened) == SOURCE + "x = 4\n"
        opened.choose("CodeAgent: New Session from Before a Run…", "/serve a.py:1-2")
        talk = opened.transcript().locator("body")
        until(
            lambda: "Served." not in talk.inner_text() and "Good morning." in talk.inner_text(), "not what was before"
        )
        opened.task("what is in @shot.png")
        until(lambda: "does not see pictures" in talk.inner_text(), "not refused")
