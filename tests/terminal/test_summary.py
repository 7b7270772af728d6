"""What came of a run, as a value: any order of events, the words of the last lines, and how calls are named."""

from __future__ import annotations

import random
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.terminal.summary import Summary, ending, tool_line
from codeagent_lsp.texts import text

FULL = events.ChangesApplied(outcome="full")
PART = events.ChangesApplied(outcome="partial", reason="a.py changed")
NONE = events.ChangesApplied(outcome="none")


def after(*happened: events.Event) -> Summary:
    summary = Summary()
    for event in happened:
        summary = summary.after(events.to_dict(event))
    return summary


def test_only_three_kinds_of_events_count() -> None:
    counted = {"usage", "changes_applied", "run_completed"}
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


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ({"name": "grep", "arguments": {"path": "src", "pattern": "x+"}}, "grep x+"),
        ({"name": "read_file", "arguments": {"start_line": 3, "path": "a.py"}}, "read_file a.py"),
        ({"name": "run_cmd", "arguments": {"working_dir": "src", "command": "make"}}, "run_cmd make"),
        ({"name": "search_semantic", "arguments": {"query": "where?", "limit": 5}}, "search_semantic where?"),
        ({"name": "todoread", "arguments": {}}, "todoread"),
        ({"name": "todoread", "arguments": None}, "todoread"),
        ({"name": "odd", "arguments": {"path": 7}}, "odd 7"),
        ({"arguments": {"path": "a"}}, "a"),
        ({}, ""),
    ],
)
def test_a_call_in_a_few_words(call: dict[str, Any], line: str) -> None:
    assert tool_line(call) == line
