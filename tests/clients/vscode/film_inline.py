"""Makes the moving picture of completion: `python -m tests.clients.vscode.film_inline FILE.gif`. Needs Pillow.

A function is begun, the embedded model completes it, part of it is typed along and the rest is taken; then a change is
made in two places and offered for the others. The real editor and the real model, which is waited for.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.clients.vscode import support
from tests.clients.vscode.film import SIZE, Film
from tests.clients.vscode.support import Window

SOURCE = '''"""Prices of orders."""


def net(items):
    return sum(price * count for price, count in items)


def gross(items, tax):
    return net(items) * (1 + tax)


def weight(items):
    return sum(grams * count for grams, count in items)


'''
CALLS = """from prices import gross

small = gross([(2, 1)], 0.19)
large = gross([(9, 4)], 0.19)
gift = gross([(5, 1)], 0.19)
"""
GHOST = ".ghost-text-decoration, .ghost-text"


def main(target: Path) -> None:
    """Play the scenario and write the file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = str(Path.home() / ".cache")  # the editor has a home of its own, without the model
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        extensions = support.install(support.package(folder), folder / "extensions")
        (folder / "play").mkdir()
        settings = {
            "workbench.colorTheme": "Dark Modern",
            "editor.cursorBlinking": "solid",
            "editor.fontSize": 16,
            "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
            "editor.suggestOnTriggerCharacters": False,
            "workbench.activityBar.location": "hidden",
            "codeagent.model.provider": "embedded",
            "codeagent.inline.enabled": True,
        }
        files = {"prices.py": SOURCE, "orders.py": CALLS}
        with (
            support.Editor(folder / "editor", extensions) as editor,
            support.window(folder / "play", editor, files=files, script=[], settings=settings, size=SIZE) as opened,
        ):
            film = Film(opened.page)
            opened.command("View: Toggle Primary Side Bar Visibility")
            _complete(opened, film)
            _repeat(opened, film)
            film.write(target)


def _complete(opened: Window, film: Film) -> None:
    page = opened.page
    opened.open("prices.py")
    page.locator(".editor-group-container.active .view-lines").click()
    page.keyboard.press("Control+End")
    page.wait_for_timeout(1500)
    film.take(900)
    for part in ("def ", "total", "(items", ", tax,", " ship", "ping", "):"):
        page.keyboard.type(part)
        film.take(160)
    page.keyboard.press("Enter")
    page.locator(GHOST).first.wait_for(timeout=60_000)
    page.wait_for_timeout(300)
    film.take(1800)
    for char in "retu":
        page.keyboard.type(char)
        page.wait_for_timeout(120)
        film.take(160)
    film.take(900)
    page.keyboard.press("Tab")
    page.wait_for_timeout(400)
    film.take(1500)


def _repeat(opened: Window, film: Film) -> None:
    page = opened.page
    opened.open("orders.py")
    page.wait_for_timeout(600)
    page.keyboard.press("Control+Home")
    film.take(700)
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    for number in range(2):
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        for char in (", ", "True"):
            page.keyboard.type(char)
            film.take(160)
        if number == 0:
            page.keyboard.press("ArrowDown")
    page.locator(".codelens-decoration a").filter(has_text="Apply").first.wait_for(timeout=30_000)
    page.wait_for_timeout(600)
    film.take(2500)
    page.locator(".codelens-decoration a").filter(has_text="Apply").first.click()
    page.wait_for_timeout(1500)
    film.take(1500)
    opened.pick("Apply")
    page.wait_for_timeout(1500)
    film.take(2500)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
