"""In a real VS Code: a task written in a prompt document, with completion, sent by the lens above it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.vscode.support import Editor, window
from tests.clients.vscode.test_runs import until

pytestmark = [pytest.mark.slow, pytest.mark.vscode]


def test_written_completed_and_sent(tmp_path: Path, editor: Editor) -> None:
    script = [{"text": "A function.", "expect": "What is in @src/shop.py"}]
    files = {"a.py": "x = 1\n", "src/shop.py": "def one():\n    return 1\n"}
    with window(tmp_path, editor, files=files, script=script) as opened:
        opened.open("a.py")
        opened.idle()
        opened.command("CodeAgent: Write a Task in a Document")
        opened.page.locator(".codelens-decoration a").filter(has_text="Send to the agent").wait_for()
        opened.page.keyboard.press("Control+End")
        opened.page.keyboard.type("What is in @sho", delay=50)
        row = opened.page.locator(".suggest-widget .monaco-list-row.focused").filter(has_text="@src/shop.py")
        row.first.wait_for()
        opened.page.keyboard.press("Enter")
        opened.page.locator(".view-line").filter(has_text="What is in @src/shop.py").first.wait_for()
        opened.page.locator(".codelens-decoration a").filter(has_text="Send to the agent").click()
        until(lambda: "A function." in opened.transcript().locator("body").inner_text(), "not answered")
