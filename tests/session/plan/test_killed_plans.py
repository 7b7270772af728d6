"""A process that is killed in the middle of a plan: what was told is true, and the plan can be gone on with."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from codeagent_lsp.tools.todos.todo_list import Todo
from tests.session.fakes import World, assert_well_formed, say, world
from tests.session.killing import lines_until_killed
from tests.session.plan.plans import START, create, ended, reloaded, retried, start, states, step


def killed(folder: Path, wait: float) -> list[list[str]]:
    """What a worker said until it was killed, `wait` seconds after its first step began."""
    lines = lines_until_killed("tests.session.plan.plan_worker:work", folder, wait)
    return [line.split() for line in lines[:-1]]


def resumed(folder: Path, session_id: str) -> World:
    made = world(folder / "w", state=folder / "sessions", apply="auto", deadline=0.05)
    made.manager.resume(session_id)
    return made


async def check(folder: Path, wait: float) -> str:
    """Everything that was told is there, nothing is done twice; the state in which the last plan was found."""
    said = killed(folder, wait)
    session_id, run_id = said[-1][1], said[-1][2]
    made = resumed(folder, session_id)
    run = made.manager.runs.get(run_id)
    done = {words[3] for words in said if words[0] == "step_completed" and words[2] == run_id}
    plan = run.record.plan
    assert plan is not None
    assert {item.step_id for item in plan.steps if item.state == "completed"} >= done
    assert all(item.state in ("completed", "cancelled", "pending") for item in plan.steps)
    assert {part.step_id for part in run.record.applied} >= done
    if done:
        assert made.manager.current().context.todos.items == (Todo("1", "all of it"),)
    assert_well_formed(made.manager.current().context.conversation)
    found = run.record.status
    if plan.steps.next is not None:
        await go_on(made, run_id)
    made.store.close()
    return found


async def go_on(made: World, run_id: str) -> None:
    """The steps that are left are done, and only they."""
    plan = made.manager.runs.get(run_id).record.plan
    assert plan is not None
    assert plan.steps.next is not None
    left = [int(item.step_id) for item in plan.steps if item.state != "completed"]
    before = made.manager.runs.get(run_id).record.applied[:]
    made.script(*(reply for number in left for reply in step(number)))
    assert (await retried(made, run_id, plan.steps.next.step_id)).status == "completed"
    record = made.manager.runs.get(run_id).record
    assert states(record) == ["completed"] * 5
    assert record.applied[: len(before)] == before
    assert [int(part.step_id) for part in record.applied[len(before) :]] == left
    assert_well_formed(made.manager.current().context.conversation)


@pytest.mark.slow
async def test_killed_in_the_middle_of_a_plan(tmp_path: Path) -> None:
    chance = random.Random(11)
    found = [await check(tmp_path / str(number), chance.random() * 0.6) for number in range(10)]
    assert "interrupted" in found


@pytest.mark.slow
async def test_a_long_session_is_back_with_all_that_was_said(tmp_path: Path) -> None:
    made = world(tmp_path / "w", apply="auto", says=[START] * 40)
    for _ in range(40):
        made.script(create("one", "two"), *step(1), *step(2))
        await ended(made, start(made, planning="always"))
    session_id = made.manager.current().session_id
    made.store.close()
    other = world(tmp_path / "w")
    session = other.manager.resume(session_id)
    assert session.context.conversation == made.manager.current().context.conversation


async def test_an_interrupted_run_keeps_its_place_in_the_conversation(tmp_path: Path) -> None:
    """Its turn is closed once; what comes after it stands after it, however often the session is loaded."""
    made = world(tmp_path / "w", create("one", "two"), *step(1), *step(2), apply="auto")
    await ended(made, start(made))
    session_id = made.manager.current().session_id
    path = tmp_path / "sessions" / f"{session_id}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if b'"step_completed"' in line)
    made.store.close()
    path.write_bytes(b"".join(lines[: cut - 1]) + lines[cut][:20])
    other = world(tmp_path / "w", say("Hello."), apply="auto")
    session = other.manager.resume(session_id)
    before = list(session.context.conversation)
    await other.run("Hi", session_id)
    assert session.context.conversation[: len(before)] == before
    assert session.context.conversation[-1].content == "Hello."
    again = reloaded(other)
    assert again.status == "completed"
    other.store.close()
    third = world(tmp_path / "w")
    assert third.manager.resume(session_id).context.conversation == session.context.conversation
    assert not any(run.record.torn for run in third.manager.runs.all())
