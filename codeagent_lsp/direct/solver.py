"""The solver: how a model that is not good with tools does a task.

Check first, where the task mentions tests; do what needs no model (a rename, a small repair); show the model the files;
ask for the changed code; stage it; check again; report what still fails, and ask again, up to a number of attempts.
The state with the best check is kept. Not here: which files are shown and how checks are run (the port
`SolverWorkspace`, `session/solving/solver_workspace.py`), how code is read from a reply (`direct/answer.py`), what
becomes of the staged changes (`session/run.py`).

To cancel, cancel the asyncio task that runs it; what was staged until then stays for the user's decision.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import size
from codeagent_lsp.agent.limits import LoopGuard
from codeagent_lsp.agent.loop import usage_event
from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.answer import Answer, is_bare_diff, named_in
from codeagent_lsp.direct.checks import Verdict, better, no_worse, satisfied
from codeagent_lsp.direct.fences import CUT, path_in
from codeagent_lsp.direct.material import Material
from codeagent_lsp.direct.question import NO_CODE, REPEATED, SAME, Question, Situation, Tried
from codeagent_lsp.direct.variants import Repairs, Variant
from codeagent_lsp.errors import CodeAgentError, ContextOverflow, ModelStreamBroken
from codeagent_lsp.llm.calls.toolcalls import begins_call
from codeagent_lsp.llm.model import Model, ModelRequest, Reply, TextChunk
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.text.excerpts import excerpt

Ending = Literal["solved", "answered", "declined", "unchanged", "failing"]

# The best guess first; after that the same again would be no new try.
TEMPERATURES = (0.0, 0.5, 0.8)
LEAST_REPLY, LINE_TOKENS, THINKING_TOKENS = 700, 120, 4096
MOST_MATERIAL = 24_000
DIFF_CHARS, REPORT_CHARS = 1500, 600
MOST_TRIED = 2


_Ask = tuple[ModelRequest, str]
"""A request, and the suspect line that it asks about ('' for none)."""
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_BLOCK_START, _BLOCK_END = re.compile(r"^<{5,9} ?SEARCH"), re.compile(r"^>{5,9} ?REPLACE")
_LINE = re.compile(r"^[\s>*-]*(?:WRONG|RIGHT):")
_BLANK = re.compile(r"\s")


class SolverWorkspace(Protocol):
    """Port: the files, checks and messages to the user that a solver works with, for one run. All of it refers to the
    staged state.
    """

    async def check(self) -> Verdict | None:
        """Run the checks on the staged state, which may take minutes, and return the verdict; None if there is nothing
        to check. If they cannot run, the verdict has a `problem`.
        """

    async def draft(self) -> tuple[Mapping[str, str], Material, str]:
        """Return new texts by relative path that need no model (a rename), the files they were made from, and the
        sentence for the user; all empty for most tasks.
        """

    async def repairs(self, before: Verdict | None) -> Repairs | None:
        """Return the small changes, of many that were tried, with which the tests that fail `before` pass; None where
        there is none, or nothing that decides.
        """

    def repair_told(self, found: Repairs, change: Variant) -> str:
        """Return what the user is told, in their language, of `change`, the one of these repairs that was taken."""

    async def gather(self, verdict: Verdict | None, wanted: tuple[str, ...], room: int, *, wide: bool) -> Material:
        """Return what to show for the task in about `room` tokens: what the hints name, with `wide` also what is
        related. `wanted` are relative paths that the model has asked for.
        """

    async def stage(self, texts: Mapping[str, str], material: Material) -> str:
        """Stage whole new texts by relative path, of the files of `material` or new ones; what the user has typed
        since is merged into them. Return '', or, as a sentence for the model, why they were refused; then nothing more
        is staged than before.
        """

    def revealed(self, reply: str) -> str:
        """Return a reply with its secret marks (`<secret:…>`) replaced by the secrets, so that it can be compared with
        the files; unknown marks stay.
        """

    def staged(self) -> Changeset:
        """Return the staged changes as they are now, an immutable value that `restore` takes."""

    def restore(self, changeset: Changeset) -> None:
        """Replace the staged changes by earlier ones that `staged` returned, at once."""

    def diff(self, since: Changeset, limit: int) -> str:
        """Return the changes since an earlier staged state as a unified diff, cut to `limit` characters; '' if there
        are none.
        """

    def heard(self) -> tuple[str, ...]:
        """Return all that the user has said to the run since it began, the oldest first."""

    def say(self, key: str, **values: object) -> None:
        """Show the user a sentence of the catalogue (`texts.py`) by its key, with values for its placeholders, in their
        language. KeyError for an unknown key.
        """


@dataclass(frozen=True, slots=True)
class SolverLimits:
    """Limits of one task. `attempts` are rounds of asking; after the first, `slots` answers are asked for at once.
    `window` and `reply_tokens` are in tokens.
    """

    attempts: int = 3
    window: int = 8192
    reply_tokens: int = 2048
    temperature: float = 0.0
    slots: int = 1


@dataclass(frozen=True, slots=True)
class Solution:
    """The result of a task. `ending` is `solved` (changed, and the check passes or there is none), `answered` (words
    were enough), `declined` (the model says that nothing has to change), `unchanged`, or `failing` (improved, but the
    check still fails).

    `text` is the model's last prose, or what the user is told of a change without a model; `verdict` is the check of
    what is staged, `attempts` the number of rounds made, `forms` the forms that were asked for, `problem` why the last
    answer could not be used, in English for the model.
    """

    ending: Ending
    text: str = ""
    verdict: Verdict | None = None
    attempts: int = 0
    forms: tuple[TextForm, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class _State:
    """The state between attempts. `best` is what is staged between two attempts, `verdict` its check; `harmless` is a
    change that made nothing worse and nothing better in a check that is not binding; `nearest` is the best failed
    guess; `begun` says that an answer was better than nothing.
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
    checked: set[frozenset[tuple[str, str]]] = field(default_factory=set)
    begun: bool = False

    def knows(self, answer: Answer) -> bool:
        """Return whether the same new texts were checked before, on the state that is the best now."""
        return frozenset(answer.texts.items()) in self.checked

    def remember(self, answer: Answer) -> None:
        """Record that the new texts of an answer are checked. One that could not be staged may come again."""
        self.checked.add(frozenset(answer.texts.items()))

    def situation(self) -> Situation:
        """Return what the next request has to say."""
        failures = self.verdict.report if self.verdict is not None and self.verdict.failed else ""
        return Situation(failures, tuple(self.tried[-MOST_TRIED:]), tuple(self.refused), begun=self.begun)

    def improved(self, staged: Changeset, verdict: Verdict | None) -> None:
        """Record a better state. It has other lines that may be wrong, and what was tried was for the one before."""
        self.best, self.verdict, self.tried, self.begun = staged, verdict, [], True
        # The same texts on another state are another try.
        self.checked.clear()
        self.refused = [form for form in self.refused if form != "line"]

    def failed(self, diff: str, verdict: Verdict | None) -> None:
        """Record an answer that is no better than the best state: its diff from there, and the report of its check,
        unless the best state has the same report.
        """
        # The same report twice would cost room and tell the model nothing.
        now, report = (each.report if each is not None else "" for each in (self.verdict, verdict))
        self.tried.append(Tried(diff=diff, report=excerpt(report, REPORT_CHARS) if report != now else ""))

    def guessed(self, staged: Changeset, verdict: Verdict | None) -> None:
        """Record a wrong guess. It may make some tests pass and be wrong all the same: nothing builds on it."""
        if verdict is not None and better(verdict, self.nearest[1] if self.nearest else self.verdict):
            self.nearest = staged, verdict

    def refuse(self, problem: str, unknown: tuple[str, ...]) -> None:
        """Record that the last answer could not be used: the next one is asked for in another form."""
        self.tried = [*(each for each in self.tried if each.diff), Tried(problem=problem)]
        self.wanted = tuple(dict.fromkeys((*self.wanted, *unknown)))
        self.refused.append(self.used[-1])


class Solver:
    """Solves one task, put as `question`; use it once. `emit` receives events with the prose of the answers as it
    streams, and the token usage.
    """

    def __init__(
        self,
        model: Model,
        workspace: SolverWorkspace,
        question: Question,
        limits: SolverLimits,
        emit: Callable[[events.Event], None],
    ) -> None:
        self._model = model
        self._workspace = workspace
        self._question = question
        self._limits = limits
        self._emit = emit
        self._thinking_room = 0  # tokens more for a model that has thought until its reply was full
        self._said: tuple[str, ...] = ()  # what the user has said to the run so far

    async def solve(self, *, is_task: bool) -> Solution:
        """Ask, stage and check until the check passes or the attempts are used up; the best state stays staged. If
        `is_task` is false, an answer in words is enough. ModelError if the model fails.
        """
        # Before anything is changed: all later checks are compared with this one.
        before, first = await self._workspace.check(), self._workspace.staged()
        state = _State(before, first, first, before)
        if await self._try_draft(state) or await self._try_repairs(state):
            return self._solution("solved", state, 0)
        for number in range(self._limits.attempts):
            self._tell(number, state)
            best, fresh = state.best, False
            async with aclosing(self._answers(state, number)) as answers:
                async for answer, material, guess in answers:
                    # A check takes seconds to minutes; an answer that was checked is not checked again.
                    if state.knows(answer) or (guess and not answer.texts):
                        continue
                    fresh = True
                    state.text = answer.prose or state.text
                    # Tests that fail are a better witness than a model that sees nothing to do.
                    if answer.declined and not (state.verdict is not None and state.verdict.failed):
                        state.text = answer.declined
                        return self._solution("declined", state, number + 1)
                    if not answer.has_code and not is_task and not answer.problem:
                        return self._solution("answered", state, number + 1)
                    if await self._stands(answer, material, state, guess=guess):
                        return self._solution("solved", state, number + 1)
                    if state.best is not best:  # the other answers are for the state before this one
                        break
            if not fresh or state.used[-1] == "line":  # it would only repeat itself in this form
                state.refused.append(state.used[-1])
        self._settle(state)
        return self._solution("unchanged" if state.best == first else "failing", state, self._limits.attempts)

    def _settle(self, state: _State) -> None:
        """Keep the best state after the last attempt; a guess only where it is better than all answers."""
        if state.nearest is not None and better(state.nearest[1], state.verdict):
            state.best, state.verdict = state.nearest
        # Where no check had a say, a change that breaks nothing is more than none.
        elif state.best == state.first and state.harmless is not None:
            state.best = state.harmless
        self._workspace.restore(state.best)

    async def _try_draft(self, state: _State) -> bool:
        """Stage the draft that needs no model, if there is one, and check it. Return whether that does the task."""
        texts, material, told = await self._workspace.draft()
        # A draft that is refused is no attempt: the model has not said anything yet.
        if not texts or await self._workspace.stage(texts, material):
            return False
        verdict = await self._workspace.check()
        if satisfied(verdict, state.before):
            state.verdict, state.text = verdict, told
            return True
        if better(verdict, state.verdict):
            state.best, state.verdict = self._workspace.staged(), verdict
        self._workspace.restore(state.best)
        return False

    async def _try_repairs(self, state: _State) -> bool:
        """Stage the small change that was found, if there is one; return whether all passes then."""
        found = await self._workspace.repairs(state.before)
        change = await self._choose(found, state) if found is not None else None
        if found is None or change is None:
            return False
        if await self._workspace.stage({found.file.name: change.text}, Material((found.file,))):
            return False
        verdict = await self._workspace.check()
        if verdict is not None and verdict.good:
            told = self._workspace.repair_told(found, change)
            state.verdict, state.text = verdict, told
            self._emit(events.Token(content=f"{told}\n\n"))
            return True
        self._workspace.restore(state.best)
        return False

    async def _choose(self, found: Repairs, state: _State) -> Variant | None:
        """Return the only change; of several in one line the one that the model names; None where it names none."""
        if len(found.changes) == 1:
            return found.changes[0]
        if not found.in_one_line:
            return None
        material = await self._workspace.gather(state.before, (), self._room(), wide=False)
        choices = {change.after: change for change in found.changes}
        asked = replace(state.situation(), suspect=found.changes[0].before, choices=tuple(choices))
        try:
            reply = await self._reply(self._request(material, "line", asked, 0), show=False)
        except ContextOverflow:
            return None
        named = named_in(reply.text, choices)
        return choices[named] if named else None

    async def _stands(self, answer: Answer, material: Material, state: _State, *, guess: bool) -> bool:
        """Stage an answer and check it; return whether it is good. If not, the best state is staged again and the
        reason is recorded in `state`, except for a guess that cannot be used. A guess, one of many, is good only where
        all passes: by chance it may well mend a part.
        """
        problem = answer.problem or ("" if answer.texts else SAME if answer.has_code else NO_CODE)
        problem = problem or await self._workspace.stage(answer.texts, material)
        if problem and guess:
            return False
        if problem:
            # Files that it wanted to change without having seen them are shown the next time.
            unseen = set(answer.texts).difference(file.name for file in material.files)
            state.refuse(problem, (*answer.unknown, *sorted(unseen)))
            return False
        state.remember(answer)
        verdict = await self._workspace.check()
        if (verdict is not None and verdict.good) if guess else satisfied(verdict, state.before):
            state.verdict = verdict
            return True
        if guess:
            state.guessed(self._workspace.staged(), verdict)
        elif better(verdict, state.verdict):
            state.improved(self._workspace.staged(), verdict)
        else:
            state.failed(self._workspace.diff(state.best, DIFF_CHARS), verdict)
            # The first one: the model was asked for it as the task says, the later ones to be different.
            if state.harmless is None and no_worse(verdict, state.before):
                state.harmless = self._workspace.staged()
        self._workspace.restore(state.best)
        return False

    async def _answers(self, state: _State, number: int) -> AsyncGenerator[tuple[Answer, Material, bool], None]:
        """Yield answers for the current state: one, or several where they are short or the server has free slots. Each
        comes with the material it is for, and whether it is a guess (form `line`).
        """
        limits, question, room = self._limits, self._question, self._room()
        begun = False
        while not begun:
            material = await self._workspace.gather(state.verdict, state.wanted, room, wide=number > 1)
            self._said = self._workspace.heard()
            situation = replace(state.situation(), said=self._said)
            form = question.form(material, situation)
            try:
                for asks in _batches(self._asks(material, form, situation, state), limits.slots):
                    replies = await self._replies([request for request, _ in asks])
                    if not begun:
                        begun = True
                        state.used.append(form)
                    for (_, suspect), reply in zip(asks, replies, strict=True):
                        text = self._workspace.revealed(reply.text)
                        yield (
                            _accept(question.read(text, material, form, suspect), reply),
                            material,
                            form == "line",
                        )
            except ContextOverflow:
                # After the first reply the material must not change: the answers that were given are for this one.
                if room < LEAST_REPLY or begun:
                    raise
                room //= 2

    def _room(self) -> int:
        """Return the tokens for what is shown: half, as an answer that gives the code again takes as much."""
        return min(MOST_MATERIAL, (self._limits.window - self._limits.reply_tokens) // 2)

    def _asks(self, material: Material, form: TextForm, situation: Situation, state: _State) -> list[_Ask]:
        """Return the requests of one attempt. The first attempt has one; for a short answer, each suspect line is asked
        about, since one costs few tokens and finds what the model does not find by itself, which is asked for last.
        """
        request = self._request(material, form, situation, sum(each != "line" for each in state.used))
        if form != "line":
            return [(_hotter(request, 0.2 * step), "") for step in range(self._limits.slots if state.used else 1)]
        # The most likely lines first: the attempt ends with the first answer that stands.
        about = [replace(situation, suspect=line) for line in material.suspects]
        return [*((self._request(material, form, each, 0), each.suspect) for each in about), (request, "")]

    async def _replies(self, requests: Sequence[ModelRequest]) -> list[Reply]:
        """Return the replies to several concurrent requests."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._reply(each, show=at == 0)) for at, each in enumerate(requests)]
        except* CodeAgentError as failed:
            # The first failure is what the user has to know; a group would hide its message and its kind.
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _reply(self, request: ModelRequest, *, show: bool) -> Reply:
        """Return one reply, its text passed on as it comes; stop early when it repeats itself."""
        guard, text = LoopGuard(), ""
        prose = None if self._question.shows_code else ProseFilter()
        async with aclosing(self._model.stream(request)) as stream:
            async for item in stream:
                if isinstance(item, Reply):
                    self._emit(usage_event(item, request))
                    if item.finish_reason == "length" and item.reasoning and not item.text.strip():
                        self._thinking_room = THINKING_TOKENS  # it came to no answer
                    self._show(prose.close() if prose is not None else "", show=show)
                    return item
                if isinstance(item, TextChunk):
                    text += item.text
                    self._show(prose.feed(item.text) if prose is not None else item.text, show=show)
                # Thoughts count too: a model can loop there without a word of an answer.
                if guard.observe_text(item.text) is not None:
                    return Reply(text, problem=REPEATED)
        raise ModelStreamBroken("model.stream_cut", url=self._model.info.url or self._model.info.name)

    def _request(self, material: Material, form: TextForm, situation: Situation, asked: int) -> ModelRequest:
        messages = self._question.messages(material, form, situation)
        left = max(LEAST_REPLY, self._limits.window - size(messages))
        wanted = LINE_TOKENS if form == "line" else max(LEAST_REPLY, 3 * material.tokens // 2)
        # By how often it was asked: with the same request at the same temperature, it would answer the same.
        temperature = max(self._limits.temperature, TEMPERATURES[min(asked, len(TEMPERATURES) - 1)])
        tokens = min(left, self._thinking_room + min(self._limits.reply_tokens, wanted))
        grammar = "" if asked else self._question.grammar()  # a model that thinks aloud cannot begin under one
        return ModelRequest(messages, temperature=temperature, max_tokens=tokens, grammar=grammar)

    def _show(self, text: str, *, show: bool) -> None:
        if show and text:
            self._emit(events.Token(content=text))

    def _tell(self, number: int, state: _State) -> None:
        """Report which attempt begins, and what fails before it."""
        failed = state.verdict.failed if state.verdict is not None else ()
        key = "solve.failing" if failed else "solve.attempt"
        name = failed[0].test_id if failed else ""
        self._workspace.say(key, number=number + 1, of=self._limits.attempts, failed=len(failed), name=name)

    def _solution(self, ending: Ending, state: _State, attempts: int) -> Solution:
        problem = next((each.problem for each in reversed(state.tried) if each.problem), "")
        return Solution(ending, state.text, state.verdict, attempts, tuple(state.used), problem)


def _hotter(request: ModelRequest, more: float) -> ModelRequest:
    """Return the request with a higher temperature, without which short answers hardly differ."""
    return replace(request, temperature=min(1.0, request.temperature + more))


def _batches(asks: Sequence[_Ask], count: int) -> Iterator[Sequence[_Ask]]:
    return (asks[at : at + count] for at in range(0, len(asks), count))


def _accept(answer: Answer, reply: Reply) -> Answer:
    """Return the answer of a reply; nothing is used of a reply that was cut or repeated itself."""
    if reply.problem:
        return replace(answer, texts={}, problem=reply.problem)
    # A cut reply still counts if what it gave was whole: often only words behind the code are missing.
    is_whole = answer.texts and not answer.problem and not is_bare_diff(reply.text)
    if reply.finish_reason == "length" and not is_whole:
        return replace(answer, texts={}, problem=CUT)
    return answer


# Filters a streamed answer: its prose passes, its code is held back, since that is shown as a change instead.


class ProseFilter:
    """Separates the prose of one streamed answer from its code and tool calls: `feed` takes its pieces in order,
    `close` ends it.
    """

    def __init__(self) -> None:
        self._line = ""
        self._fence = ""
        self._in_block = False
        self._in_call = False

    def feed(self, piece: str) -> str:
        """Take a piece and return the prose of the lines that it completes, with their ends; '' if it completes none,
        or only code.
        """
        *lines, self._line = (self._line + piece).split("\n")
        return "".join(self._filter_line(line) for line in lines)

    def close(self) -> str:
        """Return the prose of the last, incomplete line, with a line end; '' if that is code or empty."""
        line, self._line = self._line, ""
        return self._filter_line(line) if line else ""

    def _filter_line(self, line: str) -> str:
        if self._in_call:
            return ""
        if self._in_block:
            self._in_block = not _BLOCK_END.match(line)
            return ""
        fence = _FENCE.match(line)
        if self._fence:
            if fence is not None and fence[1].startswith(self._fence) and line.strip() == fence[1]:
                self._fence = ""
            return ""
        if fence is not None:
            self._fence = fence[1]
            return ""
        if _LINE.match(line):
            return ""
        # A model that wants to call tools where it has none: what follows is no prose.
        if begins_call(line):
            self._in_call = True
            return ""
        if _BLOCK_START.match(line):
            self._in_block = True
            return ""
        is_path = bool(path_in(line)) and not _BLANK.search(line.strip("*#` :"))
        return f"{line}\n" if line.strip() and not is_path else ""
