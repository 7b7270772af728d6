"""The plan of one run: every change of it is stored and emitted here, in one place, and the planning tools make, change
and describe it.

Not here: the tools (`tools/plan/plan_tools.py`), which changes are possible (`tools/plan/plan.py`), the work on the
steps (`plan_execution.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError, ToolRetry
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.services import PlanPages
from codeagent_lsp.session.state import RunRecord, StepMark
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.plan.plan import (
    MOST_CHARACTERS,
    SECTIONS,
    Plan,
    PlanDocument,
    PlanStep,
    StepDraft,
    StepEdit,
    UpdateAction,
)

Phase = Literal["open", "step", "failed"]

CREATED = "The plan stands, {count} steps. They are given to you one after the other; wait for the first one."
REPLANNED = "The rest of the plan is replaced; {count} steps are left. They are given to you one after the other."
IN_STEP = "A plan is being worked on already; do its current step.\n{plan}"
UNAPPROVED = "The written plan is not approved yet: finish it with plan_update, then call plan_exit."
ENTERED = (
    "The plan document is open. Explore by reading; nothing may be changed or run until the user approves. Write down "
    "with plan_update what you find: {sections}. Then call plan_exit."
)
TOO_LONG = (
    "This is not written: the plan document has {now} characters and may have {most}, so its end would be lost. "
    "Shorten it with the action replace or section."
)
NOT_ENTERED = "There is no plan document; call plan_enter first."
APPROVED = "The user approved the plan. Do it now, with create_plan when it has several steps."
REJECTED = (
    "The user did not approve the plan. Nothing may be changed. Change it with plan_update and call plan_exit again, "
    "or ask the user what they want."
)


class RunPlanner:
    """The `Planner` of one run. `made` is True once a plan was made in the present phase, so that its steps can
    begin.
    """

    def __init__(self, record: RunRecord, state: PlanState, output: RunOutput, pages: PlanPages) -> None:
        self.made = False
        self._record = record
        self._state = state
        self._output = output
        self._pages = pages
        self._phase: Phase = "open"
        self._reason = ""
        self._known: tuple[str, ...] = ()  # the titles of the steps as the model knows them

    @property
    def reading_only(self) -> bool:
        """Whether a plan document awaits approval; until then nothing may be changed."""
        document = self._record.document
        return document is not None and not document.approved

    @property
    def plan_id(self) -> str:
        """The id of the run, which has one plan at most."""
        return self._record.run_id

    @property
    def goal(self) -> str:
        """The goal of the plan; '' if there is no plan."""
        return self._record.plan.goal if self._record.plan is not None else ""

    def enter_phase(self, phase: Phase, reason: str = "") -> None:
        """Enter a phase: a plan may be made (`open`), changed because of `reason` (`failed`), or neither (`step`)."""
        self._phase, self._reason, self.made = phase, reason, False

    def create(self, goal: str, steps: tuple[StepDraft, ...], complexity: str) -> str:
        """Make a plan (`complexity` is the model's own word for it), or replace the steps that are left after a
        failure; return the sentence for the model on what comes next. ToolRetry if neither is allowed now: a plan is
        being worked on, was just made, or its document is not approved.
        """
        if self.reading_only:
            raise ToolRetry(UNAPPROVED)
        # `made`: a reply may hold two calls of create_plan, and the second must not replace what the first has made.
        if self._phase == "step" or self.made:
            raise ToolRetry(IN_STEP.format(plan=self._state.plan.text()))
        self.made = True
        if self._phase == "failed":
            self._state.replan(steps, self._reason)
            self._known = self._titles()
            return REPLANNED.format(count=len(steps))
        self._state.create(goal, steps, complexity)
        self._known = self._titles()
        return CREATED.format(count=len(steps))

    def arranged(self) -> bool:
        """Return whether the user has arranged the plan since the model made it, or since the last call."""
        known, self._known = self._known, self._titles()
        return bool(known) and known != self._known

    def _titles(self) -> tuple[str, ...]:
        return tuple(step.title for step in self._state.plan.steps)

    def enter(self, title: str) -> str:
        """Begin the plan document, from when on the run may only read; return the sentence for the model on what to
        write. An earlier document is replaced. ToolRetry while steps are being worked on.
        """
        if self._phase != "open":
            raise ToolRetry(IN_STEP.format(plan=self._state.plan.text()))
        self._write(PlanDocument(title.strip() or title))
        return ENTERED.format(sections=", ".join(map(self._output.text, SECTIONS)))

    def update(self, action: UpdateAction, content: str, section: str) -> str:
        """Change the plan document and return its length as a sentence for the model. ToolRetry, with nothing changed,
        if none is open, if `section` is missing, or if the document would lose its end because it is too long.
        """
        document = self._open_document()
        match action:
            case "replace":
                changed = document.replaced(content)
            case "append":
                changed = document.appended(content)
            case _ if section.strip():
                changed = document.with_section(section, content)
            case _:
                raise ToolRetry("The action section needs the parameter section: a heading such as Approach.")
        if len(changed.body) >= MOST_CHARACTERS:
            raise ToolRetry(TOO_LONG.format(most=MOST_CHARACTERS - 1, now=len(document.body)))
        self._write(changed)
        return f"The plan document has {len(changed.body)} characters now."

    async def exit(self) -> str:
        """Ask the user to approve the plan document and wait; return the sentence for the model on what to do now. Only
        an explicit approval counts. ToolRetry if no document is open.
        """
        document = self._open_document().with_explored(self._explored_paths(), self._output.language)
        # Stored before it is asked about: the user approves just what the file has.
        self._write(document)
        title = self._output.text("plan.approve", title=document.title)
        self._output.emit(events.AwaitingApproval(message=title))
        # Shown as a document, since a message box cuts a long plan.
        await self._pages.show(self._record.run_id)
        reject, approve = self._output.text("choice.reject"), self._output.text("choice.approve")
        answer = await self._output.ask(Question("approval", title, (reject, approve), detail=document.markdown))
        if answer != (approve,):
            self._output.emit(events.PlanRejected(reason=answer[0] if answer else None))
            return REJECTED
        self._record.document = replace(document, approved=True)
        self._output.emit(events.PlanApproved())
        return APPROVED

    def _open_document(self) -> PlanDocument:
        if self._record.document is None or not self.reading_only:
            raise ToolRetry(NOT_ENTERED)
        return self._record.document

    def _write(self, document: PlanDocument) -> None:
        self._record.document = document
        self._output.emit(events.PlanModified(document=document.markdown))

    def _explored_paths(self) -> list[str]:
        calls = (call for message in self._record.messages for call in message.tool_calls)
        return [str(call.arguments["path"]) for call in calls if call.name == "read_file" and "path" in call.arguments]


class PlanState:
    """The plan of one run in its record. Every change is stored, and emits its event; SessionError if the plan does not
    allow it.
    """

    def __init__(self, record: RunRecord, output: RunOutput) -> None:
        self._record = record
        self._output = output

    @property
    def plan(self) -> Plan:
        """The plan. SessionError if the run has none."""
        if self._record.plan is None:
            raise SessionError("plan.none", run=self._record.run_id)
        return self._record.plan

    def create(self, goal: str, drafts: Iterable[StepDraft], complexity: str) -> None:
        """Create the plan from drafts of its steps, in place of an earlier one, and emit it; `complexity` is `low`,
        `medium` or `high`.
        """
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
        """Put the steps that have not begun in the order and words that the user wants; without a change nothing is
        emitted. SessionError if that is impossible.
        """
        arranged = self.plan.arranged(wanted)
        if arranged != self.plan:
            self._record.plan = arranged
            self._tell()

    def start(self, step: PlanStep) -> None:
        """Mark a step as running; at its first start, store the state before it for a rollback. SessionError for an
        unknown step.
        """
        plan = self.plan
        started = plan.started(step.step_id)
        # Not again at a retry: a rollback goes to before the first try.
        self._record.marks.setdefault(step.step_id, StepMark(plan, self._record.staged))
        self._record.plan, self._record.step_id = started, step.step_id
        self._output.emit(
            events.StepStarted(step_id=step.step_id, description=step.title, progress=started.steps.progress)
        )

    def complete(self, step_id: str, files: tuple[str, ...]) -> None:
        """Mark a step as completed; `files` are the absolute paths that it changed."""
        self._record.plan = self.plan.completed(step_id)
        self._output.emit(events.StepCompleted(step_id=step_id, files_changed=files, progress=self.plan.steps.progress))

    def fail(self, step_id: str, error: str) -> None:
        """Mark a step as failed, for the reason `error`."""
        self._record.plan = self.plan.failed(step_id, error)
        self._output.emit(events.StepError(step_id=step_id, error=error))

    def retry(self, step_id: str) -> None:
        """Mark a step that did not succeed as pending again. SessionError if it is completed, running, or not the next
        one.
        """
        self._record.plan = self.plan.retried(step_id)
        self._tell()

    def skip(self, step_id: str, reason: str) -> None:
        """Mark a step as skipped; the reason is shown with it. SessionError if it is completed."""
        self._record.plan = self.plan.skipped(step_id, reason)
        self._tell()

    def cancel(self) -> None:
        """Mark the running step, if any, as cancelled and emit `execution_cancelled`."""
        stopped = self.plan.cancelled()
        if stopped != self.plan:
            self._record.plan = stopped
            self._tell()
        self._output.emit(events.ExecutionCancelled())

    def mark(self, step_id: str) -> StepMark:
        """Return the plan and the staged changes as they were before a step began. SessionError if it has not begun."""
        label = self.plan.steps.label(step_id)
        mark = self._record.marks.get(step_id)
        if mark is None:
            raise SessionError("plan.not_begun", step=label)
        return mark

    def steps_since(self, step_id: str) -> tuple[str, ...]:
        """Return the ids of the step and of all that began after it, including steps replaced since. ValueError if it
        has not begun.
        """
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
