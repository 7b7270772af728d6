"""The work of a run that lets others try its task: starts them, waits, and proposes what the best one has changed.

Each attempt is a run in a session of its own, with its own shadow, on the text as it was when the task was given; it
asks nothing and applies nothing. The others stay staged, to be looked at and taken from; where nobody will, they are
stopped as soon as one is proven.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from codeagent_lsp import events
from codeagent_lsp.config import Settings
from codeagent_lsp.errors import AgentError
from codeagent_lsp.messages import Message
from codeagent_lsp.session.code_knowledge import PROPOSAL_SECONDS, edit_diagnostics
from codeagent_lsp.session.own_runs import OwnWork
from codeagent_lsp.session.proving.proofs import Proofs
from codeagent_lsp.session.proving.trial_tests import tests_with
from codeagent_lsp.session.replay import conversation_before
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.run_parts import Ended, RunParts, hear, remember
from codeagent_lsp.session.runs import LEAVE_SECONDS, Runs
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.tools.context import Tally
from codeagent_lsp.tools.diagnostics.difference import Difference
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView, NothingStaged, StagedView, own_file
from codeagent_lsp.workspace.text.document import Document

if TYPE_CHECKING:
    from codeagent_lsp.session.run import Run


OTHER_TEMPERATURE = 0.7
"""Least temperature of all attempts but the first, which would else be the same."""

StartAttempt = Callable[[Session, Sequence[Message], RunRequest, Services, str], str]
"""Starts an attempt from messages of a session, for the run with this id, and returns its own run id."""


def attempting(start: StartAttempt, runs: Runs) -> OwnWork:
    """Return the work of a run that has several attempts at its task made and stages the best. `start` gets the run's
    session, the messages before the run, one attempt's request, its services and the run's id, and returns the id of
    the attempt's run.
    """
    return lambda parts, request: Attempts(parts, request, start, runs).work()


class Attempts:
    """Has the task of one run tried several times and stages the changes of the attempt that is judged best; used
    once.
    """

    def __init__(self, parts: RunParts, request: RunRequest, start: StartAttempt, runs: Runs) -> None:
        view = frozen(parts.services.workspace.view(NothingStaged()))
        self._parts = parts
        self._request = request
        self._start = start
        self._runs = runs
        live = parts.services.workspace
        workspace = replace(live, view=view, present=live.view, servers=None)
        self._services = replace(parts.services, workspace=workspace)

    async def work(self) -> Ended:
        """Start the attempts, wait for them (with `until_proven` only until one is proven), and stage the changes of
        the best; return (status, summary) of the run. The error that ended the best is raised; a cancellation ends the
        attempts.
        """
        request, session, run_id = self._request, self._parts.session, self._parts.record.run_id
        live_view = self._parts.services.workspace.view
        count = request.attempts
        said = await asyncio.to_thread(conversation_before, session, run_id)
        # Before the attempts start: each would ask for itself, and an attempt cannot ask.
        await self._decide_hooks()
        remember(self._parts, Message("user", request.instruction))
        names = [
            self._start(session, said, self._one(number), self._services_of(number), run_id) for number in range(count)
        ]
        attempts = [self._runs.get(name) for name in names]
        self._parts.record.attempts = tuple(run.session.session_id for run in attempts)
        self._parts.output.emit(events.AttemptsBegun(sessions=self._parts.record.attempts))
        for steered in session.context.waiting.said_to(run_id):  # before there were attempts
            for run in attempts:
                # In the attempt's own session: it reads its words from there, and its file has to replay without this
                # one.
                run.session.emit(run.record.run_id, replace(steered, run_id=run.record.run_id))
        tasks = [task for name in names if (task := self._runs.task(name)) is not None]
        try:
            found = await self._judge_all(attempts)
        finally:
            for task in tasks:
                task.cancel()
            # With a limit: one that hangs in a tool must not hold the result of the others.
            await asyncio.wait(tasks, timeout=LEAVE_SECONDS)
            for run in attempts:
                self._parts.record.usage += run.record.usage
                run.proposal.view = live_view(run.proposal.staging)  # whatever is decided about them now
                run.proposal.proofs.look_at(run.proposal.view)
            for run in attempts:
                # A second loop: all usage is counted and all views are live again before anything is awaited that can
                # be cancelled.
                await self._parts.services.shells.environments.close(run.session.session_id)
        return self._best(attempts, found)

    async def _decide_hooks(self) -> None:
        """Have the user decide about the hooks of the project, as an attempt asks nothing."""
        knowledge, toolbox = self._services.knowledge, self._parts.toolbox
        if await asyncio.to_thread(knowledge.hooks.files, self._parts.proposal.view):
            await toolbox.open()
            consent = await toolbox.hooks.decided(toolbox.context())
            self._services = replace(self._services, knowledge=replace(knowledge, consent=consent))

    async def _judge_all(self, attempts: Sequence[Run]) -> list[Judged]:
        """Judge each attempt when it has ended; where one that is proven is enough, no more after it."""
        frozen = replace(self._parts, services=self._services)
        found: list[Judged] = []
        tasks = ((number, self._runs.task(run.record.run_id)) for number, run in enumerate(attempts, 1))
        working = {task: number for number, task in tasks if task is not None}
        await self._parts.toolbox.open()
        while working:
            ended, _ = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for number in sorted(map(working.pop, ended)):
                found.append(await judge_attempt(frozen, attempts[number - 1].record, number))
                self._tell("attempts.judged", found[-1], len(attempts))
                if self._request.until_proven and found[-1].proven:
                    return found
        return found

    def _best(self, attempts: Sequence[Run], found: Sequence[Judged]) -> Ended:
        best = max(found, key=lambda each: each.merit)
        run = attempts[best.number - 1]
        self._take(run, best)
        hear(self._parts, lambda words: _was_told(run, words))  # what only others were told is the next task
        if run.problem is not None:
            raise run.problem
        said = next((each.content for each in reversed(run.record.messages) if each.role == "assistant"), "")
        words = "\n".join(filter(None, (self._words("attempts.best", best, len(attempts)), said)))
        remember(self._parts, Message("assistant", words))
        self._parts.output.emit(events.Token(content=words))
        return run.record.status if run.record.status != "running" else "failed", words  # type: ignore[return-value]

    def _take(self, run: Run, best: Judged) -> None:
        """Stage the changes of an attempt as those of this run."""
        proposal = self._parts.proposal
        proposal.staging.reset(run.proposal.changeset)
        # Else the same changes could be accepted twice, here and in the attempt's session.
        run.proposal.staging.reset(Changeset())
        if best.tally is not None:  # the tests ran on the text as it was, whatever was typed since
            frozen = Proofs(self._parts.record, self._services.workspace.view(NothingStaged()))
            proposal.proofs.tested(best.tally, best.changeset, frozen.state(best.changeset))

    def _one(self, number: int) -> RunRequest:
        title = f"{self._request.title} ({number + 1}/{self._request.attempts})"
        return replace(self._request, title=title, attempts=1, attempt=number + 1)

    def _services_of(self, number: int) -> Services:
        # The first attempt is what a run without others would have done, at the user's own temperature.
        if number == 0:
            return self._services
        user = self._services.user
        return replace(self._services, user=replace(user, settings=lambda: _warmer(user.settings())))

    def _tell(self, key: str, one: Judged, count: int) -> None:
        self._parts.output.emit(events.StatusChanged(message=self._words(key, one, count)))

    def _words(self, key: str, one: Judged, count: int) -> str:
        return self._parts.output.text(key, number=one.number, count=count, result=one.told(self._parts.output.text))


def _was_told(run: Run, words: str) -> bool:
    return any(message.role == "user" and message.content == words for message in run.record.messages)


def _warmer(settings: Settings) -> Settings:
    temperature = max(settings.model.temperature or 0.0, OTHER_TEMPERATURE)
    return replace(settings, model=replace(settings.model, temperature=temperature))


# The files of the workspace with the open buffers as they were at one moment. Disk changes are seen.


def frozen(view: FileView) -> Callable[[StagedView], FileView]:
    """Return a function that makes file views over a staged state, with the open buffers as they are now; the files on
    the disk are read when they are asked for.
    """
    held = _HeldBuffers({path: document for path in view.over_disk() if (document := _document(view, path))})
    return lambda staged: FileView(view.roots, held, staged, max_bytes=view.max_bytes)


class _HeldBuffers:
    """Buffers that do not change."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self._documents = documents

    def get_by_path(self, path: str) -> Document | None:
        """Return the document that was open under this path."""
        return self._documents.get(path)

    def open_paths(self) -> Iterable[str]:
        """Return the paths of all that were open."""
        return tuple(self._documents)


def _document(view: FileView, path: str) -> Document | None:
    file = own_file(view, path)
    return Document(path, file.text, file.version) if file is not None and file.source == "buffer" else None


# Which attempt is the best: by whether it has come to an end, the tests, and the problems that it makes and mends.


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of one attempt, by its number from 1. `status` is how its run ended; `tally` is None without tests,
    `found` (its new diagnostics) without changes.
    """

    number: int
    status: str
    changeset: Changeset
    tally: Tally | None = None
    found: Difference | None = None

    @property
    def merit(self) -> tuple[int, ...]:
        """The sort key of attempts; the best has the largest. In this order: completed with changes, completed, tests
        pass, all results known, fewer failed, more passed, fewer new errors, fewer new problems, more fixed, fewer
        changed lines, lower number.
        """
        tally, found = self.tally or Tally(0, 0, whole=False), self.found or Difference()
        done = self.status == "completed"
        lines = sum(self.changeset.counts())
        return (
            *(done and bool(self.changeset), done, tally.passes, tally.whole, -tally.failed, tally.passed),
            *(-found.errors, -len(found.new), len(found.fixed), -lines, -self.number),
        )

    @property
    def proven(self) -> bool:
        """Whether it was completed with a change on which all tests pass."""
        return self.status == "completed" and bool(self.changeset) and self.tally is not None and self.tally.passes

    def told(self, text: Callable[..., str]) -> str:
        """Return the result in a few words for the user: lines added and removed, tests passed and failed, new
        problems. `text` returns a sentence of the catalogue. If nothing was changed, it says only that.
        """
        if not self.changeset:
            return text("attempts.unchanged")
        added, removed = self.changeset.counts()
        tally = self.tally
        tested = (
            text("attempts.tests", passed=tally.passed, failed=tally.failed) if tally else text("attempts.untested")
        )
        parts = [f"+{added} -{removed}", tested]
        if self.found is not None and self.found.new:
            parts.append(text("attempts.problems", count=len(self.found.new)))
        if self.status != "completed":
            parts.append(text("attempts.unfinished"))
        return ", ".join(parts)


async def judge_attempt(parts: RunParts, record: RunRecord, number: int) -> Judged:
    """Run tests and diagnostics on the changes of an attempt, by its `number` from 1, that has ended, if there are any,
    and return the result. What cannot run is None in it.
    """
    changeset = record.staged
    if not changeset:
        return Judged(number, record.status, changeset)
    tally, found = await _test_changes(parts, changeset), await _diagnose(parts, changeset)
    return Judged(number, record.status, changeset, tally, found)


async def _test_changes(parts: RunParts, changeset: Changeset) -> Tally | None:
    """Return the counts of the tests on a changeset; None if there are none, or they cannot run without harm."""
    shell = parts.toolbox.shell
    if shell is None or not shell.isolation.complete:
        return None
    try:
        tally = (await tests_with(parts, partial(own_file, parts.proposal.view), changeset)).tally
    except AgentError:
        return None
    return tally if tally.passed or tally.failed else None


async def _diagnose(parts: RunParts, changeset: Changeset) -> Difference | None:
    staging = Staging(partial(own_file, parts.proposal.view), changeset=changeset)
    diagnostics = edit_diagnostics(parts.session.session_id, parts.services, parts.services.workspace.view(staging))
    return None if diagnostics is None else await diagnostics.of(changeset, (), PROPOSAL_SECONDS)
