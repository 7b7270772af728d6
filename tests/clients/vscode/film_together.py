"""Makes the moving picture of working together: `python -m tests.clients.vscode.film_together FILE.gif`. Needs Pillow.

A run is told something while it works and does it; the next task is queued; then back to before the first run, with
what was typed since kept. The real editor, a scripted model.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.clients.vscode import support
from tests.clients.vscode.film import SIZE, Film
from tests.clients.vscode.support import Window
from tests.clients.vscode.test_runs import call, until

SOURCE = '''"""Prices of orders."""


def net(items):
    return sum(price * count for price, count in items)


def gross(items):
    return net(items) * 1.19


# Notes

'''


OLD = "def gross(items):\n    return net(items) * 1.19"
NEW = "def gross(items, tax=0.19):\n    return net(items) * (1 + tax)"


def change(old: str, new: str) -> dict[str, Any]:
    """A reply that edits the file."""
    return {"tool_calls": [call("edit_file", path="prices.py", old_str=old, new_str=new)]}


SCRIPT: list[dict[str, Any]] = [
    {"tool_calls": [call("read_file", path="prices.py")], "delay": 25},
    {"text": "You want it as a parameter; I will do that.", "chunks": 6, "delay": 0.1, **change(OLD, NEW)},
    {"text": "The tax is a parameter of `gross` now, 19 % unless it is given.", "chunks": 6, "delay": 0.1},
    {"delay": 0.6, **change('"""Prices of orders."""', '"""Prices of orders, with and without tax."""')},
    {"text": "The docstring says it.", "chunks": 4, "delay": 0.1},
]


def main(target: Path) -> None:
    """Play the scenario and write the file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        extensions = support.install(support.package(folder), folder / "extensions")
        (folder / "play").mkdir()
        settings = {
            "workbench.colorTheme": "Dark Modern",
            "editor.cursorBlinking": "solid",
            "editor.fontSize": 15,
            "codeagent.edits.apply": "auto",
        }
        files = {"prices.py": SOURCE}
        with (
            support.Editor(folder / "editor", extensions) as editor,
            support.window(folder / "play", editor, files=files, script=SCRIPT, settings=settings, size=SIZE) as opened,
        ):
            film = Film(opened.page)
            opened.open("prices.py")
            _tell(opened, film)
            _go_back(opened, film)
            film.write(target)


def _tell(opened: Window, film: Film) -> None:
    opened.task("move the tax out of gross")
    opened.wait_status("working")
    opened.page.wait_for_timeout(800)
    film.take(1500)
    opened.command("CodeAgent: Say Something to the Run…")
    opened.page.wait_for_timeout(700)
    film.take(1200)
    opened.answer("as a parameter, please")
    opened.task("mention the tax in the docstring")
    film.take(1500)
    opened.transcript().locator(".said .words").first.wait_for()
    film.take(1200)
    for _ in range(40):
        opened.page.wait_for_timeout(400)
        film.take(300)
        if "with and without tax" in (opened.page.locator(".view-lines").first.inner_text().replace("\u00a0", " ")):
            break
    opened.idle()
    film.take(2000)


def _go_back(opened: Window, film: Film) -> None:
    page = opened.page
    page.locator(".editor-group-container.active .view-lines").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# Ask about the reduced rate.")
    film.take(1500)
    opened.command("CodeAgent: Go Back to Before a Run…")
    page.locator(".quick-input-list .monaco-list-row").filter(has_text="move the tax").first.wait_for()
    film.take(1200)
    opened.pick("move the tax")
    page.locator(".quick-input-list .monaco-list-row").filter(has_text="Changes and talk").first.wait_for()
    film.take(2200)
    opened.pick("Changes and talk")
    lines = page.locator(".view-lines").first
    until(lambda: "1.19" in lines.inner_text(), "not gone back")
    page.wait_for_timeout(600)
    film.take(3000)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
