"""Builds the context of one run's tools: its files, its shell, the user, the model.

Not here: which tools there are (`tools/catalogue.py`) and who may call them (`tools/permissions/policy.py`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.agent.loop import complete
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.direct.checks import LookingShell
from codeagent_lsp.environments.environment import Screens
from codeagent_lsp.errors import AgentError, CodeAgentError, ErrorCode, SettingError, ToolFailed
from codeagent_lsp.index.port import CodeIndex
from codeagent_lsp.llm.model import Model
from codeagent_lsp.messages import ToolCall, ToolResult
from codeagent_lsp.session.code_knowledge import code_index, code_ports, diagnose_changes, edit_diagnostics
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.redaction.recording import OpenRecords
from codeagent_lsp.session.request import ANSWERS, TRIALS
from codeagent_lsp.session.rewind.earlier_texts import taking_back
from codeagent_lsp.session.run_output import RunOutput
from codeagent_lsp.session.screens import ScreenPorts
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import Session
from codeagent_lsp.shadow.guard_messages import KILLED
from codeagent_lsp.shadow.shell import (
    Command,
    CommandResult,
    Isolation,
    OnOutput,
    RecordCommand,
    Shell,
    approve_none,
    no_output,
)
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.commands.background import BackgroundCommands
from codeagent_lsp.tools.context import (
    Complete,
    OnTested,
    PresentTexts,
    Redaction,
    SmallComplete,
    ToolContext,
    tool_context,
)
from codeagent_lsp.tools.diagnostics.difference import Difference
from codeagent_lsp.tools.executor import ToolExecutor
from codeagent_lsp.tools.hooks.hooks import Hooks, OwnView, RunFacts
from codeagent_lsp.tools.lost_marks import with_secrets
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.permissions.policy import Mode
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.skills.skill_library import RunSkills
from codeagent_lsp.tools.skills.trust import WorkspaceItem
from codeagent_lsp.tools.testing.reports import Baseline, Compared, Results, TestReport, compare_reports, report_from
from codeagent_lsp.tools.testing.testing_tools import RunTests
from codeagent_lsp.tools.todos.todo_list import TodoList
from codeagent_lsp.tools.variables.variables import Variables
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import own_file
from codeagent_lsp.workspace.files.paths import is_build_file

READ_ONLY = "The mode readOnly runs no programs, also none of the workspace, such as linters."
RUN_SECONDS = 120.0
"""How long the tests of one file may take, in the background."""
WAIT_SECONDS = 20.0
"""How long a comparison waits for results that are not there yet."""
ALL = ""
"""The name that stands for all tests."""

Execute = Callable[[ToolCall], Awaitable[ToolResult]]


class Toolbox:
    """Builds the context of one run's tools. `shell` is None before `open`, and if nothing can run; then `no_shell` is
    the reason. `index` is None if there is no code index. Call `close` when the run ends.
    """

    def __init__(self, session: Session, services: Services, proposal: Proposal, output: RunOutput) -> None:
        self.shell: Shell | None = None
        self.no_shell = ""
        self.index = code_index(services, proposal)
        self.diagnostics = edit_diagnostics(session.session_id, services, proposal.view)
        # Hooks have a view of their own: the commands of the run may be at work in the other one for minutes.
        views = OwnView(partial(self._private_shell, "hooks", audited=True), partial(self._close_private, "hooks"))
        self.hooks = hooks_of(session.session_id, services, proposal, views)
        self.baselines = Baselines(self._on_own_text, partial(self._close_private, "baseline"), self._touched)
        self._background = BackgroundCommands(
            self._private_shell, self._close_private, self._record, services.kept.variables(session.session_id)
        )
        self._behind: OpenRecords | None = None  # masking and records, once they are loaded
        self._run_id = proposal.record.run_id
        self._session = session
        self._services = services
        self._proposal = proposal
        self._output = output
        self._opened = False  # a run that needs no tools never opens it

    def brings(self) -> tuple[WorkspaceItem, ...]:
        """Return what the workspace brings that needs the user's trust, as this run sees it. Blocks."""
        return self._services.knowledge.brought(self._proposal.view)

    @property
    def isolation(self) -> Isolation | None:
        """How commands are isolated from the user's files; None without a shell."""
        return self.shell.isolation if self.shell else None

    async def open(self) -> None:
        """Load the redactor, and find out how commands can run here; quick after the first time. Call it before a tool
        runs. If they cannot run, `shell` stays None, and `no_shell` is the reason.
        """
        proposal = self._proposal
        # First: no tool may read anything before secrets can be masked.
        self._behind = await self._services.redactor.ready() if self._services.redactor else None
        try:
            shell = await self._services.shells.environments.shell(
                self._session.session_id, proposal.view, proposal.staging, self._approve
            )
            self.shell = self.audited(shell)
        except (ToolFailed, SettingError) as problem:
            self.no_shell = str(problem)
        # After the redactor is loaded: before that, the context has no masking.
        proposal.staging.check = partial(with_secrets, self.context().redaction)
        self._opened = True

    async def judged(self) -> str:
        """Run the hooks on what is staged, wait for them, and return their reason for refusing it; '' if they do not,
        or the run has no tools.
        """
        return await self.hooks.before_proposal(self.context()) if self._opened else ""

    async def diagnosed(self, changeset: Changeset) -> Difference | None:
        """Return the diagnostics that changes make and fix, within a few seconds; None if nothing can check them, or
        the run has no tools.
        """
        return await diagnose_changes(self.context(), changeset) if self._opened else None

    def context(self, model: Model | None = None, reply_tokens: int = 0, small: Model | None = None) -> ToolContext:
        """Return the context of the tools. Without a model they cannot ask it; `reply_tokens` limits its answers
        (tokens); `small` is the model for small work.
        """
        proposal, output, services = self._proposal, self._output, self._services
        session_id = self._session.session_id
        return tool_context(
            proposal.view,
            proposal.staging,
            services.user.settings(),
            (TodoList, self._session.context.todos),
            (Complete, self._complete(model, reply_tokens)),
            (SmallComplete, self._complete(small, reply_tokens)),
            (OnTested, proposal.tested),
            (Baseline, self.baselines),
            (OutputStore, services.kept.outputs(session_id)),
            (ArtifactStore, services.kept.artifacts(session_id)),
            (Variables, services.kept.variables(session_id)),
            (RunSkills, RunSkills(services.knowledge.skills, output.text, brings=self.brings)),
            (CodeIndex, self.index),
            *code_ports(session_id, services, proposal, self.diagnostics, self._note),
            (Screens, self._screens()),
            (Redaction, self._redaction()),
            (Hooks, self.hooks),
            (PresentTexts, services.workspace.texts),
            (BackgroundCommands, self._background),
            asker=output,
            words=output.text,
            note=self._note,
            output=output.printed,
            shell=self._tools_shell(),
            no_shell=self.no_shell,
        )

    def _tools_shell(self) -> Shell | None:
        """Return the shell for tools, which runs nothing in the mode `readOnly`, whichever tool it is: linters are
        programs of the workspace, too. What the user tries by an own command, they do not forbid themselves.
        """
        if self.shell is None or self._proposal.record.kind in TRIALS:
            return self.shell
        return _ModeShell(self.shell, self._services.user.mode)

    async def ended(self, status: str) -> None:
        """Run the hooks for the end of the run, unless it used no tools, and wait for them. `status` is how it ended. A
        cancellation only cuts them short.
        """
        if self.shell is None:
            return
        files = [path for part in self._proposal.record.applied for path in part.changeset.paths]
        with suppress(asyncio.CancelledError):  # the run is decided, and ends right after this
            await self.hooks.at_end(self.context(), status, tuple(dict.fromkeys(files)))

    def close(self) -> None:
        """Cancel the commands in the background and the tests for comparison, and emit the last output; does not
        wait.
        """
        self._background.close()
        self.baselines.close()
        self._output.flush()

    def _touched(self) -> bool:
        return bool(self._proposal.changeset or self._proposal.record.applied)

    async def _on_own_text(self) -> Execute | None:
        """Return what runs tests on the user's text as it is without this run's changes, silently; None where commands
        are not isolated. What needs to be asked about is denied there.
        """
        proposal, services = self._proposal, self._services
        # Nobody has agreed to this run of the tests, so it must not be able to do any harm.
        if self.shell is None or not self.shell.isolation.complete:
            return None
        applied = [part.changeset for part in proposal.record.applied]
        # What was applied is in the buffers: without it they are the user's own text again.
        back = (await asyncio.to_thread(taking_back, applied, proposal.view)).changeset if applied else Changeset()
        staging = Staging(lambda path: own_file(proposal.view, path), changeset=back)
        view = services.workspace.view(staging)
        shell = await services.shells.environments.shell(f"{self._run_id}-baseline", view, staging, approve_none)
        looking = LookingShell(self.audited(shell))
        context = tool_context(view, staging, services.user.settings(), words=self._output.text, shell=looking)
        approvals, registry = self._session.context.approvals, ToolRegistry([RunTests()])
        return ToolExecutor(registry, context, services.user.mode, approvals, self._output.language).execute

    async def _private_shell(self, name: str, *, audited: bool = False) -> Shell:
        """Return a shell with a private view of its own."""
        proposal, place = self._proposal, f"{self._run_id}-{name}"
        environments = self._services.shells.environments
        shell = await environments.shell(place, proposal.view, proposal.staging, self._approve)
        return self.audited(shell) if audited else shell

    def _record(self, words: str, folder: str, level: str, code: int | None) -> None:
        """Record a command in the audit log."""
        if self._behind is not None:
            self._behind.recording.command(self._run_id, words, folder, level, code)

    async def _close_private(self, name: str) -> None:
        await self._services.shells.environments.close(f"{self._run_id}-{name}")

    def _complete(self, model: Model | None, reply_tokens: int) -> Complete | None:
        if model is None:
            return None
        return partial(complete, model, emit=self._output.emit, reply_tokens=reply_tokens)

    def _redaction(self) -> Redaction | None:
        if self._behind is None:
            return None
        masking, decided = self._behind.masking, partial(self._behind.recording.decision, self._run_id)
        return Redaction(masking.hide, masking.reveal, masking.lost, decided)

    def audited(self, shell: Shell) -> Shell:
        """Return the shell, wrapped so that its commands are recorded in the audit log; as it is before `open`."""
        if self._behind is None:
            return shell
        return AuditedShell(shell, self._record)

    def _note(self, line: str) -> None:
        # Masked here, as its words may be those of others: what an MCP server or a hook says of its progress.
        self._output.emit(events.StatusChanged(message=self._services.hide(line)))

    def _screens(self) -> Screens | None:
        if self._services.shells.screens is None:
            return None
        proposal = self._proposal
        ports = ScreenPorts(proposal.view, proposal.staging, self._approve, self.audited)
        return self._services.shells.screens.of(self._session.session_id, ports)

    async def _approve(self, paths: tuple[str, ...]) -> bool:
        """Ask whether files (absolute paths) that a command wrote and that can run code may become proposed changes;
        not about what only builds run, in modes that accept edits.
        """
        roots = self._proposal.view.roots
        if self._services.user.mode() in ("acceptEdits", "bypass"):
            paths = tuple(path for path in paths if not is_build_file(roots, path))
        if not paths:
            return True
        return await self._proposal.questions.ask_about_protected(paths)


class _ModeShell:
    """The `Shell` port around another shell; it refuses every command while `mode` is `readOnly`."""

    def __init__(self, shell: Shell, mode: Callable[[], Mode]) -> None:
        self._shell = shell
        self._mode = mode

    @property
    def isolation(self) -> Isolation:
        """Return the isolation of the wrapped shell."""
        return self._shell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        """Run the command in the wrapped shell. ToolFailed in the mode `readOnly`."""
        if self._mode() == "readOnly":
            raise ToolFailed(READ_ONLY, ErrorCode.PERMISSION_DENIED)
        return await self._shell.run(command, on_output)


def commands_line(isolation: Isolation | None, reason: str) -> str:
    """Return the line on commands for the model, the same for a whole session; without an `isolation`, that commands
    cannot run, for this `reason` in English. It names no isolation level: a small model took "overlay" for a folder.
    """
    if isolation is None:
        return f"Commands cannot run here: {reason}"
    if isolation.level == "direct":
        return (
            "Commands (run_cmd, run_tests) run in the user's real folder, on what is saved, and always need approval."
        )
    safe = "without network" if isolation.offline else "not isolated from the rest of the system"
    return (
        f"Commands (run_cmd, run_tests) run on a private copy of the workspace, {safe}, with the user's unsaved text "
        "and your staged changes. What they write becomes staged changes. Check your changes there before you answer."
    )


# Wraps a shell so that every command is written to the audit log, before it runs and after it has ended.


class AuditedShell:
    """The `Shell` port around another shell; `record` receives every command."""

    def __init__(self, shell: Shell, record: RecordCommand) -> None:
        self._shell = shell
        self._record = record

    @property
    def isolation(self) -> Isolation:
        """The isolation of the wrapped shell."""
        return self._shell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        """Run the command in the wrapped shell, return its result, and record it before and after, however it ends;
        errors and cancellation as of that shell.
        """
        # Before it runs: a command that takes the machine down has to be in the log.
        self._record(command.words, command.cwd, self.isolation.level, None)
        code = KILLED
        try:
            result = await self._shell.run(command, on_output)
            code = result.finished.exit_code
            return result
        finally:
            self._record(command.words, command.cwd, self.isolation.level, code)


# Makes the hooks of one run.


def hooks_of(session_id: str, services: Services, proposal: Proposal, own_view: OwnView) -> Hooks:
    """Return the hooks of a run; `own_view` is the private view in which they run, opened when it is needed. Nothing is
    read yet.
    """
    mode, record = services.user.mode, proposal.record

    def writes() -> bool:
        return record.kind not in ANSWERS and mode() != "readOnly"

    facts, knowledge = RunFacts(session_id, record.run_id, mode, writes), services.knowledge
    consent, brings = knowledge.consent and knowledge.consent.copy(), partial(knowledge.brought, proposal.view)
    return Hooks(knowledge.hooks, facts, own_view, consent, brings)


# The test results on the user's own text, for one run: taken once, in the background, beside what the model does.


class Baselines:
    """Implements `Baseline` for one run. `opened` returns what executes a call on the user's own text, None if that is
    impossible or would need the user's approval; `close` removes the private view; `touched` returns whether the run
    has changed something, applied or staged.
    """

    def __init__(
        self,
        opened: Callable[[], Awaitable[Execute | None]],
        close: Callable[[], Coroutine[Any, Any, None]],
        touched: Callable[[], bool],
    ) -> None:
        self._opened = opened
        self._close = close
        self._touched = touched
        self._results = Results()
        self._asked: set[str] = set()  # files whose tests have run or wait to
        self._waiting: deque[str] = deque()  # those that wait
        self._work: asyncio.Task[None] | None = None
        self._execute: Execute | None = None
        self._beside: Callable[[Sequence[str]], Sequence[str]] | None = None
        self._followed: set[str] = set()  # changed files whose tests were looked for
        self._tasks = BackgroundTasks()
        self._ending = BackgroundTasks()

    @property
    def changed(self) -> bool:
        """Whether the run has changed something: results are then not those of the user's own text."""
        return self._touched()

    def begin(self, names: Iterable[str]) -> None:
        """Run, in the background, the tests of these files (relative paths, `ALL` for all tests) on the user's own
        text, unless they have run already.
        """
        # Once is enough: the user's own text does not change by what this run does.
        new = [name for name in dict.fromkeys(names) if name not in self._asked]
        self._asked.update(new)
        self._waiting.extend(new)
        # One after the other, as all run in one private view.
        if self._waiting and (self._work is None or self._work.done()):
            self._work = self._tasks.start(self._run_all())

    def follow(self, beside: Callable[[Sequence[str]], Sequence[str]]) -> None:
        """From now on, run the tests for each file that the run changes on the user's own text; `beside` returns the
        tests of files, and blocks.
        """
        self._beside = beside

    def changing(self, names: Iterable[str]) -> None:
        """Start the tests for these files, which the run has changed, on the user's own text if `follow` was called;
        returns at once.
        """
        new = [name for name in names if name not in self._followed]
        self._followed.update(new)
        if new and self._beside is not None:
            self._tasks.start(self._follow(self._beside, new))

    def record(self, reports: Sequence[TestReport], *, whole: bool) -> None:
        """Keep the results of a test run on the user's own text, for `compare`; `whole` says that all tests of the
        files in it have run.
        """
        self._results = self._results.with_reports(reports, whole=whole)
        if whole:
            self._asked |= self._results.files

    async def compare(self, reports: Sequence[TestReport]) -> Compared:
        """Return how these results differ from those on the user's own text; failures of which nothing is known have
        the tests of their files run there, for which this waits 20 s at most.
        """
        differs = compare_reports(reports, self._results)
        # Only these are waited for: a failure that the user's own text is known to have needs no other run.
        if differs.unknown:
            self.begin(case.file or ALL for case in differs.unknown)
        if differs.unknown and self._work is not None:
            # `wait` leaves the task running at its end, unlike a timeout: the results may serve the next comparison.
            await asyncio.wait((self._work,), timeout=WAIT_SECONDS)
            differs = compare_reports(reports, self._results)
        return differs

    def close(self) -> None:
        """Cancel what runs, and remove the private view in the background; returns at once."""
        self._tasks.cancel()
        self._waiting.clear()
        if self._execute is not None:
            self._execute = None
            self._ending.start(self._close())

    async def _follow(self, beside: Callable[[Sequence[str]], Sequence[str]], names: Sequence[str]) -> None:
        self.begin(await asyncio.to_thread(beside, names))

    async def _run_all(self) -> None:
        if self._execute is None:
            with suppress(CodeAgentError):
                self._execute = await self._opened()
        while self._waiting and self._execute is not None:
            name = self._waiting.popleft()
            with suppress(TimeoutError, AgentError):
                async with asyncio.timeout(RUN_SECONDS):
                    await self._run(self._execute, name)
        self._waiting.clear()

    async def _run(self, execute: Execute, name: str) -> None:
        result = await execute(ToolCall("run_tests", {"path": name} if name else {}, f"baseline_{name}"))
        if result.ok:
            self.record([report_from(each) for each in result.data["reports"]], whole=True)
        elif result.status == "retry":  # there is no such file: its tests are all new
            self._results = Results(self._results.cases, self._results.files | {name})
