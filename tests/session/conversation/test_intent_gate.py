"""The intent gate: who is asked, what is told and when, and what it does to planning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.config import AgentSettings, Settings
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.session.request import Planning, RunKind, RunRequest
from codeagent_lsp.session.run import IntentGate, cheap
from tests.session.fakes import World, say, world, write
from tests.session.plan.plans import create, ended, planned, start, step

TASK, CHAT, ABOUT_US, UNCLEAR = "Fix the bug in app.py", "hello", "What can you do?", "the login page"
LARGE = ModelInfo("m", "openai", facts=window_known(16_384), tool_calling="native")


def gate(task: str, setting: Planning = "auto", asked: Planning | None = None, kind: RunKind = "run") -> IntentGate:
    return IntentGate(RunRequest(kind, task, task, planning=asked), AgentSettings(planning=setting))


def large(made: World, *replies: ScriptedReply) -> ScriptedModel:
    """The world's model is one of those that are asked."""
    model = ScriptedModel(replies, info=LARGE)
    made.models["model"] = model
    return model


def told(made: World) -> list[str]:
    return [event.type for event in made.events if not event.internal]


def intents(made: World) -> list[str]:
    return [event.intent for event in made.events if isinstance(event, events.IntentClassified)]


def offered(model: ScriptedModel, turn: int = 0) -> list[str]:
    return [tool["name"] for tool in model.requests[turn].tools]


@pytest.mark.parametrize("setting", ["auto", "always", "never"])
def test_a_task_is_planned_as_the_settings_say(setting: Planning) -> None:
    assert gate(TASK, setting).planning == setting


@pytest.mark.parametrize("setting", ["auto", "always", "never"])
@pytest.mark.parametrize("task", [CHAT, ABOUT_US, "你好"])
def test_chat_is_never_planned(task: str, setting: Planning) -> None:
    assert gate(task, setting).planning == "never"


def test_who_asks_for_a_plan_gets_one() -> None:
    assert gate(CHAT, "never", "always").planning == "always"


def test_where_nobody_asked_nothing_is_told() -> None:
    assert gate(TASK, kind="ask").event is None
    assert IntentGate(RunRequest("run", CHAT, CHAT), AgentSettings(intent_gate=False)).planning == "auto"


@pytest.mark.parametrize(
    ("info", "asked"),
    [
        (LARGE, True),
        (replace(LARGE, provider="scripted"), False),
        (replace(LARGE, facts=window_known(8192)), False),
        (replace(LARGE, facts=window_known(None)), False),
    ],
)
def test_which_models_are_cheap_to_ask(info: ModelInfo, asked: bool) -> None:
    assert cheap(ScriptedModel(info=info)) == asked


@pytest.mark.parametrize("setting", ["always", "never"])
async def test_a_model_is_not_asked_where_it_does_not_matter(setting: Planning) -> None:
    model = ScriptedModel([say('{"label": "GENERAL_CHAT"}')], info=LARGE)
    told: list[events.Event] = []
    for asked in (gate(UNCLEAR, setting), gate(TASK), gate(UNCLEAR, asked="auto")):
        await asked.ask(model, told.append)
    assert (model.requests, told) == ([], [])


async def test_the_first_event_is_still_the_first(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("Hi."))
    await made.run(CHAT)
    assert told(made)[:2] == ["response_start", "intent_classified"]
    assert intents(made) == ["GENERAL_CHAT"]


async def test_a_chat_is_not_offered_plans_a_task_is(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    for task, expected in ((CHAT, False), (TASK, True)):
        model = large(made, say("Hi."))
        await made.run(task)
        assert ("create_plan" in offered(model)) == expected


async def test_for_a_capable_model_all_prompts_begin_alike(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    heads = []
    for task in (CHAT, "Where is it?", "The login page"):
        model = made.script(say("Hi."))
        await made.run(task)
        heads.append((model.requests[0].tools, model.requests[0].messages[0]))
    assert heads[0] == heads[1] == heads[2] and "create_plan" in {tool["name"] for tool in heads[0][0]}


async def test_a_chat_is_answered_even_where_all_is_planned(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("Hi."), settings=planned("always"))
    assert (await made.run(ABOUT_US)).summary == "Hi."
    assert isinstance(made.events[1], events.ResponseStart)
    assert made.events[1].mode == "direct"


async def test_a_plan_that_the_user_asked_for_is_made(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("one"), *step(1), deadline=0.01)
    await ended(made, start(made, CHAT, "always"))
    assert "plan_created" in told(made)


async def test_the_model_is_asked_where_the_words_do_not_tell(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    model = large(made, say('{"label": "GENERAL_CHAT"}'), say("Hi."))
    assert (await made.run(UNCLEAR)).summary == "Hi."
    assert intents(made) == ["GENERAL_CHAT"]
    assert told(made)[:3] == ["response_start", "usage", "intent_classified"]
    assert (model.requests[0].tools, "create_plan" in offered(model, 1)) == ((), False)
    assert UNCLEAR in model.requests[0].messages[-1].content


async def test_the_question_to_the_model_counts_as_use_of_the_run(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    model = large(made, say('{"label": "GENERAL_CHAT"}'), say("Hi."))
    run_id = (await made.run(UNCLEAR)).run_id
    used = [event for event in made.events if isinstance(event, events.UsageReported)]
    assert (len(used), len(model.requests)) == (2, 2)
    assert {event.run_id for event in used} == {run_id}
    assert 0 < used[0].prompt_tokens < used[1].prompt_tokens
    assert used[0].completion_tokens > 0


async def test_a_model_that_cannot_tell_changes_nothing(tmp_path: Path) -> None:
    made = world(tmp_path / "w", deadline=0.01)
    model = large(made, ScriptedReply(error="busy"), write("a.py", "1\n"), say("Done."))
    assert (await made.run(UNCLEAR)).summary == "Done."
    assert intents(made) == ["UNCERTAIN"]
    assert "create_plan" in offered(model, 1)


async def test_a_gate_that_is_off_asks_nobody(tmp_path: Path) -> None:
    def off(value: Settings) -> Settings:
        return replace(value, agent=replace(value.agent, intent_gate=False))

    made = world(tmp_path / "w", settings=off)
    model = large(made, say("Hi."))
    await made.run(CHAT)
    assert (intents(made), len(model.requests), "create_plan" in offered(model)) == ([], 1, True)
