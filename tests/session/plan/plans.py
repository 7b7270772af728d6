"""Plans for tests: what the model says, what the user says, and what is looked at afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from codeagent_lsp import events
from codeagent_lsp.config import Settings
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.request import Planning, RunRequest
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.texts import text
from tests.session.fakes import World, call, calls, say, until, world, write

APPLY, DISCARD, RETRY, SKIP, STOP, APPROVE, REJECT, START, CHANGE, CANCEL = (
    text(f"choice.{name}", "en")
    for name in ("apply", "discard", "retry", "skip", "stop", "approve", "reject", "start_plan", "change", "cancel")
)
BUSY = ScriptedReply(error="busy")


def create(*titles: str, goal: str = "the goal") -> ScriptedReply:
    """The model makes a plan."""
    steps = [{"title": title, "description": f"do {title}"} for title in titles]
    return calls(call("create_plan", goal=goal, steps=steps, estimated_complexity="low"))


def step(number: int) -> tuple[ScriptedReply, ScriptedReply]:
    """The model works on a step: one file, one sentence."""
    return write(f"f{number}.py", f"x = {number}\n"), say(f"Step {number} is done.")


def five(*broken: int) -> list[ScriptedReply]:
    """A plan of five steps, each a file; the model's endpoint fails at the `broken` ones."""
    replies = [create("one", "two", "three", "four", "five")]
    for number in range(1, 6):
        replies.extend((BUSY,) if number in broken else ())
        replies.extend(step(number))
    return replies


def planned(planning: Planning = "auto", iterations: int = 20) -> Callable[[Settings], Settings]:
    """Settings of the agent."""
    return lambda value: replace(value, agent=replace(value.agent, planning=planning, max_iterations=iterations))


def start(made: World, task: str = "build it", planning: Planning | None = None) -> str:
    """A run begins."""
    return made.manager.start(RunRequest("run", task, task, planning=planning))


async def ended(made: World, run_id: str) -> events.RunCompleted:
    """The last end of a run, which may go on and end more than once."""
    await until(lambda: run_id not in made.manager.runs.active())
    await asyncio.sleep(0)
    found = [event for event in made.events if isinstance(event, events.RunCompleted) and event.run_id == run_id]
    return found[-1]


async def run(made: World, planning: Planning | None = None) -> events.RunCompleted:
    """A whole run."""
    return await ended(made, start(made, planning=planning))


async def retried(made: World, run_id: str, step_id: str) -> events.RunCompleted:
    """A step is tried again, to the end of the run."""
    made.manager.runs.retry_step(run_id, step_id)
    return await ended(made, run_id)


async def skipped(made: World, run_id: str, step_id: str) -> events.RunCompleted:
    """A step is left out, to the end of the run."""
    made.manager.runs.skip_step(run_id, step_id)
    return await ended(made, run_id)


async def rolled_back(made: World, run_id: str, step_id: str) -> None:
    """Back to before a step."""
    await made.manager.runs.roll_back(run_id, step_id)


def record(made: World) -> RunRecord:
    """The latest run."""
    return made.manager.runs.all()[-1].record


def states(run: RunRecord) -> list[str]:
    """The states of its steps."""
    assert run.plan is not None
    return [item.state for item in run.plan.steps]


def told(made: World, *only: str) -> list[str]:
    """Types of the events that clients get; `only` those."""
    return [event.type for event in made.events if not event.internal and (not only or event.type in only)]


def files(made: World, numbers: Sequence[int] = range(1, 6)) -> list[int]:
    """Which of the steps' files the user has."""
    return [number for number in numbers if made.text(f"f{number}.py") is not None]


def reloaded(made: World) -> RunRecord:
    """The latest run as another process would see it; it must be the same."""
    session = made.manager.current()
    again = Session(session.session_id, made.store)
    replay(again, made.store.load(session.session_id))
    known, found = record(made), list(again.context.runs.values())[-1]
    for name in ("plan", "document", "step_id", "marks", "staged", "applied", "status", "messages"):
        assert getattr(found, name) == getattr(known, name), name
    return found


async def failed_at_three(folder: Path, *says: str) -> tuple[World, str]:
    """A plan of five steps whose third one failed; nobody said what to do about it."""
    made = world(folder, *five(3), says=[APPLY, APPLY, *says], deadline=0.05)
    done = await run(made)
    return made, done.run_id


def stuck(count: int) -> list[ScriptedReply]:
    """A model that does not come to an end."""
    return [write("f.py", f"{number}\n") for number in range(count)]
