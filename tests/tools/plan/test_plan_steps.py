"""The steps of a plan: found by their ids, counted, and stored."""

from __future__ import annotations

import pytest

from codeagent_lsp.errors import SessionError
from codeagent_lsp.tools.plan.plan import Plan
from codeagent_lsp.tools.plan.plan_steps import PlanStep, PlanSteps
from codeagent_lsp.tools.plan.planner_port import StepDraft


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
