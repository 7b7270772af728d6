"""Code actions and the places they act on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import StartEditor
from tests.server.replies import say
from tests.server.stock_editor import STOCK, StockEditor

SOURCE = "import os\n\n\ndef one():\n    return 1\n\n\nclass Two:\n    def method(self):\n        return 2\n"


def span(start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }


def offered(editor: StockEditor, uri: str, place: dict[str, Any], **context: Any) -> list[dict[str, Any]]:
    params = {"textDocument": {"uri": uri}, "range": place, "context": {"diagnostics": [], **context}}
    found: list[dict[str, Any]] = editor.client.result("textDocument/codeAction", params)
    return found


def test_kinds_are_filtered_as_asked(start: StartEditor, workspace: Path) -> None:
    editor = start()
    uri = editor.open(workspace / "a.py", SOURCE)
    place = span((0, 0), (1, 0))
    kinds = {item["kind"] for item in offered(editor, uri, place)}
    assert kinds == {"refactor.rewrite.codeagent", "quickfix.codeagent"}
    for only, prefix in (("refactor", "refactor."), ("quickfix", "quickfix."), ("source", "source.codeagent.")):
        found = offered(editor, uri, place, only=[only])
        assert found
        assert all(item["kind"].startswith(prefix) for item in found)
    assert offered(editor, uri, place, only=["refactor.extract"]) == []
    assert offered(editor, uri, place, only=["source.organizeImports"]) == []
    assert offered(editor, uri, place, only=["refactor.rewrite.codeagent.more"]) == []


def test_a_diagnostic_gets_a_fix_of_its_own(start: StartEditor, workspace: Path) -> None:
    editor = start()
    uri = editor.open(workspace / "a.py", SOURCE)
    diagnostic = {"range": span((0, 7), (0, 9)), "message": "unused import\n" + "long " * 60}
    first = offered(editor, uri, span((0, 0), (0, 0)), diagnostics=[diagnostic], only=["quickfix"])[0]
    assert "Fix: unused import long" in first["title"]
    assert "\n" not in first["title"]
    assert len(first["title"]) < 120
    assert first["diagnostics"] == [diagnostic]
    (argument,) = first["command"]["arguments"]
    assert argument["range"] == diagnostic["range"]
    assert argument["diagnostics"][0]["line"] == 1


def test_a_whole_file_action_covers_the_whole_file(start: StartEditor, workspace: Path) -> None:
    editor = start()
    uri = editor.open(workspace / "a.py", SOURCE)
    for item in offered(editor, uri, span((2, 0), (2, 0)), only=["source"]):
        assert item["command"]["arguments"][0]["range"] == span((0, 0), (10, 0))


def test_nothing_is_announced_as_to_be_resolved(start: StartEditor) -> None:
    """Neovim would ask for each chosen action once more, and wait."""
    capabilities = start().capabilities
    assert not capabilities["codeActionProvider"].get("resolveProvider")
    assert not capabilities["codeLensProvider"].get("resolveProvider")


def test_actions_come_from_memory(start: StartEditor, workspace: Path) -> None:
    editor = start()
    uri = editor.open(workspace / "a.py", SOURCE * 2000)
    offered(editor, uri, span((0, 0), (1, 0)))
    took = []
    for line in range(20):
        before = time.perf_counter()
        offered(editor, uri, span((line, 0), (line + 1, 0)))
        took.append(time.perf_counter() - before)
    assert sorted(took)[10] < 1, "a model would take longer; 10 ms is what the bench measures"


def test_a_part_of_a_line_stays_a_part_of_a_line(start: StartEditor, workspace: Path) -> None:
    editor = start(say("```python\n'🎈'\n```"))
    uri = editor.open(workspace / "a.py", "x = ('🎉', '🎊', 3)\n")
    sentence = editor.run("codeagent.refactor", uri=uri, range=span((0, 11), (0, 15)))["message"]
    assert sentence == "Applied 1 file."
    assert editor.text(workspace / "a.py") == "x = ('🎉', '🎈', 3)\n"


@pytest.mark.parametrize(
    ("line", "new", "expected"),
    [
        (4, "def one():\n    return 11", SOURCE.replace("return 1\n", "return 11\n")),
        (9, "    def method(self):\n        return 22", SOURCE.replace("return 2\n", "return 22\n")),
    ],
)
def test_an_empty_range_means_the_enclosing_symbol(
    start: StartEditor, workspace: Path, line: int, new: str, expected: str
) -> None:
    editor = start(say(f"```python\n{new}\n```"))
    uri = editor.open(workspace / "a.py", SOURCE)
    editor.run("codeagent.refactor", uri=uri, range=span((line, 6), (line, 6)))
    assert editor.text(workspace / "a.py") == expected


def test_a_range_beyond_the_text_is_clamped(start: StartEditor, workspace: Path) -> None:
    editor = start(say("```python\nx = 2\n```"))
    uri = editor.open(workspace / "a.py", "x = 1\n")
    editor.run("codeagent.refactor", uri=uri, range=span((0, 0), (99, 99)))
    assert editor.text(workspace / "a.py") == "x = 2\n"


def test_a_reversed_range_is_taken_as_meant(start: StartEditor, workspace: Path) -> None:
    editor = start(say("```python\ny\n```"))
    uri = editor.open(workspace / "a.py", "x = 1\n")
    editor.run("codeagent.refactor", uri=uri, range=span((0, 1), (0, 0)))
    assert editor.text(workspace / "a.py") == "y = 1\n"


def test_an_explanation_ends_in_the_transcript_and_changes_nothing(start: StartEditor, workspace: Path) -> None:
    editor = start(say("It adds one."))
    uri = editor.open(workspace / "a.py", SOURCE)
    editor.run("codeagent.explain", uri=uri, range=span((3, 0), (4, 12)))
    editor.wait_until(lambda: bool(editor.shown))
    assert "It adds one." in Path(editor.shown[0].removeprefix("file://")).read_text()
    assert editor.edits == []


def test_an_untitled_buffer_can_be_rewritten(start: StartEditor, workspace: Path) -> None:
    editor = start(say("```python\nx = 2\n```"))
    uri = "untitled:Untitled-1"
    editor._open(uri, "x = 1\n")
    sentence = editor.run("codeagent.refactor", uri=uri, range=span((0, 0), (1, 0)))["message"]
    assert sentence == "Applied 1 file."
    assert editor.buffers[uri].text == "x = 2\n"


def test_a_buffer_without_a_name_is_asked_for_one(start: StartEditor) -> None:
    editor = start()
    editor._open("file://", "x = 1\n")
    told = editor.refusal("codeagent.refactor", {"uri": "file://", "range": span((0, 0), (1, 0))})
    assert told == "This buffer has no name yet. Write it to a file first."


def test_a_client_without_tags_gets_none(start: StartEditor, workspace: Path) -> None:
    editor = start()
    uri = editor.open(workspace / "a.py", SOURCE)
    assert not any("tags" in item for item in offered(editor, uri, span((0, 0), (1, 0))))
    code_action = {**STOCK["textDocument"]["codeAction"], "tagSupport": {"valueSet": [1]}}
    tagged = start(capabilities={**STOCK, "textDocument": {"codeAction": code_action}}, state=workspace.parent / "s2")
    uri = tagged.open(workspace / "a.py", SOURCE)
    assert all(item["tags"] == [1] for item in offered(tagged, uri, span((0, 0), (1, 0))))
