"""A change made by hand is finished: as a stock editor meets it, with the real language servers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.language_servers.real import missing, path_with_servers
from tests.server.conftest import StartEditor
from tests.server.stock_editor import StockEditor

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(missing("basedpyright") is not None, reason=str(missing("basedpyright"))),
]

LIB = "def load(name: str) -> int:\n    return len(name)\n"
USE = (
    "from lib import load\n\n\ndef one(folder: str) -> int:\n    return load('a')\n\n\n"
    "def two() -> int:\n    return load('b')\n"
)
AGAIN = "import lib\n\n\ndef three(folder: str) -> int:\n    return lib.load(name='c')\n"
END = 18
"""The column behind the parameters of `load`."""


@pytest.fixture
def editor(start: StartEditor, workspace: Path) -> StockEditor:
    return begun(start, workspace)


def begun(start: StartEditor, workspace: Path, **options: Any) -> StockEditor:
    """An editor whose user types at once, while its server is being loaded."""
    (workspace / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    for name, text in (("lib.py", LIB), ("use.py", USE), ("again.py", AGAIN)):
        (workspace / name).write_text(text)
    return start(env={"PATH": path_with_servers()}, **options)


def changed(editor: StockEditor, workspace: Path, words: str = ", folder: str") -> str:
    """Add a parameter, key by key."""
    uri = editor.open(workspace / "lib.py")
    for number, char in enumerate(words):
        editor.type(uri, (0, END + number), (0, END + number), char)
    return uri


def lenses(editor: StockEditor, uri: str) -> list[dict[str, Any]]:
    found = editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return [each for each in found or [] if each["command"]["command"].startswith("codeagent.finishChange")]


def actions(editor: StockEditor, uri: str, line: int, *messages: str) -> list[dict[str, Any]]:
    """The offers to finish a change in a line, where an editor shows errors with these messages."""
    span = {"start": {"line": line, "character": 11}, "end": {"line": line, "character": 20}}
    problems = [{"range": span, "message": message, "severity": 1} for message in messages]
    params = {"textDocument": {"uri": uri}, "range": span, "context": {"diagnostics": problems}}
    found = editor.client.result("textDocument/codeAction", params)
    return [each for each in found if each["command"]["command"] == "codeagent.finishChange"]


def until(found: Any, seconds: float = 90.0) -> Any:
    """Wait until something is found."""
    end = time.monotonic() + seconds
    while not (now := found()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.1)
    return now


def test_callers_are_repaired_and_reviewed(editor: StockEditor, workspace: Path) -> None:
    changed(editor, workspace)
    editor.run("codeagent.finishChange", 120.0)
    ended = editor.told("places are repaired")
    assert editor.prompts, "the user was asked"
    assert "load('a', folder)" in editor.text(workspace / "use.py"), ended
    assert "load('b')" in editor.text(workspace / "use.py"), "nothing is in scope there"
    assert "lib.load(name='c', folder=folder)" in editor.text(workspace / "again.py")
    assert "2 of 3" in ended, ended
    assert "use.py:9" in ended, ended


def test_what_is_discarded_is_not_made_and_nothing_is_on_the_disk(start: StartEditor, workspace: Path) -> None:
    editor = begun(start, workspace, choose=lambda params: "Discard")
    uris = [editor.open(workspace / name) for name in ("use.py", "again.py")]
    changed(editor, workspace)
    editor.run("codeagent.finishChange", 120.0)
    assert editor.prompts, "the user was asked"
    assert [editor.buffers[uri].text for uri in uris] == [USE, AGAIN]
    assert [(workspace / name).read_text() for name in ("lib.py", "use.py", "again.py")] == [LIB, USE, AGAIN]


def test_what_is_typed_meanwhile_stays(start: StartEditor, workspace: Path) -> None:
    typed: list[str] = []

    def type_in_use(editor: StockEditor) -> None:
        if not typed:
            typed.append("edit")
            editor.type(uri, (0, 0), (0, 0), "# typed when the edit came\n")

    editor = begun(start, workspace, before_apply=type_in_use)
    uri = editor.open(workspace / "use.py")
    changed(editor, workspace)
    run = editor.command("codeagent.finishChange")["runId"]
    editor.type(uri, (0, 0), (0, 0), "\n")
    for number, char in enumerate("# typed while it was proved"):
        editor.type(uri, (0, number), (0, number), char)
        time.sleep(0.02)
    editor.type(uri, (9, 11), (9, 11), "3 * ")
    ended = str(editor.ended(run, 120.0))
    now = editor.buffers[uri].text
    assert "# typed when the edit came\n" in now, ended
    assert "# typed while it was proved\n" in now, ended
    assert "load('a', folder)" in now, ended
    assert "3 * " in now, ended


def test_offered_at_the_definition_where_a_server_is_warm(editor: StockEditor, workspace: Path) -> None:
    uri, other = editor.open(workspace / "use.py"), changed(editor, workspace)
    editor.run("codeagent.finishChange", 120.0)
    editor.type(other, (0, END), (0, END), ", deep: bool | None")
    apply, dismiss = until(lambda: lenses(editor, other))
    assert apply["range"]["start"]["line"] == 0
    assert "2 of 3 places" in apply["command"]["title"], apply
    assert "2 of 3 places" in actions(editor, uri, 4, "Argument missing")[0]["title"]
    assert dismiss["command"]["command"] == "codeagent.finishChange.dismiss"
    editor.run("codeagent.finishChange", 120.0)
    assert "load('a', None, folder)" in editor.text(workspace / "use.py"), "it is as the first change left it"
    assert "name='c', folder=folder, deep=None)" in editor.text(workspace / "again.py")


def test_dismissed_it_is_offered_no_more(editor: StockEditor, workspace: Path) -> None:
    uri, other = editor.open(workspace / "use.py"), changed(editor, workspace)
    until(lambda: actions(editor, uri, 4, "Argument missing"))
    editor.command("codeagent.finishChange.dismiss")
    assert lenses(editor, other) == []
    assert actions(editor, uri, 4, "Argument missing") == []


def test_offered_at_an_error_that_the_editor_shows(editor: StockEditor, workspace: Path) -> None:
    uri = editor.open(workspace / "use.py")
    assert actions(editor, uri, 4, "Argument missing") == [], "nothing has changed yet"
    changed(editor, workspace)
    (offer,) = until(lambda: actions(editor, uri, 4, "Argument missing"))
    assert "load(name) → load(name, folder)" in offer["title"]
    assert offer["kind"] == "quickfix.codeagent"
    assert actions(editor, uri, 4) == [], "no error, no fix"
    assert actions(editor, uri, 3, "Another problem") == [], "that line does not name it"


def test_nothing_to_finish_is_said(editor: StockEditor, workspace: Path) -> None:
    editor.run("codeagent.finishChange", 60.0)
    editor.told("no change to finish")
    uri = editor.open(workspace / "lib.py")
    editor.type(uri, (1, 4), (1, 4), "print(name)\n    ")
    editor.run("codeagent.finishChange", 60.0)
    editor.told("no change to finish")
    assert editor.prompts == []


def test_what_cannot_be_proved_is_not_offered(editor: StockEditor, workspace: Path) -> None:
    uri = editor.open(workspace / "lib.py")
    editor.type(uri, (0, 23), (0, 26), "str | None")
    editor.run("codeagent.finishChange", 60.0)
    editor.told("no change to finish")  # a result is no parameter
    editor.type(uri, (0, END), (0, END), ", unknown: bytes")
    editor.run("codeagent.finishChange", 60.0)
    editor.told("nothing is wrong that could be repaired")
    assert editor.prompts == []
