"""Implements a run's direct path: the model answers with changed code instead of tool calls, and the program stages and
checks it.

Not here: the attempts (`direct/solver.py`), files and checks (`solver_workspace.py`), which form a model is good at
(`direct/answer.py`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from codeagent_lsp import events
from codeagent_lsp.agent.instructions import INSTRUCTIONS_LIMIT, render_instructions, root_instructions
from codeagent_lsp.agent.limits import reply_tokens, window_of
from codeagent_lsp.agent.prompt import Selection, system_prompt, task_message
from codeagent_lsp.direct import TextForm
from codeagent_lsp.direct.aptitude import Proof
from codeagent_lsp.direct.checks import Brief, Verdict, brief_of
from codeagent_lsp.direct.fences import CUT
from codeagent_lsp.direct.gathering import Subject
from codeagent_lsp.direct.question import REPEATED, FilesQuestion, RewriteLimits, RewriteRequest, SelectionQuestion
from codeagent_lsp.direct.solver import Solution, Solver, SolverLimits
from codeagent_lsp.llm.calls.toolcalls import before_calls
from codeagent_lsp.llm.model import Model
from codeagent_lsp.messages import Message, estimate_tokens
from codeagent_lsp.session.conversation.repo_maps import SMALL_WINDOW, unless_failed
from codeagent_lsp.session.decisions import decisions
from codeagent_lsp.session.request import RunRequest, Target
from codeagent_lsp.session.run_parts import RunParts, remember, selection_of
from codeagent_lsp.session.solving.solver_workspace import SelectionWorkspace, TaskWorkspace
from codeagent_lsp.workspace.text.excerpts import excerpt
from codeagent_lsp.workspace.text.position import LineIndex
from codeagent_lsp.workspace.text.visible import some_of

EARLIER_MESSAGES = 4
EARLIER_CHARS = 400
MAP_TOKENS, PIECES = 600, 20
NAMED_TESTS = 3
_WHY = {CUT: "rewrite.cut", REPEATED: "rewrite.loop"}


@dataclass(frozen=True, slots=True)
class Work:
    """One task for the direct path. `words` replace those of the request; with `is_task` a change is wanted, so that
    words alone are no result; with `told` the words join the conversation as the user's; `attempts` is a limit (None:
    the setting's).
    """

    request: RunRequest
    words: str = ""
    is_task: bool = True
    told: bool = True
    attempts: int | None = None


class DirectPath:
    """Works on the tasks of one run by asking the model for changed code. `proof` says which answer forms the model is
    good at, `form` forces one.
    """

    def __init__(self, parts: RunParts, model: Model, proof: Proof, form: TextForm | None) -> None:
        self._parts = parts
        self._model = model
        self._proof = proof
        self._form = form
        self.words = SolutionWords(parts)

    async def solve(self, work: Work) -> Solution:
        """Do one task and return its solution, whose changes are staged; the words and the result join the
        conversation. Errors of the model are raised as ModelError.
        """
        parts, request = self._parts, work.request
        await parts.toolbox.open()
        brief, earlier = self._brief(work), self._earlier()
        if work.told:
            remember(parts, Message("user", brief.words))
        # After the words are stored: looking for the subject may take seconds and can be cancelled.
        workspace = TaskWorkspace(parts, await self._subject(request, brief), small=self._window <= SMALL_WINDOW)
        instructions, became = await asyncio.to_thread(self._instructions), await decisions(parts)
        also = "\n\n".join(filter(None, (instructions, became, *request.given)))
        limits = self._limits()
        limits = replace(limits, attempts=work.attempts or limits.attempts)
        question = FilesQuestion(
            brief.words, self._proof, limits.reply_tokens, self._form, earlier, also, repairs=brief.repairs
        )
        solver = Solver(self._model, workspace, question, limits, parts.output.emit)
        solution = await solver.solve(is_task=work.is_task)
        remember(parts, Message("assistant", self.words.conversation(solution)))
        if solution.ending == "solved":
            parts.output.emit(events.Token(content=self.words.done(solution.verdict)))
        return solution

    async def rewrite(self, request: RunRequest, target: Target) -> Solution:
        """Do a quick action: stage new code for the selection, checked by its syntax and the tests beside the file;
        return the solution. ModelError if the model fails.
        """
        parts = self._parts
        await parts.toolbox.open()
        limits = self._limits()
        name = parts.proposal.view.roots.relative(target.file.path)
        instruction = "\n\n".join((request.instruction, *request.given, *(text for _, text in request.files)))
        asked = RewriteRequest(name, target.file.text, target.start, target.end, instruction, request.diagnostics)
        system = system_prompt("rewrite", parts.services.workspace.environment())
        room = RewriteLimits(limits.window, limits.reply_tokens, limits.temperature)
        workspace = SelectionWorkspace(parts, target, checks=request.kind != "document")
        # A rewritten selection is as long as the selection, and documentation or types can double it.
        longest = max(limits.reply_tokens, 2 * estimate_tokens(target.file.text[target.start : target.end]))
        solver = Solver(
            self._model,
            workspace,
            SelectionQuestion(asked, system, room),
            replace(limits, reply_tokens=min(longest, limits.window // 2)),
            parts.output.emit,
        )
        return await solver.solve(is_task=True)

    async def check(self, request: RunRequest) -> Verdict | None:
        """Run the checks on a change that was made by tools and return the result, None if there is nothing to run, as
        `TaskWorkspace.check_change` does.
        """
        workspace = TaskWorkspace(self._parts, Subject(self._brief(Work(request))), small=False)
        return await workspace.check_change()

    def _brief(self, work: Work) -> Brief:
        """Return how the task is to be checked; its `words` include the selection and the diagnostics."""
        # From the user's words alone: the selected code is full of words such as `test` and `error`.
        brief = brief_of(work.words or work.request.instruction)
        if work.request.kind == "test":
            return Brief(brief.words, writes_tests=True, creates=True)
        words = work.words or task_message(
            work.request.instruction, self._selection(work.request), work.request.diagnostics
        )
        return replace(brief, words=words)

    async def _subject(self, request: RunRequest, brief: Brief) -> Subject:
        relative = self._parts.proposal.view.roots.relative
        target = request.target
        context = self._parts.session.context
        earlier = [relative(path) for run in context.runs.values() for path in run.changed_paths]
        pieces, mapped = await self._find(brief.words)
        return Subject(
            brief,
            relative(target.file.path) if target is not None else "",
            _lines(target) if target is not None else range(0),
            tuple(dict.fromkeys(reversed(earlier))),
            tuple(dict.fromkeys((*(name for name, _ in pieces), *mapped))),
            pieces=pieces,
        )

    async def _find(self, words: str) -> tuple[tuple[tuple[str, range], ...], tuple[str, ...]]:
        """Return the files and lines of the pieces of code that the task is probably about, and the files of the repo
        map, both best first; none if there is no index yet.
        """
        index = self._parts.toolbox.index
        if index is None:
            return (), ()
        from codeagent_lsp.index.rank import Task  # late: the parts of an index are heavy

        # Where there is no map the search has nothing either; it would only wait for the index once more.
        made = await unless_failed(index.task_map(Task(words), MAP_TOKENS))
        found = await unless_failed(index.found(words, PIECES)) if made is not None else None
        pieces = tuple((each.path, range(each.line_start, each.line_end + 1)) for each in found or ())
        return pieces, made.shown if made is not None else ()

    def _selection(self, request: RunRequest) -> Selection | None:
        roots = self._parts.proposal.view.roots
        return selection_of(request.target, roots) if request.target is not None else None

    def _instructions(self) -> str:
        """Return the project's own instructions, as a small part of the window."""
        return render_instructions(
            root_instructions(self._parts.proposal.view, min(INSTRUCTIONS_LIMIT, self._window // 2))
        )

    def _earlier(self) -> str:
        """Return the last messages of the session, shortened."""
        said = [each for each in self._parts.session.context.conversation if each.content and not each.tool_calls]
        told = [each for each in said if each.role in ("user", "assistant")][-EARLIER_MESSAGES:]
        return "\n".join(f"{each.role}: {excerpt(each.content, EARLIER_CHARS)}" for each in told)

    @property
    def _window(self) -> int:
        return window_of(self._model.info)

    def _limits(self) -> SolverLimits:
        settings = self._parts.services.user.settings()
        tokens = reply_tokens(settings, self._model.info)
        return SolverLimits(
            settings.agent.attempts, self._window, tokens, settings.model.temperature, self._model.info.slots
        )


def _lines(target: Target) -> range:
    """Return the 1-based lines of a selection; an empty range if the whole file is meant."""
    if target.end <= target.start:
        return range(0)
    lines = LineIndex.of(target.file.text)
    return range(lines.line_at(target.start) + 1, lines.line_at(target.end - 1) + 2)


# Puts the result of a task into words: for the user, for the run's summary, and for the conversation.


class SolutionWords:
    """Makes the sentences about the solutions of one run, for the user and for the conversation."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts

    def outcome(self, solution: Solution) -> tuple[events.RunStatus, str]:
        """Return (status, summary) of the run: `completed`, or `stopped` while a change is missing or tests fail."""
        text = self._parts.output.text
        if solution.ending == "answered":
            return "completed", solution.text
        if solution.ending == "solved":
            return "completed", "\n".join(filter(None, (solution.text, self.done(solution.verdict))))
        words = before_calls(solution.text)
        said = text("solve.said", words=words) if words else ""
        if solution.ending == "declined":
            return "stopped", "\n".join(filter(None, (text("solve.declined"), said)))
        failing = self._failing(solution.verdict)
        key = "solve.unchanged" if solution.ending == "unchanged" else "solve.still"
        why = text(_WHY[solution.problem]) if solution.problem in _WHY else ""
        lines = (text(key, attempts=solution.attempts), why, failing, said)
        return "stopped", "\n".join(filter(None, lines))

    def conversation(self, solution: Solution) -> str:
        """Return the text of the assistant's message about this task for later turns of the conversation: the answer,
        the relative paths of the changed files, failing tests.
        """
        relative = self._parts.proposal.view.roots.relative
        names = ", ".join(relative(path) for path in self._parts.proposal.changeset.paths)
        changed = (
            f"(Changed: {names}.)" if names and solution.ending in ("solved", "failing") else "(Nothing was changed.)"
        )
        failing = self._failing(solution.verdict)
        return "\n".join(filter(None, (solution.text, "" if solution.ending == "answered" else changed, failing)))

    def done(self, verdict: Verdict | None) -> str:
        """Return a sentence for the user on the changed files, by relative path, and the result of the check, if there
        was one.
        """
        proposal, text = self._parts.proposal, self._parts.output.text
        names = ", ".join(map(proposal.view.roots.relative, proposal.changeset.paths))
        return " ".join(filter(None, (text("solve.changed", names=names), self._check_words(verdict))))

    def _check_words(self, verdict: Verdict | None) -> str:
        text = self._parts.output.text
        if verdict is None:  # of a quick action nobody expects it
            return text("solve.untested") if self._parts.record.kind == "run" else ""
        if not verdict.known:
            return text("solve.unchecked", reason=verdict.problem.splitlines()[0][:200] if verdict.problem else "-")
        return self._failing(verdict) or text("solve.passed", passed=verdict.passed)

    def _failing(self, verdict: Verdict | None) -> str:
        """Return a sentence for the user with the names of the failed tests; '' for none."""
        if verdict is None or not verdict.failed:
            return ""
        names = some_of((each.test_id for each in verdict.failed), NAMED_TESTS)
        return self._parts.output.text("solve.fails", names=names)
