"""Requests are told apart: over a labelled set, by the rules alone, and by the model where the rules are unsure."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import NamedTuple, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp import events
from codeagent_lsp.agent import intent
from codeagent_lsp.agent.intent import Intent, Label, classify, classify_with_model
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, Reply, StreamItem
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from tests.clock import processor_seconds


class Case(NamedTuple):
    held_out: bool
    label: str
    clear: bool
    text: str


def nobody(event: events.Event) -> None:
    """Takes what is told to nobody."""


def cases() -> list[Case]:
    lines = (Path(__file__).with_name("intent_cases.tsv")).read_text("utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return [Case(row[0] == "held", row[1], row[2] == "clear", row[3]) for row in rows]


def share_right(chosen: list[Case]) -> float:
    return sum(classify(case.text).label == case.label for case in chosen) / len(chosen)


def table(chosen: list[Case]) -> str:
    """Rows are what people say it is, columns what the rules say."""
    counted = Counter((case.label, classify(case.text).label) for case in chosen)
    labels = get_args(Label)
    lines = [" " * 18 + "".join(f"{label[:12]:>14}" for label in labels)]
    for wanted in labels:
        lines.append(f"{wanted:18}" + "".join(f"{counted[wanted, got]:14}" for got in labels))
    return "\n".join(lines)


def wrong(chosen: list[Case]) -> str:
    return "\n".join(
        f"{case.text!r}: {case.label}, taken for {found.label} ({found.reason})"
        for case in chosen
        if (found := classify(case.text)).label != case.label
    )


def test_the_set_is_large_and_in_both_languages() -> None:
    known = cases()
    chinese = [case for case in known if any("\u4e00" <= sign <= "\u9fff" for sign in case.text)]
    assert len(known) >= 240
    assert 0.4 < len(chinese) / len(known) < 0.6
    assert sum(case.held_out for case in known) / len(known) > 0.3
    assert len({case.text for case in known}) == len(known)


@pytest.mark.parametrize("held_out", [False, True])
def test_clear_requests_are_told_apart_without_the_model(held_out: bool) -> None:
    clear = [case for case in cases() if case.clear and case.held_out == held_out]
    print(f"\nclear, {'held out' if held_out else 'tuned on'}: {len(clear)}, right {share_right(clear):.1%}")
    print(table(clear))
    print(wrong(clear))
    assert share_right(clear) >= 0.95


def test_unclear_requests_are_right_or_left_to_the_model() -> None:
    unclear = [case for case in cases() if not case.clear]
    unsure = [case for case in unclear if not classify(case.text).sure]
    misled = [case for case in unclear if classify(case.text).label not in (case.label, "UNCERTAIN")]
    print(f"\nunclear: {len(unclear)}, unsure {len(unsure)}, wrong {len(misled)}\n{table(unclear)}\n{wrong(misled)}")
    assert len(misled) <= 0.15 * len(unclear)


def test_other_languages_are_never_taken_for_something_else() -> None:
    for case in cases():
        if case.label == "UNCERTAIN":
            assert not classify(case.text).sure, case.text


@pytest.mark.parametrize("text", ["", "   ", "12345", "?!", "この関数の名前を変更してください", "Исправь ошибку", "🙂"])
def test_what_the_rules_cannot_read_is_unsure(text: str) -> None:
    assert classify(text) == classify(text, has_selection=True)
    assert not classify(text).sure


def test_a_question_about_a_selection_is_about_code() -> None:
    assert not classify("is it right?").sure
    assert classify("is it right?", has_selection=True).label == "REPO_ANALYSIS"
    assert not classify("hmm well", has_selection=True).sure


@given(st.text(max_size=300), st.booleans())
def test_any_text_has_an_intent_with_a_reason(text: str, has_selection: bool) -> None:
    found = classify(text, has_selection=has_selection)
    assert found.reason
    assert 0 <= found.confidence <= 1
    assert found.sure == (found.confidence > 0)


@pytest.mark.parametrize(
    "piece", ["that was great ", "hi ", "please ", "can you and ", "把", "谢谢", "你好你能", "a_b/", "="]
)
def test_long_rows_of_the_same_take_no_time(piece: str) -> None:
    with processor_seconds(0.5):
        classify(piece * 5000 + "x")


async def test_the_model_is_asked_once_and_shortly() -> None:
    model = ScriptedModel([ScriptedReply('{"label": "REPO_ANALYSIS"}')])
    told: list[events.Event] = []
    found = await classify_with_model(model, "how does caching work?" + "x" * 9000, told.append)
    assert found == Intent("REPO_ANALYSIS", 0.7, "the model says so")
    (request,) = model.requests
    assert request.max_tokens == 16
    assert request.response_schema == intent.SCHEMA
    assert len(request.messages[-1].content) == intent.READ
    assert not request.tools
    (used,) = told
    assert isinstance(used, events.UsageReported)
    assert used.prompt_tokens > 0
    assert used.completion_tokens > 0


@pytest.mark.parametrize(
    "reply",
    [
        ScriptedReply("CODING"),
        ScriptedReply('{"label": "NONSENSE"}'),
        ScriptedReply('{"label": ["CODING_TASK"]}'),
        ScriptedReply(""),
        ScriptedReply(error="busy"),
        ScriptedReply("half", error="broken"),
        ScriptedReply('{"label": "UNCERTAIN"}'),
    ],
)
async def test_a_model_that_does_not_say_leaves_it_open(reply: ScriptedReply) -> None:
    assert not (await classify_with_model(ScriptedModel([reply]), "dark mode", nobody)).sure


class Silent:
    """A model that never answers."""

    def __init__(self) -> None:
        self.closed = False

    @property
    def info(self) -> ModelInfo:
        return ModelInfo("silent", "fake")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        try:
            await asyncio.Event().wait()
            yield Reply("never")
        finally:
            self.closed = True

    async def count_tokens(self, text: str) -> int:
        return len(text)

    async def close(self) -> None:
        return None


async def test_a_silent_model_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intent, "PATIENCE", 0.01)
    model = Silent()
    assert not (await classify_with_model(model, "dark mode", nobody)).sure
    assert model.closed


async def test_cancelling_is_not_swallowed() -> None:
    model = Silent()
    task = asyncio.ensure_future(classify_with_model(model, "dark mode", nobody))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
