"""The page to read second: how a model that is no good with tools does a task.

Check first, where the task speaks of tests; do what needs no model (a rename); show the model the files; ask for the
changed code; stage it; check again; tell it what still fails, and ask anew, up to a number of attempts. The state with
the best check is kept. Not here:
which files are shown and how checks are run (the `Workshop`, `session/solving/workshop.py`), how code is read from a
reply (`agent/forms`), what becomes of the staged changes (`session/run.py`).

Cancelling is cancelling the task this runs in; what was staged until then stays for the user's decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from codeagent_lsp import events
from codeagent_lsp.agent.context.tokens import size
from codeagent_lsp.agent.forms.answer import Answer
from codeagent_lsp.agent.forms.form import TextForm
from codeagent_lsp.agent.guards import LoopGuard
from codeagent_lsp.agent.loop import usage_event
from codeagent_lsp.agent.solving.material import Material
from codeagent_lsp.agent.solving.prompt import CUT, NO_CODE, REPEATED, SAME, Tried
from codeagent_lsp.agent.solving.prose import ProseFilter
from codeagent_lsp.agent.solving.question import Question, Situation
from codeagent_lsp.agent.solving.verdict import Verdict, better, no_worse, satisfied
from codeagent_lsp.errors import CodeAgentError, ContextOverflow, ModelStreamBroken
from codeagent_lsp.llm.model import Model, ModelRequest, Reply, TextChunk
from codeagent_lsp.workspace.changes.changeset import Changeset

Ending = Literal["solved", "answered", "unchanged", "failing"]

TEMPERATURES = (0.0, 0.5, 0.8)
SHORT_ANSWERS, SUSPECTS = 2, 6
"""A single line costs so little that several are asked for in one attempt, and then line by line."""
LEAST_REPLY, LINE_TOKENS = 700, 120
MOST_MATERIAL = 24_000
DIFF_CHARS = 1500
MOST_TRIED = 2


_Ask = tuple[ModelRequest, str]
"""A request, and the line that it asks about ('' for none)."""


class Workshop(Protocol):
    """What a solver works with: files, checks, and the user's eyes. All of it sees the staged state."""

    async def check(self) -> Verdict | None:
        """Run what has to pass on the staged state; None where there is nothing to run."""

    async def draft(self) -> tuple[Mapping[str, str], Material]:
        """New texts by file name that need no model, and the files they were made from; none for most tasks."""

    async def gather(self, verdict: Verdict | None, wanted: tuple[str, ...], room: int, *, wide: bool) -> Material:
        """What to show for the task in about `room` tokens: what is pointed at, with `wide` also what is near it.
        `wanted` are files that the model has asked for.
        """

    async def stage(self, texts: Mapping[str, str], material: Material) -> str:
        """Stage new texts by file name. '' when that was done, else why not, for the model; then nothing is staged."""

    def staged(self) -> Changeset:
        """What is staged now."""

    def restore(self, changeset: Changeset) -> None:
        """Go back to an earlier state."""

    def diff(self, since: Changeset, limit: int) -> str:
        """What has changed since an earlier state, at most `limit` characters."""

    def say(self, key: str, **values: object) -> None:
        """Tell the user where the work stands, by a sentence of the catalogue."""


@dataclass(frozen=True, slots=True)
class SolverLimits:
    """`attempts` are rounds of asking; `slots` answers are asked for at once after the first. The rest is in tokens."""

    attempts: int = 3
    window: int = 8192
    reply_tokens: int = 2048
    temperature: float = 0.0
    slots: int = 1


@dataclass(frozen=True, slots=True)
class Solution:
    """How it ended: `solved` (changed, and the check agrees or there is none), `answered` (in words, which was enough),
    `unchanged`, or `failing` (changed for the better, but the check still fails).

    `text` is what the model said last, `verdict` the check of what is staged, `forms` the forms that were asked for,
    `problem` what was wrong with the last answer that could not be used, in English for the model.
    """

    ending: Ending
    text: str = ""
    verdict: Verdict | None = None
    attempts: int = 0
    forms: tuple[TextForm, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class _State:
    """What is known so far. `best` is what is staged between two attempts, `verdict` its check; `harmless` is a change
    that made nothing worse in tests that nobody spoke of, and nothing better; `nearest` is the guess that came nearest.
    """

    before: Verdict | None
    first: Changeset
    best: Changeset
    verdict: Verdict | None
    tried: list[Tried] = field(default_factory=list)
    refused: list[TextForm] = field(default_factory=list)
    used: list[TextForm] = field(default_factory=list)
    wanted: tuple[str, ...] = ()
    text: str = ""
    harmless: Changeset | None = None
    nearest: tuple[Changeset, Verdict] | None = None
    seen: set[tuple[tuple[str, str], ...]] = field(default_factory=set)

    def is_news(self, answer: Answer) -> bool:
        """True when the answer's new texts change a file in a way that no earlier guess did; remembers them."""
        texts = tuple(sorted(answer.texts.items()))
        known = texts in self.seen
        self.seen.add(texts)
        return bool(texts) and not known

    def situation(self) -> Situation:
        """What the next request has to say."""
        failures = self.verdict.report if self.verdict is not None and self.verdict.failed else ""
        return Situation(failures, tuple(self.tried[-MOST_TRIED:]), tuple(self.refused))

    def guessed(self, staged: Changeset, verdict: Verdict | None) -> None:
        """A guess that does not do. It may make some tests pass and be wrong all the same: nothing builds on it."""
        if verdict is not None and better(verdict, self.nearest[1] if self.nearest else self.verdict):
            self.nearest = staged, verdict

    def refuse(self, problem: str, unknown: tuple[str, ...]) -> None:
        """The last answer could not be used: the next one is asked for in another form."""
        self.tried = [*(each for each in self.tried if each.diff), Tried(problem=problem)]
        self.wanted = tuple(dict.fromkeys((*self.wanted, *unknown)))
        self.refused.append(self.used[-1])


class Solver:
    """One task, put as `question`. `emit` is told the words of the answers as they come, and the tokens."""

    def __init__(
        self,
        model: Model,
        workshop: Workshop,
        question: Question,
        limits: SolverLimits,
        emit: Callable[[events.Event], None],
    ) -> None:
        self._model = model
        self._workshop = workshop
        self._question = question
        self._limits = limits
        self._emit = emit

    async def solve(self, *, is_task: bool) -> Solution:
        """Work until the check agrees or the attempts are over. Where `is_task` is false, words alone will do."""
        before, first = await self._workshop.check(), self._workshop.staged()
        state = _State(before, first, first, before)
        if await self._drafted(state):
            return self._ended("solved", state, 0)
        for number in range(self._limits.attempts):
            self._tell(number, state)
            best = state.best
            async with aclosing(self._answers(state, number)) as answers:
                async for answer, material, guess in answers:
                    if guess and not state.is_news(answer):
                        continue
                    state.text = answer.prose or state.text
                    if not answer.has_code and not is_task and not answer.problem:
                        return self._ended("answered", state, number + 1)
                    if await self._stands(answer, material, state, guess=guess):
                        return self._ended("solved", state, number + 1)
                    if state.best is not best:  # the other answers were given to what it was before
                        break
        self._settle(state)
        return self._ended("unchanged" if state.best == first else "failing", state, self._limits.attempts)

    def _settle(self, state: _State) -> None:
        """Nothing did: what came nearest stays, a guess only where no answer came as near."""
        if state.nearest is not None and better(state.nearest[1], state.verdict):
            state.best, state.verdict = state.nearest
        elif state.best == state.first and state.harmless is not None:
            state.best = state.harmless
        self._workshop.restore(state.best)

    async def _drafted(self, state: _State) -> bool:
        """Stage what needs no model, where there is such a thing, and check it. It is kept when it helps."""
        texts, material = await self._workshop.draft()
        if not texts or await self._workshop.stage(texts, material):
            return False
        verdict = await self._workshop.check()
        if satisfied(verdict, state.before):
            state.verdict = verdict
            return True
        if better(verdict, state.verdict):
            state.best, state.verdict = self._workshop.staged(), verdict
        self._workshop.restore(state.best)
        return False

    async def _stands(self, answer: Answer, material: Material, state: _State, *, guess: bool) -> bool:
        """Stage an answer and check it. If it does not stand, the best state is staged again and `state` knows why,
        but for a guess that was asked for as one.
        """
        problem = answer.problem or ("" if answer.texts else SAME if answer.has_code else NO_CODE)
        problem = problem or await self._workshop.stage(answer.texts, material)
        if problem and guess:
            return False
        if problem:
            unseen = set(answer.texts).difference(file.name for file in material.files)
            state.refuse(problem, (*answer.unknown, *sorted(unseen)))
            return False
        verdict = await self._workshop.check()
        if satisfied(verdict, state.before):
            state.verdict = verdict
            return True
        if guess:
            state.guessed(self._workshop.staged(), verdict)
        elif better(verdict, state.verdict):
            state.best, state.verdict, state.tried = self._workshop.staged(), verdict, []
        else:
            state.tried.append(Tried(diff=self._workshop.diff(state.best, DIFF_CHARS)))
            if state.harmless is None and no_worse(verdict, state.before):
                state.harmless = self._workshop.staged()
        self._workshop.restore(state.best)
        return False

    async def _answers(self, state: _State, number: int) -> AsyncGenerator[tuple[Answer, Material, bool], None]:
        """Answers to the task as it stands: one, or several where they are short or the server has slots for them.

        Each with what it was given to, and whether it is a guess, one line of many.
        """
        limits, question = self._limits, self._question
        room = min(MOST_MATERIAL, (limits.window - limits.reply_tokens) // 2)
        begun = False
        while not begun:
            material = await self._workshop.gather(state.verdict, state.wanted, room, wide=number > 1)
            situation = state.situation()
            form = question.form(material, situation)
            try:
                for asks in _batches(self._asks(material, form, situation, state), limits.slots):
                    replies = await self._replies([request for request, _ in asks])
                    if not begun:
                        begun = True
                        state.used.append(form)
                    for (_, suspect), reply in zip(asks, replies, strict=True):
                        answer = _checked(question.read(reply.text, material, form, suspect), reply)
                        yield answer, material, form == "line"
                if form == "line":
                    state.refused.append(form)
            except ContextOverflow:
                if room < LEAST_REPLY or begun:
                    raise
                room //= 2

    def _asks(self, material: Material, form: TextForm, situation: Situation, state: _State) -> list[_Ask]:
        """The requests of one attempt. The first one is alone; short answers are asked for more than once, and then
        line by line.
        """
        request = self._request(material, form, situation, state.used.count(form))
        if form != "line":
            return [(_hotter(request, 0.2 * step), "") for step in range(self._limits.slots if state.used else 1)]
        free = [(_hotter(request, 0.4 * step), "") for step in range(SHORT_ANSWERS)]
        about = [replace(situation, suspect=line) for line in material.suspects[:SUSPECTS]]
        return [*free, *((self._request(material, form, each, 0), each.suspect) for each in about)]

    async def _replies(self, requests: Sequence[ModelRequest]) -> list[Reply]:
        """The replies to several requests at once."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._reply(each, show=at == 0)) for at, each in enumerate(requests)]
        except* CodeAgentError as failed:
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _reply(self, request: ModelRequest, *, show: bool) -> Reply:
        """One reply; its words are passed on as they come. Ends where it repeats itself."""
        guard, text = LoopGuard(), ""
        prose = None if self._question.shows_code else ProseFilter()
        async with aclosing(self._model.stream(request)) as stream:
            async for item in stream:
                if isinstance(item, Reply):
                    self._emit(usage_event(item))
                    self._show(prose.close() if prose is not None else "", show=show)
                    return item
                if isinstance(item, TextChunk):
                    text += item.text
                    self._show(prose.feed(item.text) if prose is not None else item.text, show=show)
                if guard.observe_text(item.text) is not None:
                    return Reply(text, problem=REPEATED)
        raise ModelStreamBroken("model.stream_cut", url=self._model.info.url or self._model.info.name)

    def _request(self, material: Material, form: TextForm, situation: Situation, asked: int) -> ModelRequest:
        messages = self._question.messages(material, form, situation)
        left = max(LEAST_REPLY, self._limits.window - size(messages))
        wanted = LINE_TOKENS if form == "line" else max(LEAST_REPLY, 3 * material.tokens // 2)
        temperature = max(self._limits.temperature, TEMPERATURES[min(asked, len(TEMPERATURES) - 1)])
        return ModelRequest(messages, temperature=temperature, max_tokens=min(left, self._limits.reply_tokens, wanted))

    def _show(self, text: str, *, show: bool) -> None:
        if show and text:
            self._emit(events.Token(content=text))

    def _tell(self, number: int, state: _State) -> None:
        """Which attempt begins, and what fails before it."""
        failed = state.verdict.failed if state.verdict is not None else ()
        key = "solve.failing" if failed else "solve.attempt"
        name = failed[0].test_id if failed else ""
        self._workshop.say(key, number=number + 1, of=self._limits.attempts, failed=len(failed), name=name)

    def _ended(self, ending: Ending, state: _State, attempts: int) -> Solution:
        problem = next((each.problem for each in reversed(state.tried) if each.problem), "")
        return Solution(ending, state.text, state.verdict, attempts, tuple(state.used), problem)


def _hotter(request: ModelRequest, more: float) -> ModelRequest:
    """The same request with more chance: short answers differ in little else."""
    return replace(request, temperature=min(1.0, request.temperature + more))


def _batches(asks: Sequence[_Ask], count: int) -> Iterator[Sequence[_Ask]]:
    return (asks[at : at + count] for at in range(0, len(asks), count))


def _checked(answer: Answer, reply: Reply) -> Answer:
    """The answer of a reply; of one that was cut or went in circles nothing is used."""
    if reply.problem:
        return replace(answer, texts={}, problem=reply.problem)
    if reply.finish_reason == "length" and not (answer.texts and not answer.problem):
        return replace(answer, texts={}, problem=CUT)
    return answer
