"""Decides how a run's task is worked on, by the tool loop or on the direct path, and checks the result before it is
reported.

A task that asks for a change is not completed while nothing has changed or its check fails: it is tried once more in
another way, and then stopped. Not here: the loop (`../conversation/conversation.py`), the attempts of the direct path
(`direct_path.py`), the steps of a plan (`plan_execution.py`).
"""

from __future__ import annotations

from typing import Literal

from codeagent_lsp import events
from codeagent_lsp.agent.limits import limits_for, window_of
from codeagent_lsp.agent.loop import LoopResult
from codeagent_lsp.direct import AnswerForm, TextForm
from codeagent_lsp.direct.aptitude import BY_SCRIPT, Proof
from codeagent_lsp.direct.checks import Verdict, may_want_edit, wants_edit
from codeagent_lsp.llm.learned_facts import CAPABLE_WINDOW
from codeagent_lsp.llm.model import Model
from codeagent_lsp.session.conversation.conversation import Conversation
from codeagent_lsp.session.finish import ANSWER_NOW, Finish
from codeagent_lsp.session.proposal import REFUSED
from codeagent_lsp.session.request import ANSWERS, RunRequest
from codeagent_lsp.session.run_parts import Ended, RunParts
from codeagent_lsp.session.solving.direct_path import DirectPath, Work

Wish = Literal["change", "unclear", "none"]
"""A request surely asks for changed files (`change`), may ask for them (`unclear`), or does not (`none`)."""

STILL_FAILING = "You are not done: what you changed does not pass yet.\n{report}\nFind the cause and repair it."
MENDING_ROUNDS = 2


class TaskWork:
    """The work on one request, which chooses between the tool loop and the direct path. `proof` says which answer forms
    the model is good at.
    """

    def __init__(self, parts: RunParts, model: Model, request: RunRequest, proof: Proof) -> None:
        setting = parts.services.user.settings().agent.answer_form
        self._parts = parts
        self._model = model
        self._request = request
        self._forced: AnswerForm | None = None if setting == "auto" else setting
        self._by_tools = proof.calls_tools if self._forced is None else self._forced == "tools"
        text_form: TextForm | None = self._forced if self._forced not in (None, "tools") else None  # type: ignore[assignment]
        self.path = DirectPath(parts, model, proof, text_form)
        self.wish = wish_of(parts, request)
        self.finish = Finish(parts, request)
        self._proof = proof

    @property
    def is_capable(self) -> bool:
        """Whether the model works with tools in a large window: known as such, or proved by its own trial."""
        info = self._model.info
        proved = self._proof.calls_tools and window_of(info) >= CAPABLE_WINDOW
        return self._forced in (None, "tools") and (info.capable or proved)

    @property
    def is_direct(self) -> bool:
        """Whether the direct path is tried first."""
        return not self._by_tools and self.wish != "none" and not self._request.images

    async def solve(self) -> tuple[events.RunStatus, str]:
        """Do the task on the direct path; return (status, summary) of the run. ModelError if the model fails."""
        return await self._solve(is_task=self.wish == "change", told=True)

    async def step(self, words: str, notes: str) -> LoopResult:
        """Do one step of a plan on the direct path; `notes` are what happened before it. The result's ending is
        `unsolved` if a change is missing or tests fail.
        """
        sure = wants_edit(words)
        told = "\n\n".join(filter(None, (words, notes)))
        solution = await self.path.solve(Work(self._request, told, is_task=sure))
        _, text = self.path.words.outcome(solution)
        # A step such as "look at the tests" changes nothing, and is done by what the model says.
        if solution.ending == "unchanged" and not sure and not solution.problem:
            return LoopResult("answered", solution.text)
        return LoopResult("answered" if solution.ending in ("answered", "solved") else "unsolved", text)

    async def settled(self, conversation: Conversation, result: LoopResult) -> tuple[events.RunStatus, str]:
        """Check the result of the tool loop, try another way if it failed; return (status, summary) of the run. May run
        tests and ask the model again. A capable model has no other way: it stays in its conversation.
        """
        if self.is_capable:
            return await self.finish.settled(conversation, result)
        if self.wish == "none":
            return await self._answer(conversation, result)
        if result.ending == "answered":
            problem, verdict = await self._problem()
            if problem and verdict is not None:
                conversation.tell(STILL_FAILING.format(report=verdict.report))
                result = await conversation.loop()
                problem, _ = await self._problem()
            if not problem and result.ending == "answered":
                await self._count("tools", worked=True)
                return "completed", result.text
        await self._count("tools", worked=False)
        if self._forced == "tools":
            return self._end_unfinished(result)
        if result.ending == "answered":
            # It was sure to be done, so one more try; one that got lost in its tools has all the attempts.
            return await self._solve(is_task=True, told=False, attempts=1)
        status, text = await self._solve(is_task=True, told=False)
        return status, text if status == "completed" else f"{self._end_unfinished(result)[1]}\n{text}"

    async def judged(self, conversation: Conversation | None, ended: Ended) -> Ended:
        """Let the model repair what a hook refuses, in its conversation or, without one, on the direct path, at most
        twice; return (status, summary), `ended` as it was if nothing is refused. What is still refused then is not
        proposed.
        """
        for _ in range(MENDING_ROUNDS):
            if ended[0] != "completed" or not (reason := await self._parts.proposal.judge()):
                break
            told = REFUSED.format(reason=reason)
            if conversation is None:
                again = Work(self._request, f"{self._request.instruction}\n\n{told}", told=False)
                ended = self.path.words.outcome(await self.path.solve(again))
            else:
                conversation.tell(told)
                ended = await self.settled(conversation, await conversation.loop())
        return ended

    async def _solve(self, *, is_task: bool, told: bool, attempts: int | None = None) -> tuple[events.RunStatus, str]:
        """Do the task on the direct path. After changes by the tool loop, no change means not done, not unchanged."""
        staged = bool(self._parts.proposal.changeset or self._parts.record.applied)
        solution = await self.path.solve(Work(self._request, is_task=is_task, told=told, attempts=attempts))
        if solution.forms and self.wish == "change":
            await self._count(solution.forms[0], worked=solution.ending != "unchanged")
        status, text = self.path.words.outcome(solution)
        if staged and solution.ending == "unchanged":
            text = self._parts.output.text("solve.not_done")
        return status, text

    async def _answer(self, conversation: Conversation, result: LoopResult) -> tuple[events.RunStatus, str]:
        """Return the end of a question; a model that went in circles is asked once more, without tools."""
        if result.ending == "anomaly":
            conversation.tell(ANSWER_NOW)
            answer = await conversation.loop(iterations=1, only=())
            result = answer if answer.ending == "answered" else result
        return ("completed", result.text) if result.ending == "answered" else self._end_unfinished(result)

    async def _problem(self) -> tuple[str, Verdict | None]:
        """Return why the task is not done (`unchanged`, `failing`, or '' if it is), and the verdict of its check."""
        record, proposal = self._parts.record, self._parts.proposal
        if self.wish != "change":
            return "", None
        if not proposal.changeset and not record.applied:
            return "unchanged", None
        verdict = await self.path.check(self._request)
        failing = verdict is not None and verdict.known and not verdict.good
        return ("failing", verdict) if failing else ("", verdict)

    def _end_unfinished(self, result: LoopResult) -> tuple[events.RunStatus, str]:
        text = self._parts.output.text
        if result.ending == "answered":
            return "stopped", "\n".join((text("solve.not_done"), result.text))
        key = "run.limit" if result.ending == "limit" else "run.anomaly"
        limits = limits_for(self._parts.services.user.settings(), self._model.info)
        return "stopped", text(key, count=limits.iterations)

    async def _count(self, form: AnswerForm, *, worked: bool) -> None:
        """Record whether the form worked, unless the user has forced one."""
        forms = self._parts.services.models.answer_forms
        if forms is not None and self._forced is None:
            await forms.count(self._model, form, worked=worked)


def wish_of(parts: RunParts, request: RunRequest) -> Wish:
    """Return whether a request asks for changed files: `change`, `unclear` or `none`, by its kind and words alone;
    `none` in the mode `readOnly`.
    """
    if request.kind in ANSWERS or parts.services.user.mode() == "readOnly":
        return "none"
    if request.kind == "test":
        return "change"
    if wants_edit(request.task, has_selection=request.has_selection):
        return "change"
    return "unclear" if may_want_edit(request.task, has_selection=request.has_selection) else "none"


async def task_work(parts: RunParts, model: Model, request: RunRequest) -> TaskWork:
    """Return the work on a request. An unknown model is probed first, if a change may be asked for, by a few
    requests.
    """
    return TaskWork(parts, model, request, await _proof_for(parts, model, wish_of(parts, request)))


async def _proof_for(parts: RunParts, model: Model, wish: Wish) -> Proof:
    forms = parts.services.models.answer_forms
    setting = parts.services.user.settings().agent.answer_form
    if forms is None or wish == "none" or setting != "auto":
        return BY_SCRIPT
    probed = False

    def tell() -> None:
        nonlocal probed
        probed = True
        parts.output.begin("direct")  # a model that turns out to be good with tools may still make a plan
        parts.output.emit(events.StatusChanged(message=parts.output.text("solve.probing", name=model.info.name)))

    proof = await forms.proof(model, tell)
    if probed:  # else the first answer, which may take long, would seem to belong to the trial
        parts.output.emit(events.StatusChanged(message=parts.output.text("progress.thinking")))
    return proof
