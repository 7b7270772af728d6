"""What came of a run, as a value: any order of events, the words of the last lines, and how calls are named."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.lsp_client.disk import FileWrite
from codeagent_lsp.terminal.summary import MOST_FILES, Summary, account, ending
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.changeset import FileChange

FULL = events.ChangesApplied(outcome="full")
PART = events.ChangesApplied(outcome="partial", reason="a.py changed")
NONE = events.ChangesApplied(outcome="none")


def after(*happened: events.Event) -> Summary:
    summary = Summary()
    for event in happened:
        summary = summary.after(events.to_dict(event))
    return summary


def test_few_kinds_of_events_count() -> None:
    counted = {"usage", "changes_applied", "run_completed", "question_asked"}
    for name, kind in events.EVENT_TYPES.items():
        assert name in counted or after(kind()) == Summary(), name


def test_tokens_add_up_in_any_order() -> None:
    chance = random.Random(60)
    for _ in range(50):
        usages = [events.UsageReported(prompt_tokens=chance.randrange(999), completion_tokens=n) for n in range(9)]
        total = after(*chance.sample(usages, 9))
        assert (total.prompt_tokens, total.completion_tokens) == (sum(item.prompt_tokens for item in usages), 36)


@pytest.mark.parametrize(
    ("happened", "refused"),
    [
        ([], None),
        ([FULL], None),
        ([PART], "a.py changed"),
        ([NONE], ""),
        ([PART, FULL], None),
        ([FULL, PART], "a.py changed"),
    ],
)
def test_the_last_answer_about_changes_counts(happened: list[events.Event], refused: str | None) -> None:
    assert after(*happened).refused == refused


@pytest.mark.parametrize("language", ["en", "zh-cn"])
@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "stopped", "rejected"])
@pytest.mark.parametrize("outcome", [None, "full", "partial", "none", "unknown"])
@pytest.mark.parametrize("error", [None, "It\nbroke \x1b[2J"])
def test_every_ending_has_words_and_no_tricks(status: Any, outcome: Any, error: str | None, language: str) -> None:
    summary = after(PART, events.RunCompleted(status=status, outcome=outcome, error=error, files_changed=("a", "b")))
    lines = [line.plain for line in ending(summary, "", 61.25, language)]
    assert lines[0].startswith("✓ " if summary.exit_code == 0 else "✗ ")
    assert "61.2 s" in lines[0] and "{" not in lines[0]
    assert lines[1] == "  a.py changed"
    assert ("  It broke <U+001B>[2J" in lines) == (error is not None)
    if error is None and status == "completed" and outcome == "partial":
        assert text("outcome.partial", language, count=2) in lines[0]


# --- what a run leaves


ROOT = Path("/work space/x")
PLACE = "--workspace '/work space/x'"


def staged(name: str, base: str | None, text: str | None) -> events.FileChanged:
    """The event that a run has staged a change; without texts, that it is staged no more."""
    change = FileChange(f"{ROOT}/{name}", base, text)
    return events.FileChanged(run_id="r1", path=change.path, change=None if change.empty else change.to_dict())


def left(summary: Summary, *written: FileWrite, language: str = "en") -> list[str]:
    return [line.plain for line in account(summary, written, ROOT, language)]


def test_what_was_written_is_told_as_a_whole() -> None:
    written = (
        FileWrite(ROOT / "a.py", b"one\n", b"two\n"),
        FileWrite(ROOT / "new.py", None, b"1\n2\n"),
        FileWrite(ROOT / "old.py", b"1\n", None),
        FileWrite(ROOT / "a.py", b"two\n", b"two\nthree\n"),
        FileWrite(ROOT / "same.py", b"x\n", b"y\n"),
        FileWrite(ROOT / "same.py", b"y\n", b"x\n"),
        FileWrite(Path("/elsewhere/\x1b[2Jb.py"), b"\xff\n", b"\xff\nx"),
    )
    assert left(after(events.RunCompleted()), *written) == [
        "  written  ✎ a.py  +2 −1",
        "  written  ✚ new.py  +2 −0",
        "  written  ✗ old.py  +0 −1",
        "  written  ✎ /elsewhere/<U+001B>[2Jb.py  +1 −0",
    ]


@pytest.mark.parametrize("status", ["failed", "stopped", "cancelled", "completed", ""])
def test_what_is_staged_is_told_however_the_run_ended(status: Any) -> None:
    happened = [staged("a.py", "one\n", "two\n"), staged("b.py", "1\n", "2\n"), staged("b.py", None, None)]
    end = [events.RunCompleted(run_id="r1", session_id="s1", status=status)] if status else []
    assert left(after(*happened, *end))[:3] == [
        "  No file was written.",
        "  not written  ✎ a.py  +1 −1",
        f"  To decide about what is not written: codeagent-lsp apply r1 {PLACE}",
    ]


def test_what_attempts_stage_waits_for_no_decision() -> None:
    attempt = events.ResponseStart(run_id="r1", attempt_of="r0", attempt=1)
    assert left(after(attempt, staged("a.py", "one\n", "two\n"), events.RunCompleted(run_id="r0"))) == [
        "  No file was written."
    ]


def test_many_files_are_counted() -> None:
    written = [FileWrite(ROOT / f"{number}.py", None, b"") for number in range(MOST_FILES + 7)]
    lines = left(after(events.RunCompleted()), *written)
    assert (len(lines), lines[-1]) == (MOST_FILES + 1, "  … and 7 more files")


@pytest.mark.parametrize("language", ["en", "zh-cn"])
@pytest.mark.parametrize("asked", [True, False])
def test_a_run_that_waits_for_an_answer_has_not_failed(language: str, asked: bool) -> None:
    question = [
        events.QuestionAsked(run_id="r1", title="The agent asks: Which?", choices=("One", "Two"), by_agent=True)
    ]
    gone = [events.QuestionAsked(run_id="r1", title="Gone?"), events.QuestionAnswered(answer="x")]
    end = {"type": "run_completed", "session_id": "s1", "status": "waiting", "summary": "I looked.\n\nShall I?"}
    summary = after(*gone, *(question if asked else ())).after(end)
    assert summary.exit_code == 0
    first, second = (line.plain for line in ending(summary, "", 1.0, language))
    assert first.startswith("? " + text("terminal.waiting", language))
    assert second == ("  The agent asks: Which? (One · Two)" if asked else "  Shall I?")
    assert left(summary, language=language)[-1].endswith(f'codeagent-lsp run --session s1 {PLACE} "…"')
