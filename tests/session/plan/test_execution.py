"""Plans in a run: their steps, what users decide about each, failures, going back, and what events tell of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import EditorError, SessionError
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.server.progress import ending
from codeagent_lsp.session.request import RunKind, RunRequest
from codeagent_lsp.session.runs import Runs
from codeagent_lsp.workspace.changes.changeset import Applied
from tests.session.fakes import MIDDLING, assert_well_formed, call, calls, say, until, world, write
from tests.session.plan.plans import (
    APPLY,
    BUSY,
    DISCARD,
    RETRY,
    SKIP,
    START,
    STOP,
    create,
    ended,
    failed_at_three,
    files,
    five,
    planned,
    record,
    reloaded,
    retried,
    run,
    skipped,
    start,
    states,
    step,
    stuck,
    told,
)

STEPS = ("step_started", "step_completed", "step_error")


# --- a plan that goes well


@pytest.mark.slow
async def test_every_step_is_a_decision_of_its_own(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *five(), says=[APPLY] * 5)
    done = await run(made)
    assert (done.status, done.outcome, done.summary) == ("completed", "full", "All 5 steps are done: the goal")
    assert files(made) == [1, 2, 3, 4, 5]
    asked = [question.question.title for question in made.user.shown]
    assert asked[1] == "Step 2/5 two: Create f2.py, +1? No new problems."
    assert len(asked) == 5
    assert states(reloaded(made)) == ["completed"] * 5
    assert_well_formed(made.manager.current().context.conversation)


async def test_the_events_of_a_plan(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a", "b"), *step(1), *step(2), apply="auto")
    await run(made)
    assert told(made)[0] == "response_start"
    starts = [event for event in made.events if isinstance(event, events.ResponseStart)]
    assert [event.mode for event in starts] == ["plan"]
    assert [name for name in told(made) if name.split("_")[0] in ("plan", "execution", "step")] == [
        "plan_created",
        "execution_started",
        *("step_started", "step_completed") * 2,
        "plan_completed",
        "execution_completed",
    ]
    begun = [event for event in made.events if isinstance(event, events.StepStarted)]
    assert [(event.step_id, event.description, event.progress) for event in begun] == [("1", "a", 0), ("2", "b", 50)]
    over = [event for event in made.events if isinstance(event, events.StepCompleted)]
    assert [(event.files_changed, event.progress) for event in over] == [
        ((made.path("f1.py"),), 50),
        ((made.path("f2.py"),), 100),
    ]
    assert [event.seq for event in made.events] == list(range(1, len(made.events) + 1))


@pytest.mark.slow
async def test_the_model_is_given_one_step_at_a_time_in_one_conversation(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *five(), apply="auto")
    model = made.models["model"]
    await run(made)
    assert isinstance(model, ScriptedModel)
    asked = [request.messages[-1].content for request in model.requests]
    assert "Step 1 of 5: one\ndo one\n" in asked[1]
    assert "Step 2 of 5: two" in asked[3]
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.tools == before.tools


async def test_an_unanswered_step_stays_staged_and_the_next_one_builds_on_it(tmp_path: Path) -> None:
    edit = calls(call("edit_file", path="f1.py", old_str="x = 1", new_str="x = 10"))
    made = world(tmp_path / "w", create("a", "b"), *step(1), edit, say(), deadline=0.01)
    done = await run(made)
    assert (done.status, done.outcome) == ("completed", "none")
    change = made.manager.runs.all()[-1].proposal.changeset.get(made.path("f1.py"))
    assert change is not None and change.text == "x = 10\n"
    assert len(made.user.shown) == 2
    reloaded(made)


@pytest.mark.slow
async def test_a_step_that_changes_nothing_asks_nothing(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("look", "b"), say("Looked."), *step(2), deadline=0.01)
    await run(made)
    assert len(made.user.shown) == 1
    idle = world(tmp_path / "w2", create("a", "look"), *step(1), say("Looked."), deadline=0.01)
    await run(idle)
    assert len(idle.user.shown) == 1


async def test_a_discarded_step_counts_as_left_out_and_the_next_one_hears_of_it(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a", "b"), *step(1), *step(2), says=[DISCARD, APPLY])
    model = made.models["model"]
    done = await run(made)
    assert (done.status, files(made)) == ("completed", [2])
    assert states(reloaded(made)) == ["skipped", "completed"]
    assert isinstance(model, ScriptedModel)
    assert "discarded the changes of step 1" in model.requests[3].messages[-1].content


async def test_all_discarded_is_a_rejection(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a", "b"), *step(1), *step(2), says=[DISCARD, DISCARD])
    assert (await run(made)).status == "rejected"


async def test_a_plan_made_later_in_a_run_switches_to_it(tmp_path: Path) -> None:
    made = world(tmp_path / "w", calls(call("list_dir", path=".")), create("a"), *step(1), apply="auto")
    assert (await run(made)).status == "completed"
    names = told(made)
    assert [event.mode for event in made.events if isinstance(event, events.ResponseStart)] == ["direct"]
    assert names.index("tool_calls") < names.index("plan_created") < names.index("step_started")


async def test_a_second_plan_in_a_step_is_refused(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a", "b"), create("c"), say(), say(), apply="auto")
    assert (await run(made)).status == "completed"
    refused = [event for event in made.events if isinstance(event, events.ToolFinished) and not event.success]
    assert "Goal: the goal" in (refused[0].error or "")
    assert len(record(made).plan.steps) == 2  # type: ignore[union-attr]


async def test_every_step_has_its_own_limit(tmp_path: Path) -> None:
    replies = [create("a", "b")]
    for number in (1, 2):
        replies += [write(f"f{number}.py", f"{count}\n") for count in range(3)] + [say()]
    made = world(tmp_path / "w", *replies, apply="auto", settings=planned(iterations=4))
    assert (await run(made)).status == "completed"


# --- the mode


async def test_what_comes_before_the_mode_waits_for_it(tmp_path: Path) -> None:
    made = world(
        tmp_path / "w",
        say(
            "Hello.",
        ),
    )
    await run(made)
    stream = [(event.seq, event.type) for event in made.events]
    assert [name for _, name in stream if name in ("run_started", "response_start", "token")] == [
        "run_started",
        "response_start",
        "token",
    ]
    stored = [item["seq"] for item in made.store.load(made.manager.current().session_id)]
    assert stored == sorted(stored)


@pytest.mark.slow
async def test_nothing_is_told_before_the_first_words_where_the_model_chooses(tmp_path: Path) -> None:
    made = world(tmp_path / "w", ScriptedReply("Hello.", delay=0.2))
    run_id = start(made)
    await asyncio.sleep(0.05)
    assert told(made) == []
    assert next(event.type for event in made.events) == "run_started"
    await ended(made, run_id)
    assert told(made)[:3] == ["response_start", "intent_classified", "token"]


async def test_what_the_model_thinks_before_its_plan_does_not_tell_the_mode(tmp_path: Path) -> None:
    planned_reply = replace(create("a"), reasoning="Two files. A plan is better.")
    made = world(tmp_path / "w", planned_reply, *step(1), apply="auto")
    assert (await run(made)).status == "completed"
    assert [event.mode for event in made.events if isinstance(event, events.ResponseStart)] == ["plan"]
    names = told(made)
    assert names.index("response_start") < names.index("thought") < names.index("plan_created")


@pytest.mark.parametrize(("planning", "mode"), [("never", "direct"), ("always", "plan")])
async def test_a_mode_that_is_known_is_told_at_once(tmp_path: Path, planning: str, mode: str) -> None:
    made = world(tmp_path / "w", ScriptedReply("Hello.", delay=0.2), settings=planned(planning))  # type: ignore[arg-type]
    run_id = start(made)
    await asyncio.sleep(0.05)
    assert [event.mode for event in made.events if isinstance(event, events.ResponseStart)] == [mode]
    made.manager.runs.cancel()
    await ended(made, run_id)


@pytest.mark.parametrize("kind", ["ask", "explain", "edit", "runFile"])
async def test_kinds_that_are_never_planned(tmp_path: Path, kind: RunKind) -> None:
    made = world(tmp_path / "w", create("a"), say("So."), settings=planned("always"))
    run_id = made.manager.start(RunRequest(kind, "why?", "why?"))
    await ended(made, run_id)
    assert told(made)[0] == "response_start"
    assert [event.mode for event in made.events if isinstance(event, events.ResponseStart)] == ["direct"]
    assert record(made).plan is None


def offered(model: object, number: int = 0) -> set[str]:
    assert isinstance(model, ScriptedModel)
    return {spec["name"] for spec in model.requests[number].tools}


async def test_never_hides_the_tools_and_refuses_them(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a"), say("Done."), settings=planned("never"))
    assert (await run(made)).summary == "Done."
    assert not offered(made.models["model"]) & {"create_plan", "plan_enter", "plan_update", "plan_exit"}
    assert record(made).plan is None


async def test_the_request_overrides_the_setting(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("Done."), says=[START], settings=planned("always"))
    await run(made, "never")
    assert "create_plan" not in offered(made.models["model"])
    made.script(create("a"), say("Did it."))
    assert (await run(made, "always")).summary == "Done: the goal"


async def test_always_begins_with_a_planning_call(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto", settings=planned("always"))
    model = made.models["model"] = ScriptedModel(five(), info=MIDDLING)
    assert (await run(made)).status == "completed"
    assert [request.allowed for request in model.requests[:2]] == [("create_plan",), None]
    assert model.requests[0].tools == model.requests[1].tools
    assert offered(model) > {"create_plan", "edit_file"}
    assert files(made) == [1, 2, 3, 4, 5]


async def test_a_capable_model_reads_before_it_plans_and_changes_nothing(tmp_path: Path) -> None:
    look = [calls(call("read_file", path="a.py")), calls(call("list_dir")), calls(call("grep", pattern="one"))]
    replies = [*look, write("f9.py", "x\n"), create("a"), *step(1)]
    made = world(tmp_path / "w", *replies, apply="auto", settings=planned("always"))
    made.open("a.py", "one\n")
    assert (await run(made)).status == "completed"
    finished = [event for event in made.events if isinstance(event, events.ToolFinished)]
    assert [(event.tool, event.success) for event in finished[:4]] == [
        ("read_file", True),
        ("list_dir", True),
        ("grep", True),
        ("write_file", False),
    ]
    assert "cannot be called while a plan is made" in (finished[3].error or "")
    assert files(made) == [1]


async def test_a_question_in_place_of_a_plan_is_put_to_the_user(tmp_path: Path) -> None:
    asks = say("Shall it be red or blue?")
    replies = [asks, asks, create("a"), *step(1)]
    made = world(tmp_path / "w", *replies, says=["red"], apply="auto", settings=planned("always"))
    assert (await run(made)).status == "completed"
    assert [question.question.title for question in made.user.shown] == ["The agent asks: Shall it be red or blue?"]
    assert "red" in [message.content for message in made.manager.current().context.conversation]


async def test_a_plan_in_other_words_is_asked_for_as_a_plan(tmp_path: Path) -> None:
    replies = [say("Here is my plan:\n\n1. a\n2. b\n\nShall I proceed?"), create("a"), *step(1)]
    made = world(tmp_path / "w", *replies, apply="auto", settings=planned("always"))
    assert (await run(made)).status == "completed"
    plan = record(made).plan
    assert plan is not None and [item.title for item in plan.steps] == ["a"]
    assert made.user.shown == []


async def test_before_the_plan_other_models_call_nothing_else(tmp_path: Path) -> None:
    replies = [write("f9.py", "x\n"), create("a"), *step(1)]
    made = world(tmp_path / "w", *replies, apply="auto", settings=planned("always"), info=MIDDLING)
    assert (await run(made)).status == "completed"
    refused = [event for event in made.events if isinstance(event, events.ToolFinished) and not event.success]
    assert [event.tool for event in refused] == ["write_file"]
    assert refused[0].error == "The tool 'write_file' cannot be called yet. Now: create_plan."
    assert files(made) == [1]


async def test_a_plan_that_is_only_written_down_is_the_plan(tmp_path: Path) -> None:
    written = say("Here is my plan:\n\n1. **Write a**: the first file\n2. Write b\n\nShall we begin now.")
    made = world(tmp_path / "w", written, *step(1), *step(2), apply="auto", settings=planned("always"))
    assert (await run(made)).status == "completed"
    plan = record(made).plan
    assert plan is not None
    assert [(item.title, item.description) for item in plan.steps] == [("Write a", "the first file"), ("Write b", "")]
    assert files(made) == [1, 2]


async def test_a_model_that_will_not_plan_gets_the_task_as_its_only_step(tmp_path: Path) -> None:
    no = say("I would rather not.")
    made = world(tmp_path / "w", no, no, *step(1), apply="auto", settings=planned("always"))
    assert (await run(made)).status == "completed"
    plan = record(made).plan
    assert plan is not None
    assert [item.title for item in plan.steps] == ["build it"]
    assert files(made) == [1]


@pytest.mark.parametrize(("planning", "has"), [("auto", False), ("always", True)])
async def test_small_models_plan_only_when_they_must(tmp_path: Path, planning: str, has: bool) -> None:
    made = world(tmp_path / "w", settings=planned(planning), apply="auto")  # type: ignore[arg-type]
    info = ModelInfo("small", "scripted", facts=window_known(8192), tool_calling="native")
    replies = [*([create("a")] if has else []), *step(1)]
    model = made.models["model"] = ScriptedModel(replies, info=info)
    await run(made)
    assert ("create_plan" in offered(model, 1)) == has
    assert files(made) == [1]


# --- a step that fails


async def test_a_question_about_a_step_that_is_closed_stops_the_plan(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *five(3), says=[APPLY, APPLY], deadline=20)
    run_id = start(made)
    await until(lambda: any(item.question.danger for item in made.inbox.open()))
    made.inbox.respond(made.inbox.open()[0].request_id, None)
    done = await ended(made, run_id)
    assert (done.status, made.of(events.Failure)) == ("stopped", [])
    assert "Step 3/5 three failed:" in done.summary
    assert states(reloaded(made)) == ["completed", "completed", "failed", "pending", "pending"]


async def test_a_failure_that_nobody_answers_leaves_the_plan_waiting(tmp_path: Path) -> None:
    made, run_id = await failed_at_three(tmp_path / "w")
    done = await ended(made, run_id)
    assert done.status == "failed"
    assert (done.error or "").startswith("Step 3/5 three failed:")
    assert [event.code for event in made.of(events.Failure) if isinstance(event, events.Failure)] == ["TIMEOUT"]
    assert states(reloaded(made)) == ["completed", "completed", "failed", "pending", "pending"]
    assert files(made) == [1, 2]
    assert told(made, *STEPS, "awaiting_approval", "execution_failed")[-3:] == [
        "step_error",
        "awaiting_approval",
        "execution_failed",
    ]
    asked = made.user.shown[-1].question
    assert asked.choices == (RETRY, STOP, SKIP)
    assert asked.title.startswith("Step 3/5 three failed: ")


async def test_retry_at_the_prompt(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *five(3), says=[APPLY, APPLY, RETRY, APPLY, APPLY, APPLY])
    done = await run(made)
    assert done.status == "completed"
    assert files(made) == [1, 2, 3, 4, 5]
    assert told(made, "step_error", "plan_modified") == ["step_error", "plan_modified"]
    reloaded(made)


@pytest.mark.slow
async def test_skip_at_the_prompt(tmp_path: Path) -> None:
    replies = [reply for index, reply in enumerate(five(3)) if index not in (6, 7)]
    made = world(tmp_path / "w", *replies, says=[APPLY, APPLY, SKIP, APPLY, APPLY])
    done = await run(made)
    assert (done.status, done.summary) == ("completed", "4 of 5 steps are done, the others were skipped: the goal")
    assert states(reloaded(made)) == ["completed", "completed", "skipped", "completed", "completed"]


async def test_stop_at_the_prompt(tmp_path: Path) -> None:
    made, run_id = await failed_at_three(tmp_path / "w", STOP)
    done = await ended(made, run_id)
    assert (done.status, done.error) == ("stopped", None)
    assert states(reloaded(made))[2] == "failed"


@pytest.mark.slow
async def test_retry_later(tmp_path: Path) -> None:
    made, run_id = await failed_at_three(tmp_path / "w")
    made.script(*step(3), *step(4), *step(5))
    made.user.says = [APPLY] * 3
    done = await retried(made, run_id, "3")
    assert done.status == "completed"
    assert files(made) == [1, 2, 3, 4, 5]
    assert states(reloaded(made)) == ["completed"] * 5
    names = told(made, "response_start", "run_completed")
    assert names == ["response_start", "run_completed"] * 2
    session = made.manager.current()
    assert_well_formed(session.context.conversation)
    assert len(session.context.conversation) == len(record(made).messages)


@pytest.mark.slow
async def test_the_model_hears_why_it_tries_again(tmp_path: Path) -> None:
    made, run_id = await failed_at_three(tmp_path / "w")
    model = made.script(*step(3))
    await retried(made, run_id, "3")
    assert "It was tried before and failed: " in model.requests[0].messages[-1].content


@pytest.mark.slow
async def test_skip_later(tmp_path: Path) -> None:
    made, run_id = await failed_at_three(tmp_path / "w")
    made.script(*step(4), *step(5))
    made.user.says = [APPLY] * 2
    done = await skipped(made, run_id, "3")
    assert done.status == "completed"
    assert files(made) == [1, 2, 4, 5]
    assert states(reloaded(made)) == ["completed", "completed", "skipped", "completed", "completed"]


async def test_a_command_answers_the_open_question(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *five(3), says=[APPLY, APPLY], apply="review", deadline=20)
    run_id = start(made)
    await until(lambda: any(RETRY in item.question.choices for item in made.inbox.open()))
    made.user.says = [APPLY] * 3
    made.manager.runs.retry_step(run_id, "3")
    assert (await ended(made, run_id)).status == "completed"
    assert files(made) == [1, 2, 3, 4, 5]
    assert made.inbox.open() == ()


async def test_a_step_to_come_is_left_out_while_another_waits(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *five(3), says=[APPLY, APPLY], deadline=20)
    run_id = start(made)
    await until(lambda: any(RETRY in item.question.choices for item in made.inbox.open()))
    made.manager.runs.skip_step(run_id, "5")
    with pytest.raises(SessionError):
        made.manager.runs.retry_step(run_id, "4")
    made.user.says = [APPLY] * 2
    made.manager.runs.skip_step(run_id, "3")
    assert (await ended(made, run_id)).status == "completed"
    assert states(record(made)) == ["completed", "completed", "skipped", "completed", "skipped"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "step_id"),
    [
        (Runs.retry_step, "1"),
        (Runs.retry_step, "5"),
        (Runs.retry_step, "9"),
        (Runs.skip_step, "1"),
        (Runs.skip_step, "x"),
    ],
)
async def test_orders_that_make_no_sense(tmp_path: Path, order: Callable[[Runs, str, str], None], step_id: str) -> None:
    made, run_id = await failed_at_three(tmp_path / "w")
    before = states(record(made))
    with pytest.raises(SessionError):
        order(made.manager.runs, run_id, step_id)
    assert states(record(made)) == before
    assert made.manager.runs.active() == ()


async def test_a_run_without_a_plan_has_nothing_to_steer(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say("Hi."))
    run_id = (await run(made)).run_id
    with pytest.raises(SessionError):
        made.manager.runs.retry_step(run_id, "1")
    with pytest.raises(SessionError):
        made.manager.runs.skip_step(run_id, "1")
    with pytest.raises(SessionError):
        await made.manager.runs.roll_back(run_id, "1")


async def test_an_editor_that_fails_fails_the_step(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a", "b"), *step(1), *step(2), says=[APPLY], deadline=0.05)
    made.editor.failure = EditorError("session.unknown", session="x")
    assert (await run(made)).status == "failed"
    assert states(reloaded(made)) == ["failed", "pending"]


# --- another plan


async def test_the_model_makes_another_plan_after_a_limit(tmp_path: Path) -> None:
    replies = [create("a", "b"), *stuck(2), create("x", "y"), *step(1), *step(2)]
    made = world(tmp_path / "w", *replies, apply="auto", settings=planned(iterations=2))
    assert (await run(made)).status == "completed"
    again = reloaded(made)
    assert again.plan is not None
    assert [(item.title, item.state) for item in again.plan.steps] == [
        ("a", "skipped"),
        ("x", "completed"),
        ("y", "completed"),
    ]
    warnings = [event for event in made.events if isinstance(event, events.ReplanWarning)]
    assert [event.count for event in warnings] == [1]
    assert told(made, "step_error", "replan_warning", "plan_modified")[:3] == [
        "step_error",
        "replan_warning",
        "plan_modified",
    ]
    assert_well_formed(made.manager.current().context.conversation)


async def test_no_more_than_two_other_plans(tmp_path: Path) -> None:
    replies = [create("a")]
    for name in ("b", "c", "d"):
        replies += [*stuck(2), create(name)]
    made = world(tmp_path / "w", *replies, apply="auto", settings=planned(iterations=2), deadline=0.05)
    done = await run(made)
    assert done.status == "failed"
    assert len([event for event in made.events if isinstance(event, events.ReplanWarning)]) == 2
    assert states(reloaded(made)) == ["skipped", "skipped", "failed"]


async def test_while_it_looks_for_another_way_nothing_is_changed(tmp_path: Path) -> None:
    replies = [create("a"), *stuck(2), write("sly.py", "x\n"), say("No way."), say()]
    made = world(tmp_path / "w", *replies, apply="auto", settings=planned(iterations=2), says=[STOP])
    assert (await run(made)).status == "stopped"
    assert made.text("sly.py") is None
    refused = [event for event in made.events if isinstance(event, events.ToolFinished) and not event.success]
    assert "cannot be called while a plan is made" in (refused[-1].error or "")


async def test_a_broken_endpoint_is_not_asked_for_another_plan(tmp_path: Path) -> None:
    made = world(tmp_path / "w", create("a"), BUSY, create("b"), deadline=0.05)
    await run(made)
    assert not any(isinstance(event, events.ReplanWarning) for event in made.events)


@pytest.mark.slow
@pytest.mark.parametrize("apply", ["auto", "review"])
async def test_a_step_of_which_the_editor_takes_nothing_is_not_done(
    tmp_path: Path, apply: Literal["auto", "review"]
) -> None:
    made = world(tmp_path / "w", create("a", "b"), *step(1), *step(2), apply=apply, says=[APPLY, APPLY, STOP])
    editor, asked = made.editor.apply, [0]

    async def refuse(*given: Any, **more: Any) -> Applied:
        asked[0] += 1
        made.editor.forced = "none" if asked[0] == 2 else None
        return await editor(*given, **more)

    made.editor.apply = refuse  # type: ignore[method-assign]
    done = await run(made)
    assert (done.status, done.outcome) == ("stopped", "partial")
    assert "Step 2/2 b failed: Nothing could be applied: the editor said no" in done.summary
    assert states(reloaded(made)) == ["completed", "failed"] and files(made) == [1]
    assert ending(done, "en").startswith("Step 2/2 b failed: Nothing could be applied: the editor said no")
    assert "Partly applied, 1 file" in ending(done, "en")
