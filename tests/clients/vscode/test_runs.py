"""What people do, in a real VS Code: run, answer, review, accept, discard, undo, stop; by mouse and by keyboard."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients.vscode.support import Editor, Window, timeout, window

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

ONE, LAST = "return 1\n\n\ndef f0", "return 99"
SOURCE = (
    "def one():\n    return 1\n\n\n"
    + "".join(f"def f{number}():\n    return {number}\n\n\n" for number in range(10))
    + "def last():\n    return 99\n"
)
WORDS = " ".join(f"word{number}" for number in range(400))


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A tool call of the scripted model."""
    return {"name": name, "arguments": arguments}


def edit(old: str, new: str) -> dict[str, Any]:
    """An edit of a.py."""
    return call("edit_file", path="a.py", old_str=old, new_str=new)


def both_ends() -> dict[str, Any]:
    """A reply with two edits far apart, so that they are two hunks."""
    return {"tool_calls": [edit(ONE, "return 10\n\n\ndef f0"), edit(LAST, "return 990")]}


CHANGED = {"text": "Changed **both** ends of `a.py:2`."}


def changed(opened: Window, name: str) -> Any:
    """The row of a file in the changes bar, which is unfolded."""
    frame = opened.transcript()
    bar = frame.locator(".changesbar")
    bar.wait_for(state="attached")
    bar.evaluate("bar => { bar.open = true; }")
    return frame.locator(".changed").filter(has_text=name)


def step(opened: Window, title: str) -> Any:
    """The row of a plan's step in the conversation."""
    return opened.transcript().locator("#log .plan li").filter(has_text=title)


def press_button(row: Any, label: str) -> None:
    """A button of a row, which may be drawn anew meanwhile."""
    for _ in range(10):
        row.first.hover()
        with contextlib.suppress(timeout()):
            row.locator("button").filter(has_text=label).first.click(timeout=2000)
            return
    raise AssertionError(f"{label}: no such button")


def until(holds: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
    """Wait until something outside of the page holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def buffer(opened: Window) -> str:
    """The text of a.py's buffer, by saving it."""
    opened.open("a.py")
    opened.page.keyboard.press("Control+s")
    opened.page.locator('.tab.active:not(.dirty)[data-resource-name="a.py"]').wait_for()
    # A file that is saved without a change is written all the same, and is empty for a moment.
    until(lambda: bool(opened.disk("a.py")), "a.py is empty")
    return opened.disk("a.py") or ""


def offers(opened: Window, action: Any) -> bool:
    """Whether the lightbulb's list has an action; closes the list when it has not."""
    opened.page.keyboard.press("Control+.")
    with contextlib.suppress(timeout()):
        action.wait_for(timeout=3000)
        return True
    opened.page.keyboard.press("Escape")
    return False


@pytest.mark.journey
def test_one_hunk_accepted_the_other_discarded_then_undone(tmp_path: Path, editor: Editor) -> None:
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=[both_ends(), CHANGED]) as opened:
        opened.open("a.py")
        opened.task("Change both ends")
        opened.wait_status("waiting for you")
        assert opened.disk("a.py") == SOURCE
        opened.pick("Review")
        opened.reviewed()
        lenses = opened.page.locator(".codelens-decoration a")
        lenses.filter(has_text="Accept change").first.click()
        opened.page.locator(".codelens-decoration a").filter(has_text="Accept change").first.wait_for(state="detached")
        lenses.filter(has_text="Discard file").first.click()
        opened.page.locator(".tab").filter(has_text="Agent's changes").wait_for(state="detached")
        opened.idle()
        assert buffer(opened) == SOURCE.replace(ONE, "return 10\n\n\ndef f0")
        opened.command("CodeAgent: Undo Last Run")
        opened.page.locator(".view-line").filter(has_text="return 10").first.wait_for(state="detached")
        assert buffer(opened) == SOURCE


@pytest.mark.volume
def test_everything_by_the_keyboard(tmp_path: Path, editor: Editor) -> None:
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=[both_ends(), CHANGED]) as opened:
        page = opened.page
        opened.open("a.py")
        page.keyboard.press("Control+Alt+g")
        opened.answer("Change both ends")
        opened.wait_status("waiting for you")
        page.locator(".quick-input-list .monaco-list-row").filter(has_text="Review").wait_for()
        page.keyboard.press("Escape")
        page.locator(".quick-input-widget").wait_for(state="hidden")
        page.keyboard.press("Control+Alt+a")
        page.locator(".quick-input-list .monaco-list-row").filter(has_text="Apply").wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.locator(".tab.dirty").filter(has_text="a.py").wait_for()
        assert "return 990" in buffer(opened)


def test_what_the_changes_bar_offers_for_a_file(tmp_path: Path, editor: Editor) -> None:
    other = call("write_file", path="b.py", content="y = 1\n")
    script: list[dict[str, Any]] = [{"tool_calls": [*both_ends()["tool_calls"], other]}, CHANGED]
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script) as opened:
        page = opened.page
        opened.open("a.py")
        opened.task("Change both ends")
        opened.wait_status("waiting for you")
        page.keyboard.press("Escape")
        opened.in_bar("Review").click()
        page.locator(".tab.active").filter(has_text="Agent's changes").wait_for()
        assert "+2 −2" in changed(opened, "a.py").inner_text().replace("\n", " ")
        press_button(changed(opened, "b.py"), "Discard b.py")
        changed(opened, "b.py").wait_for(state="detached")
        press_button(changed(opened, "a.py"), "Accept a.py")
        page.locator(".tab.dirty").filter(has_text="a.py").wait_for()
        undo = opened.transcript().locator(".decision .undoFile")
        undo.click()
        opened.transcript().locator(".decision").filter(has_text="Undone").wait_for()
        assert undo.is_disabled(), "what is undone cannot be undone again"
        assert buffer(opened) == SOURCE
        assert opened.disk("b.py") is None


@pytest.mark.volume
def test_questions_with_choices_and_with_free_text(tmp_path: Path, editor: Editor) -> None:
    script: list[dict[str, Any]] = [
        {"tool_calls": [call("AskUser", questions=[{"text": "Which colour?", "options": ["Red", "Blue"]}])]},
        {"tool_calls": [call("AskUser", questions=[{"text": "Which name?"}])]},
        {"text": "It is Ada's."},
    ]
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script) as opened:
        opened.task("Ask me")
        opened.pick("Blue")
        opened.page.locator(".quick-input-title").filter(has_text="Which name?").wait_for()
        opened.answer("Ada")
        frame = opened.transcript()
        frame.locator(".markdown").filter(has_text="It is Ada's.").wait_for()
        assert frame.locator(".answer").all_inner_texts() == ["Answered: Blue", "Answered: Ada"]


@pytest.mark.volume
def test_several_choices_are_ticked_in_the_chat(tmp_path: Path, editor: Editor) -> None:
    question = {"text": "Which colours?", "options": ["Red", "Green", "Blue"]}
    script: list[dict[str, Any]] = [
        {"tool_calls": [call("AskUser", questions=[question], format="multi")]},
        {"text": "It is done."},
    ]
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script) as opened:
        opened.command("CodeAgent: Open the Chat")
        frame = opened.transcript()
        frame.locator("#composer textarea").fill("Ask me")
        frame.locator("#composer textarea").press("Enter")
        asked = frame.locator("#shelf .question.open")
        for colour in ("Red", "Blue"):
            asked.get_by_label(colour).check()
        if folder := os.environ.get("CODEAGENT_PICTURES"):
            opened.page.screenshot(path=Path(folder) / "several.png")
        asked.locator("textarea").fill("and grey")
        assert not opened.page.locator(".quick-input-widget").is_visible(), "it asked over the chat"
        asked.locator("textarea").press("Enter")
        frame.locator(".markdown").filter(has_text="It is done.").wait_for()
        assert frame.locator(".answer").all_inner_texts() == ["Answered: Red, Blue, and grey"]


@pytest.mark.volume
def test_the_transcript_streams_and_its_buttons_work(tmp_path: Path, editor: Editor) -> None:
    text = "See `a.py:5`.\n\n```python\nx = 1\n```\n\n" + WORDS
    with window(
        tmp_path, editor, files={"a.py": SOURCE}, script=[{"text": text, "chunks": 300, "delay": 0.2}]
    ) as opened:
        opened.task("Talk")
        frame = opened.transcript()
        frame.locator(".markdown").filter(has_text="word10").wait_for()
        first = frame.locator(".piece").first.element_handle()
        frame.locator(".markdown").filter(has_text="word40").wait_for()
        assert first.evaluate("element => element.isConnected"), "a settled piece was drawn again"
        frame.locator("#composer button").filter(has_text="Stop").click()
        frame.locator(".ended.cancelled").wait_for()
        opened.idle()
        frame.locator("button.file").first.click()
        opened.page.locator(".tab.active").filter(has_text="a.py").wait_for()
        opened.page.locator(".statusbar-item").filter(has_text="Ln 5").wait_for()


@pytest.mark.volume
def test_a_run_is_stopped_by_the_keys_while_the_chat_has_them(tmp_path: Path, editor: Editor) -> None:
    script = [{"text": WORDS, "chunks": 400, "delay": 0.5}]  # longer than the test looks, which then stops it
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script) as opened:
        opened.task("Talk")
        frame = opened.transcript()
        frame.locator(".markdown").filter(has_text="word1").wait_for()
        frame.locator("#composer textarea").click()
        opened.page.keyboard.press("Control+Alt+c")
        frame.locator(".ended.cancelled").wait_for()


@pytest.mark.volume
def test_a_plan_shows_its_steps(tmp_path: Path, editor: Editor) -> None:
    steps: list[dict[str, Any]] = [
        {"title": title, "description": title, "expected_tools": []} for title in ("First part", "Second part")
    ]
    script: list[dict[str, Any]] = [
        {"tool_calls": [call("create_plan", goal="Two parts", steps=steps, estimated_complexity="low")]},
        {"tool_calls": [edit(LAST, "return 990")]},
        {"text": "The first part is done."},
        {"text": WORDS, "chunks": 400, "delay": 0.5},  # longer than the test looks, which then stops it
    ]
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script) as opened:
        opened.open("a.py")
        opened.task("Do both parts", "CodeAgent: New Task with a Plan…")
        opened.pick("Start")
        opened.pick("Apply")
        opened.wait_status("2/2 Second part")
        step(opened, "First part").locator(".codicon-pass-filled").wait_for()
        opened.transcript().locator(".pinned summary").filter(has_text="Plan: 1 of 2").wait_for()
        opened.transcript().locator("#log .plan li.running").filter(has_text="Second part").wait_for()
        opened.command("CodeAgent: Stop")
        step(opened, "Second part").locator(".codicon-circle-slash").wait_for()
        assert "return 990" in buffer(opened)


@pytest.mark.volume
def test_a_task_from_the_composer_code_that_is_copied_and_a_restart(tmp_path: Path, editor: Editor) -> None:
    text = "Like this:\n\n```python\nx = [1,\n     2]\n```\n"
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=[{"text": text}]) as opened:
        opened.command("CodeAgent: Open the Chat")
        area = opened.transcript().locator("#composer textarea")
        area.fill("Show me")
        area.press("Enter")
        opened.transcript().locator(".markdown").filter(has_text="Like this:").wait_for()
        opened.transcript().locator("button.copy").click()
        opened.transcript().locator("button.copy").filter(has_text="Copied").wait_for()
        assert opened.page.evaluate("navigator.clipboard.readText()") == "x = [1,\n     2]\n"
        before = opened.servers()
        assert before
        opened.command("CodeAgent: Restart Server")
        opened.another_server(before)


def test_a_crash_is_healed_and_changes_are_kept(tmp_path: Path, editor: Editor) -> None:
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=[both_ends(), CHANGED]) as opened:
        opened.open("a.py")
        opened.task("Change both ends")
        opened.wait_status("waiting for you")
        opened.page.keyboard.press("Escape")
        before = opened.servers()
        assert before
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        until(lambda: bool(set(opened.servers()) - set(before)), "the server was not started again")
        opened.transcript().locator(".ended.lost").wait_for()
        opened.command("CodeAgent: Accept All Changes")
        opened.page.locator(".tab.dirty").filter(has_text="a.py").wait_for()
        assert "return 990" in buffer(opened)


def test_an_untrusted_workspace_is_read_only_and_names_no_program(tmp_path: Path, editor: Editor) -> None:
    trap = tmp_path / "trap"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {trap}\n")
    evil.chmod(0o755)
    files = {
        "a.py": SOURCE,
        ".vscode/settings.json": f'{{"codeagent.server.command": ["{evil}"], "codeagent.edits.apply": "auto"}}',
    }
    with window(tmp_path, editor, files=files, script=[both_ends(), {"text": "I may not."}], arguments=()) as opened:
        opened.page.locator(".statusbar-item").filter(has_text="Restricted Mode").wait_for()
        opened.task("Change both ends")
        opened.transcript().locator(".tool.failed").first.wait_for()
        opened.transcript().locator(".markdown").filter(has_text="I may not.").wait_for()
        assert opened.disk("a.py") == SOURCE
        assert not trap.exists()


def test_a_selection_is_edited_from_the_lightbulb(tmp_path: Path, editor: Editor) -> None:
    script = [{"text": "```python\ndef one():\n    return 1000\n```\n"}]
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script) as opened:
        opened.open("a.py")
        opened.idle()
        until(lambda: bool(opened.servers()), "no server")
        action = opened.page.locator(".action-widget .monaco-list-row").filter(has_text="Edit with an instruction")
        until(lambda: offers(opened, action), "the lightbulb does not offer an edit")
        action.click()
        opened.answer("Make it a thousand")
        opened.wait_status("waiting for you")
        opened.pick("Apply")
        opened.page.locator(".tab.dirty").filter(has_text="a.py").wait_for()
        assert "return 1000" in buffer(opened)
