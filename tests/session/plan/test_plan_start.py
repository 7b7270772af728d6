"""A plan waits for the user where plan mode was asked for: it is arranged, changed in words, started or cancelled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.llm.providers.scripted import ScriptedModel
from codeagent_lsp.texts import text
from codeagent_lsp.tools.plan.plan import StepEdit
from tests.session.fakes import World, say, until, world
from tests.session.plan.plans import (
    APPLY,
    CANCEL,
    CHANGE,
    START,
    create,
    ended,
    files,
    five,
    record,
    reloaded,
    run,
    start,
    states,
    step,
    told,
)


def titles(made: World) -> list[str]:
    plan = record(made).plan
    assert plan is not None
    return [item.title for item in plan.steps]


async def waiting(made: World) -> str:
    """A run whose plan waits for its start; its id."""
    run_id = start(made, planning="always")
    await until(lambda: bool(made.inbox.open()))
    (question,) = made.inbox.open()
    assert (question.question.choices, question.question.beside) == ((CANCEL, CHANGE, START), False)
    return run_id


def answer(made: World, *said: str) -> None:
    (question,) = made.inbox.open()
    made.inbox.respond(question.request_id, said)


async def test_it_is_shown_and_started(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a", "b"), *step(1), *step(2), says=[START, APPLY, APPLY])
    done = await run(made, "always")
    assert (done.status, files(made)) == ("completed", [1, 2])
    order = told(made, "plan_created", "awaiting_approval", "plan_approved", "execution_started")
    assert order == ["plan_created", "awaiting_approval", "plan_approved", "execution_started"]
    assert any(isinstance(event, events.StatusChanged) and event.message.startswith("plan ") for event in made.events)


@pytest.mark.slow
@pytest.mark.parametrize("says", [[CANCEL], []], ids=["cancelled", "unanswered"])
async def test_without_a_start_nothing_is_done_and_it_can_still_be_started(tmp_path: Path, says: list[str]) -> None:
    made = world(tmp_path / "w", create("a"), *step(1), says=says, deadline=0.05)
    done = await run(made, "always")
    assert (done.status, files(made), states(record(made))) == ("stopped", [], ["pending"])
    assert told(made, "plan_rejected", "execution_started") == ["plan_rejected"]
    reloaded(made)
    made.user.says = [APPLY]
    made.manager.runs.retry_step(done.run_id, "1")
    assert (await ended(made, done.run_id)).status == "completed"
    assert files(made) == [1]


async def test_steps_are_edited_dropped_added_and_moved_before_the_start(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a", "b", "c"), *step(1), *step(2), *step(3), apply="auto")
    run_id = await waiting(made)
    wanted = [StepEdit("3", "c"), StepEdit("", "new", "do this, too"), StepEdit("1", "A", "otherwise")]
    made.manager.runs.arrange_steps(run_id, wanted)
    answer(made, START)
    await ended(made, run_id)
    reloaded(made)
    assert titles(made) == ["c", "new", "A"]
    model = made.models["model"]
    assert isinstance(model, ScriptedModel)
    told_steps = [
        message.content
        for message in model.requests[-1].messages
        if message.role == "user" and "Step " in message.content[:5]
    ]
    assert [words.splitlines()[:2] for words in told_steps] == [
        ["Step 1 of 3: c", "do c"],
        ["Step 2 of 3: new", "do this, too"],
        ["Step 3 of 3: A", "otherwise"],
    ]
    arranged = ["The user has changed the plan" in words for words in told_steps]
    assert arranged == [True, False, False] and "2. new" in told_steps[0].partition("It is now:")[2]


async def test_what_cannot_be_arranged_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a", "b"))
    run_id = await waiting(made)
    for wanted in ([], [StepEdit("7", "x")], [StepEdit("1", " ")], [StepEdit("1", "a"), StepEdit("1", "b")]):
        with pytest.raises(SessionError):
            made.manager.runs.arrange_steps(run_id, wanted)
    assert titles(made) == ["a", "b"]
    answer(made, CANCEL)
    await ended(made, run_id)


async def test_steps_that_are_left_are_arranged_at_work(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *five(), says=[START])
    run_id = start(made, planning="always")
    await until(lambda: len(made.user.shown) == 2)  # the start, and the changes of the first step
    with pytest.raises(SessionError, match="1/5 one"):
        made.manager.runs.arrange_steps(run_id, [StepEdit("1", "again")])
    made.manager.runs.arrange_steps(run_id, [StepEdit("5", "five")])
    answer(made, APPLY)
    await until(lambda: len(made.user.shown) == 3)
    answer(made, APPLY)
    await ended(made, run_id)
    assert titles(made) == ["one", "five"]


async def test_the_model_changes_it_by_words(tmp_path: Path) -> None:
    replies = [create("a", "b"), create("only this"), *step(1)]
    made = world(tmp_path / "w", *replies, says=[CHANGE, "one step is enough", START, APPLY])
    done = await run(made, "always")
    assert (done.status, titles(made)) == ("completed", ["only this"])
    model = made.models["model"]
    assert isinstance(model, ScriptedModel)
    assert "the user wants it changed: one step is enough" in model.requests[1].messages[-1].content


async def test_what_is_said_to_the_run_meanwhile_changes_it_as_well(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a", "b"), create("only this"), *step(1))
    run_id = await waiting(made)
    made.manager.queue.say(made.manager.runs.get(run_id), "one step is enough")
    await until(lambda: titles(made) == ["only this"] and bool(made.inbox.open()))
    made.user.says = [APPLY]
    answer(made, START)
    assert (await ended(made, run_id)).status == "completed"
    model = made.models["model"]
    assert isinstance(model, ScriptedModel)
    assert any("one step is enough" in message.content for message in model.requests[1].messages)


async def test_a_model_that_makes_no_other_plan_leaves_it_as_it_was(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a"), say("No."), say("No."), says=[CHANGE, "shorter", CANCEL])
    await run(made, "always")
    assert titles(made) == ["a"]
    messages = [event.message for event in made.events if isinstance(event, events.StatusChanged)]
    assert text("plan.unchanged", "en") in messages


async def test_a_command_starts_it_too(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a"), *step(1), apply="auto")
    run_id = await waiting(made)
    with pytest.raises(SessionError):
        made.manager.runs.retry_step(run_id, "7")
    made.manager.runs.retry_step(run_id, "1")
    assert (await ended(made, run_id)).status == "completed"
    assert not made.inbox.open()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("approval", "asked_for", "waits"),
    [("auto", False, False), ("always", False, True), ("never", True, False), ("auto", True, True)],
)
async def test_when_it_waits(tmp_path: Path, approval: str, asked_for: bool, waits: bool) -> None:
    def chosen(value):  # type: ignore[no-untyped-def]
        return replace(value, agent=replace(value.agent, plan_approval=approval))

    made = world(tmp_path / "w", create("a"), *step(1), says=[START], apply="auto", settings=chosen)
    assert (await run(made, "always" if asked_for else None)).status == "completed"
    assert len(made.user.shown) == waits
