"""What the commands about plans do with the runs of a server: start one again, stop one, go back in it.

Not here: what becomes of the plan itself (`steering.py`).
"""

from __future__ import annotations

import asyncio

from codeagent_lsp.session.manager import LEAVE_SECONDS, SessionManager
from codeagent_lsp.workspace.changes.editor import Applied


def retry_step(manager: SessionManager, run_id: str, step_id: str) -> None:
    """Do a step that did not go well, or is next, and go on from there. SessionError when that makes no sense."""
    run = manager.run(run_id)
    run.session.claim()
    if run.steering.retry(step_id):
        manager.go_on(run)


def skip_step(manager: SessionManager, run_id: str, step_id: str) -> None:
    """Leave a step out and go on after it. SessionError when that makes no sense."""
    run = manager.run(run_id)
    run.session.claim()
    if run.steering.skip(step_id):
        manager.go_on(run)


async def roll_back(manager: SessionManager, run_id: str, step_id: str) -> Applied | None:
    """Back to before a step; a run at work is stopped first. What came of it, None when nothing was applied."""
    run = manager.run(run_id)
    run.steering.check(step_id)
    run.session.claim()
    task = manager.task(run_id)
    if task is not None:
        task.cancel()
        await asyncio.wait([task], timeout=LEAVE_SECONDS)
    return await run.steering.rollback(step_id)
