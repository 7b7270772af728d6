"""A plan that is stopped at any moment, and one whose process is killed, can be gone on with."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Literal

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from tests.examples import spread
from tests.session.fakes import World, assert_well_formed, call, calls, say, until, world, write
from tests.session.plan.plans import (
    APPLY,
    BUSY,
    RETRY,
    create,
    ended,
    files,
    five,
    planned,
    record,
    reloaded,
    retried,
    rolled_back,
    run,
    skipped,
    start,
    states,
    step,
)

pytestmark = pytest.mark.slow  # every place where a plan can be cut off

ENDED = {"completed", "skipped", "failed", "cancelled", "pending"}


def long_story() -> list[ScriptedReply]:
    """A plan with everything in it: a step that fails, another plan, a discarded change."""
    enter = calls(call("plan_enter", title="t"))
    leave = calls(call("plan_exit"))
    stuck = [write("s.py", f"{number}\n") for number in range(4)]
    return [enter, leave, create("a", "b", "c"), *step(1), BUSY, *stuck, create("x", "y"), *step(2), *step(3)]


def story(folder: Path, style: Literal["review", "live"]) -> World:
    says = ["Approve", *[APPLY, RETRY, APPLY, "Discard", APPLY, APPLY]]
    if style == "live":
        says = ["Approve", RETRY]
    return world(folder, *long_story(), says=says, apply=style, settings=planned(iterations=4), deadline=0.2)


async def go_on(made: World, run_id: str) -> None:
    """Whatever state a plan is left in, the user can finish it."""
    plan = record(made).plan
    assert plan is not None
    assert all(item.state in ENDED for item in plan.steps)
    if plan.steps.next is None:
        return
    made.script(*[say("Did it.")] * 20)
    made.user.says = []
    assert (await retried(made, run_id, plan.steps.next.step_id)).status == "completed"
    assert set(states(record(made))) <= {"completed", "skipped"}


def check(made: World) -> None:
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert made.inbox.open() == ()
    assert_well_formed(made.manager.current().context.conversation)
    reloaded(made)


async def stopped_at(folder: Path, style: Literal["review", "live"], number: int) -> bool:
    """Cancel at the event of that number; whether the run got to its end before."""
    made = story(folder, style)
    run_id = start(made)
    await until(lambda: len(made.events) > number or run_id not in made.manager.runs.active())
    made.manager.runs.cancel()
    done = await ended(made, run_id)
    await asyncio.sleep(0)
    check(made)
    plan = record(made).plan
    if (
        done.status == "cancelled"
        and plan is not None
        and any(isinstance(e, events.ExecutionStarted) for e in made.events)
    ):
        over = "execution_completed" if plan.steps.next is None else "execution_cancelled"
        assert [event.type for event in made.events][-2:] == [over, "run_completed"]
    if plan is not None:
        await go_on(made, run_id)
        check(made)
    return done.status != "cancelled"


async def test_cancelled_at_some_events(tmp_path: Path) -> None:
    for number in range(3, 120, 17):
        assert not await stopped_at(tmp_path / str(number) / "w", "review", number)


@pytest.mark.slow
@pytest.mark.parametrize("style", ["review", "live"])
async def test_cancelled_at_any_event(tmp_path: Path, style: Literal["review", "live"]) -> None:
    for number in spread(0):
        if await stopped_at(tmp_path / str(number) / "w", style, number):
            break
    assert number > 50


async def stopped_after(folder: Path, turns: int) -> bool:
    """Cancel after so many turns of the event loop: at every await there is."""
    made = story(folder, "review")
    run_id = start(made)
    for _ in range(turns):
        await asyncio.sleep(0)
    over = not made.manager.runs.active()
    made.manager.runs.cancel()
    await ended(made, run_id)
    await asyncio.sleep(0)
    check(made)
    return over


@pytest.mark.slow
async def test_cancelled_at_any_await(tmp_path: Path) -> None:
    for turns in spread(0):
        if await stopped_after(tmp_path / str(turns) / "w", turns):
            break
    assert turns > 50


async def test_cancelled_while_it_waits_for_the_user(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *five(3), says=[APPLY, APPLY], deadline=20)
    run_id = start(made)
    await until(lambda: any(RETRY in item.question.choices for item in made.inbox.open()))
    made.manager.runs.cancel()
    assert (await ended(made, run_id)).status == "cancelled"
    assert states(reloaded(made)) == ["completed", "completed", "failed", "pending", "pending"]
    await go_on(made, run_id)


async def test_cancelled_in_the_middle_of_what_went_on(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *five(3), says=[APPLY, APPLY], deadline=0.05)
    run_id = (await run(made)).run_id
    made.script(ScriptedReply("slow", delay=30))
    made.manager.runs.retry_step(run_id, "3")
    with pytest.raises(SessionError):
        made.manager.runs.retry_step(run_id, "3")
    await until(lambda: states(record(made))[2] == "running")
    made.manager.runs.cancel(run_id)
    assert (await ended(made, run_id)).status == "cancelled"
    assert states(reloaded(made))[2] == "cancelled"
    await go_on(made, run_id)
    assert files(made) == [1, 2]


async def test_cancelled_before_it_went_on(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *five(3), says=[APPLY, APPLY], deadline=0.05)
    run_id = (await run(made)).run_id
    made.manager.runs.retry_step(run_id, "3")
    made.manager.runs.cancel(run_id)
    assert (await ended(made, run_id)).status == "cancelled"
    assert states(reloaded(made))[2] == "pending"
    await go_on(made, run_id)


# --- another process


def stored_at(made: World, session_id: str, count: int, folder: Path) -> None:
    """A session file as it was after so many records."""
    records = made.store.load(session_id)[:count]
    folder.mkdir(parents=True)
    lines = "".join(json.dumps(item) + "\n" for item in records)
    (folder / f"{session_id}.jsonl").write_text(lines)


async def test_whatever_was_stored_last_the_plan_comes_back_and_goes_on(tmp_path: Path) -> None:
    made = story(tmp_path / "w", "review")
    run_id = (await run(made)).run_id
    session_id = made.manager.current().session_id
    total = len(made.store.load(session_id))
    chance = random.Random(3)
    for count in sorted(chance.sample(range(2, total + 1), 25)):
        folder = tmp_path / f"s{count}"
        stored_at(made, session_id, count, folder)
        other = world(tmp_path / f"w{count}", state=folder, deadline=0.05)
        other.manager.resume(session_id)
        found = other.manager.runs.get(run_id).record
        assert found.status != "running"
        assert found.plan is None or all(item.state in ENDED for item in found.plan.steps)
        assert_well_formed(other.manager.current().context.conversation)
        if found.plan is not None:
            await go_on(other, run_id)
            reloaded(other)
        other.store.close()


async def waiting_in_another_process(folder: Path) -> tuple[World, str]:
    made = world(folder / "w", *five(3), says=[APPLY, APPLY], deadline=0.05, state=folder / "s")
    run_id = (await run(made)).run_id
    session_id = made.manager.current().session_id
    made.store.close()
    other = world(folder / "w", deadline=0.05, state=folder / "s")
    for number in (1, 2):
        other.open(f"f{number}.py", f"x = {number}\n")
    other.manager.resume(session_id)
    return other, run_id


async def test_retry_after_a_resume(tmp_path: Path) -> None:
    made, run_id = await waiting_in_another_process(tmp_path)
    made.script(*step(3), *step(4), *step(5))
    made.user.says = [APPLY] * 3
    assert (await retried(made, run_id, "3")).status == "completed"
    assert files(made) == [1, 2, 3, 4, 5]
    assert states(reloaded(made)) == ["completed"] * 5


async def test_skip_after_a_resume(tmp_path: Path) -> None:
    made, run_id = await waiting_in_another_process(tmp_path)
    made.script(*step(4), *step(5))
    made.user.says = [APPLY] * 2
    assert (await skipped(made, run_id, "3")).status == "completed"
    assert files(made) == [1, 2, 4, 5]


async def test_back_after_a_resume(tmp_path: Path) -> None:
    made, run_id = await waiting_in_another_process(tmp_path)
    await rolled_back(made, run_id, "2")
    assert files(made) == [1]
    assert states(reloaded(made)) == ["completed", *["pending"] * 4]


async def test_a_session_of_another_process_is_not_steered(tmp_path: Path) -> None:
    made = world(tmp_path / "w", *five(3), says=[APPLY, APPLY], deadline=0.05)
    run_id = (await run(made)).run_id
    other = world(tmp_path / "w2", state=tmp_path / "sessions", deadline=0.05)
    with pytest.raises(SessionError):
        other.manager.resume(made.manager.current().session_id)
    with pytest.raises(SessionError):
        other.manager.runs.retry_step(run_id, "3")
    assert states(made.manager.runs.get(run_id).record)[2] == "failed"
