"""The plan of one run as the session keeps it: every change of it is stored and told, in one place.

Not here: what may follow what (`tools/plan/plan.py`), the work of a step (`execution.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.state import RunRecord, StepMark
from codeagent_lsp.tools.plan.plan import Plan, PlanStep
from codeagent_lsp.tools.plan.planner_port import StepDraft


class PlanState:
    """Changes a run's plan and tells of it; SessionError from whatever the plan refuses."""

    def __init__(self, record: RunRecord, output: RunOutput) -> None:
        self._record = record
        self._output = output

    @property
    def plan(self) -> Plan:
        """The plan. SessionError when the run has none."""
        if self._record.plan is None:
            raise SessionError("plan.none", run=self._record.run_id)
        return self._record.plan

    def create(self, goal: str, drafts: Iterable[StepDraft], complexity: str) -> None:
        """A plan where there was none."""
        plan = self._record.plan = Plan.create(goal, drafts, complexity)
        self._output.emit(
            events.PlanCreated(goal=plan.goal, steps=plan.steps_data(), estimated_complexity=plan.complexity)
        )

    def replan(self, drafts: Iterable[StepDraft], reason: str) -> None:
        """Other steps in place of those to come, because one failed."""
        self._record.plan = self.plan.replanned(drafts)
        self._output.emit(events.ReplanWarning(reason=reason, count=self.plan.replans))
        self._tell()

    def start(self, step: PlanStep) -> None:
        """A step begins; how it was before it began for the first time is remembered."""
        plan = self.plan
        started = plan.started(step.step_id)
        self._record.marks.setdefault(step.step_id, StepMark(plan, self._record.staged))
        self._record.plan, self._record.step_id = started, step.step_id
        self._output.emit(events.StepStarted(step_id=step.step_id, description=step.title, progress=started.progress))

    def complete(self, step_id: str, files: tuple[str, ...]) -> None:
        """A step went well; `files` are those it changed."""
        self._record.plan = self.plan.completed(step_id)
        self._output.emit(events.StepCompleted(step_id=step_id, files_changed=files, progress=self.plan.progress))

    def fail(self, step_id: str, error: str) -> None:
        """A step went wrong."""
        self._record.plan = self.plan.failed(step_id, error)
        self._output.emit(events.StepError(step_id=step_id, error=error))

    def retry(self, step_id: str) -> None:
        """A step that did not go well is open again."""
        self._record.plan = self.plan.retried(step_id)
        self._tell()

    def skip(self, step_id: str, reason: str) -> None:
        """A step is left out."""
        self._record.plan = self.plan.skipped(step_id, reason)
        self._tell()

    def cancel(self) -> None:
        """The work on the plan was stopped."""
        stopped = self.plan.cancelled()
        if stopped != self.plan:
            self._record.plan = stopped
            self._tell()
        self._output.emit(events.ExecutionCancelled())

    def mark(self, step_id: str) -> StepMark:
        """How it was before a step. SessionError for one that has not begun."""
        label = self.plan.label(step_id)
        mark = self._record.marks.get(step_id)
        if mark is None:
            raise SessionError("plan.not_begun", step=label)
        return mark

    def steps_since(self, step_id: str) -> tuple[str, ...]:
        """The step and all that began after it; a step that was replaced meanwhile counts too."""
        begun = list(self._record.marks)
        return tuple(begun[begun.index(step_id) :])

    def restore(self, step_id: str) -> None:
        """The plan is again what it was before a step."""
        mark = self.mark(step_id)
        self._record.roll_marks_back(step_id)
        self._record.plan = mark.plan
        self._tell(rolled_back_to=step_id)

    def _tell(self, rolled_back_to: str | None = None) -> None:
        plan = self.plan
        self._output.emit(events.PlanModified(steps=plan.steps_data(), rolled_back_to=rolled_back_to))
