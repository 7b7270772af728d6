"""The steps that a user writes into the page of a plan that has not begun."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.server.plans import plan_page, step_edits
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.tools.plan.plan import Plan, PlanStep, StepDraft, StepEdit

DRAFTS = (
    StepDraft("Read the code", "parser.py\nand lexer.py"),
    StepDraft("Write a <script> & ![image](x)", ""),
    StepDraft("Test it", "all tests"),
)
PLAN = Plan.create("Do it", DRAFTS)
LINES = (
    "- [ ] 1. **Read the code**\n  parser.py and lexer.py\n",
    "- [ ] 2. **Write a <script> & ![image](x)**\n",
    "- [ ] 3. **Test it**\n  all tests\n",
)


def page(plan: Plan = PLAN, language: str = "en") -> str:
    record = RunRecord("r1", "run", "title")
    record.plan = plan
    return plan_page(record, language)


def kept(*ids: str) -> list[StepEdit]:
    """Steps as they are, in this order."""
    return [StepEdit(each, PLAN.steps.by_id(each).title) for each in ids]


WRITTEN: dict[str, tuple[Callable[[str], str], list[StepEdit] | None]] = {
    "moved": (lambda text: swapped(text), kept("3", "2", "1")),
    "dropped": (lambda text: text.replace(LINES[2], ""), kept("1", "2")),
    "all dropped": (lambda text: text.partition("- [ ]")[0], []),
    "a title": (lambda text: text.replace("**Test it**", "**Test all**"), [*kept("1", "2"), StepEdit("3", "Test all")]),
    "a description": (
        lambda text: text.replace("  all tests", "  only\n\tthe new ones"),
        [*kept("1", "2"), StepEdit("3", "Test it", "only\nthe new ones")],
    ),
    "added, without marks": (
        lambda text: text + "* Tell of it\n",
        [*kept("1", "2", "3"), StepEdit("", "Tell of it", "")],
    ),
    "added, numbered": (
        lambda text: text + "4. Tell of it\n   in a sentence\n",
        [*kept("1", "2", "3"), StepEdit("", "Tell of it", "in a sentence")],
    ),
    "words below": (lambda text: text + "\n# Notes\n\n- not a step\n", None),
    "other ends of lines": (lambda text: text.replace("\n", "\r\n"), None),
    "nothing": (lambda text: text, None),
}


def swapped(text: str) -> str:
    """The first and the last step have changed places."""
    lines = text.splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if line.startswith("- [ ] 1."))
    last = next(at for at, line in enumerate(lines) if line.startswith("- [ ] 3."))
    return "".join([*lines[:first], *lines[last : last + 2], *lines[first + 2 : last], *lines[first : first + 2]])


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_is_read(name: str) -> None:
    write, wanted = WRITTEN[name]
    assert step_edits(write(page()), PLAN, "en") == wanted


@pytest.mark.parametrize("language", ["en", "zh-cn"])
def test_a_page_that_was_not_touched_changes_nothing(language: str) -> None:
    assert step_edits(page(language=language), PLAN, language) is None


def test_steps_of_one_name_stay_two() -> None:
    plan = Plan.create("goal", [StepDraft("Test", "a"), StepDraft("Test", "b"), StepDraft("End")])
    assert step_edits(page(plan), plan, "en") is None
    edits = step_edits(page(plan).replace("- [ ] 3. **End**\n", ""), plan, "en")
    assert edits == [StepEdit("1", "Test"), StepEdit("2", "Test")]
    assert ids(plan.arranged(edits)) == ["1", "2"]


def test_steps_that_have_begun_are_left_alone() -> None:
    plan = PLAN.started("1").completed("1")
    edits = step_edits(page(plan).replace("**Test it**", "**Test all**"), plan, "en")
    assert edits is not None
    arranged = plan.arranged(edits)
    assert [step.title for step in arranged.steps] == [DRAFTS[0].title, DRAFTS[1].title, "Test all"]
    assert arranged.steps[0].state == "completed"


def test_a_step_that_was_stored_with_another_id_is_no_number() -> None:
    steps = type(PLAN.steps)(replace(step, step_id=f"s{step.step_id}") for step in PLAN.steps)
    plan = replace(PLAN, steps=steps)
    assert ids(plan.arranged([StepEdit("s1", "a"), StepEdit("", "b")])) == ["s1", "1"]
    assert ids(plan.replanned([StepDraft("c")])) == ["1"]


def ids(plan: Plan) -> Sequence[str]:
    return [step.step_id for step in plan.steps]


WORDS = st.text("ab *_#[]-.1\n`<!(\\é ", min_size=1, max_size=12).filter(str.strip)
PLANS = st.lists(st.builds(StepDraft, WORDS, st.just("") | WORDS), min_size=1, max_size=6)


@given(PLANS, st.data())
def test_steps_of_any_name_are_kept_dropped_and_moved(drafts: list[StepDraft], data: st.DataObject) -> None:
    plan = Plan.create("goal", drafts)
    shown = page(plan)
    assert step_edits(shown, plan, "en") is None
    head, *items = re.split(r"^(?=- \[ \] \d)", shown, flags=re.MULTILINE)
    assert len(items) == len(drafts)
    order = data.draw(st.lists(st.sampled_from(range(len(items))), unique=True, min_size=1))
    edits = step_edits(head + "".join(items[at] for at in order), plan, "en")
    arranged = plan if edits is None else plan.arranged(edits)
    assert list(map(in_a_line, arranged.steps)) == [in_a_line(plan.steps[at]) for at in order]


def in_a_line(step: PlanStep) -> tuple[str, str]:
    """What the page shows of a step."""
    return " ".join(step.title.split()), " ".join(step.description.split())
