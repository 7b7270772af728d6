"""Waits for the user before a plan starts: it is shown, can be arranged, changed in words, started or cancelled.

Not here: what arranging does (`plan_state.py`), the work on the steps (`execution.py`).
"""

from __future__ import annotations

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.conversation.conversation import Conversation
from codeagent_lsp.session.plan.plan_state import PlanState
from codeagent_lsp.session.plan.run_planner import RunPlanner
from codeagent_lsp.session.request import Planning, short_title
from codeagent_lsp.session.run_output import PLANNING_CALL
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.tools.asking import Question

CHANGE_CALLS = 2
CHANGE = (
    "Nothing of the plan has begun; the user wants it changed{words}\nCall create_plan with all the steps of the "
    "changed plan. The plan until now:\n{plan}"
)
SAID = ", as they say here."


class PlanStart:
    """The beginning of the plan of one run."""

    def __init__(self, parts: RunParts, state: PlanState, planner: RunPlanner) -> None:
        self._parts = parts
        self._state = state
        self._planner = planner
        self._question: Question | None = None
        self._begun = False

    @property
    def waiting(self) -> bool:
        """Return whether the user is being asked whether the plan may start."""
        return self._question is not None

    def begin(self) -> None:
        """Answer the open question by a command: the plan starts."""
        self._begun = self.waiting
        self.reconsider()

    def reconsider(self) -> None:
        """Close the open question, as the user has said something to the run: the plan is changed by it."""
        if self._question is not None:
            self._parts.services.user.inbox.settle(self._parts.record.run_id, self._question)

    async def agreed(self, conversation: Conversation, planning: Planning | None) -> bool:
        """Return whether the plan may start, `planning` being what the user said of this request. By default one waits
        where plan mode was asked for; an attempt has nobody to wait for.
        """
        approval = self._parts.services.user.settings().agent.plan_approval
        waits = approval == "always" or (approval == "auto" and planning == "always")
        if not waits or self._parts.record.attempt_of:
            return True
        if await self._started(conversation):
            self._parts.output.emit(events.PlanApproved())
            return True
        self._parts.output.emit(events.PlanRejected())
        return False

    async def _started(self, conversation: Conversation) -> bool:
        """Ask until the user starts the plan or does not want it."""
        output, pages, run_id = self._parts.output, self._parts.services.user.plans, self._parts.record.run_id
        keys = ("cancel", "edit_plan", "change", "start_plan")
        cancel, edit, change, start = (output.text(f"choice.{key}") for key in keys)
        await pages.offer(run_id)
        beside = False
        while True:
            offered = (edit,) if pages.writable and not beside else ()
            answer = await self._asked((cancel, *offered, change, start), beside=beside)
            if self._begun or answer == (start,):
                if self._take_written():
                    return True
            elif answer == (edit,):
                # A question over the page keeps some editors from writing in it.
                beside = await pages.show(run_id, take_focus=True)
            elif answer == (change,):
                words = await output.ask(Question("question", output.text("plan.change")))
                beside = not await self._change(conversation, f": {words[0]}" if words else "") and beside
            elif answer is None and self._parts.session.context.waiting.said_to(run_id):
                beside = not await self._change(conversation, SAID) and beside
            else:
                return False

    async def _asked(self, choices: tuple[str, ...], *, beside: bool) -> tuple[str, ...] | None:
        """Ask about the plan; a command may answer as well."""
        output, plan, hide = self._parts.output, self._state.plan, self._parts.services.hide
        title = output.text("plan.start", goal=short_title(plan.goal, hide), count=len(plan.steps))
        output.emit(events.AwaitingApproval(message=title))
        self._begun, self._question = False, Question("question", title, choices, beside=beside)
        try:
            return await output.ask(self._question)
        finally:
            self._question = None

    def _take_written(self) -> bool:
        """Take over what the user has written in the plan that is shown; return False if it is no plan."""
        try:
            written = self._parts.services.user.plans.written(self._parts.record.run_id)
            if written is not None:
                self._state.arrange(written)
        except SessionError as problem:
            self._parts.output.emit(events.StatusChanged(message=self._parts.output.explain(problem)))
            return False
        return True

    async def _change(self, conversation: Conversation, words: str) -> bool:
        """Have the model change the plan by the user's words, '' for none, and what was said to the run; return whether
        it did.
        """
        if not words:
            return False
        self._planner.enter_phase("open")
        conversation.tell(CHANGE.format(words=words, plan=self._state.plan.text()))
        await conversation.loop(iterations=CHANGE_CALLS, only=(PLANNING_CALL,))
        if not self._planner.made:
            output = self._parts.output
            output.emit(events.StatusChanged(message=output.text("plan.unchanged")))
        return self._planner.made
