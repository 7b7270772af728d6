"""A process that works on a plan of five steps and waits to be killed; prints each event once it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from codeagent_lsp import events
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session.request import RunRequest
from tests.session.fakes import call, calls, world
from tests.session.plan.plans import create, step

TODOS = calls(call("todowrite", todos=[{"id": "1", "content": "all of it"}]))
PACE = 0.05  # seconds a reply takes
TOLD = (events.StepStarted, events.StepCompleted)


def story() -> list[ScriptedReply]:
    """A plan of five steps, with a todo list in the first one."""
    plan = create("one", "two", "three", "four", "five")
    replies = [plan, TODOS, *(reply for number in range(1, 6) for reply in step(number))]
    return [replace(reply, delay=PACE) for reply in replies]


def tell(event: events.Event) -> None:
    """One line for what a plan has come to."""
    if isinstance(event, TOLD):
        print(event.type, event.session_id, event.run_id, event.step_id, flush=True)


def work(arguments: Sequence[str]) -> int:
    """What the process does in the folder that is its argument."""
    asyncio.run(_work(Path(arguments[0])))
    return 0


async def _work(root: Path) -> None:
    """One plan, each step applied unasked; then nothing more."""
    made = world(root / "w", state=root / "sessions", apply="auto", on_event=tell)
    session_id = made.manager.new().session_id
    made.script(*story())
    await made.finished(made.manager.start(RunRequest("run", "build", "build"), session_id))
    await asyncio.sleep(60)
