"""A process that queues tasks and says words to runs until it is killed; prints each item once it is acknowledged."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path

from codeagent_lsp.errors import SessionError
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.session.request import RunRequest
from tests.session.fakes import call, world


def work(arguments: Sequence[str]) -> int:
    """What the process does in the folder that is its argument."""
    asyncio.run(_work(Path(arguments[0])))
    return 0


async def _work(root: Path) -> None:
    """For ever: a task, which waits for those before it, and words to the run that is at work."""
    made = world(root / "w", state=root / "sessions", deadline=0.001)
    look = ScriptedReply("", (call("list_dir"),), delay=0.001)
    made.models["model"] = ScriptedModel([look, ScriptedReply("Done.", delay=0.001)] * 5000)
    session_id = made.manager.new().session_id
    print("session", session_id, flush=True)
    for number in itertools.count():
        request = RunRequest("run", f"task {number}", f"task {number}")
        made.manager.start(request, session_id)
        print("item", request.task, flush=True)
        await asyncio.sleep(0.004)
        for run_id in made.manager.runs.active():
            try:
                made.manager.queue.say(made.manager.runs.get(run_id), f"word {number}")
            except SessionError:  # it has just ended
                continue
            print("item", f"word {number}", flush=True)
