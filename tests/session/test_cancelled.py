"""A run that is cancelled at any await whatever leaves a session that is whole and goes on."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pytest

from codeagent_lsp import events
from codeagent_lsp.config import Settings, ShellSettings
from codeagent_lsp.environments.environments import Environments
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.providers.scripted import ScriptedModel
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.services import SessionEnvironments
from codeagent_lsp.session.session import Session
from tests.examples import spread
from tests.session.fakes import World, assert_well_formed, call, calls, say, until, world, write
from tests.session.plan.plans import BUSY, RETRY, create, step
from tests.session.stepping import Steps, cancelled_at

SMALL = ModelInfo("s", "scripted", facts=window_known(8192), tool_calling="native")
BIG = "".join(f"line {number} of a file with much to read in it\n" for number in range(120))
ASK = call("AskUser", questions=[{"text": "Which?", "options": ["red", "blue"]}])
EDIT = calls(call("edit_file", path="a.py", old_str="x = 1", new_str="x = 2"))
ENDED = {"completed", "skipped", "failed", "cancelled", "pending"}


@dataclass(frozen=True)
class Story:
    """`make` gives the world for a folder. `least` is how many awaits there are at the least."""

    name: str
    make: Callable[[Path], World]
    least: int


def direct(folder: Path) -> World:
    """An edit that the user accepts."""
    made = world(folder, EDIT, write("b.py", "b\n"), say(), says=["Apply"], deadline=0.2)
    made.open("a.py", "x = 1\n")
    return made


def planned(folder: Path) -> World:
    """A plan with a step that fails, is tried again, and changes that are offered step by step."""
    replies = [create("one", "two"), *step(1), BUSY, *step(2)]
    return world(folder, *replies, says=["Apply", RETRY, "Apply"], deadline=0.2)


def asking(folder: Path) -> World:
    """A question that is answered, and one that stays open until its time is over."""
    return world(folder, calls(ASK), write("a.py", "red\n"), calls(ASK), say(), says=["red"], deadline=0.05)


def commanding(folder: Path) -> World:
    """Two real commands in a copy of the workspace; the second writes a file."""
    folder.mkdir(parents=True)
    (folder / "old.txt").write_text("old\n")
    commands = (
        calls(call("run_cmd", command="cat old.txt; sleep 0.05")),
        calls(call("run_cmd", command="echo n > new")),
    )
    return world(
        folder,
        *commands,
        say(),
        says=["Allow once", "Allow once", "Apply"],  # it is not asked where the isolation is complete
        deadline=5,
        environments=environments(folder, "auto"),
    )


def compacting(folder: Path) -> World:
    """A window too small for all that is read."""

    def early(value: Settings) -> Settings:
        return replace(value, context=replace(value.context, compact_at=0.6))

    made = world(folder, settings=early, deadline=0.01)
    for number in range(8):
        made.open(f"f{number}.py", f"{number}\n{BIG}")
    reads = [calls(call("read_file", path=f"f{number}.py"), text=f"I read f{number}.") for number in range(8)]
    made.models["model"] = ScriptedModel([*reads, say("All read.")], info=SMALL)
    return made


def delegating(folder: Path) -> World:
    """Another agent that writes a file."""
    task = calls(call("delegate", agent="coder", task="write a.py"))
    return world(folder, task, write("a.py", "x = 1\n"), say("I wrote it."), say(), says=["Apply"], deadline=0.2)


def environments(folder: Path, isolation: Literal["auto", "direct"]) -> SessionEnvironments:
    chosen = replace(ShellSettings(), isolation=isolation)
    return Environments(lambda: chosen, folder.parent / "state", folder.parent / "spool")


STORIES = (
    Story("direct", direct, 10),
    Story("plan", planned, 20),
    Story("question", asking, 8),
    Story("command", commanding, 15),
    Story("compaction", compacting, 20),
    Story("subagent", delegating, 10),
)


async def cancelled(story: Story, folder: Path, number: int) -> Steps:
    """Cancel at that await and look at what is left; how many awaits there were."""
    made = story.make(folder / "w")
    with cancelled_at(number) as steps:
        run_id = made.manager.start(RunRequest("run", "do it", "do it"))
        await until(lambda: run_id not in made.manager.runs.active())
    if steps.reached:
        assert made.completed(run_id).status == "cancelled" or made.events[-1].type == "run_completed"
    await look(made, run_id)
    made.user.says = []
    made.script(say("Went on."))
    assert (await made.run("go on")).summary == "Went on."
    await look(made, run_id)
    await made.manager.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    return steps


async def look(made: World, run_id: str) -> None:
    """Nothing is at work, nothing is asked, the conversation is whole, and the disk says the same."""
    assert made.manager.runs.active() == ()
    await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
    assert made.inbox.open() == ()
    session = made.manager.current()
    assert_well_formed(session.context.conversation)
    again = Session(session.session_id, made.store)
    replay(again, made.store.load(session.session_id))
    assert again.context.conversation == session.context.conversation
    known, found = session.context.runs[run_id], again.context.runs[run_id]
    assert (found.status, found.staged, found.applied) == (known.status, known.staged, known.applied)
    assert known.status in ("completed", "cancelled", "rejected")
    if known.plan is not None:
        assert {item.state for item in known.plan.steps} <= ENDED
    ends = [event for event in made.of(events.RunCompleted) if event.run_id == run_id]
    assert len(ends) == 1


async def all_of(story: Story, folder: Path, numbers: Iterable[int]) -> int:
    """At these awaits, counted from one, until the run gets to its end before; how many there are."""
    for number in numbers:
        steps = await cancelled(story, folder / str(number), number)
        if not steps.reached:
            return steps.count
    raise AssertionError


@pytest.mark.slow
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
async def test_nothing_is_cancelled_at_no_await(story: Story, tmp_path: Path) -> None:
    """The stories are what they say they are."""
    made = story.make(tmp_path / "w")
    with cancelled_at(0) as steps:
        run_id = made.manager.start(RunRequest("run", "do it", "do it"))
        await until(lambda: run_id not in made.manager.runs.active())
    assert made.completed(run_id).status in ("completed", "rejected")
    assert steps.count >= story.least
    await made.manager.close()


@pytest.mark.slow
async def test_cancelled_at_every_await_of_an_edit(tmp_path: Path) -> None:
    assert await all_of(STORIES[0], tmp_path, itertools.count(1, 3)) >= STORIES[0].least


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
async def test_cancelled_at_every_await(story: Story, tmp_path: Path) -> None:
    count = await all_of(story, tmp_path, spread(1))
    print(f"{story.name}: {count} awaits")
    assert count >= story.least
