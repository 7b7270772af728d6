"""How events look, one by one, without a server."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from codeagent_lsp import events
from codeagent_lsp.lsp_client.disk import FileWrite
from codeagent_lsp.terminal.questions import Keyboard
from codeagent_lsp.terminal.screen import Screen
from codeagent_lsp.terminal.stage import FEW_LINES, FIRST_LINES, LAST_LINES, LINE_WIDTH, Stage
from codeagent_lsp.terminal.story import REPORT_LINES

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
        self.stage = Stage(console)
        self.screen = Screen(self.stage, Typist(*typed, present=present), "en", accept_all=accept_all)

    def tell(self, *happened: events.Event | Mapping[str, Any]) -> list[str]:
        """The lines that these events print."""
        start = self.out.tell()
        for event in happened:
            self.screen.event(events.to_dict(event) if isinstance(event, events.Event) else event)
        return self.lines(start)

    def rest(self) -> list[str]:
        """The lines that were held back, as more like them might have come."""
        start = self.out.tell()
        self.stage.flush()
        return self.lines(start)

    def lines(self, start: int = 0) -> list[str]:
        """What was printed since."""
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
        events.ToolFinished(tool="run", success=False, error="It failed.\nDo it again."),
    )
    assert lines == ["  ● grep a b", "  ✗ run", "    It failed."]


def test_equal_calls_in_a_row_are_one_line_with_their_number() -> None:
    names = ["a.py", "b.py", "b.py", "b.py", "a.py", "a.py"]
    calls = [{"id": str(at), "name": "edit_file", "arguments": {"path": name}} for at, name in enumerate(names)]
    theatre = Theatre()
    theatre.tell(events.ToolCalls(calls=tuple(calls)))
    for at in range(len(calls) - 1):
        theatre.tell(events.ToolFinished(tool="edit_file", call_id=str(at)))
    theatre.tell(events.ToolFinished(tool="edit_file", call_id="5", success=False, error="Not found."))
    assert theatre.lines() == [
        "  ● edit_file a.py",
        "  ● edit_file b.py ×3",
        "  ● edit_file a.py",
        "  ✗ edit_file a.py",
        "    Not found.",
    ]


def test_equal_calls_with_words_between_are_two_lines() -> None:
    theatre = Theatre()
    read = events.ToolFinished(tool="read_file")
    theatre.tell(read, events.Token(content="Again.\n\n"), read)
    assert [*theatre.lines(), *theatre.rest()] == ["  ● read_file", "Again.", "  ● read_file"]


def make(number: int = 1, name: str = "run_cmd") -> dict[str, Any]:
    return {"id": f"c{number}", "name": name, "arguments": {"command": f"make {number}"}}


def running(path: str) -> dict[str, Any]:
    return {"id": "t1", "name": "run_tests", "arguments": {"path": path}}


def test_of_green_tests_there_is_one_line() -> None:
    ended = events.ToolFinished(tool="run_tests", call_id="t1", output="tests: 7 passed", summary="7 passed in 1.0 s")
    theatre = Theatre()
    assert theatre.tell(
        events.ToolCalls(calls=(running("tests"),)),
        *(events.StepOutput(content=f"test {number} ... ok\n") for number in range(100)),
        ended,
        events.ToolCalls(calls=(make(),)),
        events.StepOutput(content="made\n"),
    ) == ["  ✓ run_tests tests: 7 passed in 1.0 s", "  ● run_cmd make 1", "    made"]


def test_of_red_tests_what_failed_is_told() -> None:
    names = [f"FAILED test_{number}" for number in range(60)]
    short = "60 failed in 1.0 s"
    ended = events.ToolFinished(
        run_id="r", tool="run_tests", call_id="t1", success=False, error=short, summary=short,
        output="\n".join(("tests: 60 failed in 1.0 s (pytest)", *names)),
    )  # fmt: skip
    lines = Theatre().tell(
        events.ToolCalls(run_id="r", calls=(running("tests"),)),
        events.StepOutput(run_id="r", content="....F\n"),
        ended,
        events.Failure(error="Over."),
    )
    assert lines == [
        "  ✗ run_tests tests: 60 failed in 1.0 s",
        *(f"    {name}" for name in names[:REPORT_LINES]),
        f"    ⋯ {60 - REPORT_LINES} more lines: codeagent-lsp trace show --full --run r",
        "! Over.",
    ]


def test_of_long_messages_of_red_tests_the_ends_are_told() -> None:
    message = [f"    frame {number}" for number in range(30)]
    output = "\n".join(("tests: 2 failed", "FAILED test_a", *message, "    E   no", "FAILED test_b", "    E   yes"))
    ended = events.ToolFinished(
        run_id="r", tool="run_tests", call_id="t1", success=False, error="2 failed", summary="2 failed", output=output
    )
    lines = Theatre().tell(events.ToolCalls(run_id="r", calls=(running("tests"),)), ended)
    assert lines[1:-1] == [
        "    FAILED test_a",
        "        [...]",
        *(f"        frame {number}" for number in range(25, 30)),
        "        E   no",
        "    FAILED test_b",
        "        E   yes",
    ]
    assert lines[-1] == "    ⋯ 25 more lines: codeagent-lsp trace show --full --run r"


def test_tests_that_could_not_be_asked_for_are_a_failed_call() -> None:
    ended = events.ToolFinished(tool="run_tests", call_id="t1", success=False, error="No tests were found.")
    lines = Theatre().tell(events.ToolCalls(calls=(running("x"),)), ended)
    assert lines == ["  ✗ run_tests x", "    No tests were found."]


def test_a_call_is_named_before_what_it_prints() -> None:
    theatre = Theatre()
    assert theatre.tell(events.ToolCalls(calls=(make(),)), events.StepOutput(content="hi\n")) == [
        "  ● run_cmd make 1",
        "    hi",
    ]
    failed = events.ToolFinished(tool="run_cmd", call_id="c1", success=False, error="exit code 2")
    assert theatre.tell(events.StepOutput(content="bye\n"), failed) == ["    bye", "    ✗ exit code 2"]


def test_of_several_calls_each_output_stands_below_its_own() -> None:
    lines = Theatre().tell(
        events.ToolCalls(calls=(make(1), make(2), make(3))),
        events.ToolFinished(tool="run_cmd", call_id="c1"),
        events.StepOutput(content="one\ntwo\n"),
        events.ToolFinished(tool="run_cmd", call_id="c2", success=False, error="exit code 2"),
        events.StepOutput(content="three\n"),
        events.ToolFinished(tool="run_cmd", call_id="c3", success=False, error="exit code 3"),
    )
    assert lines == [
        "  ● run_cmd make 1",
        *("  ● run_cmd make 2", "    one", "    two", "    ✗ exit code 2"),
        *("  ● run_cmd make 3", "    three", "    ✗ exit code 3"),
    ]


def test_a_call_is_named_again_where_something_stands_between() -> None:
    lines = Theatre().tell(
        events.ToolCalls(calls=(make(),)),
        events.StepOutput(content="one\n"),
        events.StepError(error="No pen."),
        events.StepOutput(content="two\n"),
        events.StepOutput(content="three\n"),
        events.StepError(error="No ink."),
        events.ToolFinished(tool="run_cmd", call_id="c1", success=False, error="exit code 2"),
    )
    assert lines == [
        *("  ● run_cmd make 1", "    one", "! No pen."),
        *("  ⋯ run_cmd make 1", "    two", "    three", "! No ink."),
        "    ✗ run_cmd make 1: exit code 2",
    ]


def test_what_an_agent_runs_stands_below_its_own_call() -> None:
    lines = Theatre().tell(
        events.ToolCalls(calls=({"id": "d", "name": "delegate"}, make(1))),
        events.ToolCalls(calls=({**make(2), "id": "scout-1/c2"},)),
        events.StepOutput(content="of the agent\n"),
        events.ToolFinished(tool="run_cmd", call_id="scout-1/c2"),
        events.ToolFinished(tool="delegate", call_id="d"),
        events.StepOutput(content="of the run\n"),
    )
    assert lines == [
        *("  ● run_cmd make 2", "    of the agent", "  ● delegate"),
        *("  ● run_cmd make 1", "    of the run"),
    ]


def test_a_call_that_never_ends_is_named_at_the_end_of_the_run() -> None:
    theatre = Theatre()
    theatre.tell(events.ToolCalls(calls=(make(),)), events.RunCompleted(status="cancelled"))
    theatre.screen.close()
    assert theatre.out.getvalue().startswith("  ● run_cmd make 1\n\n✗ Cancelled.")


def test_of_attempts_at_once_the_calls_are_shown_with_their_numbers() -> None:
    theatre = Theatre()
    for run, number in (("a", 1), ("b", 2)):
        theatre.tell(events.ResponseStart(run_id=run, attempt_of="r", attempt=number))
    lines = theatre.tell(
        events.ToolCalls(run_id="a", calls=(make(),)),
        events.ToolCalls(run_id="b", calls=(make(),)),
        events.StepOutput(run_id="a", content="of a\n"),
        events.Token(run_id="b", content="of b"),
        events.ToolFinished(run_id="b", tool="run_cmd", call_id="c1"),
        events.ToolFinished(run_id="a", tool="run_cmd", call_id="c1"),
        events.RunCompleted(run_id="a"),
    )
    assert [*lines, *theatre.rest()] == ["  ● 2: run_cmd make 1", "  ● 1: run_cmd make 1"]
    assert theatre.screen.summary.status == "", "the run itself goes on"


PRINTED = {
    "dots": ((".", "..", "F", ".\n", "1 failed\n"), ["    ...F.", "    1 failed"]),
    "no end": (("...", "."), ["    ...."]),
    "progress": (("\r 10 %", "\r 50 %\r", "100 %", "\r\n", "done\n"), ["    100 %", "    done"]),
    "a return and a line end apart": (("one\r", "\ntwo\n"), ["    one", "    two"]),
    "both streams": (("out ", "err\n"), ["    out err"]),
    "tricks": (("\x1b]8;;https://x\x07y\x1b]8;;\x07\n",), ["    <U+001B>]8;;https://x<U+0007>y<U+001B>]8;;<U+0007>"]),
}


@pytest.mark.parametrize(("pieces", "lines"), PRINTED.values(), ids=PRINTED.keys())
def test_a_line_is_one_line_however_it_arrives(pieces: tuple[str, ...], lines: list[str]) -> None:
    theatre = Theatre()
    theatre.tell(events.ToolCalls(calls=(make(),)))
    printed = [events.StepOutput(content=piece) for piece in pieces]
    assert theatre.tell(*printed, events.ToolFinished(tool="run_cmd", call_id="c1"))[1:] == lines


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 999, 100_000])
@pytest.mark.parametrize("count", [3000, FIRST_LINES + LAST_LINES + FEW_LINES, 2])
def test_of_a_long_output_the_middle_is_left_out(count: int, size: int) -> None:
    theatre = Theatre()
    printed = "".join(f"line {number}\n" for number in range(count))
    pieces = (printed[start : start + size] for start in range(0, len(printed), size))
    theatre.tell(events.ToolCalls(run_id="r1", calls=(make(),)))
    result = events.ToolFinished(run_id="r1", tool="run_cmd", call_id="c1")
    lines = theatre.tell(*(events.StepOutput(run_id="r1", content=piece) for piece in pieces), result)[1:]
    whole = [f"    line {number}" for number in range(count)]
    if count == 3000:
        told = "    ⋯ 2,970 more lines: codeagent-lsp trace show --full --run r1"
        whole[FIRST_LINES:-LAST_LINES] = [told]
    assert lines == whole


def test_a_line_without_end_does_not_fill_the_screen() -> None:
    (line,) = Theatre().tell(events.StepOutput(content="x" * 10_000 + "\n"))
    assert len(line) < LINE_WIDTH + 10


def test_two_answers_are_apart() -> None:
    theatre = Theatre()
    theatre.tell(events.Token(content="Shall I?"), events.UsageReported(), events.Token(content="I do it."))
    theatre.tell(events.ToolFinished(tool="grep"), events.Token(content="Done."), events.ResponseEnd())
    assert theatre.out.getvalue() == "Shall I?\n\nI do it.\n\n  ● grep\n\nDone.\n\n"


def test_an_answer_is_printed_in_blocks_and_to_its_end() -> None:
    theatre = Theatre()
    assert theatre.tell(events.Token(content="one\n\ntw")) == ["one"]
    assert theatre.tell(events.Token(content="o"), events.ResponseEnd()) == ["two"]


def test_a_tool_call_ends_the_answer_before_it() -> None:
    theatre = Theatre()
    lines = theatre.tell(events.Token(content="Let me see"), events.ToolFinished(tool="grep"))
    assert [*lines, *theatre.rest()] == ["Let me see", "  ● grep"]


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
    choices = ("Deny", "Allow once", "Allow exactly this for the session", "Always allow exactly this")
    assert await theatre.screen.choose("Allow run?", choices) == "Allow once"
    assert theatre.out.getvalue() == "? Allow run?\n  → Allow once\n\n"


async def test_an_option_of_the_model_that_yes_takes_cannot_write_to_the_terminal() -> None:
    theatre = Theatre(accept_all=True, present=False)
    await theatre.screen.choose("Which?", ("One", "\x1b[2JTwo"))
    assert "→ <U+001B>[2JTwo" in theatre.out.getvalue()


@pytest.mark.parametrize(
    ("asks", "detail", "words"),
    [
        (events.ApprovalRequested, DIFF, "Not applied"),
        (events.ApprovalRequested, "run_cmd", "Not allowed"),
        (events.QuestionAsked, "", "Not answered"),
    ],
)
async def test_why_nobody_is_asked(asks: type[events.Event], detail: str, words: str) -> None:
    theatre = Theatre(present=False)
    theatre.tell({"type": asks.type, "request_id": "1", "title": "So?", "detail": detail})
    assert await theatre.screen.choose("So?", ("No", "Yes")) is None
    assert words in theatre.out.getvalue()


async def test_what_is_staged_is_offered_after_an_error_too() -> None:
    theatre = Theatre(accept_all=True, present=False)
    theatre.tell(events.Failure(error="The reply was cut off."))
    theatre.tell(events.ApprovalRequested(title="Apply 1 file?", detail=DIFF, choices=("Review", "Apply", "Discard")))
    assert await theatre.screen.choose("Apply 1 file?", ("Review", "Apply", "Discard")) == "Apply"
    theatre.tell(events.ChangesApplied(), events.RunCompleted(status="failed", error="The reply was cut off."))
    theatre.screen.close(written=[FileWrite(Path.cwd() / "x.py", b"one\n", b"two\n")])
    assert theatre.screen.summary.exit_code == 1
    assert theatre.out.getvalue().endswith("✗ Failed.  0.0 s\n  written  ✎ x.py  +1 −1\n")


async def test_nobody_there_is_no() -> None:
    theatre = Theatre("1", present=False)
    assert await theatre.screen.choose("Allow run?", ("Deny", "Allow once")) is None
    assert await theatre.screen.ask("Name?", "", secret=False) is None
    assert theatre.screen.summary.declined == 2


async def test_an_answer_that_asks_is_not_said_again_with_the_question() -> None:
    theatre = Theatre(present=False)
    theatre.tell(events.Token(content="I looked."), events.UsageReported(), events.ToolFinished(tool="grep"))
    theatre.tell(events.Token(content="It is red.\n\nShall "), events.Token(content="I?"), events.UsageReported())
    await theatre.screen.ask("Shall I?", "It is red.\n\nShall I?", secret=False)
    assert theatre.out.getvalue().count("It is red.") == 1
    await theatre.screen.ask("Shall I?", "I looked.", secret=False)
    assert theatre.out.getvalue().count("I looked.") == 2


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
