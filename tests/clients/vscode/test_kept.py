"""In a real VS Code: what the user wrote or saw is what counts, whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.clients.vscode.support import Editor, window
from tests.clients.vscode.test_runs import buffer, call, changed, edit, until

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

BOX = ".quick-input-widget:not(:has(.monaco-list-row)) input >> nth=0"


def test_a_question_waits_until_a_box_is_closed(tmp_path: Path, editor: Editor) -> None:
    asks = {"tool_calls": [call("AskUser", questions=[{"text": "Which name?"}])], "delay": 8}
    script: list[dict[str, Any]] = [asks, {"text": "Done."}]
    with window(tmp_path, editor, files={"a.py": "x = 1\n"}, script=script) as opened:
        opened.task("ask me")
        opened.wait_status("working")
        opened.command("CodeAgent: New Task…")
        opened.page.locator(BOX).fill("half a thought")
        opened.wait_status("waiting for you")
        opened.page.wait_for_timeout(1000)
        assert opened.page.locator(BOX).input_value() == "half a thought"
        opened.page.keyboard.press("Escape")
        opened.page.locator(".quick-input-title").filter(has_text="Which name?").wait_for()
        opened.answer("Ada")
        opened.idle()


@pytest.mark.volume
def test_a_task_that_cannot_be_sent_is_in_the_composer_again(tmp_path: Path, editor: Editor) -> None:
    settings = {"codeagent.server.command": ["/nonexistent/server"]}
    with window(tmp_path, editor, files={"a.py": "x = 1\n"}, script=[], settings=settings) as opened:
        opened.command("CodeAgent: Open the Chat")
        area = opened.transcript().locator("#composer textarea")
        area.fill("A long task")
        area.press("Enter")
        until(lambda: area.input_value() == "A long task", "the words are lost")
        opened.page.locator(".notification-list-item").filter(has_text="did not start").first.wait_for()
        assert area.input_value() == "A long task"


def test_the_selection_is_edited_wherever_it_is_by_then(tmp_path: Path, editor: Editor) -> None:
    script = [{"text": "```python\nthree = 33\n```\n"}]
    source = "one = 1\ntwo = 2\nthree = 3\n"
    with window(tmp_path, editor, files={"a.py": source}, script=script) as opened:
        page = opened.page
        opened.open("a.py")
        opened.idle()
        for key in ("Control+Home", "ArrowDown", "ArrowDown", "Shift+End", "Control+Alt+e"):
            page.keyboard.press(key)
        page.locator(BOX).fill("thirty-three")
        page.locator(".view-lines").first.click(position={"x": 100, "y": 300})  # below the box
        page.keyboard.press("Control+Home")
        page.keyboard.type("zero = 0\n")
        page.locator(BOX).press("Enter")
        opened.wait_status("waiting for you")
        opened.command("CodeAgent: Accept All Changes")
        page.locator(".view-line").filter(has_text="three = 33").first.wait_for()
        assert buffer(opened) == "zero = 0\n" + source.replace("three = 3", "three = 33")


@pytest.mark.volume
def test_the_buttons_of_a_review_are_about_its_run(tmp_path: Path, editor: Editor) -> None:
    """Two runs wait, of two sessions; everything of the one is accepted whose review is open, and the older one stays
    after a new session has begun.
    """
    other = call("edit_file", path="b.py", old_str="y = 1", new_str="y = 2")
    script: list[dict[str, Any]] = [
        {"tool_calls": [edit("x = 1", "x = 2")]},
        {"text": "Changed."},
        {"tool_calls": [other]},
        {"text": "Changed."},
    ]
    with window(tmp_path, editor, files={"a.py": "x = 1\n", "b.py": "y = 1\n"}, script=script) as opened:
        page = opened.page
        opened.task("Change it")
        opened.pick("Review")
        tab = page.locator(".tab").filter(has_text="Agent's changes")
        tab.wait_for()
        page.locator(".auxiliarybar a[aria-label='New Session']").first.click()
        page.wait_for_timeout(500)  # the view takes the keyboard, from a list that is open as well
        opened.task("Change it")
        changed(opened, "b.py").wait_for()

        def uncovered() -> bool:
            """The question, which comes in its own time, is put off, and the review is in front."""
            page.keyboard.press("Escape")
            page.wait_for_timeout(500)
            box = page.locator(".quick-input-widget")
            return not box.is_visible() and tab.get_attribute("aria-selected") == "true"

        until(uncovered, "the review is covered")
        tab.click()
        page.locator(".editor-actions a[aria-label^='Accept All Changes']").first.click()
        tab.wait_for(state="detached")
        changed(opened, "b.py").wait_for()
        assert buffer(opened) == "x = 2\n"
        assert opened.disk("b.py") == "y = 1\n"


@pytest.mark.volume
def test_an_attempt_is_in_the_transcript_when_it_is_chosen(tmp_path: Path, editor: Editor) -> None:
    script: list[dict[str, Any]] = [*[{"tool_calls": [edit("x = 1", "x = 2")]}] * 2, *[{"text": "My words."}] * 2]
    with window(tmp_path, editor, files={"a.py": "x = 1\n"}, script=script) as opened:
        opened.open("a.py")
        opened.choose("CodeAgent: Several Attempts at a Task…", "2")
        opened.answer("make it two")
        opened.wait_status("waiting for you")
        opened.page.keyboard.press("Escape")
        until(lambda: "of 2 is the best" in opened.transcript().locator("body").inner_text(), "not told")
        titles = opened.transcript().locator("section.run .prompt .words:visible")
        until(lambda: titles.all_inner_texts() == ["make it two"], "not the run alone is shown")
        opened.transcript().locator(".attempts button").filter(has_text="Attempt 2").click()
        until(lambda: titles.all_inner_texts() == ["make it two", "Attempt 2"], "the attempt is not shown")
        opened.transcript().locator(".attempts button.whole").click()
        until(lambda: titles.all_inner_texts() == ["make it two"], "the attempt is still shown")
        opened.command("CodeAgent: Accept All Changes")
        opened.page.locator(".view-line").filter(has_text="x = 2").first.wait_for()
        assert buffer(opened) == "x = 2\n"


def test_the_conversation_comes_back_when_the_server_of_before_ends_late(tmp_path: Path, editor: Editor) -> None:
    with window(tmp_path, editor, files={"a.py": "x = 1\n"}, script=[{"text": "Hello."}]) as opened:
        opened.task("say hello")
        opened.transcript().locator(".markdown").filter(has_text="Hello.").wait_for()
        (before,) = opened.servers()
        os.kill(before, signal.SIGSTOP)
        opened.load()
        opened.command("CodeAgent: Open the Chat")
        opened.transcript().locator("#composer textarea").wait_for()
        assert not opened.transcript().locator(".prompt").count(), "the other server has it still"
        os.kill(before, signal.SIGKILL)
        opened.transcript().locator(".prompt").filter(has_text="say hello").wait_for()
        opened.transcript().locator(".markdown").filter(has_text="Hello.").wait_for()
