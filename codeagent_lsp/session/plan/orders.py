"""Carries out the commands on plans: arrange the steps that are left, retry a step, skip one, roll back to before one,
and resume the run.

Not here: the change of the plan itself (`steering.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from codeagent_lsp.session.manager import SessionManager
from codeagent_lsp.session.runs import LEAVE_SECONDS
from codeagent_lsp.tools.plan.plan import Plan, StepEdit
from codeagent_lsp.workspace.changes.changeset import Applied


def arrange_steps(manager: SessionManager, run_id: str, wanted: Sequence[StepEdit]) -> Plan:
    """Arrange the steps that have not begun, at work, too; return the plan. SessionError if that is impossible."""
    run = manager.runs.get(run_id)
    run.session.claim()
    return run.steering.arrange(wanted)


def retry_step(manager: SessionManager, run_id: str, step_id: str) -> None:
    """Retry a step that did not succeed, or start the next one, and go on. SessionError if that is impossible."""
    run = manager.runs.get(run_id)
    run.session.claim()
    if run.steering.retry(step_id):
        manager.runs.resume(run)


def skip_step(manager: SessionManager, run_id: str, step_id: str) -> None:
    """Skip a step and go on after it. SessionError if that is impossible."""
    run = manager.runs.get(run_id)
    run.session.claim()
    if run.steering.skip(step_id):
        manager.runs.resume(run)


async def roll_back(manager: SessionManager, run_id: str, step_id: str) -> Applied | None:
    """Roll a run back to before a step; if it is running, cancel it first. Return the result of the undo, None if
    nothing was applied. SessionError if that is impossible.
    """
    run = manager.runs.get(run_id)
    # Before the run is cancelled: a step that cannot be rolled back is no reason to stop the work.
    run.steering.check(step_id)
    run.session.claim()
    task = manager.runs.task(run_id)
    if task is not None:
        task.cancel()
        # Its end cancels the running step in the plan, which `rollback` then replaces.
        await asyncio.wait([task], timeout=LEAVE_SECONDS)
    return await run.steering.rollback(step_id)
