"""Changes the plan of one run: every change is stored and emitted here, in one place.

Not here: which changes are possible (`tools/plan/plan.py`), the work of a step (`execution.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.state import RunRecord, StepMark
from codeagent_lsp.tools.plan.plan import Plan, PlanStep, StepDraft, StepEdit


class PlanState:
    """The plan of one run in its record. Every change emits its event; SessionError if the plan does not allow it."""

    def __init__(self, record: RunRecord, output: RunOutput) -> None:
        self._record = record
        self._output = output

    @property
    def plan(self) -> Plan:
        """Return the plan. SessionError if the run has none."""
        if self._record.plan is None:
            raise SessionError("plan.none", run=self._record.run_id)
        return self._record.plan

    def create(self, goal: str, drafts: Iterable[StepDraft], complexity: str) -> None:
        """Create the plan from drafts of its steps."""
        plan = self._record.plan = Plan.create(goal, drafts, complexity)
        self._output.emit(
            events.PlanCreated(goal=plan.goal, steps=plan.steps.to_data(), estimated_complexity=plan.complexity)
        )

    def replan(self, drafts: Iterable[StepDraft], reason: str) -> None:
        """Replace the pending steps by new ones from `drafts` after a step failed with the error `reason`; failed,
        cancelled and running steps stay in the plan as skipped.
        """
        self._record.plan = self.plan.replanned(drafts)
        self._output.emit(events.ReplanWarning(reason=reason, count=self.plan.replans))
        self._tell()

    def arrange(self, wanted: Iterable[StepEdit]) -> None:
        """Put the steps that have not begun in the order and words that the user wants; without change nothing is told.
        SessionError if that is impossible.
        """
        arranged = self.plan.arranged(wanted)
        if arranged != self.plan:
            self._record.plan = arranged
            self._tell()

    def start(self, step: PlanStep) -> None:
        """Mark a step as running; at its first start, store the state before it for a rollback."""
        plan = self.plan
        started = plan.started(step.step_id)
        # Not again at a retry: a rollback goes to before the first try.
        self._record.marks.setdefault(step.step_id, StepMark(plan, self._record.staged))
        self._record.plan, self._record.step_id = started, step.step_id
        self._output.emit(
            events.StepStarted(step_id=step.step_id, description=step.title, progress=started.steps.progress)
        )

    def complete(self, step_id: str, files: tuple[str, ...]) -> None:
        """Mark a step as completed; `files` are the paths it changed."""
        self._record.plan = self.plan.completed(step_id)
        self._output.emit(events.StepCompleted(step_id=step_id, files_changed=files, progress=self.plan.steps.progress))

    def fail(self, step_id: str, error: str) -> None:
        """Mark a step as failed."""
        self._record.plan = self.plan.failed(step_id, error)
        self._output.emit(events.StepError(step_id=step_id, error=error))

    def retry(self, step_id: str) -> None:
        """Mark a step that did not succeed as pending again."""
        self._record.plan = self.plan.retried(step_id)
        self._tell()

    def skip(self, step_id: str, reason: str) -> None:
        """Mark a step as skipped."""
        self._record.plan = self.plan.skipped(step_id, reason)
        self._tell()

    def cancel(self) -> None:
        """Mark the running step as cancelled, and emit that the work on the plan was cancelled."""
        stopped = self.plan.cancelled()
        if stopped != self.plan:
            self._record.plan = stopped
            self._tell()
        self._output.emit(events.ExecutionCancelled())

    def mark(self, step_id: str) -> StepMark:
        """Return the state before a step. SessionError if the step has not begun."""
        label = self.plan.steps.label(step_id)
        mark = self._record.marks.get(step_id)
        if mark is None:
            raise SessionError("plan.not_begun", step=label)
        return mark

    def steps_since(self, step_id: str) -> tuple[str, ...]:
        """Return the ids of the step and of all that began after it, including steps replaced since."""
        begun = list(self._record.marks)
        return tuple(begun[begun.index(step_id) :])

    def restore(self, step_id: str) -> None:
        """Restore the plan to its state before a step. SessionError if the step has not begun."""
        mark = self.mark(step_id)
        self._record.roll_marks_back(step_id)
        self._record.plan = mark.plan
        self._tell(rolled_back_to=step_id)

    def _tell(self, rolled_back_to: str | None = None) -> None:
        plan = self.plan
        self._output.emit(events.PlanModified(steps=plan.steps.to_data(), rolled_back_to=rolled_back_to))
