"""Applies the user's commands to a run's plan, at rest or while it waits: arrange its steps, retry one, skip it, roll
back to before it.

Not here: the work on the steps (`execution.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from codeagent_lsp.agent.context.history import note
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.plan.execution import PlanRun, PlanStart
from codeagent_lsp.session.plan.run_planner import PlanState
from codeagent_lsp.session.run_parts import RunParts, remember
from codeagent_lsp.tools.plan.plan import Plan, PlanStep, StepEdit
from codeagent_lsp.workspace.changes.changeset import Applied

ROLLED_BACK = (
    "The user rolled the plan back to before step {number} ({title}): what was changed in it and after it is taken "
    "back. Read files again before you go on."
)


class Steering:
    """Carries out the user's commands about the plan of one run, while it runs and afterwards. `retry` and `skip`
    return whether the run has to be resumed to go on.
    """

    def __init__(self, parts: RunParts, state: PlanState, start: PlanStart, work: PlanRun) -> None:
        self._parts = parts
        self._state = state
        self._start = start
        self._work = work

    @property
    def plan(self) -> Plan | None:
        """The plan of the run; None if there is none."""
        return self._parts.record.plan

    @property
    def open_step(self) -> PlanStep | None:
        """The step that waits for the user, the next one of a plan on which nothing works; None if there is none."""
        if self.plan is None or self._at_work or self._taken_back:
            return None
        return self.plan.steps.next

    def arrange(self, wanted: Iterable[StepEdit]) -> Plan:
        """Put the steps that have not begun in this order and words; return the plan. SessionError if that is
        impossible.
        """
        self._check_standing()
        self._state.arrange(wanted)
        return self._state.plan

    def retry(self, step_id: str) -> bool:
        """Retry a step that did not succeed, or continue with the next one; return whether the run has to be resumed
        for that. SessionError if it is impossible.
        """
        self._check_standing()
        following = self._state.plan.steps.next
        if self._start.waiting and following is not None and following.step_id == step_id:
            self._start.begin()
            return False
        if self._answer_question(step_id, "retry"):
            return False
        self._state.retry(step_id)
        return True

    def skip(self, step_id: str) -> bool:
        """Skip a step, a pending one also while others are being worked on; return whether the run has to be resumed
        for that. SessionError if it is impossible.
        """
        self._check_standing()
        step = self._state.plan.steps.by_id(step_id)
        # Its turn has not come, so the work need not stop.
        if self._at_work and step.state == "pending":
            self._state.skip(step_id, self._parts.output.text("plan.by_user"))
            return False
        if self._answer_question(step_id, "skip"):
            return False
        self._state.skip(step_id, self._parts.output.text("plan.by_user"))
        following = self._state.plan.steps.next
        # Without a next step the run is resumed only to report that the plan is over; a failed one waits for its own
        # command.
        return following is None or following.state == "pending"

    def check(self, step_id: str) -> None:
        """Raise SessionError if the plan cannot be rolled back to before this step."""
        self._check_standing()
        self._state.mark(step_id)

    async def rollback(self, step_id: str) -> Applied | None:
        """Restore the plan and all changes to the state before a step; return the result of the undo, None if nothing
        was applied.

        SessionError while the run is running, and if the editor did not take back the changes.
        """
        if self._at_work:
            raise SessionError("plan.busy")
        step, mark = self._state.plan.steps.by_id(step_id), self._state.mark(step_id)
        number, gone = self._state.plan.steps.number(step_id), self._state.steps_since(step_id)
        applied = None
        if any(part.step_id in gone for part in self._parts.record.applied):
            applied = await self._parts.proposal.undo(gone)
            # The plan stays as it is: steps that count as never done must not have their changes in the files.
            if applied.outcome not in ("full", "partial"):
                raise SessionError("plan.undone")
        self._parts.proposal.staging.reset(mark.staged)
        self._state.restore(step_id)
        remember(self._parts, note(ROLLED_BACK.format(number=number, title=step.title)))
        self._parts.session.context.join(self._parts.record)
        return applied

    @property
    def _taken_back(self) -> bool:
        return not self._parts.session.context.rewinds.leaves(self._parts.record.run_id)

    def _check_standing(self) -> None:
        """Raise SessionError if a rewind took the run back: nothing goes on that counts as never done."""
        if self._taken_back:
            raise SessionError("plan.taken_back", title=self._parts.record.title)

    @property
    def _at_work(self) -> bool:
        return self._parts.record.status == "running"

    def _answer_question(self, step_id: str, way: str) -> bool:
        """Answer the question about this step, and return True; False if the run is at rest. SessionError if it is
        running and does not ask about this step.
        """
        if not self._at_work:
            return False
        failed = self._state.plan.steps.next
        if not self._work.waiting or failed is None or failed.step_id != step_id:
            raise SessionError("plan.busy")
        self._work.answer("retry" if way == "retry" else "skip")
        return True
