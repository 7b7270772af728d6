"""How events look, one by one, without a server."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from codeagent_lsp import events
from codeagent_lsp.terminal.questions import Keyboard
from codeagent_lsp.terminal.screen import Screen
from codeagent_lsp.terminal.stage import Stage

DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-one\n+two\n"


class Typist(Keyboard):
    """Somebody who types these lines, then leaves."""

    def __init__(self, *lines: str, present: bool = True) -> None:
        super().__init__()
        self.lines = list(lines)
        self.here = present

    @property
    def present(self) -> bool:
        return self.here

    async def line(self) -> str | None:
        return self.lines.pop(0) if self.lines else None


class Theatre:
    """A screen whose output can be read."""

    def __init__(self, *typed: str, width: int = 80, present: bool = True, accept_all: bool = False) -> None:
        self.out = io.StringIO()
        console = Console(file=self.out, width=width, highlight=False, markup=False, emoji=False)
        self.screen = Screen(Stage(console), Typist(*typed, present=present), "en", accept_all=accept_all)

    def tell(self, *happened: events.Event | Mapping[str, Any]) -> list[str]:
        """The lines that these events print."""
        start = self.out.tell()
        for event in happened:
            self.screen.event(events.to_dict(event) if isinstance(event, events.Event) else event)
        return [line.rstrip() for line in self.out.getvalue()[start:].splitlines() if line.strip()]


def test_a_plan_and_its_steps() -> None:
    steps = ({"step_id": "1", "title": "Read"}, {"step_id": "2", "description": "Write it down"})
    lines = Theatre().tell(
        events.PlanCreated(goal="A goal", steps=steps),
        events.StepStarted(step_id="1", description="Read", progress=0),
        events.StepCompleted(step_id="1", progress=50),
        events.StepStarted(step_id="2", description="Write it down", progress=50),
        events.StepError(step_id="2", error="No pen."),
    )
    assert lines == [
        "Plan: A goal",
        "  1. Read",
        "  2. Write it down",
        "▶ Read",
        "✓ 50 %",
        "▶ Write it down",
        "! No pen.",
    ]


def test_tool_calls_are_short_lines() -> None:
    call = {"id": "c1", "name": "grep", "arguments": {"pattern": "a\nb", "path": ""}}
    lines = Theatre().tell(
        events.ToolCalls(calls=(call,)),
        events.ToolFinished(tool="grep", call_id="c1", output="many\nlines"),
        events.ToolFinished(tool="run", success=False, error="It\nfailed."),
    )
    assert lines == ["  ● grep a b", "  ● run", "    It failed."]


def test_an_answer_is_printed_in_blocks_and_to_its_end() -> None:
    theatre = Theatre()
    assert theatre.tell(events.Token(content="one\n\ntw")) == ["one"]
    assert theatre.tell(events.Token(content="o"), events.ResponseEnd()) == ["two"]


def test_a_tool_call_ends_the_answer_before_it() -> None:
    lines = Theatre().tell(events.Token(content="Let me see"), events.ToolFinished(tool="grep"))
    assert lines == ["Let me see", "  ● grep"]


@pytest.mark.parametrize("name", sorted(events.EVENT_TYPES))
@pytest.mark.parametrize("width", [1, 80])
def test_no_event_breaks_the_screen(name: str, width: int) -> None:
    theatre = Theatre(width=width)
    theatre.tell(events.EVENT_TYPES[name]())
    theatre.screen.close()
    assert theatre.out.getvalue()


def test_an_event_of_a_newer_server_is_ignored() -> None:
    assert Theatre().tell({"type": "surprise"}) == []


async def test_a_question_about_changes_shows_them() -> None:
    theatre = Theatre("2")
    theatre.tell(events.ApprovalRequested(title="Apply 1 file?", detail=DIFF, choices=("Review", "Apply", "Discard")))
    assert await theatre.screen.choose("Apply 1 file?", ("Review", "Apply", "Discard")) == "Discard"
    shown = theatre.out.getvalue()
    assert "✎ x.py" in shown
    assert "1 Apply" in shown
    assert "Review" not in shown


async def test_the_detail_of_one_question_is_not_shown_with_another() -> None:
    theatre = Theatre("1")
    theatre.tell(events.ApprovalRequested(title="Apply?", detail=DIFF))
    assert await theatre.screen.choose("Something else?", ("Keep", "Delete")) == "Keep"
    assert "x.py" not in theatre.out.getvalue()


async def test_yes_answers_for_the_user() -> None:
    theatre = Theatre(accept_all=True, present=False)
    assert await theatre.screen.choose("Allow run?", ("Deny", "Allow once")) == "Allow once"
    assert "→ Allow once" in theatre.out.getvalue()


async def test_nobody_there_is_no() -> None:
    theatre = Theatre("1", present=False)
    assert await theatre.screen.choose("Allow run?", ("Deny", "Allow once")) is None
    assert await theatre.screen.ask("Name?", "", secret=False) is None
    assert theatre.screen.summary.declined == 2


async def test_free_text() -> None:
    theatre = Theatre("Zoë")
    assert await theatre.screen.ask("Name?", "In full.", secret=False) == "Zoë"
    assert "In full." in theatre.out.getvalue()
    assert await theatre.screen.ask("Name?", "", secret=False) is None


async def test_control_characters_of_a_question_are_shown() -> None:
    theatre = Theatre("1")
    await theatre.screen.choose("Run \x1b[2Jrm?", ("No\x07", "Yes"))
    assert "\x1b" not in theatre.out.getvalue()
    assert "\x07" not in theatre.out.getvalue()
