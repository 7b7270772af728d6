"""Takes pictures of fifteen moments of a day with the extension, in the themes that are named, else in three:
`python -m tests.clients.vscode.pictures FOLDER ["Dark Modern" …]`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients.vscode import support
from tests.clients.vscode.support import Window

THEMES = ("Dark Modern", "Light Modern", "Default High Contrast")
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


_STEPS: list[dict[str, Any]] = [
    {"title": title, "description": title, "expected_tools": []}
    for title in ("Repair the rounding", "Ship empty orders for nothing", "Add a test", "Update the documentation")
]
PLAN: list[dict[str, Any]] = [
    {"tool_calls": [call("create_plan", goal="Correct prices", steps=_STEPS, estimated_complexity="medium")]},
    {"tool_calls": [edit("def net(items):\n    total = 0", "def net(items):\n    total = Decimal(0)")]},
    {"text": "`net` starts from a decimal."},
    {"text": THOUGHT, "chunks": 4, "delay": 15},  # still at work when the picture is taken
]


ASKED = "Empty orders must ship for nothing, and amounts must be exact"
_TODO = [
    {"content": "Find where an empty order is charged", "status": "completed"},
    {"content": "Ship empty orders for nothing", "status": "in_progress"},
    {"content": "Run the tests", "status": "pending"},
]
_ASK = call(
    "AskUser", questions=[{"text": "What does an empty order cost?", "options": ["Nothing", "The smallest parcel"]}]
)
_TALK: list[dict[str, Any]] = [
    {
        "text": "I look at the code first.\n\n",
        "tool_calls": [call("read_file", path="prices.py"), call("grep", pattern="shipping")],
    },
    {
        "tool_calls": [
            call("todo_write", todos=_TODO),
            call("run_cmd", command="pip install pytest", allow_network=True),
        ]
    },
    {"tool_calls": [_ASK]},
    {"tool_calls": [call("list_dir", path=".")], "delay": 9},
    {
        "tool_calls": [
            edit("def net(items):\n    total = 0", "def net(items):\n    total = Decimal(0)"),
            edit("    weight = sum(", "    if not items:\n        return Decimal(0)\n    weight = sum("),
            call("write_file", path="test_prices.py", content=TEST),
        ]
    },
    {"text": ANSWER},
    {"tool_calls": [call("write_file", path="CHANGELOG.md", content="- An empty order ships for nothing.\n")]},
    {"text": "The changelog tells it."},
]


@dataclass
class Pictures:
    """A window, and where its pictures go."""

    opened: Window
    folder: Path

    def take(self, moment: str) -> None:
        """One picture, when what moves has come to rest."""
        self.opened.page.wait_for_timeout(700)
        self.opened.page.screenshot(path=self.folder / f"{moment}.png")
        print(moment, flush=True)


def main(folder: Path, themes: Sequence[str]) -> None:
    """Take all pictures in each theme."""
    with tempfile.TemporaryDirectory() as name:
        extensions = support.install(support.package(Path(name)), Path(name) / "extensions")
        with support.Editor(Path(name) / "editor", extensions) as editor:
            for number, theme in enumerate(themes):
                into = folder / theme.lower().replace(" ", "-")
                into.mkdir(parents=True, exist_ok=True)
                with _open(Path(name) / f"talk{number}", editor, _TALK, theme) as opened:
                    _talk(Pictures(opened, into))
                with _open(Path(name) / f"plan{number}", editor, PLAN, theme) as opened:
                    _plan(Pictures(opened, into))


def _talk(shown: Pictures) -> None:
    opened = shown.opened
    frame = opened.transcript()
    opened.command("CodeAgent: Set Up the Model…")
    frame.locator(".card").filter(has_text="Anthropic").click()
    shown.take("first-start")
    opened.command("CodeAgent: Open the Chat")
    opened.open("prices.py")
    frame.locator(".pageHead button:visible").click()
    area = frame.locator("#composer textarea")
    area.click()
    area.fill("Look at @pri")
    area.press("c")
    frame.locator(".completions li").first.wait_for()
    shown.take("context")
    area.press("Escape")
    opened.command("CodeAgent: Choose Model…")
    opened.page.locator(support.ROWS).filter(has_text="Another name…").wait_for()
    shown.take("pickers")
    opened.page.keyboard.press("Escape")
    area.fill(ASKED)
    shown.take("prompt")
    area.press("Enter")
    frame.locator(".question.open").filter(has_text="pip install").wait_for()
    shown.take("approval")
    frame.locator(".question.open button").filter(has_text="Deny").click()
    frame.locator(".question.open").filter(has_text="empty order cost").wait_for()
    shown.take("todo-and-question")
    frame.locator(".question.open button").filter(has_text="Nothing").first.click()
    area.fill("Keep the rates as they are")
    area.press("Enter")
    frame.locator(".said").filter(has_text="Keep the rates").wait_for()
    area.fill("Then update the changelog")
    area.press("Alt+Enter")
    frame.locator(".queue li").wait_for()
    shown.take("talk-while-it-works")
    opened.wait_status("waiting for you")
    opened.in_bar("Apply").wait_for()
    shown.take("diff-in-chat")
    frame.locator(".tool.search summary").first.click()
    frame.locator(".tool.edit").first.scroll_into_view_if_needed()
    shown.take("tool-cards")
    opened.in_bar("Review").click()
    opened.reviewed()
    opened.page.locator(".codelens-decoration a").filter(has_text="Accept change").nth(1).wait_for()
    shown.take("review")
    opened.in_bar("Apply").click()
    frame.locator(".markdown").filter(has_text="Two places were wrong").wait_for()
    shown.take("cost")
    frame.locator("button.ring").click()
    frame.locator("#contents").wait_for()
    shown.take("ring")
    area.press("Escape")
    frame.locator(".markdown pre").first.hover()
    shown.take("code-block")
    frame.locator(".prompt").first.hover()
    shown.take("checkpoint")
    opened.command("CodeAgent: Sessions…")
    frame.locator(".session").first.wait_for()
    shown.take("history")


def _plan(shown: Pictures) -> None:
    opened = shown.opened
    opened.open("prices.py")
    opened.task("Correct the prices", "CodeAgent: New Task with a Plan…")
    opened.page.locator(support.ROWS).filter(has_text="Start").first.wait_for()
    shown.take("plan")
    opened.pick("Start")
    opened.pick("Apply")
    opened.wait_status("2/4")
    opened.transcript().locator(".markdown").filter(has_text="charges for an empty parcel").wait_for()
    shown.take("plan-at-work")


def _open(
    folder: Path, editor: support.Editor, script: Sequence[Mapping[str, Any]], theme: str
) -> AbstractContextManager[Window]:
    folder.mkdir()
    settings = {"workbench.colorTheme": theme, "editor.minimap.enabled": False}
    files = {"prices.py": SOURCE}
    return support.window(folder, editor, files=files, script=script, settings=settings, size=SIZE)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or THEMES)
