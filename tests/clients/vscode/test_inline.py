"""Inline completion in a real VS Code: ghost text, typed along, taken whole, by word and by line, switched off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clients.vscode.support import Editor, Window, window
from tests.clients.vscode.test_runs import until
from tests.inline.fill_server import FillServer, fill_server

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

GHOST = ".ghost-text-decoration"  # in the cursor's line; further lines are shown in a zone of their own below it
TEXT = "def add(a, b):\n    return\n"


@contextmanager
def typing(folder: Path, editor: Editor) -> Iterator[tuple[Window, FillServer]]:
    """An editor at the end of a line, on a server that fills in."""
    with fill_server(lambda path, body: ["sum(", "\n        a, b)", "\n\n"]) as server:
        settings = {
            "codeagent.model.provider": "llamacpp",
            "codeagent.model.baseUrl": server.url,
            "codeagent.model.name": "qwen2.5-coder",
            "codeagent.inline.debounceMs": 10,
            "editor.inlineSuggest.enabled": True,
            "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
            "editor.autoIndent": "none",
        }
        with window(folder, editor, files={"a.py": TEXT}, script=[], settings=settings) as opened:
            opened.open("a.py")
            opened.page.locator(".editor-group-container.active .view-lines").click()
            until(lambda: asked_at_the_end(opened, server), "completion is not offered", 90)
            opened.page.keyboard.press("Control+Home")
            opened.page.keyboard.press("ArrowDown")
            opened.page.keyboard.press("End")
            yield opened, server


def asked_at_the_end(opened: Window, server: FillServer) -> bool:
    """Whether keys in the last line ask for a completion; they are taken back."""
    count = len(server.asked)
    opened.page.keyboard.press("Control+End")
    opened.page.keyboard.type("x = ")
    opened.page.wait_for_timeout(1000)
    for _ in range(4):
        opened.page.keyboard.press("Backspace")
    return len(server.asked) > count


def ghost(opened: Window) -> str:
    """What is shown as ghost text in the cursor's line."""
    return "".join(opened.page.locator(GHOST).all_inner_texts()).replace("\u00a0", " ").strip()


def saved(opened: Window) -> str:
    """The text of the buffer, by saving it."""
    opened.page.keyboard.press("Control+s")
    opened.page.locator('.tab.active:not(.dirty)[data-resource-name="a.py"]').wait_for()
    return opened.disk("a.py") or ""


def test_ghost_text_typed_along_and_taken(tmp_path: Path, editor: Editor) -> None:
    with typing(tmp_path, editor) as (opened, server):
        opened.page.keyboard.type(" ")
        until(lambda: ghost(opened).startswith("sum("), "no ghost text")
        assert opened.disk("a.py") == TEXT, "nothing is written"
        opened.page.keyboard.type("su")
        until(lambda: ghost(opened).startswith("m("), f"not typed along: {ghost(opened)}")
        lines = [body["input_prefix"].rpartition("\n")[2] for body in server.bodies]
        assert [line for line in lines if "return " in line] == ["    return "], "asked once, and typed along"
        opened.page.keyboard.press("Tab")
        until(lambda: "a, b)" in saved(opened), "not taken")
        assert saved(opened) == "def add(a, b):\n    return sum(\n        a, b)\n"


@pytest.mark.volume
def test_taken_by_word_and_line_and_switched_off(tmp_path: Path, editor: Editor) -> None:
    with typing(tmp_path, editor) as (opened, server):
        opened.page.keyboard.type(" ")
        until(lambda: ghost(opened).startswith("sum("), "no ghost text")
        opened.page.keyboard.press("Control+ArrowRight")
        until(lambda: "return sum" in saved(opened), "no word was taken")
        until(lambda: ghost(opened).startswith("("), f"the rest is not shown: {ghost(opened)}")
        opened.page.keyboard.press("Control+Alt+ArrowRight")
        until(lambda: "return sum(\n" in saved(opened), "no line was taken")
        assert "        a, b)" not in saved(opened)
        opened.page.keyboard.press("Control+Alt+Backslash")
        settings = editor.served().user / "User" / "settings.json"
        until(lambda: '"codeagent.inline.enabled": false' in settings.read_text(), "the key did not switch it off")
        until(lambda: not asked_at_the_end(opened, server), "still on")
        opened.page.wait_for_timeout(1500)
        assert ghost(opened) == ""
