"""Going back to before a step, and undoing a single one: files, plan, conversation and events are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from tests.session.fakes import assert_well_formed, say, until, world, write
from tests.session.plan.plans import (
    APPLY,
    create,
    ended,
    failed_at_three,
    files,
    five,
    planned,
    record,
    reloaded,
    retried,
    rolled_back,
    run,
    start,
    states,
    step,
    stuck,
)


@pytest.mark.slow
async def test_back_to_before_step_two(tmp_path: Path) -> None:
    made, run_id = await failed_at_three(tmp_path / "w")
    await rolled_back(made, run_id, "2")
    assert files(made) == [1]
    assert states(reloaded(made)) == ["completed", *["pending"] * 4]
    modified = [event for event in made.events if isinstance(event, events.PlanModified)]
    assert modified[-1].rolled_back_to == "2"
    undone = [event for event in made.events if isinstance(event, events.ChangesApplied) and event.undo]
    assert [(event.files_changed, event.steps) for event in undone] == [((made.path("f2.py"),), ("2", "3"))]
    assert "rolled the plan back to before step 2 (two)" in made.manager.current().context.conversation[-1].content
    made.script(*step(2), *step(3), *step(4), *step(5))
    made.user.says = [APPLY] * 4
    assert (await retried(made, run_id, "2")).status == "completed"
    assert files(made) == [1, 2, 3, 4, 5]
    assert states(reloaded(made)) == ["completed"] * 5
    assert_well_formed(made.manager.current().context.conversation)


@pytest.mark.slow
async def test_back_to_before_a_step_with_staged_and_applied_changes(tmp_path: Path) -> None:
    """The first step's change waits, the second's are applied together with it, the third's wait."""
    made = world(tmp_path / "w", *five(4), deadline=0.05)
    run_id = start(made)
    await until(lambda: len(made.user.shown) == 2)
    made.inbox.respond(made.inbox.open()[0].request_id, (APPLY,))
    await ended(made, run_id)
    staging = made.manager.runs.get(run_id).proposal
    assert files(made) == [1, 2]
    assert staging.changeset.paths == (made.path("f3.py"),)
    await rolled_back(made, run_id, "2")
    assert files(made) == []
    assert staging.changeset.paths == (made.path("f1.py"),)
    assert states(reloaded(made)) == ["completed", *["pending"] * 4]
    await staging.apply()
    assert files(made) == [1]


async def test_back_keeps_what_the_user_typed_since(tmp_path: Path) -> None:
    replies = [create("a", "b"), write("a.py", "ONE\ntwo\nthree\nfour\n"), say(), *step(2)]
    made = world(tmp_path / "w", *replies, apply="auto")
    path = made.open("a.py", "one\ntwo\nthree\nfour\n")
    run_id = (await run(made)).run_id
    made.buffers.open(path, "ONE\ntwo\nthree\nfour, typed\n", 9)
    await rolled_back(made, run_id, "1")
    assert made.text("a.py") == "one\ntwo\nthree\nfour, typed\n"
    assert files(made) == []
    assert states(reloaded(made)) == ["pending", "pending"]


async def test_back_stops_a_run_that_is_at_work(tmp_path: Path) -> None:
    replies = [create("a", "b"), *step(1), ScriptedReply("slow", delay=30)]
    made = world(tmp_path / "w", *replies, apply="auto")
    run_id = start(made)
    await until(lambda: states(record(made)) == ["completed", "running"] if record(made).plan else False)
    await rolled_back(made, run_id, "1")
    assert made.manager.runs.active() == ()
    assert (await ended(made, run_id)).status == "cancelled"
    assert files(made) == []
    assert states(reloaded(made)) == ["pending", "pending"]


async def test_an_editor_that_takes_nothing_back_leaves_the_plan(tmp_path: Path) -> None:
    made, run_id = await failed_at_three(tmp_path / "w")
    made.editor.forced = "none"
    before = states(record(made))
    with pytest.raises(SessionError):
        await rolled_back(made, run_id, "2")
    assert states(reloaded(made)) == before
    made.editor.forced = None
    await rolled_back(made, run_id, "2")
    assert files(made) == [1]


async def test_there_is_no_way_back_to_a_step_that_has_not_begun(tmp_path: Path) -> None:
    made, run_id = await failed_at_three(tmp_path / "w")
    for step_id in ("4", "9"):
        with pytest.raises(SessionError):
            await rolled_back(made, run_id, step_id)


@pytest.mark.slow
async def test_back_to_before_another_plan_was_made(tmp_path: Path) -> None:
    replies = [create("a", "b"), *stuck(2), create("x"), *step(1)]
    made = world(tmp_path / "w", *replies, apply="auto", settings=planned(iterations=2))
    run_id = (await run(made)).run_id
    await rolled_back(made, run_id, "1")
    again = reloaded(made)
    assert again.plan is not None
    assert [(item.title, item.state) for item in again.plan.steps] == [("a", "pending"), ("b", "pending")]
    assert again.plan.replans == 0


@pytest.mark.slow
async def test_one_step_is_undone_and_the_later_ones_stay(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *five(), says=[APPLY] * 5)
    run_id = (await run(made)).run_id
    proposal = made.manager.runs.get(run_id).proposal
    await proposal.undo(("2",))
    assert files(made) == [1, 3, 4, 5]
    assert [part.step_id for part in reloaded(made).applied] == ["1", "3", "4", "5"]
    with pytest.raises(SessionError):
        await proposal.undo(("2",))
    await proposal.undo()
    assert files(made) == []
    assert reloaded(made).applied == []
