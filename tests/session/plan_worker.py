"""A process that works on plans of five steps until it is killed; prints each event of a plan once it is stored."""

from __future__ import annotations

import asyncio
import itertools
import sys
from pathlib import Path

from codeagent_lsp import events
from codeagent_lsp.llm.scripted import ScriptedReply
from codeagent_lsp.session.request import RunRequest
from tests.session.fakes import call, calls, world
from tests.session.plans import create, step

TODOS = calls(call("todowrite", todos=[{"id": "1", "content": "all of it"}]))
TOLD = (events.StepStarted, events.StepCompleted)


def story() -> list[ScriptedReply]:
    """A plan of five steps, with a todo list in the first one."""
    plan = create("one", "two", "three", "four", "five")
    return [plan, TODOS, *(reply for number in range(1, 6) for reply in step(number))]


def tell(event: events.Event) -> None:
    """One line for what a plan has come to."""
    if isinstance(event, TOLD):
        print(event.type, event.session_id, event.run_id, event.step_id, flush=True)


async def main(root: Path) -> None:
    """Plans for ever, each step applied unasked."""
    made = world(root / "w", state=root / "sessions", apply="auto", on_event=tell)
    session_id = made.manager.new().session_id
    for number in itertools.count():
        made.script(*story())
        await made.finished(made.manager.start(RunRequest("run", f"build {number}", f"build {number}"), session_id))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
