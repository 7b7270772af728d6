"""Decisions, in a real VS Code: by the keyboard alone, after a notification has gone, after the window was closed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.clients.vscode import support
from tests.clients.vscode.support import Editor, Window, window
from tests.clients.vscode.test_runs import (
    CHANGED,
    LAST,
    ONE,
    SOURCE,
    both_ends,
    buffer,
    call,
    changed,
    edit,
    press_button,
    step,
    until,
)

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

TOAST_SECONDS = 10  # after which the editor hides a notification
CLICK_ALL = "(_, all) => all.forEach((one) => one.click())"


def press(opened: Window, *keys: str) -> None:
    """Press keys one after the other, as a person would."""
    for key in keys:
        opened.page.keyboard.press(key)
        opened.page.wait_for_timeout(150)


def at(opened: Window, line: str) -> Any:
    """Where the status bar says that the cursor is, as in `Ln 2,`."""
    return opened.page.locator(".statusbar-item").filter(has_text=line)


def to_button(opened: Window, label: str) -> None:
    """Put the keyboard on a button of the chat, as without a mouse: its input, then back through what is above it."""
    opened.command("CodeAgent: Open the Chat")
    focused = opened.transcript().locator(":focus")
    opened.transcript().locator("#composer textarea:focus").wait_for()
    for _ in range(60):
        if label == (focused.get_attribute("title") or focused.inner_text()):
            return
        press(opened, "Shift+Tab")
    raise AssertionError(f"{label}: no such button in the chat")


def test_an_approval_a_question_and_a_review_without_a_mouse(tmp_path: Path, editor: Editor) -> None:
    script: list[dict[str, Any]] = [
        {"tool_calls": [call("run_cmd", command="echo made >made.txt")]},
        {"tool_calls": [call("AskUser", questions=[{"text": "Which name?"}])]},
        both_ends(),
        CHANGED,
    ]
    settings = {"codeagent.shell.confirm": "always"}
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script, settings=settings) as opened:
        page = opened.page
        opened.open("a.py")
        press(opened, "Control+Alt+g")
        opened.answer("Change both ends")
        focused = page.locator(".quick-input-list .monaco-list-row.focused")
        focused.filter(has_text="Deny").wait_for()
        press(opened, "ArrowDown")
        focused.filter(has_text="Allow once").wait_for()
        press(opened, "Enter")
        page.locator(".quick-input-title").filter(has_text="Which name?").wait_for()
        page.keyboard.type("Ada")
        press(opened, "Enter")
        focused.filter(has_text="Review").wait_for()
        press(opened, "Enter")
        opened.reviewed()
        page.locator(".codelens-decoration a").filter(has_text="Accept change").first.wait_for()
        to_button(opened, "a.py")
        press(opened, "Enter")  # the diff of one file
        page.locator(".tab.active").filter(has_text="a.py (proposed)").wait_for()
        at(opened, "Ln 2,").wait_for()  # the editor goes to the first change by itself, once it has compared the texts
        for key, line in (("Control+Home", "Ln 1,"), ("Alt+F5", "Ln 2,")):
            press(opened, key)
            at(opened, line).wait_for()
        press(opened, "Control+Alt+y")
        page.locator(".codelens-decoration a").filter(has_text="Accept change").wait_for(
            state="detached"
        )  # one is left
        press(opened, "Control+Alt+n")
        changed(opened, "a.py").wait_for(state="detached")
        press(opened, "Control+Alt+r")
        opened.command("CodeAgent: Accept All Changes")
        until(lambda: opened.disk("made.txt") is not None, "the file of the command was not accepted")
        assert buffer(opened) == SOURCE.replace(ONE, "return 10\n\n\ndef f0")


def test_a_hidden_notification_and_a_closed_window_lose_nothing(tmp_path: Path, editor: Editor) -> None:
    script: list[dict[str, Any]] = [{"text": "I think. ", "chunks": 10, "delay": 0.2} | both_ends(), CHANGED]
    with window(tmp_path, editor, files={"a.py": SOURCE, "b.py": "x = 1\n"}, script=script) as opened:
        page = opened.page
        opened.open("b.py")
        opened.task("Change both ends")
        page.locator(".view-lines").first.click()
        toast = page.locator(".notifications-toasts .notification-list-item").filter(has_text="Apply changes")
        for _ in range(100):
            page.keyboard.type("# typing ")
            page.wait_for_timeout(200)
            if toast.count():
                break
        assert not page.locator(".quick-input-widget").is_visible(), "it took the keyboard"
        page.wait_for_timeout(1000 * TOAST_SECONDS)
        toast.wait_for(state="hidden")
        page.locator(support.STATUS).click()
        opened.pick("Answer…")
        page.locator(".quick-input-list .monaco-list-row").filter(has_text="Discard").wait_for()
        page.keyboard.press("Escape")
        page.keyboard.press("Control+z")
        for _ in range(50):
            page.keyboard.press("Control+z")
        opened.load()
        opened.command("CodeAgent: Open the Chat")
        opened.transcript().locator(".prompt").filter(has_text="Change both ends").wait_for()
        opened.transcript().locator(".markdown").filter(has_text="I think.").first.wait_for()
        opened.in_bar("Review").click()
        opened.reviewed()
        page.locator(".codelens-decoration a").filter(has_text="Accept change").last.click()
        page.locator(".tab.dirty").filter(has_text="a.py").wait_for()
        assert buffer(opened) == SOURCE.replace(LAST, "return 990")


def at_step(opened: Window, title: str, label: str) -> None:
    """Press a button of a plan's step by the keyboard."""
    step(opened, title).locator("button").filter(has_text=label).focus()
    press(opened, "Enter")


def plan(*titles: str) -> dict[str, Any]:
    """The model's call for a plan of these steps."""
    steps = [{"title": title, "description": title, "expected_tools": []} for title in titles]
    return call("create_plan", goal="All parts", steps=steps, estimated_complexity="low")


def test_a_plan_is_changed_before_it_starts(tmp_path: Path, editor: Editor) -> None:
    script: list[dict[str, Any]] = [
        {"tool_calls": [plan("First part", "Second part", "Third part")]},
        {"tool_calls": [edit(LAST, "return 990")], "expect": "Step 1 of 3: The end"},
        {"text": "The end is done."},
        {"text": "Nothing to do.", "expect": "Step 2 of 3: First part"},
        {"text": "Told.", "expect": "Step 3 of 3: Tell of it"},
    ]
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script) as opened:
        opened.open("a.py")
        opened.task("Do the parts", "CodeAgent: New Task with a Plan…")
        frame = opened.transcript()
        pinned = frame.locator(".pinned .plan li")
        frame.locator(".question.open").filter(has_text="Start the plan with 3 steps? All parts").wait_for()
        assert pinned.count() == 4
        # In one go, faster than any answer: each is made to what the one before has left.
        drop, up = (pinned.get_by_role("button", name=name) for name in ("Drop: Second part", "Move Up: Third part"))
        frame.locator("body").evaluate(CLICK_ALL, [each.element_handle() for each in (drop, up)])
        pinned.first.filter(has_text="Third part").wait_for()
        pinned.first.get_by_role("button", name="Edit: Third part").click()
        field = pinned.first.locator("input")
        field.fill("The e")
        frame.locator("#composer textarea").fill("no plan changes by this")
        pinned.get_by_role("button", name="Move Down: Third part").click()
        pinned.first.filter(has_text="First part").wait_for()
        pinned.get_by_role("button", name="Move Up: Third part").click()
        pinned.nth(1).filter(has_text="First part").wait_for()
        assert field.input_value() == "The e", "what is typed stays while the list is drawn anew"
        field.fill("The end")
        field.press("Enter")
        pinned.first.filter(has_text="The end").wait_for()
        assert pinned.first.locator("button[data-key^=edit]").evaluate("one => one === document.activeElement")
        pinned.last.get_by_role("button", name="Add a step").click()
        pinned.last.locator("input").fill("Tell of it")
        pinned.last.locator("input").press("Enter")
        pinned.filter(has_text="Tell of it").wait_for()
        if folder := os.environ.get("CODEAGENT_PICTURES"):
            opened.page.screenshot(path=Path(folder) / "plan-waits.png")
        press_button(frame.locator(".question.open"), "Start")
        opened.wait_status("waiting for you")
        opened.in_bar("Apply").click()
        opened.idle()
        assert buffer(opened) == SOURCE.replace(LAST, "return 990")
        assert [each.strip() for each in frame.locator("#log .plan li .title").all_inner_texts()] == [
            "The end",
            "First part",
            "Tell of it",
        ]


@pytest.mark.volume
def test_the_buttons_of_a_plan(tmp_path: Path, editor: Editor) -> None:
    script: list[dict[str, Any]] = [
        {"tool_calls": [plan("First part", "Second part")]},
        {"tool_calls": [edit(LAST, "return 990")]},
        {"text": "The first part is done."},
        {"error": "broken"},
        {"tool_calls": [edit(ONE, "return 10\n\n\ndef f0")]},
        {"text": "The second part is done."},
    ]
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script) as opened:
        page = opened.page
        opened.open("a.py")
        opened.task("Do both parts", "CodeAgent: New Task with a Plan…")
        opened.pick("Start")
        opened.pick("Apply")
        page.locator(".quick-input-title").filter(has_text="Second part failed").wait_for()
        opened.pick("Stop")
        step(opened, "Second part").locator(".codicon-error").wait_for()
        opened.idle()  # the mark is there before the run has ended, and a run at work takes no orders
        press_button(step(opened, "Second part"), "Do This Step")
        opened.wait_status("waiting for you")
        opened.in_bar("Apply").click()
        step(opened, "Second part").locator(".codicon-pass-filled").wait_for()
        assert "return 10\n" in buffer(opened) and "return 990" in buffer(opened)
        press_button(step(opened, "First part"), "Roll Back")
        opened.transcript().locator(".decision").filter(has_text="Undone").first.wait_for()
        assert buffer(opened) == SOURCE


@pytest.mark.volume
def test_what_a_plans_step_offers_by_the_keyboard(tmp_path: Path, editor: Editor) -> None:
    script: list[dict[str, Any]] = [
        {"tool_calls": [plan("First part", "Second part", "Third part")]},
        {"tool_calls": [edit(LAST, "return 990")]},
        {"text": "The first part is done."},
        {"error": "broken"},
        {"error": "broken"},
        {"tool_calls": [edit(ONE, "return 10\n\n\ndef f0")]},
        {"text": "The third part is done."},
    ]
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script) as opened:
        page = opened.page
        opened.open("a.py")
        opened.task("Do all parts", "CodeAgent: New Task with a Plan…")
        opened.pick("Start")
        focused = page.locator(".quick-input-list .monaco-list-row.focused")
        focused.filter(has_text="Review").wait_for()
        press(opened, "ArrowDown", "Enter")
        page.locator(".quick-input-title").filter(has_text="Second part failed").wait_for()
        press(opened, "Escape")
        at_step(opened, "Second part", "Do This Step")
        opened.transcript().locator(".question.open").filter(has_text="Second part failed").wait_for()
        at_step(opened, "Second part", "Skip")
        step(opened, "Second part").locator(".codicon-debug-step-over").wait_for()
        to_button(opened, "Apply")
        press(opened, "Enter")
        step(opened, "Third part").locator(".codicon-pass-filled").wait_for()
        assert "return 10\n" in buffer(opened) and "return 990" in buffer(opened)
        at_step(opened, "Third part", "Roll Back")
        opened.transcript().locator(".decision").filter(has_text="Undone").first.wait_for()
        assert buffer(opened) == SOURCE.replace(LAST, "return 990")
