"""Implements the planning tools of one run: make a plan, change it after a failure, write the document to be approved.

Not here: the tools (`tools/plan/plan_tools.py`), the work on the steps (`execution.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from codeagent_lsp import events
from codeagent_lsp.errors import ToolRetry
from codeagent_lsp.session.plan.plan_state import PlanState
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.services import PlanPages
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.plan.plan import SECTIONS, PlanDocument, StepDraft, UpdateAction

Phase = Literal["open", "step", "failed"]

CREATED = "The plan stands, {count} steps. They are given to you one after the other; wait for the first one."
REPLANNED = "The rest of the plan is replaced; {count} steps are left. They are given to you one after the other."
IN_STEP = "A plan is being worked on already; do its current step.\n{plan}"
UNAPPROVED = "The written plan is not approved yet: finish it with plan_update, then call plan_exit."
ENTERED = (
    "The plan document is open. Explore by reading; nothing may be changed or run until the user approves. Write down "
    "with plan_update what you find: {sections}. Then call plan_exit."
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

    @property
    def reading_only(self) -> bool:
        """Return whether a plan document awaits approval; until then nothing may be changed."""
        document = self._record.document
        return document is not None and not document.approved

    @property
    def plan_id(self) -> str:
        """Return the id of the run, as it has one plan at most."""
        return self._record.run_id

    @property
    def goal(self) -> str:
        """Return the goal of the plan; '' if there is no plan."""
        return self._record.plan.goal if self._record.plan is not None else ""

    def enter_phase(self, phase: Phase, reason: str = "") -> None:
        """Enter a phase: a plan may be made (`open`), changed because of `reason` (`failed`), or neither (`step`)."""
        self._phase, self._reason, self.made = phase, reason, False

    def create(self, goal: str, steps: tuple[StepDraft, ...], complexity: str) -> str:
        """Make a plan, or replace the steps that are left after a failure. ToolRetry if neither is allowed now."""
        if self.reading_only:
            raise ToolRetry(UNAPPROVED)
        # `made`: a reply may hold two calls of create_plan, and the second must not replace what the first has made.
        if self._phase == "step" or self.made:
            raise ToolRetry(IN_STEP.format(plan=self._state.plan.text()))
        self.made = True
        if self._phase == "failed":
            self._state.replan(steps, self._reason)
            return REPLANNED.format(count=len(steps))
        self._state.create(goal, steps, complexity)
        return CREATED.format(count=len(steps))

    def enter(self, title: str) -> str:
        """Begin the plan document. ToolRetry while steps are being worked on."""
        if self._phase != "open":
            raise ToolRetry(IN_STEP.format(plan=self._state.plan.text()))
        self._write(PlanDocument(title.strip() or title))
        return ENTERED.format(sections=", ".join(map(self._output.text, SECTIONS)))

    def update(self, action: UpdateAction, content: str, section: str) -> str:
        """Change the plan document. ToolRetry if none is open, or if `section` is missing."""
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
        self._write(changed)
        return f"The plan document has {len(changed.body)} characters now."

    async def exit(self) -> str:
        """Ask the user to approve the plan document; only an explicit approval counts. ToolRetry if none is open."""
        document = self._open_document().with_explored(self._explored(), self._output.language)
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

    def _explored(self) -> list[str]:
        calls = (call for message in self._record.messages for call in message.tool_calls)
        return [str(call.arguments["path"]) for call in calls if call.name == "read_file" and "path" in call.arguments]
