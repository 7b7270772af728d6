"""Next edits as a stock editor meets them: a change made in two places is offered for the others, and reviewed."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.inline.fill_server import FillServer, fill_server
from tests.server.conftest import StartEditor
from tests.server.stock_editor import STOCK, StockEditor

FIRST = "from lib import fetch\n\n\ndef one(a):\n    return fetch(a)\n\n\ndef two(b):\n    return fetch(b)\n\n\n"
MORE = "def three(c):\n    return fetch(c)\n"
OTHER = "from lib import fetch\n\nvalue = fetch(4)\n"
LIB = "def fetch(x):\n    return x\n"


@pytest.fixture
def editor(start: StartEditor, workspace: Path) -> StockEditor:
    (workspace / "a.py").write_text(FIRST + MORE)
    (workspace / "other.py").write_text(OTHER)
    (workspace / "lib.py").write_text(LIB)
    return start()


def change(editor: StockEditor, uri: str) -> None:
    """Add an argument to the first two calls, key by key. The server may still be loading."""
    for line in (4, 8):
        for number, char in enumerate(", retry=True"):
            editor.type(uri, (line, 18 + number), (line, 18 + number), char)


def lenses(editor: StockEditor, uri: str) -> list[dict[str, Any]]:
    found = editor.client.result("textDocument/codeLens", {"textDocument": {"uri": uri}})
    return [each for each in found or [] if each["command"]["command"].startswith("codeagent.nextEdit")]


def offered(editor: StockEditor, uri: str) -> list[dict[str, Any]]:
    """Wait until something is offered."""
    end = time.monotonic() + 20
    while not (found := lenses(editor, uri)):
        assert time.monotonic() < end, "nothing is offered"
        time.sleep(0.05)
    return found


def test_offered_at_its_line_and_applied_as_a_reviewed_change(editor: StockEditor, workspace: Path) -> None:
    uri = editor.open(workspace / "a.py")
    change(editor, uri)
    apply, dismiss = offered(editor, uri)
    assert apply["range"]["start"]["line"] == 12
    assert apply["command"]["title"].startswith("fetch(…) → fetch(…, retry=True): 1 more place")
    assert dismiss["command"]["command"] == "codeagent.nextEdit.dismiss"
    ended = editor.run("codeagent.nextEdit.apply")
    assert ended, "the run ends"
    assert any("retry" in str(prompt) or "Apply" in str(prompt) for prompt in editor.prompts), "the user was asked"
    assert editor.text(workspace / "a.py").count("retry=True") == 3
    assert (workspace / "a.py").read_text() == FIRST + MORE, "nothing is written to disk"


def test_dismissed_it_is_offered_no_more(editor: StockEditor, workspace: Path) -> None:
    uri = editor.open(workspace / "a.py")
    change(editor, uri)
    offered(editor, uri)
    editor.command("codeagent.nextEdit.dismiss")
    assert lenses(editor, uri) == []
    editor.type(uri, (0, 0), (0, 0), "#\n")
    time.sleep(1.5)
    assert lenses(editor, uri) == []


def test_one_edit_is_no_pattern(editor: StockEditor, workspace: Path) -> None:
    uri = editor.open(workspace / "a.py")
    editor.type(uri, (4, 18), (4, 18), ", retry=True")
    time.sleep(1.5)
    assert lenses(editor, uri) == []
    assert "two places" in editor.refusal("codeagent.nextEdit.apply")


def test_what_is_undone_is_no_pattern(editor: StockEditor, workspace: Path) -> None:
    uri = editor.open(workspace / "a.py")
    change(editor, uri)
    offered(editor, uri)
    editor.type(uri, (8, 18), (8, 30), "")
    end = time.monotonic() + 10
    while lenses(editor, uri):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_switched_off_nothing_is_offered(start: StartEditor, workspace: Path) -> None:
    (workspace / "a.py").write_text(FIRST + MORE)
    editor = start(settings={"inline": {"nextEdit": False}})
    uri = editor.open(workspace / "a.py")
    change(editor, uri)
    time.sleep(1.5)
    assert lenses(editor, uri) == []


def test_a_change_made_in_two_files_is_offered_in_others(editor: StockEditor, workspace: Path) -> None:
    for name in ("b.py", "c.py", "hidden.py"):
        (workspace / name).write_text(OTHER)
    (workspace / ".codeagentignore").write_text("hidden.py\n")
    editor.client.notify("workspace/didChangeWatchedFiles", {"changes": []})
    for name in ("other.py", "b.py"):
        uri = editor.open(workspace / name)
        editor.type(uri, (2, 15), (2, 15), ", retry=True")
    third = editor.open(workspace / "c.py")
    assert offered(editor, third)[0]["range"]["start"]["line"] == 2
    editor.run("codeagent.nextEdit.apply")
    assert editor.text(workspace / "c.py").endswith("fetch(4, retry=True)\n")
    assert "retry" not in editor.text(workspace / "hidden.py")


def test_the_request_of_other_clients_is_answered_in_their_shape(editor: StockEditor, workspace: Path) -> None:
    uri = editor.open(workspace / "a.py")
    change(editor, uri)
    offered(editor, uri)
    about = {"uri": uri, "version": editor.buffers[uri].version}
    place = {"textDocument": about, "position": {"line": 8, "character": 0}, "context": {"triggerKind": 2}}
    (edit,) = editor.client.result("textDocument/copilotInlineEdit", place)["edits"]
    assert edit["text"] == "fetch(c, retry=True)"
    assert edit["range"] == {"start": {"line": 12, "character": 11}, "end": {"line": 12, "character": 19}}
    assert edit["textDocument"] == about
    old = {**place, "textDocument": {**about, "version": 0}}
    assert editor.client.result("textDocument/copilotInlineEdit", old) == {"edits": []}


# Where the rules find nothing, by a next-edit model.

ONE = "def area(w):\n    return w\n\n\nprint(area(3))\n"


def rewrite(path: str, body: dict[str, Any]) -> list[str]:
    """What the model makes of the window: the second factor, wherever the first edit is in the text."""
    window = body["prompt"].partition("<|file_sep|>current/a.py\n")[2].partition("<|file_sep|>")[0]
    return ["\n", window.replace("return w", "return w * h").replace("area(3)", "area(3, 4)")]


@pytest.fixture
def model() -> Iterator[FillServer]:
    with fill_server(rewrite, model="sweep-next-edit-1.5b") as server:
        yield server


def with_model(start: StartEditor, workspace: Path, name: str) -> tuple[StockEditor, str]:
    (workspace / "a.py").write_text(ONE)
    editor = start(settings={"model": {"nextEdit": name}})
    return editor, editor.open(workspace / "a.py")


def test_where_the_rules_find_nothing_the_model_is_asked(
    start: StartEditor, workspace: Path, model: FillServer
) -> None:
    editor, uri = with_model(start, workspace, f"sweep-next-edit-1.5b@{model.url}")
    for number, char in enumerate(", h"):
        editor.type(uri, (0, 10 + number), (0, 10 + number), char)
    apply, _ = offered(editor, uri)
    assert apply["command"]["title"].startswith("Next: return w → return w * h (+1)")
    assert apply["range"]["start"]["line"] == 1
    (path, body), *more = model.asked
    assert not more, "in a pause, and once"
    assert path == "/completion"
    assert body["prompt"].endswith("<|file_sep|>updated/a.py")
    assert "a.py.diff\noriginal:\ndef area(w):" in body["prompt"]
    about = {"uri": uri, "version": editor.buffers[uri].version}
    place = {"textDocument": about, "position": {"line": 4, "character": 0}, "context": {"triggerKind": 2}}
    (edit,) = editor.client.result("textDocument/copilotInlineEdit", place)["edits"]
    assert (edit["text"], edit["range"]["start"]) == (", 4", {"line": 4, "character": 12})
    editor.run("codeagent.nextEdit.apply")
    assert editor.text(workspace / "a.py") == ONE.replace("(w)", "(w, h)").replace("w\n\n", "w * h\n\n").replace(
        "3", "3, 4"
    )
    assert (workspace / "a.py").read_text() == ONE


def test_what_it_expects_is_a_completion_in_its_line_where_nothing_else_completes(
    start: StartEditor, workspace: Path, model: FillServer
) -> None:
    (workspace / "a.py").write_text(ONE)
    capabilities = copy.deepcopy(STOCK)
    capabilities["textDocument"]["inlineCompletion"] = {"dynamicRegistration": True}
    registered: list[str] = []
    editor = start(
        capabilities=capabilities,
        settings={"model": {"nextEdit": f"sweep-next-edit-1.5b@{model.url}"}},
        answers={
            "client/registerCapability": lambda params: registered.append(params["registrations"][0]["method"]),
        },
    )
    uri = editor.open(workspace / "a.py")
    editor.wait_until(lambda: "textDocument/inlineCompletion" in registered)
    editor.type(uri, (0, 10), (0, 10), ", h")
    offered(editor, uri)
    place = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 0}, "context": {"triggerKind": 2}}
    (item,) = editor.client.result("textDocument/inlineCompletion", place)["items"]
    assert (item["insertText"], item["range"]["start"]) == (" * h", {"line": 1, "character": 12})


def test_what_it_expects_is_not_offered_for_another_text(
    start: StartEditor, workspace: Path, model: FillServer
) -> None:
    editor, uri = with_model(start, workspace, f"sweep-next-edit-1.5b@{model.url}")
    editor.type(uri, (0, 10), (0, 10), ", h")
    offered(editor, uri)
    # A key later, before anything is looked for again, an addition would stand one character too far to the left.
    editor.type(uri, (1, 4), (1, 4), "x")
    about = {"uri": uri, "version": editor.buffers[uri].version}
    place = {"textDocument": about, "position": {"line": 1, "character": 0}, "context": {"triggerKind": 2}}
    assert editor.client.result("textDocument/copilotInlineEdit", place) == {"edits": []}


def test_a_model_whose_format_is_not_known_is_said_once_and_not_asked(start: StartEditor, workspace: Path) -> None:
    with fill_server(lambda path, body: ["x"], model="llama-4") as server:
        editor, uri = with_model(start, workspace, f"llama-4@{server.url}")
        for number in range(2):
            editor.type(uri, (0, 10), (0, 10), f", h{number}")
            time.sleep(1.5)
        assert "Sweep" in editor.told("llama-4")
        with pytest.raises(TimeoutError):
            editor.told("llama-4", 0.5)
        assert server.asked == []
