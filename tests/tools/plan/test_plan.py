"""A plan as a value: what may follow what, and what is refused.

The steps of a plan: found by their ids, counted, and stored.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from codeagent_lsp.errors import SessionError
from codeagent_lsp.tools.plan.plan import MARKS, MOST_REPLANS, Plan, PlanStep, PlanSteps, StepDraft, StepState


def plan_of(*titles: str) -> Plan:
    return Plan.create("the goal", [StepDraft(title) for title in titles], "medium")


def states(plan: Plan) -> list[StepState]:
    return [step.state for step in plan.steps]


def after(plan: Plan, *done: str) -> Plan:
    for step_id in done:
        plan = plan.started(step_id).completed(step_id)
    return plan


def test_steps_are_named_and_nothing_is_done() -> None:
    plan = plan_of("a", "b", "c")
    assert [step.step_id for step in plan.steps] == ["1", "2", "3"]
    assert states(plan) == ["pending"] * 3
    assert (plan.steps.progress, plan.steps.running) == (0, None)
    assert plan.steps.next is not None and plan.steps.next.title == "a"
    assert plan.steps.label("2") == "2/3 b"


def test_step_after_step_to_the_end() -> None:
    plan = plan_of("a", "b", "c")
    seen = []
    while (step := plan.steps.next) is not None:
        started = plan.started(step.step_id)
        assert started.steps.running == started.steps.by_id(step.step_id)
        plan = started.completed(step.step_id)
        seen.append(plan.steps.progress)
    assert seen == [33, 66, 100]
    assert states(plan) == ["completed"] * 3


def test_a_change_leaves_the_plan_it_was_made_from() -> None:
    plan = plan_of("a", "b")
    plan.started("1")
    assert states(plan) == ["pending", "pending"]


def test_a_failed_step_stops_what_comes_after_it_until_it_is_retried_or_skipped() -> None:
    failed = after(plan_of("a", "b", "c"), "1").started("2").failed("2", "no model")
    assert failed.steps.next is not None and failed.steps.next.error == "no model"
    with pytest.raises(SessionError, match="the next step is 2/3 b"):
        failed.started("3")
    retried = failed.retried("2")
    assert states(retried) == ["completed", "pending", "pending"]
    assert retried.steps.by_id("2").error == "no model"
    assert retried.started("2").completed("2").steps.by_id("2").error == ""
    skipped = failed.skipped("2", "by the user")
    assert states(skipped.started("3")) == ["completed", "skipped", "running"]


@pytest.mark.parametrize(
    "refused",
    [
        lambda plan: plan.steps.by_id("9"),
        lambda plan: plan.started("9"),
        lambda plan: plan.started("1"),
        lambda plan: plan.started("3"),
        lambda plan: plan.retried("1"),
        lambda plan: plan.retried("2"),
        lambda plan: plan.retried("3"),
        lambda plan: plan.skipped("1"),
        lambda plan: plan.failed("9", "x"),
    ],
)
def test_what_makes_no_sense_is_refused(refused: Callable[[Plan], object]) -> None:
    at_work = after(plan_of("a", "b", "c"), "1").started("2")
    with pytest.raises(SessionError):
        refused(at_work)
    with pytest.raises(SessionError):
        refused(after(plan_of("a", "b", "c"), "1", "2", "3"))


def test_one_step_at_a_time() -> None:
    with pytest.raises(SessionError):
        plan_of("a", "b").started("1").started("1")


def test_cancelling_touches_only_the_step_at_work() -> None:
    plan = after(plan_of("a", "b", "c"), "1")
    assert plan.cancelled() == plan
    stopped = plan.started("2").cancelled()
    assert states(stopped) == ["completed", "cancelled", "pending"]
    assert states(stopped.retried("2")) == ["completed", "pending", "pending"]


def test_another_plan_for_what_is_left() -> None:
    failed = after(plan_of("a", "b", "c"), "1").started("2").failed("2", "limit")
    again = failed.replanned([StepDraft("x"), StepDraft("y")])
    assert [(step.step_id, step.title, step.state) for step in again.steps] == [
        ("1", "a", "completed"),
        ("2", "b", "skipped"),
        ("4", "x", "pending"),
        ("5", "y", "pending"),
    ]
    assert again.steps.by_id("2").error == "limit"
    assert (again.replans, again.may_replan) == (1, True)
    assert not again.replanned([StepDraft("z")]).may_replan
    assert MOST_REPLANS == 2


def test_the_model_reads_every_step_with_its_state() -> None:
    plan = after(plan_of("a", "b", "c"), "1").started("2").failed("2", "limit")
    assert plan.text() == "Goal: the goal\n[x] 1. a\n[!] 2. b (failed: limit)\n[ ] 3. c"
    assert len(set(MARKS.values())) == len(MARKS)


def test_a_step_is_found_by_its_id_and_not_by_its_place() -> None:
    steps = PlanSteps((PlanStep("4", "d"), PlanStep("2", "b")))
    assert (steps.by_id("2").title, steps.number("2"), steps.label("2")) == ("b", 2, "2/2 b")
    with pytest.raises(SessionError, match="4, 2"):
        steps.by_id("1")


def test_equal_words_are_different_steps() -> None:
    steps = PlanSteps.drafted([StepDraft("again"), StepDraft("again")])
    assert [step.state for step in steps.changed("2", "completed")] == ["pending", "completed"]
    assert (steps.number("1"), steps.number("2")) == (1, 2)


def test_a_plan_without_steps_is_done() -> None:
    steps = PlanSteps()
    assert (steps.progress, steps.next, steps.running) == (100, None, None)


def test_a_failed_step_comes_next_and_a_skipped_one_counts_as_done() -> None:
    steps = PlanSteps.drafted([StepDraft("a"), StepDraft("b")], 7)
    failed = steps.changed("7", "failed", "why")
    assert failed.next == failed.by_id("7")
    skipped = failed.changed("7", "skipped")
    assert (skipped.next, skipped.progress) == (skipped.by_id("8"), 50)


def test_steps_as_data_and_back() -> None:
    draft = StepDraft("a", "words", ("read_file",))
    plan = Plan.create("g", [draft, StepDraft("b")]).started("1").failed("1", "why")
    assert PlanSteps.from_data(plan.steps.to_data()) == plan.steps


@pytest.mark.parametrize("junk", [{}, {"step_id": "1"}, {"step_id": "1", "title": "a", "state": "odd"}])
def test_data_that_is_no_step_is_refused(junk: dict[str, str]) -> None:
    with pytest.raises((KeyError, ValueError)):
        PlanStep.from_data(junk)
