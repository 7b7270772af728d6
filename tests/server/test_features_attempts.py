"""Several attempts in a stock editor: one question about the best, the others by code actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.server.conftest import StartEditor
from tests.server.replies import say, write


def test_the_best_is_proposed_and_the_other_is_to_be_seen(start: StartEditor, workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 0\n")
    one = write("a.py", "x = 1\n")
    editor = start(one, one, say("Done."), say("Done."))  # the attempts take them in turns
    uri = editor.open(workspace / "a.py")
    editor.run("codeagent.run", task="set x to one", attempts=2)
    assert editor.buffers[uri].text == "x = 1\n"
    assert len(editor.prompts) == 1
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    about = {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": []}}
    found: dict[str, Any] = {each["title"]: each for each in editor.client.result("textDocument/codeAction", about)}
    other = found["set x to one (2/2): Review"]["command"]
    assert editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}}) == []
    editor.command(other["command"], **other["arguments"][0])
    markdown = editor.command("codeagent.session.export")["markdown"]
    assert "Attempt 1 of 2 is the best: +1 -1." in markdown
    rows = {row["title"]: row["state"] for row in editor.command("codeagent.runs")}
    assert rows == {"set x to one": "completed", "set x to one (1/2)": "completed", "set x to one (2/2)": "completed"}
    for wrong in (0, 9, "x"):
        assert "attempts" in editor.refusal("codeagent.run", {"task": "x", "attempts": wrong})
    assert editor.close() == 0
