"""Takes pictures of the extension at work: `python -m tests.clients.vscode.pictures FOLDER`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.clients.vscode import support
from tests.clients.vscode.support import Window

SIZE = (1360, 820)
SOURCE = '''"""Prices of an order."""

from decimal import Decimal

RATES = {"books": Decimal("0.07"), "other": Decimal("0.19")}


def net(items):
    total = 0
    for item in items:
        total += item.price * item.count
    return total


def tax(items):
    total = 0
    for item in items:
        total += item.price * item.count * RATES[item.kind]
    return total


def gross(items):
    return net(items) + tax(items)


def shipping(items, country):
    weight = sum(item.weight * item.count for item in items)
    if country == "de":
        return Decimal("4.90") if weight < 5 else Decimal("6.90")
    return Decimal("14.90")


def order_total(items, country):
    return gross(items) + shipping(items, country)
'''
TEST = """from decimal import Decimal

from prices import shipping


def test_an_empty_order_ships_for_nothing():
    assert shipping([], "de") == Decimal("0")
"""
ANSWER = """Two places were wrong:

1. `net` started from the integer `0`, so an empty order had no currency. It starts from `Decimal(0)` now.
2. `shipping` charged for an empty parcel, see `prices.py:27`.

```python
if not items:
    return Decimal(0)
```

The new test in `test_prices.py` covers it.
"""
THOUGHT = """`shipping` charges for an empty parcel, see `prices.py:26`.

It is called by `order_total` alone, so it can return nothing to pay where nothing is sent. The rates stay as they are,
and orders that only hold free items still have a weight.
"""


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A tool call of the scripted model."""
    return {"name": name, "arguments": arguments}


def edit(old: str, new: str) -> dict[str, Any]:
    """An edit of prices.py."""
    return call("edit_file", path="prices.py", old_str=old, new_str=new)


_WORK: list[dict[str, Any]] = [
    {
        "text": "I look at the code first.\n\n",
        "tool_calls": [call("read_file", path="prices.py"), call("grep", pattern="shipping")],
    },
    {
        "tool_calls": [
            edit("def net(items):\n    total = 0", "def net(items):\n    total = Decimal(0)"),
            edit('    weight = sum(', '    if not items:\n        return Decimal(0)\n    weight = sum('),
            call("write_file", path="test_prices.py", content=TEST),
        ]
    },
    {"text": ANSWER, "chunks": 30, "delay": 0.01},
]  # fmt: skip
_STEPS: list[dict[str, Any]] = [
    {"title": title, "description": title, "expected_tools": []}
    for title in ("Repair the rounding", "Ship empty orders for nothing", "Add a test", "Update the documentation")
]
_PLAN: list[dict[str, Any]] = [
    {"tool_calls": [call("create_plan", goal="Correct prices", steps=_STEPS, estimated_complexity="medium")]},
    {"tool_calls": [edit("def net(items):\n    total = 0", "def net(items):\n    total = Decimal(0)")]},
    {"text": "`net` starts from a decimal."},
    {"text": THOUGHT, "chunks": 4, "delay": 15},  # still at work when the picture is taken
]


def main(folder: Path) -> None:
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        extensions = support.install(support.package(Path(name)), Path(name) / "extensions")
        with support.Editor(Path(name) / "editor", extensions) as editor:
            with _open(Path(name) / "work", editor, _WORK, "Dark Modern") as opened:
                _review(opened, folder)
            with _open(Path(name) / "plan", editor, _PLAN, "Light Modern") as opened:
                _plan(opened, folder)


def _review(opened: Window, folder: Path) -> None:
    page = opened.page
    opened.open("prices.py")
    opened.task("Empty orders must ship for nothing, and amounts must be exact")
    opened.wait_status("waiting for you")
    opened.in_bar("Apply").wait_for()
    page.locator(support.ROWS).filter(has_text="Review").wait_for()
    page.screenshot(path=folder / "question.png")
    opened.pick("Review")
    opened.reviewed()
    page.locator(".codelens-decoration a").filter(has_text="Accept change").nth(1).wait_for()
    opened.transcript().locator(".changesbar").wait_for()
    page.wait_for_timeout(1000)  # the diff editor moves its parts for a while
    page.screenshot(path=folder / "review.png")
    page.locator(".codelens-decoration a").filter(has_text="Accept change").first.click()
    opened.transcript().locator(".decision").filter(has_text="Accepted").wait_for()
    page.wait_for_timeout(1000)
    page.locator(support.STATUS).click()
    page.locator(support.ROWS).filter(has_text="Undo Last Run").wait_for()
    page.screenshot(path=folder / "menu.png")


def _plan(opened: Window, folder: Path) -> None:
    opened.open("prices.py")
    opened.task("Correct the prices", "CodeAgent: New Task with a Plan…")
    opened.pick("Start")
    opened.pick("Apply")
    opened.wait_status("2/4")
    opened.transcript().locator("#log .plan li.running").wait_for()
    opened.transcript().locator(".markdown").filter(has_text="charges for an empty parcel").wait_for()
    opened.page.screenshot(path=folder / "plan.png")


def _open(
    folder: Path, editor: support.Editor, script: Sequence[Mapping[str, Any]], theme: str
) -> AbstractContextManager[Window]:
    folder.mkdir()
    settings = {"workbench.colorTheme": theme, "editor.minimap.enabled": False}
    files = {"prices.py": SOURCE}
    return support.window(folder, editor, files=files, script=script, settings=settings, size=SIZE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
