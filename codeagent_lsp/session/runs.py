"""The runs of one server by their ids, the tasks of those that are at work, and the user's commands on their plans.

Cancelling a run's task is the one way to stop it. Not here: sessions (`manager.py`), one run (`run.py`), what a command
does to a plan (`plan_execution.py`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import SessionError

if TYPE_CHECKING:
    from codeagent_lsp.session.run import Run
    from codeagent_lsp.tools.plan.plan import Plan, StepEdit
    from codeagent_lsp.workspace.changes.changeset import Applied

LEAVE_SECONDS = 1.0


class Runs:
    """The runs that are known to one server, the oldest first; for one event loop. `on_end` is called with each run
    whose task has ended.
    """

    def __init__(self, on_end: Callable[[Run], None] = lambda run: None) -> None:
        self._on_end = on_end
        self._runs: dict[str, Run] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def add(self, run: Run) -> None:
        """Add a run as the newest known one, without starting it; see `start`."""
        self._runs[run.record.run_id] = run

    def add_all(self, runs: Iterable[Run], *, newest: bool) -> None:
        """Add the runs of an earlier session, as the newest or as the oldest that are known."""
        added = {run.record.run_id: run for run in runs}
        self._runs = {**self._runs, **added} if newest else {**added, **self._runs}

    def start(self, run: Run, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that does the `work` of a run that was added, and return at once; `cancel` ends it."""

        def ended(task: asyncio.Task[None]) -> None:
            # Before `on_end`, which looks whether the session is free.
            self._tasks.pop(run.record.run_id, None)
            # A task that is cancelled before its first step never gets to its own `finally`.
            run.abandon()
            self._on_end(run)

        task = asyncio.get_running_loop().create_task(work, name=f"run {run.record.run_id}")
        self._tasks[run.record.run_id] = task
        task.add_done_callback(ended)

    def resume(self, run: Run) -> None:
        """Start a task that goes on with the plan of a run that had ended; return at once."""
        run.resume()
        self.start(run, run.work_on())

    def get(self, run_id: str) -> Run:
        """Return the run with that id. SessionError if there is none."""
        run = self._runs.get(run_id)
        if run is None:
            raise SessionError("run.unknown", run=run_id)
        return run

    def all(self) -> tuple[Run, ...]:
        """Return all runs, ended ones too, the oldest first; () for none."""
        return tuple(self._runs.values())

    def last_applied(self) -> Run:
        """Return the run whose changes were applied last, or the rewind after them; not the one that began last, as the
        changes of several may wait. SessionError if there is nothing to undo.
        """
        found: tuple[float, Run] | None = None
        for run in self._runs.values():
            run.proposal.note_late()
            at = self._applied_at(run)
            if at is not None and (found is None or at >= found[0]):
                found = at, run
        if found is None:
            raise SessionError("undo.nothing")
        return found[1]

    def _applied_at(self, run: Run) -> float | None:
        """Return when a run has changed something last, in seconds since the epoch; None for nothing to undo."""
        if run.proposal.undoing:  # a user in a hurry asks for the one before
            return None
        # One that is being applied is undone when that has ended; a client may ask for both in one go.
        if run.proposal.applying:
            return math.inf
        rewind = run.session.context.rewinds.standing.get(run.record.run_id)
        # Events have milliseconds; what is as old as that is in the order of the runs.
        times = [round(part.ts, 3) for part in run.record.applied] + ([rewind.event.ts] if rewind is not None else [])
        return max(times, default=None)

    def active(self) -> tuple[str, ...]:
        """Return the ids of the runs that have not ended; () for none."""
        return tuple(name for name in self._tasks if name in self._runs)  # one that is removed may still be ending

    def newest_at_work(self) -> Run:
        """Return the run that began last of those that have not ended, without attempts and runs of other agents, to
        which the user cannot speak. SessionError if there is none.
        """
        for run in map(self.get, reversed(self.active())):
            if not run.record.attempt_of and not run.record.lent:
                return run
        raise SessionError("steer.nothing")

    def task(self, run_id: str) -> asyncio.Task[None] | None:
        """Return the task of a run; None if it has ended or is unknown."""
        return self._tasks.get(run_id)

    def cancel(self, run_id: str | None = None) -> tuple[str, ...]:
        """Cancel a run, or all for None; return the ids of those that had not ended, without waiting for them; () if it
        had. SessionError for an unknown run.
        """
        if run_id is not None:
            self.get(run_id)
        chosen = tuple(name for name in self._tasks if run_id in (None, name))
        for name in chosen:
            self._tasks[name].cancel()
        return chosen

    def arrange_steps(self, run_id: str, wanted: Sequence[StepEdit]) -> Plan:
        """Put the steps of a plan that have not begun in this order and words, also while the run works; return the
        plan. SessionError if that is impossible.
        """
        return self._claim(run_id).steering.arrange(wanted)

    def retry_step(self, run_id: str, step_id: str) -> None:
        """Retry a step that did not succeed, or start the next one, and go on. SessionError if that is impossible."""
        run = self._claim(run_id)
        if run.steering.retry(step_id):
            self.resume(run)

    def skip_step(self, run_id: str, step_id: str) -> None:
        """Skip a step and, if nothing works on the plan, go on after it. SessionError if that is impossible."""
        run = self._claim(run_id)
        if run.steering.skip(step_id):
            self.resume(run)

    async def roll_back(self, run_id: str, step_id: str) -> Applied | None:
        """Roll a run back to before a step; if it is running, cancel it first and wait at most 1 s for its end. Return
        the result of the undo, None if nothing was applied. SessionError for an unknown run or step, one that has not
        begun, or if the run does not end or the editor refuses.
        """
        run = self.get(run_id)
        # Before the run is cancelled: a step that cannot be rolled back is no reason to stop the work.
        run.steering.check(step_id)
        run.session.claim()
        task = self.task(run_id)
        if task is not None:
            task.cancel()
            # Its end cancels the running step in the plan, which `rollback` then replaces.
            await asyncio.wait([task], timeout=LEAVE_SECONDS)
        return await run.steering.rollback(step_id)

    def remove(self, run_ids: Iterable[str]) -> list[asyncio.Task[None]]:
        """Cancel these runs and forget them; return the tasks of those that had not ended, which the caller may wait
        for.
        """
        working = []
        for run_id in run_ids:
            self._runs.pop(run_id, None)
            task = self._tasks.get(run_id)
            if task is not None:
                task.cancel()
                working.append(task)
        return working

    async def close(self) -> None:
        """Cancel all runs and wait for their ends, at most 1 s; those that take longer are left."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LEAVE_SECONDS)

    def _claim(self, run_id: str) -> Run:
        run = self.get(run_id)
        run.session.claim()
        return run
