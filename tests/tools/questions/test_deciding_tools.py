"""`ask_clarification` and `request_decision`: titles that can be told apart, risks in sight, what silence means."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.messages import ToolResult
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.questions.question_tools import (
    LABEL,
    NO_ANSWER,
    NO_DECISION,
    AskClarification,
    RequestDecision,
)
from tests.tools.fakes import Bench

OTHER, NEITHER = "Something else…", "None of these"


def option(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "label": name.capitalize(), **more}


def made(folder: Path, seconds: float = 5.0) -> Bench:
    return Bench(folder / "w", [AskClarification(), RequestDecision(seconds)])


async def clarify(bench: Bench, *options: dict[str, Any], **more: Any) -> ToolResult:
    return await bench.call("ask_clarification", question="Which one?", options=list(options), **more)


async def decide(bench: Bench, *options: dict[str, Any], **more: Any) -> ToolResult:
    return await bench.call("request_decision", question="Which way?", options=list(options), **more)


# --- how it is asked


async def test_the_recommended_one_comes_first_and_own_words_last(tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.asker.answers = ["B2 (recommended)"]
    result = await clarify(bench, option("a1", description="the *first*"), option("b2", recommended=True))
    (question,) = bench.asker.asked
    assert question.choices == ("B2 (recommended)", "A1", OTHER)
    assert (question.title, question.kind, question.danger) == ("The agent asks: Which one?", "question", False)
    assert "- **A1**: the *first*" in question.detail
    assert result.text == "The user chose 'b2': B2."
    assert result.data == {"answered": True, "id": "b2", "label": "B2"}


async def test_own_words_are_asked_for_as_free_text(tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.asker.answers = [OTHER, "Neither, use C."]
    result = await clarify(bench, option("a"), option("b"))
    assert result.text == "The user says: Neither, use C."
    assert bench.asker.asked[1].choices == ()
    assert bench.asker.asked[1].title == "The agent asks: Which one?"


async def test_without_options_the_user_just_types(tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.asker.answers = ["The second."]
    result = await clarify(bench)
    assert bench.asker.asked[0].choices == ()
    assert result.data == {"answered": True, "custom": "The second."}


async def test_titles_are_short_one_line_and_unique(tmp_path: Path) -> None:
    bench = made(tmp_path)
    labels = ["Same", "same", "x" * 200, "x" * 200, "two\nlines", "Something else…", "  ", "rtl \u202e evil"]
    options = [{"id": f"o{number}", "label": label} for number, label in enumerate(labels)]
    bench.asker.answers = ["same (2)"]
    result = await clarify(bench, *options)
    choices = bench.asker.asked[0].choices
    assert len({choice.casefold() for choice in choices}) == len(choices) == len(labels) + 1
    assert all(len(choice) <= LABEL + 4 and "\n" not in choice and "\u202e" not in choice for choice in choices)
    assert "o6" in choices
    assert result.data["id"] == "o1"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"options": [option("a"), option("a")]}, "id of its own"),
        ({"options": [], "allow_custom": False}, "Give options"),
        ({"options": [{"id": "a"}]}, "label"),
        ({"clarification_type": "mood"}, "clarification_type"),
    ],
)
async def test_questions_that_cannot_be_asked(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    bench = made(tmp_path)
    result = await bench.call("ask_clarification", question="Which?", **given)
    assert (result.status, bench.asker.asked) == ("retry", [])
    assert words in result.text


async def test_silence_is_no_answer(tmp_path: Path) -> None:
    bench = made(tmp_path)
    assert (await clarify(bench, option("a"))).text == NO_ANSWER
    bench.asker.answers = [OTHER, None]
    assert (await clarify(bench, option("a"))).data == {"answered": False}


# --- decisions


async def test_what_has_risks_is_never_first_and_its_risks_are_in_sight(tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.asker.answers = ["Force (recommended) ⚠"]
    result = await decide(
        bench,
        option("force", recommended=True, risks=["history is lost", ""], estimated_time="1 min", estimated_cost="$2"),
        option("merge", estimated_time="1 h"),
    )
    (question,) = bench.asker.asked
    assert question.choices == ("Merge", "Force (recommended) ⚠")
    assert question.danger
    assert question.title == "The agent asks: Which way? [⚠ Risks: Force (recommended) ⚠: history is lost]"
    assert "  - ⚠ Risk: history is lost" in question.detail
    assert "  - Time: 1 min" in question.detail
    assert "  - Cost: $2" in question.detail
    assert result.data["id"] == "force"


async def test_where_all_have_risks_the_first_choice_changes_nothing(tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.asker.answers = [NEITHER]
    result = await decide(bench, option("drop", risks=["data loss"]), option("wipe", risks=["worse"]))
    assert bench.asker.asked[0].choices == (NEITHER, "Drop ⚠", "Wipe ⚠")
    assert (result.text, result.data) == (NO_DECISION, {"answered": False})


async def test_no_own_words_unless_they_are_allowed(tmp_path: Path) -> None:
    bench = made(tmp_path)
    await decide(bench, option("a"))
    await decide(bench, option("a"), allow_custom=True)
    assert [question.choices for question in bench.asker.asked] == [("A",), ("A", OTHER)]


class Silent:
    """Never answers."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.given_up = 0

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        self.asked.append(question)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        return None


def silent(bench: Bench) -> tuple[Silent, list[str]]:
    asker, notes = Silent(), list[str]()
    bench.context = replace(bench.context, asker=asker, note=notes.append)
    bench.executor = type(bench.executor)(bench.registry, bench.context, lambda: "ask", bench.approvals)
    return asker, notes


async def test_time_takes_the_default_and_says_so_to_both(tmp_path: Path) -> None:
    bench = made(tmp_path, 0.01)
    asker, notes = silent(bench)
    result = await decide(bench, option("a"), option("b"), default_option="b")
    assert result.data == {"answered": False, "id": "b", "label": "B"}
    assert "Nobody answered in time, so the default is taken: 'b': B" in result.text
    assert notes == [text("decision.default", option="B")]
    assert asker.given_up == 1


async def test_time_without_a_default_decides_nothing(tmp_path: Path) -> None:
    bench = made(tmp_path, 0.01)
    _, notes = silent(bench)
    assert (await decide(bench, option("a"))).text == NO_DECISION
    assert notes == [text("decision.nothing")]


async def test_a_closed_window_is_not_time(tmp_path: Path) -> None:
    bench = made(tmp_path)
    result = await decide(bench, option("a"), default_option="a")
    assert (result.text, result.data) == (NO_DECISION, {"answered": False})


async def test_a_default_that_is_no_option_is_explained(tmp_path: Path) -> None:
    result = await decide(made(tmp_path), option("a"), option("b"), default_option="c")
    assert (result.status, "id of an option: a, b" in result.text) == ("retry", True)


async def test_cancelling_leaves_nothing_behind(tmp_path: Path) -> None:
    bench = made(tmp_path, 60)
    asker, _ = silent(bench)
    task = asyncio.ensure_future(decide(bench, option("a")))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asker.given_up == 1


async def test_the_words_are_in_the_users_language(tmp_path: Path) -> None:
    bench = made(tmp_path)
    bench.context = replace(bench.context, words=lambda key, **values: text(key, "zh-cn", **values))
    bench.executor = type(bench.executor)(bench.registry, bench.context, lambda: "ask", bench.approvals)
    await decide(bench, option("a", recommended=True), allow_custom=True)
    assert bench.asker.asked[0].choices == ("A (推荐)", text("choice.other", "zh-cn"))
