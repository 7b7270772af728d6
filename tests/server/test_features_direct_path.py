"""The direct path in a stock editor: unsaved text, tests in the shadow, progress, one prompt, the truth at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import StartEditor
from tests.server.replies import edit, say
from tests.server.stock_editor import StockEditor
from tests.shadow.rig import needs_overlay

pytestmark = pytest.mark.slow

NOW = "def mean(values):\n    return sum(values) / (len(values) - 1)\n"
RIGHT = "def mean(values):\n    return sum(values) / len(values)\n"
TESTS = (
    "import unittest\nfrom stats import mean\n\n\nclass T(unittest.TestCase):\n"
    "    def test_mean(self):\n        self.assertEqual(mean([2, 4]), 3)\n"
)
TASK = "test_stats.py fails. Repair mean in stats.py."
FUNCTION = {"agent": {"answerForm": "function"}}
TOOLS = {"agent": {"answerForm": "tools"}}


def answer(text: str) -> dict[str, Any]:
    return say(f"```python\n{text}```", chunks=4, delay=0.1)  # so long that its progress is seen


def project(workspace: Path) -> Path:
    (workspace / "stats.py").write_text("def mean(values):\n    return 0\n")
    (workspace / "test_stats.py").write_text(TESTS)
    return workspace / "stats.py"


def reports(editor: StockEditor) -> list[str]:
    values = [params["value"] for params in editor.notifications("$/progress")]
    return [value.get("message", "") for value in values if value["kind"] == "report"]


@pytest.mark.journey
@needs_overlay
def test_a_task_in_a_stock_editor(workspace: Path, tmp_path: Path) -> None:
    path = project(workspace)
    which = say("None of them.")  # several small changes pass
    script = [which, answer("def mean(values):\n    return sum(values)\n"), answer(RIGHT)]
    with StockEditor(workspace, tmp_path / "state", script=script, settings=FUNCTION) as editor:
        editor.open(path, NOW)
        end = editor.run("codeagent.run", task=TASK)
        assert editor.text(path) == RIGHT
        assert path.read_text() == "def mean(values):\n    return 0\n"
        assert len(editor.prompts) == 1
        assert "Tests: 1 passed" in editor.prompts[0]["message"]
        assert any("Attempt 2 of 3" in message for message in reports(editor))
        assert end["message"]


@needs_overlay
def test_what_is_not_done_is_said(workspace: Path, tmp_path: Path) -> None:
    path = project(workspace)
    with StockEditor(workspace, tmp_path / "state", script=[say("✓ Done.")], settings=FUNCTION) as editor:
        editor.open(path, NOW)
        end = editor.run("codeagent.run", task=TASK)
        assert editor.text(path) == NOW
        assert editor.prompts == []
        told = [params["message"] for params in editor.notifications("window/showMessage")]
        assert any("Nothing was changed" in message for message in (*told, end["message"]))


@needs_overlay
def test_tools_are_not_done_while_tests_beside_the_change_fail(workspace: Path, tmp_path: Path) -> None:
    path = project(workspace)
    script = [
        edit("stats.py", "    return sum(values) / len(values)", "    return sum(values) + 0"),
        say("✓ Done, it is right now."),
        say("It is done."),
    ]
    with StockEditor(workspace, tmp_path / "state", script=script, settings=TOOLS) as editor:
        editor.open(path, RIGHT)
        end = editor.run("codeagent.run", task="Make the mean shorter.")
        told = [params["message"] for params in editor.notifications("window/showMessage")]
        assert any("Not done" in message for message in (*told, end["message"]))
        assert "Tests: 1 failed" in editor.prompts[0]["message"]
        assert "return sum(values) + 0" in editor.text(path)  # accepted all the same: that is the user's choice


@needs_overlay
def test_tools_are_done_with_tests_that_failed_before_in_something_else(workspace: Path, tmp_path: Path) -> None:
    path = project(workspace)
    (workspace / "test_stats.py").write_text(f"{TESTS}\n    def test_other(self):\n        self.fail()\n")
    script = [edit("stats.py", " / (len(values) - 1)", " / len(values)"), say("Fixed.")]
    with StockEditor(workspace, tmp_path / "state", script=script, settings=TOOLS) as editor:
        editor.open(path, NOW)
        end = editor.run("codeagent.run", task="The mean is wrong. Fix it.")
        assert "not done" not in end["message"].lower()
        assert editor.text(path) == RIGHT


def test_a_cancel_in_the_middle(workspace: Path, tmp_path: Path) -> None:
    path = project(workspace)
    script = [{"text": answer(RIGHT)["text"], "chunks": 50, "delay": 0.2}]
    with StockEditor(workspace, tmp_path / "state", script=script, settings=FUNCTION) as editor:
        editor.open(path, NOW)
        run_id = editor.command("codeagent.run", task="Fix mean in stats.py")["runId"]
        assert run_id in editor.command("codeagent.cancel", runId=run_id)["cancelled"]
        editor.ended(run_id)
        assert editor.text(path) == NOW


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("The code looks fine to me", "The model said: The code looks fine to me"),
        ("抱歉，我无法修改这段代码。", "抱歉，我无法修改这段代码。"),
        ("Error: rate limit exceeded", "Error: rate limit exceeded"),
        ("```\nSorry, that cannot be done here.\n```", "Sorry, that cannot be done here."),
        ("NO CHANGE: it is right already", "The model said: it is right already"),
        ("```\nx = 2\n```\nor\n```\nx = 3\n```", "Nothing was changed"),
        ("```diff\n-x = 1\n+x = 2\n```", "Nothing was changed"),
    ],
)
@pytest.mark.parametrize("command", ["codeagent.edit", "codeagent.fix", "codeagent.refactor"])
def test_prose_never_replaces_a_selection(
    start: StartEditor, workspace: Path, command: str, reply: str, told: str
) -> None:
    """Not even where changes land unasked; the user reads what the model said."""
    editor = start(*[say(reply)] * 4, settings={"edits": {"apply": "auto"}})
    uri = editor.open(workspace / "a.py", "x = 1\n")
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    given = {"uri": uri, "range": span, **({"instruction": "make it 2"} if command == "codeagent.edit" else {})}
    editor.ended(editor.command(command, **given)["runId"])
    assert told in editor.told("Nothing was changed")
    assert editor.text(workspace / "a.py") == "x = 1\n"
