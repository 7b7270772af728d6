"""Executes a plan, once the user lets it: one step after the other in one conversation, each with a limit of its own.

Before it starts, it is shown, and can be arranged, changed in words, started or cancelled. A failed step is replanned
by the model, at most twice in a plan, or the user decides, who may arrange, retry, skip and roll back steps at any
time. However the work ends, the state of every step is correct.
Not here: what arranging does (`run_planner.py`), plans as values (`tools/plan/plan.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import note
from codeagent_lsp.agent.loop import LoopResult
from codeagent_lsp.errors import BudgetSpent, CodeAgentError, SessionError, StepWaits
from codeagent_lsp.session.conversation.conversation import Conversation
from codeagent_lsp.session.proposal import REFUSED
from codeagent_lsp.session.request import Planning, short_title
from codeagent_lsp.session.run_parts import RunParts, remember
from codeagent_lsp.session.run_planner import PlanState, RunPlanner
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.plan.plan import Plan, PlanStep, StepEdit
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset

logger = logging.getLogger(__name__)

Way = Literal["retry", "skip", "stop"]
DirectStep = Callable[[str, str], Awaitable[LoopResult]]
"""Executes one step, given in words, on the direct path."""

STEP = (
    "Step {number} of {count}: {title}\n{description}Do only this step. When it is done, say in a sentence or two what "
    "you did."
)
ARRANGED = "\nThe user has changed the plan. It is now:\n{plan}"
AGAIN = "It was tried before and failed: {error} What you changed then is still there."
REPLAN = (
    "Step {number} of {count} failed: {error}\nIf another way leads to the goal, call create_plan with all the steps "
    "that are left, in place of this step and those after it. If not, say in a sentence why."
)
REPLAN_CALLS = 2
DISCARDED = "The user discarded the changes of step {number}; the files are as they were before it."
# By their risk: some editors preselect the first, and without a skipped step those after it may break.
WAYS: tuple[Way, ...] = ("retry", "stop", "skip")

CHANGE_CALLS = 2
CHANGE = (
    "Nothing of the plan has begun; the user wants it changed{words}\nCall create_plan with all the steps of the "
    "changed plan. The plan until now:\n{plan}"
)
SAID = ", as they say here."


@dataclass(frozen=True, slots=True)
class _Failure:
    """The error of a failed step; `hopeful` means that other steps could help."""

    error: str
    hopeful: bool = False


class PlanRun:
    """Executes the plan of one run, also when the run is resumed later; lives as long as the run."""

    def __init__(self, parts: RunParts, state: PlanState, planner: RunPlanner) -> None:
        self._parts = parts
        self._state = state
        self._planner = planner
        self._question: Question | None = None
        self._ordered: Way | None = None  # what a command has answered in place of a choice
        self._notes: list[str] = []  # what became of the steps before, for the next message to the model
        self._discarded = False  # whether the user has discarded the changes of a step
        self._direct: DirectStep | None = None
        self._try: Callable[[], Awaitable[None]] | None = None

    @property
    def waiting(self) -> bool:
        """Whether the user is being asked what to do about a failed step."""
        return self._question is not None

    def answer(self, way: Way) -> None:
        """Answer the open question about a failed step from a command; without such a question nothing happens."""
        if self._question is not None:
            self._ordered = way
            self._parts.services.user.inbox.settle(self._parts.record.run_id, self._question)

    async def execute(
        self,
        conversation: Conversation,
        direct: DirectStep | None = None,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> tuple[events.RunStatus, str]:
        """Execute the remaining steps, by the tool loop or by `direct(words, notes)` if given, and call `before` before
        each decision about a step; return the run's status (`completed`, `rejected` or `stopped`) and summary.
        StepWaits if the user does not answer about a failed step; BudgetSpent if the budget is used up: the running
        step is then cancelled and can be retried.
        """
        output = self._parts.output
        self._direct, self._try = direct, before
        output.emit(events.ExecutionStarted())
        try:
            while (step := self._state.plan.steps.next) is not None:
                failure = await self._step(conversation, step)
                if failure is not None and not await self._goes_on(conversation, step, failure):
                    return "stopped", self._parts.output.text("plan.waits", step=self._label(step), error=failure.error)
        except (asyncio.CancelledError, BudgetSpent):
            self._state.cancel()  # its step can be done again
            raise
        if self._notes:
            conversation.tell("\n".join(self._notes))
        return self._complete()

    async def _step(self, conversation: Conversation, step: PlanStep) -> _Failure | None:
        """Execute one step and let the user decide about its changes; return the failure, None if it did not fail."""
        proposal, before = self._parts.proposal, self._parts.proposal.changeset
        self._state.start(step)
        try:
            failure = await self._work(conversation, step)
            if failure is None and self._try is not None:
                await self._try()
            # Each step is one decision, so that the next one works on what the user has kept.
            decided = "completed" if failure is not None else await proposal.decide("completed", self._label(step))
            if decided == "rejected":
                self._drop(step)
                return None
            # Accepted, and the editor took nothing of it: the next step would build on what is not there.
            if decided == "stopped" and failure is None:
                failure = _Failure(proposal.refused or proposal.why_not())
        except BudgetSpent:
            raise  # about the run, not about this step
        except CodeAgentError as problem:
            failure = _Failure(self._parts.output.explain(problem))
        except Exception:
            logger.exception("a step failed")
            failure = _Failure(self._parts.output.text("run.internal"))
        if failure is not None:
            self._state.fail(step.step_id, failure.error)
            return failure
        self._notes.extend(filter(None, (proposal.note(),)))
        self._state.complete(step.step_id, self._files(step, before))
        return None

    async def _work(self, conversation: Conversation, step: PlanStep) -> _Failure | None:
        """Let the model work on a step; return the failure, None if there is none."""
        self._planner.enter_phase("step")
        # Told together with the instruction, so that one message begins a step.
        notes, self._notes = self._notes, []
        if self._direct is not None:
            words = "\n".join(filter(None, (step.title, step.description)))
            result = await self._direct(words, "\n".join(filter(None, (*notes, _again(step)))))
        else:
            conversation.tell("\n".join([*notes, self._instruction(step)]))
            result = await conversation.loop()
        if result.ending == "answered":
            # Judged while the model can still mend it: at the decision it would be too late.
            reason = await self._parts.proposal.judge()
            return _Failure(REFUSED.format(reason=reason), hopeful=True) if reason else None
        if result.ending == "unsolved":
            return _Failure(result.text, hopeful=True)
        key = "run.limit" if result.ending == "limit" else "run.anomaly"
        count = conversation.limits.iterations
        return _Failure(self._parts.output.text(key, count=count), hopeful=True)

    def _instruction(self, step: PlanStep) -> str:
        plan = self._state.plan
        tools = f"Expected tools: {', '.join(step.expected_tools)}" if step.expected_tools else ""
        described = "".join(f"{line}\n" for line in (step.description, tools, _again(step)) if line)
        number, count = plan.steps.number(step.step_id), len(plan.steps)
        words = STEP.format(number=number, count=count, title=step.title, description=described)
        if not self._planner.arranged():
            return words
        return words + ARRANGED.format(plan="\n".join(f"{at}. {each.title}" for at, each in enumerate(plan.steps, 1)))

    def _drop(self, step: PlanStep) -> None:
        """Skip a step whose changes the user has discarded."""
        self._discarded = True
        self._notes.append(DISCARDED.format(number=self._state.plan.steps.number(step.step_id)))
        self._state.skip(step.step_id, self._parts.output.text("plan.discarded"))

    async def _goes_on(self, conversation: Conversation, step: PlanStep, failure: _Failure) -> bool:
        """Handle a failed step, first by replanning, then by asking the user; return whether the plan goes on.
        StepWaits if the user does not answer.
        """
        # Only where other steps could help: a server that is away fails them all.
        if failure.hopeful and self._state.plan.may_replan and await self._replan(conversation, step, failure):
            return True
        match await self._ask(step, failure):
            case "retry":
                self._state.retry(step.step_id)
            case "skip":
                self._state.skip(step.step_id, failure.error)
            case "stop":
                self._parts.output.emit(events.ExecutionFailed(error=failure.error))
                return False
            case None:
                self._parts.output.emit(events.ExecutionFailed(error=failure.error))
                # An error, no status: nobody has decided, and the run has to say that it waits for the user.
                raise StepWaits("plan.waits", step=self._label(step), error=failure.error)
        return True

    async def _replan(self, conversation: Conversation, step: PlanStep, failure: _Failure) -> bool:
        """Ask the model for other steps, with only reading allowed meanwhile; return whether it made them."""
        plan = self._state.plan
        self._planner.enter_phase("failed", failure.error)
        number, count = plan.steps.number(step.step_id), len(plan.steps)
        conversation.tell(REPLAN.format(number=number, count=count, error=failure.error))
        try:
            await conversation.loop(iterations=REPLAN_CALLS, reading=True)
        except BudgetSpent:
            raise
        except CodeAgentError:  # the user is asked about the step itself
            return False
        return self._planner.made

    async def _ask(self, step: PlanStep, failure: _Failure) -> Way | None:
        """Ask the user what to do about a failed step; None if there is no answer."""
        output = self._parts.output
        title = output.text("plan.failed", step=self._label(step), error=failure.error)
        choices = {output.text(f"choice.{way}"): way for way in WAYS}
        stop = output.text("choice.stop")
        self._ordered = None
        self._question = Question("question", title, tuple(choices), danger=True, dismissed=stop)
        try:
            output.emit(events.AwaitingApproval(message=title))
            answer = await output.ask(self._question)
        finally:
            self._question = None
        # The command closes the question without an answer, so what was ordered comes first.
        return self._ordered or (choices[answer[0]] if answer else None)

    def _label(self, step: PlanStep) -> str:
        return self._state.plan.steps.label(step.step_id)

    def _files(self, step: PlanStep, before: Changeset) -> tuple[str, ...]:
        """Return the paths that a step changed, applied or still staged."""
        record, staged = self._parts.record, self._parts.proposal.changeset
        applied = [path for part in record.applied_in((step.step_id,)) for path in part.changeset.paths]
        # Compared with the beginning of the step: what earlier steps have staged and nobody has decided about is not
        # its own.
        waiting = [change.path for change in staged if before.get(change.path) != change]
        return tuple(dict.fromkeys((*applied, *waiting)))

    def _complete(self) -> tuple[events.RunStatus, str]:
        """Emit that the plan is completed; return the run's status and summary."""
        plan, output = self._state.plan, self._parts.output
        done = sum(step.state == "completed" for step in plan.steps)
        key = "plan.partly" if done < len(plan.steps) else "plan.done" if done > 1 else "plan.done_one"
        summary = output.text(key, done=done, count=len(plan.steps), goal=plan.goal)
        paths = [path for part in self._parts.record.applied for path in part.changeset.paths]
        files = tuple(dict.fromkeys(paths))
        output.emit(events.PlanCompleted(summary=summary, success=done == len(plan.steps), files_changed=files))
        output.emit(events.ExecutionCompleted(summary=summary, files_changed=files))
        return "rejected" if self._discarded and not done else "completed", summary


def _again(step: PlanStep) -> str:
    return AGAIN.format(error=step.error) if step.error else ""


class PlanStart:
    """Asks the user whether the plan of one run may start, and lets the model change it by their words until it may."""

    def __init__(self, parts: RunParts, state: PlanState, planner: RunPlanner) -> None:
        self._parts = parts
        self._state = state
        self._planner = planner
        self._question: Question | None = None
        self._begun = False

    @property
    def waiting(self) -> bool:
        """Whether the user is being asked whether the plan may start."""
        return self._question is not None

    def begin(self) -> None:
        """Let the plan start, in place of an answer to the open question; without one nothing happens."""
        self._begun = self.waiting
        self.reconsider()

    def reconsider(self) -> None:
        """Close the open question, if there is one, so that words which the user just said to the run can change the
        plan.
        """
        if self._question is not None:
            self._parts.services.user.inbox.settle(self._parts.record.run_id, self._question)

    async def agreed(self, conversation: Conversation, planning: Planning | None) -> bool:
        """Return whether the plan may start; ask the user if the settings say so, and wait until they decide, while
        their words may change it. `planning` is the user's choice for this request: by default only `always` waits. An
        attempt never asks.
        """
        approval = self._parts.services.user.settings().agent.plan_approval
        waits = approval == "always" or (approval == "auto" and planning == "always")
        if not waits or self._parts.record.attempt_of:
            return True
        started, said = await self._wait_for_start(conversation)
        self._parts.output.emit(events.PlanApproved() if started else events.PlanRejected(reason=said or None))
        return started

    async def _wait_for_start(self, conversation: Conversation) -> tuple[bool, str]:
        """Ask until the user starts the plan or does not want it; return which, and what was said, '' for no answer."""
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
                    return True, start
            elif answer == (edit,):
                # A question over the page keeps some editors from writing in it.
                beside = await pages.show(run_id, take_focus=True)
            elif answer == (change,):
                words = await output.ask(Question("question", output.text("plan.change")))
                beside = not await self._change(conversation, f": {words[0]}" if words else "") and beside
            elif answer is None and self._parts.session.context.waiting.said_to(run_id):
                beside = not await self._change(conversation, SAID) and beside
            else:
                return False, answer[0] if answer else ""

    async def _asked(self, choices: tuple[str, ...], *, beside: bool) -> tuple[str, ...] | None:
        """Ask about the plan; a command may answer as well."""
        output, plan, hide = self._parts.output, self._state.plan, self._parts.services.hide
        goal = short_title(plan.goal, hide)
        title = output.text("plan.start", goal=goal, count=len(plan.steps))
        if beside:  # it is about what is written in the page by then
            title = output.text("plan.start_page", goal=goal)
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
        await conversation.plan(CHANGE_CALLS)
        if not self._planner.made:
            output = self._parts.output
            output.emit(events.StatusChanged(message=output.text("plan.unchanged")))
        return self._planner.made


# The user's commands about the plan of a run, while it runs and afterwards.

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
        """Put the steps that have not begun in this order and words; return the plan. Steps that are not named are
        dropped. SessionError without a plan, for a step that is unknown, has begun, is named twice or has no title, if
        none is left, or if a rewind took the run back.
        """
        self._check_standing()
        self._state.arrange(wanted)
        return self._state.plan

    def retry(self, step_id: str) -> bool:
        """Retry a step that did not succeed, or continue with the next one; return whether the run has to be resumed
        for that. SessionError for a step that is unknown, completed, running or not the next one, or while another is
        being worked on.
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
        for that. SessionError for an unknown step, a completed one, or the running one.
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
        """Raise SessionError if the plan cannot be rolled back to before this step: it is unknown, it has not begun, or
        a rewind took the run back.
        """
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
