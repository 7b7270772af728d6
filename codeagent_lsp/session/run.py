"""Executes one run, from the user's request to the decision about its changes.

However it ends, `run_completed` is the last event, staged changes stay for a decision, and the conversation is
well-formed. Not here: the conversation with the model (`conversation/conversation.py`), the steps of a plan
(`plan_execution.py`), how changes reach the buffers (the editor).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from codeagent_lsp import events
from codeagent_lsp.agent.custom_commands import MOST_ARGUMENTS, called_name, item_of
from codeagent_lsp.agent.intent import Intent, classify, classify_with_model
from codeagent_lsp.agent.limits import DEFAULT_WINDOW, window_of
from codeagent_lsp.config import AgentSettings
from codeagent_lsp.direct.aptitude import BY_SCRIPT
from codeagent_lsp.errors import AgentError, BudgetSpent, CodeAgentError, ErrorCode, PermissionDenied, UsageError
from codeagent_lsp.llm.model import Model
from codeagent_lsp.session.conversation.conversation import Conversation
from codeagent_lsp.session.foreign_runs import ForeignProposal
from codeagent_lsp.session.own_runs import OwnWork, own_run
from codeagent_lsp.session.plan_execution import PlanRun, PlanStart, Steering
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.request import REWRITES, WITH_WORDS, Planning, RunKind, RunRequest, Target
from codeagent_lsp.session.run_models import RunModels
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.run_parts import Ended, RunParts
from codeagent_lsp.session.run_planner import PlanState, RunPlanner
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.solving.direct_path import DirectPath
from codeagent_lsp.session.solving.task_work import TaskWork, task_work
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.session.toolbox import Toolbox
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.plan.plan import StepDraft
from codeagent_lsp.tools.plan.written_steps import drafted_steps
from codeagent_lsp.tools.skills.trust import is_trusted
from codeagent_lsp.workspace.changes.changeset import Changeset, Current, FileChange
from codeagent_lsp.workspace.files.file_view import FileView
from codeagent_lsp.workspace.text.visible import some_of

logger = logging.getLogger(__name__)

PLANNED: tuple[RunKind, ...] = ("run", "test")
# The second call is for a model whose first create_plan was refused; after that the task itself becomes the only
# step.
PLANNING_CALLS = 2

PLAN_FIRST = "Plan first: call create_plan with the steps this takes. They are given to you one after the other."
LOOK_FIRST = (
    "Plan first: read what you need to know, change and run nothing, then call create_plan with the steps this takes. "
    "They are given to you one after the other."
)
PLAN_NOW = (
    "There is no plan yet. Call create_plan now, with the steps this takes. If you must know something from the user "
    "before, call AskUser."
)
UNPLANNED = ("CAPABILITY_QUERY", "GENERAL_CHAT")
ASKED_FOR = {"edit": "ask.instruction", "ask": "ask.question", "skills.install": "ask.skill"}
CALLING: tuple[RunKind, ...] = ("run", "ask")
MOST_NAMED = 5


class Run:
    """One run of a session, kept after its end for undo and plan commands. `record` is its state in the session,
    `problem` the error that ended it, None if there was none.
    """

    def __init__(self, session: Session, record: RunRecord, services: Services) -> None:
        self.session = session
        self.record = record
        self._services = services
        self._output = RunOutput(session, record, services)
        made = ForeignProposal if record.foreign else Proposal
        self.proposal = made(
            record,
            services,
            self._output,
            judge=lambda: self._toolbox.judged(),  # a toolbox is made for a proposal
            diagnose=lambda changeset: self._toolbox.diagnosed(changeset),
        )
        self._toolbox = Toolbox(session, services, self.proposal, self._output)
        models = RunModels(services, self._output, session, record.run_id)
        self._parts = RunParts(session, record, services, self._output, self.proposal, self._toolbox, models)
        state = PlanState(record, self._output)
        self._planner = RunPlanner(record, state, self._output, services.user.plans)
        self._plan_start = PlanStart(self._parts, state, self._planner)
        self._plan_run = PlanRun(self._parts, state, self._planner)
        self.problem: CodeAgentError | None = None
        self.steering = Steering(self._parts, state, self._plan_start, self._plan_run)
        self._earlier: tuple[Proposal, ...] = ()

    def begin(self, request: RunRequest, earlier: Sequence[Proposal] = ()) -> None:
        """Store the request as the event `run_started`, before the client learns that it was accepted. `earlier` are
        the proposals of the runs of the same session before it, the oldest first.
        """
        self._earlier = tuple(earlier)
        self._output.emit(events.RunStarted(task=request.task, title=request.title, kind=request.kind))

    def reconsider(self) -> None:
        """Let words that were just said to the run change a plan that waits for its start."""
        self._plan_start.reconsider()

    def abandon(self) -> None:
        """End a run that was cancelled before its task began; nothing if it has ended already."""
        if self.record.status == "running":
            self._finish("cancelled", self._cancelled_summary(), None)

    async def execute(self, request: RunRequest, work: OwnWork | None = None) -> None:
        """Do the work and let the user decide about the changes; every ending emits `run_completed`, and errors become
        its status, and a cancellation `cancelled`. `work` replaces the model for a run that needs none. The mode is
        emitted as soon as it is known: with planning `auto`, by the model's first output.
        """
        gate = IntentGate(request, self._services.user.settings().agent)
        planning = _planning(request, gate)
        if planning != "auto":
            self._output.begin("plan" if planning == "always" else "direct")
        await self._to_its_end(lambda: self._work(request, gate, work))

    def resume(self) -> None:
        """Set the run to running again after its end, to go on with its plan; `work_on` does the work. Emits its mode
        again.
        """
        self.record.status = "running"
        self._output.begin_again("plan")

    async def work_on(self) -> None:
        """Go on with the plan until it is done, stopped or failed, and emit the end of the run, as `execute` does. Call
        `resume` first.
        """
        await self._to_its_end(self._go_on)

    async def _to_its_end(self, work: Callable[[], Awaitable[Ended]]) -> None:
        status: events.RunStatus = "failed"
        summary, error, self.problem = "", None, None
        self._parts.models.begin()
        try:
            status, summary = await self._within_budget(work)
            self._output.emit(events.ResponseEnd())
            # However the work ended: also what a stopped or unsolved run has staged is the user's to decide about.
            status = await self.proposal.decide(status)
            if self.proposal.refused:
                summary = self._output.text("hooks.refused", reason=self.proposal.refused)
            await self._toolbox.ended(status)
        # Nothing is offered here: a cancelled run must not wait for an answer. What it staged stays in the record.
        except asyncio.CancelledError:
            status, summary = "cancelled", self._cancelled_summary()
            raise
        except CodeAgentError as problem:
            self.problem = problem
            status, error = "failed", self._output.fail(self._output.explain(problem), problem.code)
            await self._offer_rest()
        except Exception:
            logger.exception("run failed")
            status, error = "failed", self._output.fail(self._output.text("run.internal"), ErrorCode.EXECUTION_ERROR)
            # A defect of our own is no reason to lose the edits either.
            await self._offer_rest()
        finally:
            # Also when deciding raises or is cancelled: clients wait for `run_completed` before they take the run as
            # over.
            self._finish(status, summary, error)
            if self._toolbox.hooks.own_view is not None:
                self._toolbox.hooks.own_view.leave()

    async def _offer_rest(self) -> None:
        """Let the user decide about what was staged before the run failed."""
        try:
            await self.proposal.decide("failed")
        except CodeAgentError as problem:
            logger.warning("the changes of a failed run could not be offered: %s", problem)

    async def _within_budget(self, work: Callable[[], Awaitable[Ended]]) -> Ended:
        """Do the work; where the budget ends, the run is stopped, and what it has changed is decided about as ever."""
        try:
            return await work()
        except BudgetSpent as spent:
            self.problem = spent
            return "stopped", self._output.explain(spent)

    async def _work(self, request: RunRequest, gate: IntentGate, work: OwnWork | None) -> tuple[events.RunStatus, str]:
        given, request = request, await in_words(self._parts, request)
        # The first classification was of words that the user did not mean as the task: none yet, or `/name`.
        if request.task != given.task:
            gate = IntentGate(request, self._services.user.settings().agent)
        # Before a model is opened: these runs work without one, so they also do where none is configured.
        if (ended := await own_run(self._parts, request, work)) is not None:
            return ended
        model = await self._parts.models.main()
        request = await with_mentions(self._parts, request, model)
        if request.kind in REWRITES and request.target is not None:
            return await self._rewrite(model, request, request.target)
        if not model.info.capable:  # a capable one decides itself whether it plans
            await gate.ask(await self._parts.models.small(model), self._output.emit)
        if gate.event is not None:
            self._output.emit(gate.event)
        planning = _planning(request, gate)
        if model.info.capable and gate.wanted == "auto" and request.kind in PLANNED:
            planning = "auto"  # a chat has the same tools: all prompts of a session begin alike
        return await self._talk(model, request, planning)

    async def _rewrite(self, model: Model, request: RunRequest, target: Target) -> tuple[events.RunStatus, str]:
        """Rewrite a selection for a quick action; the model's prose is the summary only if there is no new code."""
        path = DirectPath(self._parts, model, BY_SCRIPT, None)
        try:
            solution = await path.rewrite(request, target)
        finally:
            self._toolbox.close()
        return ("completed", "") if solution.ending == "solved" else path.words.outcome(solution)

    async def _talk(self, model: Model, request: RunRequest, planning: Planning) -> tuple[events.RunStatus, str]:
        """Let the model work on the task: on the direct path, with tools, or by a plan if it makes one or has to."""
        work = await task_work(self._parts, model, request)
        if work.is_capable and request.kind in PLANNED:
            self._take_over()
        conversation = Conversation(self._parts, model, planning, self._planner)
        try:
            if work.is_direct and planning != "always":
                self._output.begin("direct")  # the first answer may take a minute: what is being done is told meanwhile
                return await work.judged(None, await work.solve())
            first = LOOK_FIRST if work.is_capable else PLAN_FIRST
            await conversation.open(request, first if planning == "always" else "")
            if work.is_capable:
                await work.finish.begin()
            if planning == "always":
                await self._plan(conversation, request, work)
            else:
                result = await conversation.loop()
            # Also where nobody asked for a plan: a model may make one in the middle of its work.
            if self._planner.made:
                if not await self._plan_start.agreed(conversation, request.planning):
                    return "stopped", self._output.text("plan.not_started")
                return await self._execute_plan(conversation, work)
            return await work.judged(conversation, await work.settled(conversation, result))
        finally:
            self._toolbox.close()

    async def _plan(self, conversation: Conversation, request: RunRequest, work: TaskWork) -> None:
        """Have the model make the plan. A list in its words is one as well; without any the task is the only step."""
        said, told = await conversation.plan(PLANNING_CALLS), False
        # Models answer in prose even when only one tool may be called, and show a plan before they are asked to.
        while not (self._planner.made or (steps := drafted_steps(said.text))) and work.is_capable:
            if not told:
                conversation.tell(PLAN_NOW)
            elif answer := await work.finish.asked_back(said.text):
                conversation.answer(answer)
            else:
                break
            said, told = await conversation.plan(PLANNING_CALLS), True
        if not self._planner.made:
            self._planner.create(request.instruction, steps or (StepDraft(request.title),), "")

    def _take_over(self) -> None:
        """Go on from what cancelled runs of the session have staged, where the user is asked about it: who stops a run
        may not want it. The conversation says that they are staged: without them the model would build on text that is
        not there, and what it makes again would be in the files twice once both are accepted.
        """
        if self.proposal.applies_unasked():
            return
        if taken := _stage_cancelled(self.proposal, self._earlier):
            self.record.took_over += tuple(taken)
            self._output.emit(events.ChangesTakenOver(runs=tuple(taken)))
            paths = [path for each in taken.values() for path in each]
            names = some_of(map(self.proposal.view.roots.relative, paths), MOST_NAMED, counted=False)
            self._output.emit(events.StatusChanged(message=self._output.text("run.takes_over", names=names)))

    async def _go_on(self) -> tuple[events.RunStatus, str]:
        """Go on with a plan that was left."""
        model = await self._parts.models.main()
        conversation = Conversation(self._parts, model, "always", self._planner)
        work = await task_work(self._parts, model, RunRequest("run", self._planner.goal, self.record.title))
        try:
            await conversation.open()
            return await self._execute_plan(conversation, work)
        finally:
            self._toolbox.close()

    async def _execute_plan(self, conversation: Conversation, work: TaskWork) -> tuple[events.RunStatus, str]:
        """Execute the plan; what a capable model has made of it is judged as a whole."""
        before = work.finish.try_step if work.is_capable else None
        ended = await self._plan_run.execute(conversation, work.step if work.is_direct else None, before)
        return await work.finish.after_plan(conversation, ended) if work.is_capable else ended

    def _cancelled_summary(self) -> str:
        """Return the summary of a cancelled run: that changes wait, if any do."""
        return self._output.text("run.cancelled") if self.proposal.changeset else ""

    def _finish(self, status: events.RunStatus, summary: str, error: str | None) -> None:
        self.record.status = status
        self.session.context.join(self.record)
        # From what was applied, not what was staged: the event tells what is in the user's files.
        files = tuple(path for part in self.record.applied for path in part.changeset.paths)
        words = (self.proposal.unconfirmed_words(), summary, self.proposal.modes_words())
        self._output.emit(
            events.RunCompleted(
                status=status,
                summary="\n\n".join(filter(None, words)),
                error=error,
                outcome=self.proposal.ending(status),
                files_changed=tuple(dict.fromkeys(files)),
                tool_used=any(message.tool_calls for message in self.record.messages),
                trace_id=self.record.run_id,
                stopped_by="budget" if isinstance(self.problem, BudgetSpent) else None,
                unconfirmed=self.proposal.unconfirmed or None,
                **self.session.context.used(self.record),
            )
        )


def _stage_cancelled(proposal: Proposal, earlier: Iterable[Proposal]) -> dict[str, tuple[str, ...]]:
    """Stage in `proposal` what the cancelled ones among the `earlier` proposals (the oldest first) have staged, and
    return the paths by the id of their run. Changes that do not fit the user's present text stay where they are.
    """
    taken = proposal.changeset
    moved: list[tuple[Proposal, Changeset]] = []
    for other in reversed([*earlier]):  # of two runs that changed one file, the later one knew the text of the other
        if other.record.status != "cancelled" or other.applying or other.record.unsettled or other.record.attempt_of:
            continue
        fitting = [fits for change in other.changeset if (fits := _fitting(change, proposal.view, taken)) is not None]
        for change in fitting:
            taken = taken.with_change(change)
        moved += [(other, Changeset(tuple(fitting)))] if fitting else []
    if moved:
        # First here, then gone there: a process that dies in between has lost nothing.
        proposal.staging.reset(taken)
        for other, changes in moved:
            other.staging.reset(other.changeset.without(changes.paths))
    return {other.record.run_id: changes.paths for other, changes in moved}


def _fitting(change: FileChange, view: FileView, taken: Changeset) -> FileChange | None:
    """Return a change as one of the user's present text; None if it does not fit, or its file is `taken`."""
    source = change.moved_from or change.path
    if any(path in (each.path, each.moved_from) for each in taken for path in (change.path, source)):
        return None
    try:
        file = view.base(source)
    except AgentError:
        return None
    current = Current(None) if file is None else Current(file.text, file.version)
    rebased = Changeset((change,)).rebase({source: current})
    return None if rebased.conflicts else next(iter(rebased.changeset), None)


def _planning(request: RunRequest, gate: IntentGate) -> Planning:
    """Return whether this request may, must or must not be planned."""
    return gate.planning if request.kind in PLANNED else "never"


# Decides by its intent whether a request is planned: by rules over its words, by the model only where they are unsure.


class IntentGate:
    """The planning decision for one request. `planning` says whether it may (`auto`), must (`always`) or must not
    (`never`) be planned, as far as is known, and `wanted` what the user has said of it; `intent` is None if the request
    was not classified.
    """

    def __init__(self, request: RunRequest, settings: AgentSettings) -> None:
        self.wanted: Planning = request.planning or settings.planning
        self.planning: Planning = self.wanted
        self.intent: Intent | None = None
        self._request = request
        # What the user said in the request stands against any classification; only the setting may be overruled.
        self._free = request.planning is None
        if request.kind == "run" and settings.intent_gate:
            self._take(classify(request.task, has_selection=request.has_selection))

    @property
    def event(self) -> events.IntentClassified | None:
        """The event with the classification; None if the request was not classified."""
        if self.intent is None:
            return None
        return events.IntentClassified(
            intent=self.intent.label, confidence=self.intent.confidence, reason=self.intent.reason
        )

    async def ask(self, model: Model, emit: Callable[[events.Event], None]) -> None:
        """Classify the request with the model, if the rules were unsure, planning is `auto` by the settings, and the
        model is cheap. `emit` receives usage events.
        """
        unsure = self.intent is not None and not self.intent.sure
        if unsure and self._free and self.planning == "auto" and cheap(model):
            self._take(await classify_with_model(model, self._request.task, emit))

    def _take(self, intent: Intent) -> None:
        self.intent = intent
        if self._free and intent.label in UNPLANNED:
            self.planning = "never"


def cheap(model: Model) -> bool:
    """Return whether a short question to the model costs little. It does not for a window of at most 8,192 tokens (such
    models are slow, and the question evicts the conversation from their cache), nor for a scripted model, which has no
    replies to spare.
    """
    info = model.info
    return info.provider != "scripted" and window_of(info) > DEFAULT_WINDOW


# The words of a request: asked for where it has none, and `/name arguments` as the task that a command's file has.


async def in_words(parts: RunParts, request: RunRequest) -> RunRequest:
    """Return the request with its words; the user is asked for those of an edit or a question that has none, and
    whether a command of the workspace is trusted; hooks may add to them. UsageError without an answer, or if a hook
    does not let them pass.
    """
    if parts.record.attempt_of:  # its words are complete
        return request
    if request.kind in ASKED_FOR and (request.wordless or not request.instruction):
        answer = await parts.output.ask(Question("question", parts.output.text(ASKED_FOR[request.kind])))
        if not answer:
            raise UsageError("ask.nothing")
        request = request.with_words("\n\n".join(filter(None, (answer[0], request.task))))
    request = await _with_command(parts, request)
    return await _with_hooks(parts, request) if request.kind in WITH_WORDS else request


async def _with_command(parts: RunParts, request: RunRequest) -> RunRequest:
    """Return the request with the task of the command that its words call; as it is if they call none."""
    if request.kind not in CALLING or not request.task.lstrip().startswith("/"):
        return request
    library, output = parts.services.knowledge.commands, parts.output
    called = await asyncio.to_thread(library.called, parts.proposal.view, request.task)
    if called is None:
        if name := called_name(request.task):
            output.emit(events.StatusChanged(message=output.text("commands.as_words", name=name)))
        return request
    command = called.command
    if called.cut:
        output.emit(events.StatusChanged(message=output.text("commands.cut", name=command.name, most=MOST_ARGUMENTS)))
    if not command.approved:
        view = parts.proposal.view
        brings = partial(parts.services.knowledge.brought, view)
        if not await is_trusted(library.trust, item_of(command, view), output, output.text, brings):
            raise UsageError("commands.distrusted", name=command.name)
    return replace(request, task=called.task, arguments=called.arguments)


async def _with_hooks(parts: RunParts, request: RunRequest) -> RunRequest:
    """Return the request with what the hooks add to it, those for the beginning of a session to the first one that is
    part of its conversation. UsageError if one does not let it pass.
    """
    library, session = parts.services.knowledge.hooks, parts.session
    said = session.context.conversation  # empty also after a first request that failed
    # A hook's words are part of the conversation: where that is empty, they were lost with the request that failed.
    begins = (not said or session.session_id not in library.begun) and request.kind not in REWRITES
    if not (begins or request.task) or not await asyncio.to_thread(library.files, parts.proposal.view):
        return request
    await parts.toolbox.open()
    context, hooks = parts.toolbox.context(), parts.toolbox.hooks
    added = []
    if begins:
        added.append(await hooks.on_session(context, "resume" if said else "startup"))
        library.begun.add(session.session_id)
    try:
        added.append(await hooks.on_prompt(context, request.task) if request.task else "")
    # A hook's refusal is about the user's own words, so it is told as a mistake in using it, not as a denied call.
    except PermissionDenied as denied:
        raise UsageError("hooks.prompt", reason=str(denied)) from denied
    return replace(request, given=(*request.given, *filter(None, added)))


async def with_mentions(parts: RunParts, request: RunRequest, model: Model) -> RunRequest:
    """Return the request with the texts and pictures that mentions in its words (`@file`, `@diff`) stand for; what is
    not found is shown to the user. UsageError for a picture, attached ones too, if the model does not see.
    """
    if "@" in request.task and request.kind in WITH_WORDS:
        from codeagent_lsp.session.mentioned import resolve_mentions  # late: tools that most runs have no use for

        request = await resolve_mentions(parts, request, model)
    if request.images and model.info.facts.vision is not True:
        raise UsageError("mentions.no_vision", name=model.info.name)
    return request
