"""Several attempts in a stock editor: one question about the best, the others by code actions."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import StartEditor
from tests.server.replies import call, say, write
from tests.server.stock_editor import StockEditor
from tests.server.test_features_background import running, until
from tests.shadow.rig import needs_overlay


def test_the_best_is_proposed_and_the_other_is_to_be_seen(start: StartEditor, workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 0\n")
    one = write("a.py", "x = 1\n")
    editor = start(one, one, say("Done."), say("Done."))  # the attempts take them in turns
    uri = editor.open(workspace / "a.py")
    editor.run("codeagent.run", task="set x to one", attempts=2)
    assert editor.buffers[uri].text == "x = 1\n"
    assert len(editor.prompts) == 1
    assert editor.command("codeagent.pending") == [], "the other attempt waits for nobody"
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    about = {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": []}}
    found: dict[str, Any] = {each["title"]: each for each in editor.client.result("textDocument/codeAction", about)}
    other = found["set x to one (2/2): Review"]["command"]
    assert editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}}) == []
    editor.command(other["command"], **other["arguments"][0])
    markdown = editor.command("codeagent.session.export")["markdown"]
    assert "Attempt 1 of 2 is the best: +1 -1, no tests ran." in markdown
    rows = {row["title"]: row["state"] for row in editor.command("codeagent.runs")}
    assert rows == {"set x to one": "completed", "set x to one (1/2)": "completed", "set x to one (2/2)": "completed"}
    for wrong in (0, 9, "x"):
        assert "attempts" in editor.refusal("codeagent.run", {"task": "x", "attempts": wrong})
    assert editor.close() == 0


@pytest.mark.slow
def test_a_deleted_session_takes_its_attempts_along(workspace: Path, tmp_path: Path) -> None:
    """They began with its talk. One that the user has gone on with is a session of their own."""
    script = [say("A needle."), *[say("Done.")] * 6]
    with StockEditor(workspace, tmp_path / "state", script=script) as editor:
        editor.run("codeagent.ask", question="what?")
        editor.run("codeagent.run", task="explain it", attempts=3)
        own = next(row["sessionId"] for row in editor.command("codeagent.runs") if row["title"].endswith("(2/3)"))
        whole = next(row["sessionId"] for row in editor.command("codeagent.runs") if row["title"] == "explain it")
        editor.command("codeagent.session.resume", sessionId=whole)
    with StockEditor(workspace, tmp_path / "state", script=[say("Yes.")]) as editor:
        editor.command("codeagent.session.resume", sessionId=own)
        editor.run("codeagent.ask", question="and then?")
        editor.command("codeagent.session.delete", sessionId=whole)
        assert [row["sessionId"] for row in editor.command("codeagent.session.list")] == [own]
        until(lambda: {row["sessionId"] for row in editor.command("codeagent.runs")} == {own})


@pytest.mark.slow
@needs_overlay
def test_kill_minus_nine_between_two_attempts(workspace: Path, tmp_path: Path) -> None:
    """One is done, the other runs a command: nothing runs on, nothing begins by itself, words to it are a task once."""
    (workspace / "a.py").write_text("x = 0\n")
    mark = "sleep 861.5"
    script = [write("a.py", "x = 1\n"), call("run_cmd", command=mark), say("Done."), say("Never.")]
    with StockEditor(workspace, tmp_path / "state", script=script) as editor:
        editor.open(workspace / "a.py")
        whole = editor.command("codeagent.run", task="set x to one", attempts=2)
        until(lambda: running(mark) and "completed" in states(editor).values())
        editor.command("codeagent.steer", runId=whole["runId"], text="one more word")
        os.kill(editor.client.process.pid, signal.SIGKILL)
        until(lambda: not running(mark))
    assert (workspace / "a.py").read_text() == "x = 0\n"
    with StockEditor(workspace, tmp_path / "state", script=[say("Heard.")], choose=lambda params: "Begin") as editor:
        uri = editor.open(workspace / "a.py")
        found = states(editor)
        assert found.pop("set x to one") == "interrupted"
        assert sorted(found.values()) == ["completed", "interrupted"], "either one may have been the quick one"
        editor.command("codeagent.session.resume", sessionId=whole["sessionId"])
        until(lambda: states(editor).get("one more word") == "completed")
        assert len([name for name in states(editor) if name == "one more word"]) == 1
        assert editor.buffers[uri].text == "x = 0\n"
        assert [prompt for prompt in editor.prompts if "x to one" in prompt["message"]] == []


def states(editor: StockEditor) -> dict[str, str]:
    return {row["title"]: row["state"] for row in editor.command("codeagent.runs")}
