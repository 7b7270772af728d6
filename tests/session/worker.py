"""A process that runs scripted turns until it is killed; prints each turn's id once it is acknowledged."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path

from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.texts import text
from tests.session.fakes import say, world, write


def work(arguments: Sequence[str]) -> int:
    """What the process does in the folder that is its argument."""
    asyncio.run(_work(Path(arguments[0])))
    return 0


async def _work(root: Path) -> None:
    """Turns for ever: each writes a file; every second one is applied, every third undone."""
    made = world(root / "w", state=root / "sessions", deadline=0.001)
    session_id = made.manager.new().session_id
    for number in itertools.count():
        made.script(write(f"f{number}.py", f"x = {number}\n"), say(f"turn {number}"))
        made.user.says = [text("choice.apply", "en")] if number % 2 else []
        run_id = made.manager.start(RunRequest("run", f"task {number}", f"task {number}"), session_id)
        print("started", session_id, run_id, number, flush=True)
        done = await made.finished(run_id)
        if number % 6 == 5:
            await made.manager.runs.get(run_id).proposal.undo()
        print("finished", session_id, run_id, number, done.outcome, flush=True)
