"""How a run's task is worked on, tool loop or direct path, and that its end is told truthfully.

A task that asks for a change is not completed while nothing has changed or the tests it speaks of fail: it is worked
on once more in another way, and then stopped. Not here: the loop (`../conversation/conversation.py`), the attempts of
the direct path (`direct_path.py`), the steps of a plan (`plan/execution.py`).
"""

from __future__ import annotations

from typing import Literal

from codeagent_lsp import events
from codeagent_lsp.agent.forms.form import AnswerForm, TextForm
from codeagent_lsp.agent.forms.proof import BY_SCRIPT, Proof
from codeagent_lsp.agent.loop import LoopResult
from codeagent_lsp.agent.solving.brief import may_want_edit, wants_edit
from codeagent_lsp.agent.solving.verdict import Verdict
from codeagent_lsp.llm.model import Model
from codeagent_lsp.session.conversation.conversation import Conversation
from codeagent_lsp.session.request import ANSWERS, RunRequest
from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.session.solving.direct_path import DirectPath, Work

Wish = Literal["change", "unclear", "none"]
"""Whether a request surely asks for changed files, may, or does not."""

STILL_FAILING = "You are not done: what you changed does not pass yet.\n{report}\nFind the cause and repair it."
ANSWER_NOW = "Do not look any further. Answer now with what you know."


class TaskWork:
    """For one request. `proof` says which answer forms the model is good at."""

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

    @property
    def is_direct(self) -> bool:
        """Whether the direct path comes first."""
        return not self._by_tools and self.wish != "none"

    async def solve(self) -> tuple[events.RunStatus, str]:
        """The task on the direct path: status and last words of the run."""
        return await self._solved(is_task=self.wish == "change", told=True)

    async def step(self, words: str) -> LoopResult:
        """Do one step of a plan on the direct path; `unsolved` when a change is missing or tests fail."""
        sure = wants_edit(words)
        solution = await self.path.solve(Work(self._request, words, is_task=sure))
        _, text = self.path.outcome(solution)
        if solution.ending == "unchanged" and not sure:
            return LoopResult("answered", solution.text)
        return LoopResult("answered" if solution.ending in ("answered", "solved") else "unsolved", text)

    async def settled(self, conversation: Conversation, result: LoopResult) -> tuple[events.RunStatus, str]:
        """The end of a task that the tool loop has worked on; a second way where the first came to nothing."""
        if self.wish == "none":
            return await self._answered(conversation, result)
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
            return self._unfinished(result)
        if result.ending == "answered":
            return await self._solved(is_task=True, told=False, attempts=1)
        status, text = await self._solved(is_task=True, told=False)
        return status, text if status == "completed" else f"{self._unfinished(result)[1]}\n{text}"

    async def _solved(self, *, is_task: bool, told: bool, attempts: int | None = None) -> tuple[events.RunStatus, str]:
        """On the direct path. Where the tool loop has changed something before, that is not called nothing."""
        staged = bool(self._parts.proposal.changeset or self._parts.record.applied)
        solution = await self.path.solve(Work(self._request, is_task=is_task, told=told, attempts=attempts))
        if solution.forms and self.wish == "change":
            await self._count(solution.forms[0], worked=solution.ending != "unchanged")
        status, text = self.path.outcome(solution)
        if staged and solution.ending == "unchanged":
            text = self._parts.output.text("solve.not_done")
        return status, text

    async def _answered(self, conversation: Conversation, result: LoopResult) -> tuple[events.RunStatus, str]:
        """The end of a question: after going in circles, what the model knows without looking any further."""
        if result.ending == "anomaly":
            conversation.tell(ANSWER_NOW)
            result = await conversation.loop(iterations=1, only=())
        return ("completed", result.text) if result.ending == "answered" else self._unfinished(result)

    async def _problem(self) -> tuple[str, Verdict | None]:
        """What keeps the task from being done: 'unchanged', 'failing' with the check, or '' for nothing."""
        record, proposal = self._parts.record, self._parts.proposal
        if self.wish != "change":
            return "", None
        if not proposal.changeset and not record.applied:
            return "unchanged", None
        verdict = await self.path.check(self._request)
        failing = verdict is not None and verdict.known and not verdict.good
        return ("failing", verdict) if failing else ("", verdict)

    def _unfinished(self, result: LoopResult) -> tuple[events.RunStatus, str]:
        text = self._parts.output.text
        if result.ending == "answered":
            return "stopped", "\n".join((text("solve.not_done"), result.text))
        key = "run.limit" if result.ending == "limit" else "run.anomaly"
        return "stopped", text(key, count=self._parts.services.user.settings().agent.max_iterations)

    async def _count(self, form: AnswerForm, *, worked: bool) -> None:
        """Remember how the form did, unless the user has forced it."""
        forms = self._parts.services.models.answer_forms
        if forms is not None and self._forced is None:
            await forms.count(self._model, form, worked=worked)


def wish_of(parts: RunParts, request: RunRequest) -> Wish:
    """What a request asks for; nothing is changed where the user only lets us read."""
    if request.kind in ANSWERS or parts.services.user.mode() == "readOnly":
        return "none"
    if request.kind == "test":
        return "change"
    selected = request.target is not None and request.target.end > request.target.start
    if wants_edit(request.task, has_selection=selected):
        return "change"
    return "unclear" if may_want_edit(request.task, has_selection=selected) else "none"


async def task_work(parts: RunParts, model: Model, request: RunRequest) -> TaskWork:
    """The work on a request. A model of which nothing is known is tried first, where a change may be asked for."""
    return TaskWork(parts, model, request, await _proof_for(parts, model, wish_of(parts, request)))


async def _proof_for(parts: RunParts, model: Model, wish: Wish) -> Proof:
    forms = parts.services.models.answer_forms
    setting = parts.services.user.settings().agent.answer_form
    if forms is None or wish == "none" or setting != "auto":
        return BY_SCRIPT
    words = parts.output.text("solve.probing", name=model.info.name)
    return await forms.proof(model, lambda: parts.output.emit(events.StatusChanged(message=words)))
