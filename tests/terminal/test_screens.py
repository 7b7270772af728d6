"""The screen at every width, with and without colours, in both languages: nothing lost, nothing too wide, no tricks."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from codeagent_lsp import events
from codeagent_lsp.terminal.display import visible
from codeagent_lsp.terminal.questions import Decision
from codeagent_lsp.terminal.screen import DETAIL_LINES, Screen
from codeagent_lsp.terminal.stage import Stage
from codeagent_lsp.texts import text
from tests.terminal.test_story import Typist

WIDTHS = (20, 40, 80, 120)
DIFF = "--- a/src/x.py\n+++ b/src/x.py\n@@ -1,2 +1,2 @@\n one\n-two\n+drei 三\n"
MANY = f"{DIFF}@@ -9 +9,2 @@ src/x.py#0a0b0c0d\n nine\n+ten\n".replace("+1,2 @@", "+1,2 @@ src/x.py#00112233")


class Echoing(Typist):
    """A typist at a terminal that shows what is typed."""

    def __init__(self, out: io.StringIO, *lines: str) -> None:
        super().__init__(*lines)
        self.out = out

    async def line(self) -> str | None:
        line = await super().line()
        self.out.write("" if line is None else f"{line}\n")
        return line


class Theatre:
    """A screen of a width; with `colours` it is a terminal, else a file."""

    def __init__(self, *typed: str, width: int, colours: bool, language: str = "en", accept_all: bool = False) -> None:
        self.out = io.StringIO()
        self.width, self.colours = width, colours
        console = Console(
            file=self.out,
            width=width,
            highlight=False,
            markup=False,
            emoji=False,
            force_terminal=colours,
            color_system="standard" if colours else None,
            legacy_windows=False,
        )
        self.stage = Stage(console)
        self.screen = Screen(self.stage, Echoing(self.out, *typed), language, accept_all=accept_all)

    def tell(self, *happened: events.Event | Mapping[str, Any]) -> None:
        for event in happened:
            self.screen.event(events.to_dict(event) if isinstance(event, events.Event) else event)

    @property
    def shown(self) -> str:
        """What a person sees, without colours."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.out.getvalue()).replace("\r", "\n")

    def holds(self, words: str) -> bool:
        """Whether the words stand there, wherever they are wrapped."""
        return "".join(words.split()) in "".join(self.shown.split())

    def check(self) -> None:
        """What holds for every screen."""
        raw = self.out.getvalue()
        assert self.colours or "\x1b" not in raw
        assert "\x1b]" not in raw, "no title, no link"
        assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\u202e\U000e0041]", raw)
        if self.colours:
            assert [line for line in self.shown.split("\n") if cell_len(line.rstrip()) > self.width] == []


EVERY_WAY = pytest.mark.parametrize(
    ("width", "colours", "language"),
    [(width, colours, language) for width in WIDTHS for colours in (False, True) for language in ("en", "zh-cn")],
)
CALL = {"id": "1", "name": "grep", "arguments": {"pattern": "needle in a haystack", "path": "src"}}
STEPS = ({"step_id": "1", "title": "Read the code"}, {"step_id": "2", "description": "写测试"}, {"step_id": "third"})
TOLD: dict[str, tuple[list[events.Event], list[str]]] = {
    "plan": ([events.PlanCreated(goal="Make it work", steps=STEPS)], ["Make it work", "2. 写测试", "3. third"]),
    "changed plan": ([events.PlanModified(steps=STEPS[:1])], ["1. Read the code"]),
    "step": ([events.StepStarted(step_id="1", description="Read the code")], ["▶ Read the code"]),
    "step done": ([events.StepCompleted(step_id="1", progress=33)], ["✓ 33 %"]),
    "step failed": ([events.StepError(step_id="1", error="No\nsuch\x1b[2J file")], ["! No such<U+001B>[2J file"]),
    "step output": ([events.StepOutput(content="line one\nline two\n")], ["line one", "line two"]),
    "tool": ([events.ToolCalls(calls=(CALL,)), events.ToolFinished(tool="grep", call_id="1")], ["● grep needle in a"]),
    "tool without a call": ([events.ToolFinished(tool="read_file", output="x")], ["● read_file"]),
    "tool failed": ([events.ToolFinished(tool="run", success=False, error="Exit 1")], ["✗ run", "Exit 1"]),
    "tool failed with output": ([events.ToolFinished(tool="run", success=False, output="tail\x07")], ["tail<U+0007>"]),
    "answer": ([events.Token(content="One *two*.\n\n"), events.ResponseEnd()], ["One"]),
    "link": ([events.Token(content="See [it](http://t.example)."), events.ResponseEnd()], ["it", "http://t.example"]),
    "code": ([events.Token(content="```py\nx = 1\n```\n"), events.ResponseEnd()], ["x = 1"]),
    "half an answer": (
        [events.Token(content="Half a sen"), events.ToolFinished(tool="grep")],
        ["Half a sen", "● grep"],
    ),
    "output": (
        [events.Stdout(content="out\x1b]0;t\x07\n"), events.Stderr(content="err\n")],
        ["out<U+001B>]0;t", "err"],
    ),
    "error": ([events.Failure(error="It broke " * 3)], ["! It broke It broke"]),
    "hidden direction": ([events.Failure(error="a\u202eb\U000e0041c")], ["a<U+202E>b<U+E0041>c"]),
}
SILENT = (
    events.ResponseStart(),
    events.RunStarted(task="x"),
    events.IntentClassified(intent="edit"),
    events.StatusChanged(message="working"),
    events.UsageReported(prompt_tokens=3),
    events.AnomalyDetected(kind="loop"),
    events.ContextCompacted(before=9, after=3),
    events.PlanApproved(),
    events.PlanRejected(reason="no"),
    events.AwaitingApproval(message="?"),
    events.ExecutionStarted(),
    events.FileChanged(path="a"),
    events.ChangesProposed(summary="s"),
    events.ChangesDiscarded(),
    events.ChangesApplied(outcome="partial", conflicts=("a.py:3",)),  # a warning says it, too
    events.ApprovalRequested(title="t"),
    events.QuestionAnswered(answer="a"),
)


@EVERY_WAY
@pytest.mark.parametrize("name", TOLD)
def test_events_are_told(name: str, width: int, colours: bool, language: str) -> None:
    happened, words = TOLD[name]
    theatre = Theatre(width=width, colours=colours, language=language)
    theatre.tell(*happened)
    theatre.stage.flush()
    theatre.check()
    for word in words:
        assert theatre.holds(word), theatre.shown


@pytest.mark.parametrize("event", SILENT, ids=lambda event: str(event.type))
def test_events_that_print_nothing(event: events.Event) -> None:
    theatre = Theatre(width=80, colours=False)
    theatre.tell(event)
    assert theatre.shown == ""


@EVERY_WAY
async def test_a_whole_run(width: int, colours: bool, language: str) -> None:
    theatre = Theatre("1", width=width, colours=colours, language=language)
    theatre.screen.open("Fix the \x1b[31msum\n of it", "~/work/\u202eproject")
    theatre.tell(
        events.ResponseStart(),
        events.ToolCalls(calls=(CALL,)),
        events.ToolFinished(tool="grep", call_id="1"),
        events.Token(content="The **sign** was wrong.\n\n- one\n- two\n"),
        events.ResponseEnd(),
        events.ApprovalRequested(title="Apply 1 file?", detail=DIFF, choices=("Apply", "Discard")),
    )
    assert await theatre.screen.choose("Apply 1 file?", ("Apply", "Discard")) == "Apply"
    theatre.tell(
        events.ChangesApplied(outcome="full"),
        events.UsageReported(prompt_tokens=12345, completion_tokens=67),
        events.RunCompleted(outcome="full", files_changed=("src/x.py",)),
    )
    theatre.screen.close()
    theatre.check()
    assert theatre.screen.summary.exit_code == 0
    for words in ("Fix the <U+001B>[31msum of it", "✎ src/x.py", "+ drei 三", "? Apply 1 file?", "2 Discard", "12,345"):
        assert theatre.holds(words), theatre.shown
    assert theatre.holds(text("outcome.full", language, count=1))


ENDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "done": ({"status": "completed"}, "", "✓"),
    "applied": ({"status": "completed", "outcome": "full", "files_changed": ["a"]}, "", "✓"),
    "partly": ({"status": "completed", "outcome": "partial"}, "", "✗"),
    "unknown": ({"status": "completed", "outcome": "unknown"}, "", "✗"),
    "not applied": ({"status": "completed", "outcome": "none"}, "", "✗"),
    "failed": ({"status": "failed", "error": "The model\nis gone"}, "", "✗"),
    "stopped": ({"status": "stopped", "summary": "Too many calls"}, "", "✗"),
    "rejected": ({"status": "rejected"}, "", "✗"),
    "cancelled": ({"status": "cancelled"}, "", "✗"),
    "lost": ({}, "The server is gone: \x1b[0m", "✗"),
}


@EVERY_WAY
@pytest.mark.parametrize("name", ENDS)
def test_the_last_lines(name: str, width: int, colours: bool, language: str) -> None:
    event, note, mark = ENDS[name]
    theatre = Theatre(width=width, colours=colours, language=language)
    if event:
        theatre.tell({"type": "run_completed", **event})
    theatre.screen.close(note)
    theatre.check()
    assert theatre.shown.startswith(mark)
    for words in (event.get("error", ""), event.get("summary", ""), visible(note)):
        assert theatre.holds(words)


# --- questions


SHAPES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "words": (
        "Allow run_cmd?",
        "run_cmd\n{'command': 'make'}",
        ("Deny", "Allow once", "Allow exactly this for the session"),
    ),
    "diff": ("Apply 1 file?", DIFF, ("Review", "Apply", "Discard")),
    "many parts": ("Apply 1 file?", MANY, ("Apply", "Discard")),
    "no detail": ("Which one?", "", ("The first", "The second")),
    "chinese": ("应用更改?", DIFF, ("查看", "应用", "放弃")),
    "tricks": ("Run \x1b[2Jrm\u202e?", "fake\r\n  1 Allow\x07", ("No\x07", "Yes\u200b")),
    "long": ("Go on? " + "really " * 30, "detail " * 50, ("Yes " * 20, "No " * 20)),
    "one choice": ("Fine?", "", ("OK",)),
    "many": ("Which?", "", tuple(f"option {number}" for number in range(1, 13))),
}


@pytest.mark.slow
@EVERY_WAY
@pytest.mark.parametrize("name", SHAPES)
async def test_questions(name: str, width: int, colours: bool, language: str) -> None:
    title, detail, choices = SHAPES[name]
    theatre = Theatre("99", "zz", "", "1", width=width, colours=colours, language=language)
    theatre.tell(events.ApprovalRequested(title=title, detail=detail, choices=choices))
    answer = await theatre.screen.choose(title, choices)
    theatre.screen.close()
    theatre.check()
    offered = [choice for choice in choices if not (detail == DIFF and choice in ("Review", "查看"))]
    offered += [text("choice.singly", language)] if detail == MANY else []
    assert answer == offered[0]
    for number, choice in enumerate(offered, 1):
        assert theatre.holds(f"{number} {visible(choice)}"), theatre.shown
    assert theatre.holds(visible(title))
    again = text("terminal.choose_again", language, count=len(offered))
    assert "".join(theatre.shown.split()).count("".join(again.split())) == 3


@pytest.mark.parametrize(
    ("typed", "decision"),
    [
        ("12", Decision({"hunks": ["src/x.py#00112233"]}, {"hunks": ["src/x.py#0a0b0c0d"]})),
        ("33", Decision()),
        ("4", Decision(apply={})),
        ("13", Decision(apply={"hunks": ["src/x.py#00112233"]})),
        ("35", Decision(discard={"hunks": ["src/x.py#0a0b0c0d"]})),
        ("5", Decision(discard={})),
        ("1", None),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh-cn"])
async def test_changes_are_decided_about_one_by_one(typed: str, decision: Decision | None, language: str) -> None:
    theatre = Theatre(*typed, width=80, colours=False, language=language)
    assert await theatre.screen.decide(MANY) == decision
    assert theatre.screen.summary.later == ("3" in typed)
    theatre.screen.close()
    theatre.check()
    assert theatre.shown.count("src/x.py") == (1 if typed in ("4", "5") else 2)


@pytest.mark.parametrize("colours", [False, True])
async def test_nothing_typed_is_no_answer(colours: bool) -> None:
    theatre = Theatre(width=80, colours=colours)
    assert await theatre.screen.choose("Go?", ("No", "Yes")) is None
    assert await theatre.screen.ask("Name?", "", secret=False) is None
    theatre.screen.close()
    assert theatre.screen.summary.declined == 0


GIVEN = {"path": ".vscode/a.json", "content": '{\n"path": 1\n}', "runs": True}
ABOUT = f"write_file\n{json.dumps(GIVEN, indent=2)}\n\nIt can run code later."


@pytest.mark.parametrize(
    ("title", "detail", "shown"),
    [
        (
            "Allow write_file: .vscode/a.json?",
            ABOUT,
            ["  content:", "      {", '      "path": 1', "      }", "  runs: true", "", "  It can run code later."],
        ),
        ("Allow run_cmd: make?", 'run_cmd\n{\n  "command": "make"\n}\n\nIt asks.', ["  It asks."]),
        ("Allow x?", "x\n{}\n\nWhy.", ["  Why."]),
        ("Allow x?", 'x\n{\n  "cut": "abc', ["  x", "  {", '    "cut": "abc']),
        ("Which?", "Some words.", ["  Some words."]),
    ],
)
async def test_a_call_is_asked_about_in_words(title: str, detail: str, shown: list[str]) -> None:
    theatre = Theatre("1", width=120, colours=False)
    theatre.tell(events.ApprovalRequested(title=title, detail=detail))
    await theatre.screen.choose(title, ("Deny", "Allow once"))
    lines = [line.rstrip() for line in theatre.shown.split("\n")]
    at = lines.index(f"? {title}")
    assert lines[at - len(shown) - 1 : at - 1] == shown


async def test_a_long_detail_is_cut() -> None:
    theatre = Theatre("1", width=80, colours=False)
    lines = [f"line {number}." for number in range(DETAIL_LINES + 20)]
    theatre.tell(events.QuestionAsked(title="Go?", detail="\n".join(lines)))
    await theatre.screen.choose("Go?", ("No", "Yes"))
    assert theatre.holds(lines[DETAIL_LINES - 1])
    assert not theatre.holds(lines[DETAIL_LINES])


@pytest.mark.parametrize("language", ["en", "zh-cn"])
async def test_yes_shows_what_it_answers(language: str) -> None:
    choices = (text("choice.review", language), text("choice.discard", language), text("choice.apply", language))
    theatre = Theatre(width=80, colours=False, language=language, accept_all=True)
    assert await theatre.screen.choose("?", choices) == choices[2]
    assert theatre.holds(f"→ {choices[2]}")
