"""What the user does to a run's plan: try a step again, leave it out, go back to before it; at rest or while it waits.

Not here: the work on the steps (`execution.py`).
"""

from __future__ import annotations

from codeagent_lsp.agent.context.history import note
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.plan.execution import PlanRun
from codeagent_lsp.session.plan.plan_state import PlanState
from codeagent_lsp.session.run_parts import RunParts, remember
from codeagent_lsp.tools.plan.plan import Plan, PlanStep
from codeagent_lsp.workspace.changes.editor import Applied

ROLLED_BACK = (
    "The user rolled the plan back to before step {number} ({title}): what was changed in it and after it is taken "
    "back. Read files again before you go on."
)


class Steering:
    """The wheel of one run's plan. Each call says whether the run has to be started again to go on."""

    def __init__(self, parts: RunParts, state: PlanState, work: PlanRun) -> None:
        self._parts = parts
        self._state = state
        self._work = work

    @property
    def plan(self) -> Plan | None:
        """The plan, if there is one."""
        return self._parts.record.plan

    @property
    def open_step(self) -> PlanStep | None:
        """The step that waits for the user: the next one of a plan that nobody works on."""
        if self.plan is None or self._at_work:
            return None
        return self.plan.next

    def retry(self, step_id: str) -> bool:
        """Try a step again, or go on with the one that is next."""
        if self._answered(step_id, "retry"):
            return False
        self._state.retry(step_id)
        return True

    def skip(self, step_id: str) -> bool:
        """Leave a step out; those to come can be left out while others are worked on."""
        step = self._state.plan.step(step_id)
        if self._at_work and step.state == "pending":
            self._state.skip(step_id, self._parts.output.text("plan.by_user"))
            return False
        if self._answered(step_id, "skip"):
            return False
        self._state.skip(step_id, self._parts.output.text("plan.by_user"))
        following = self._state.plan.next
        return following is None or following.state == "pending"

    def check(self, step_id: str) -> None:
        """SessionError when there is no going back to before this step."""
        self._state.mark(step_id)

    async def rollback(self, step_id: str) -> Applied | None:
        """Everything as it was before a step; what came of taking back, None when nothing was applied.

        SessionError while the run is at work, and when the editor did not take the changes back.
        """
        if self._at_work:
            raise SessionError("plan.busy")
        step, mark = self._state.plan.step(step_id), self._state.mark(step_id)
        number, gone = self._state.plan.number(step_id), self._state.steps_since(step_id)
        applied = None
        if any(part.step_id in gone for part in self._parts.record.applied):
            applied = await self._parts.proposal.undo(gone)
            if applied.outcome not in ("full", "partial"):
                raise SessionError("plan.undone")
        self._parts.proposal.staging.reset(mark.staged)
        self._state.restore(step_id)
        remember(self._parts, note(ROLLED_BACK.format(number=number, title=step.title)))
        self._parts.session.context.join(self._parts.record)
        return applied

    @property
    def _at_work(self) -> bool:
        return self._parts.record.status == "running"

    def _answered(self, step_id: str, way: str) -> bool:
        """Whether the run is at work and waited for exactly this."""
        if not self._at_work:
            return False
        failed = self._state.plan.next
        if not self._work.waiting or failed is None or failed.step_id != step_id:
            raise SessionError("plan.busy")
        self._work.answer("retry" if way == "retry" else "skip")
        return True
