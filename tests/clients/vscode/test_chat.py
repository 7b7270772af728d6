"""The chat, in a real VS Code: long prompts, words to a run at work, completion, sessions, and what axe says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients.vscode.support import EXTENSION, Editor, Window, window
from tests.clients.vscode.test_attachments import DROP, png
from tests.clients.vscode.test_runs import CHANGED, SOURCE, both_ends, call, until

pytestmark = [pytest.mark.slow, pytest.mark.vscode]

AXE = EXTENSION / "node_modules" / "axe-core" / "axe.min.js"
LONG = "Change both ends:\n" + "\n".join(f"- rule {number}" for number in range(30))
FOUND = """async () => {
    const found = await axe.run(document, {resultTypes: ["violations"]});
    const bad = found.violations.filter(each => ["serious", "critical"].includes(each.impact));
    const words = (each, node) => `${each.id}: ${node.html.slice(0, 120)} ${node.any[0]?.message ?? ""}`;
    return bad.flatMap(each => each.nodes.map(node => words(each, node)));
}"""


def serious(opened: Window) -> list[str]:
    """What axe finds in the chat that is serious; its script is run from outside, where the policy does not count."""
    frame = opened.transcript().locator("body").element_handle().owner_frame()
    frame.evaluate(AXE.read_text())
    found: list[str] = frame.evaluate(FOUND)
    return found


def test_a_conversation_and_what_stands_around_it(tmp_path: Path, editor: Editor) -> None:
    script: list[dict[str, Any]] = [
        {"text": "I look.\n\n```python\nx = 1\n```\n", "tool_calls": [call("run_cmd", command="echo one; exit 3")]},
        both_ends(),
        {"text": "Changed."},
        {"tool_calls": [call("AskUser", questions=[{"text": "Which colour?", "options": ["Red", "Blue"]}])]},
        {"tool_calls": [call("list_dir", path=".")], "delay": 8},
        {"text": "It is short.", "reasoning": "How long is it?\nOne file only.", "expect": "and be brief"},
        {"text": "The next."},
    ]
    source = "def one():\n    return 1\n\n\ndef f0():\n    return 0\n\n\ndef last():\n    return 99\n"
    with window(tmp_path, editor, files={"a.py": source}, script=script) as opened:
        opened.open("a.py")
        opened.command("CodeAgent: Open the Chat")
        frame = opened.transcript()
        area = frame.locator("#composer textarea")
        frame.locator(".chip").filter(has_text="a.py").wait_for()
        wrong = {"empty": serious(opened)}
        area.fill(LONG)
        area.press("Enter")
        frame.locator(".changesbar").wait_for()
        frame.locator(".tool.command.failed .result").filter(has_text="exit code 3").wait_for()
        words = frame.locator(".prompt .words").first
        assert words.evaluate("words => words.clientHeight < words.scrollHeight"), "a long prompt is not clamped"
        frame.locator(".prompt .more").first.click()
        assert words.evaluate(
            "words => words.clientHeight === words.scrollHeight && words.innerText.includes('rule 29')"
        )
        wrong["changes"] = serious(opened)
        opened.wait_status("waiting for you")
        opened.in_bar("Discard").click()
        opened.idle()
        area.fill("Look at @a.p")
        area.press("y")
        frame.locator(".completions li").filter(has_text="@a.py").wait_for()
        wrong["completion"] = serious(opened)
        area.press("Tab")
        assert area.input_value() == "Look at @a.py "
        area.press("Enter")
        question = frame.locator(".question.open")
        question.filter(has_text="Which colour?").wait_for()
        question.locator("button").filter(has_text="Other…").click()
        question.locator("textarea").fill("Green")
        wrong["question"] = serious(opened)
        question.locator("textarea").press("Enter")
        area.fill("and be brief")
        area.press("Enter")
        frame.locator(".said").filter(has_text="and be brief").wait_for()
        area.fill("then the next")
        area.press("Alt+Enter")
        frame.locator(".queue li").filter(has_text="then the next").wait_for()
        log = frame.locator("#log")
        try:
            until(lambda: "The next." in log.inner_text(), "not answered", 40)
        except AssertionError:
            raise AssertionError(log.inner_text()[-900:]) from None
        assert "It is short." in log.inner_text()
        thought = frame.locator("details.thought")
        assert thought.locator(".line").inner_text() == "One file only."
        thought.locator("summary").click()
        assert thought.locator(".unfolded").inner_text() == "How long is it?\nOne file only."
        wrong["thought"] = serious(opened)
        opened.idle()
        assert not frame.locator(".queue li").count()
        area.press("ArrowUp")
        assert area.input_value() == "then the next"
        opened.command("CodeAgent: Sessions…")
        frame.locator(".session").first.wait_for()
        wrong["sessions"] = serious(opened)
        opened.command("CodeAgent: Set Up the Model…")
        frame.locator(".card").filter(has_text="Anthropic").click()
        wrong["setup"] = serious(opened)
        until(lambda: not any(wrong.values()), f"axe: {wrong}", 0.1)


@pytest.mark.parametrize(
    "theme",
    [
        "Default High Contrast",
        pytest.param("Dark Modern", marks=pytest.mark.volume),
        pytest.param("Default High Contrast Light", marks=pytest.mark.volume),
    ],
)
def test_the_chat_is_readable_in_every_theme(tmp_path: Path, editor: Editor, theme: str) -> None:
    script: list[dict[str, Any]] = [
        {"text": "I look.\n\n```python\nx = 1\n```\n", "tool_calls": [call("run_cmd", command="echo one; exit 3")]},
        both_ends(),
        CHANGED,
    ]
    settings = {"workbench.colorTheme": theme}
    with window(tmp_path, editor, files={"a.py": SOURCE}, script=script, settings=settings) as opened:
        opened.open("a.py")
        opened.command("CodeAgent: Open the Chat")
        frame = opened.transcript()
        area = frame.locator("#composer textarea")
        frame.locator(".chip").filter(has_text="a.py").wait_for()
        area.fill("Change both ends")
        area.press("Enter")
        opened.wait_status("waiting for you")
        assert not opened.page.locator(".quick-input-widget").is_visible(), "it asked over the chat"
        opened.in_bar("Apply").click()
        frame.locator("button.undoFile").wait_for()
        frame.locator("#composer").evaluate(DROP, [["red.png", "image/png", png(200, 30, 30)]])
        frame.locator(".thumb").wait_for()
        frame.locator("button.ring").click()
        frame.locator("#contents").wait_for()
        wrong = {"conversation": serious(opened)}
        opened.page.screenshot(path=tmp_path / "conversation.png")
        opened.command("CodeAgent: Set Up the Model…")
        frame.locator(".card").filter(has_text="Anthropic").click()
        wrong["setup"] = serious(opened)
        opened.page.screenshot(path=tmp_path / "setup.png")
        assert not any(wrong.values()), f"axe: {wrong}"
