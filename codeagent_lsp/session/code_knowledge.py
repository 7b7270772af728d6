"""What one run knows of code beyond its text: the diagnostics of its edits, and language servers, those of the user's
editor while the run has staged nothing, else our own.

The editor's servers know the buffers, and nothing of what is staged. Not here: asking the editor
(`server/run_services.py`), our own servers (`language_servers/`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import AgentError
from codeagent_lsp.language_servers.answers import CodeServers, ServerAnswer, ServerQuestion, parameters
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.run_index import RunIndex
from codeagent_lsp.session.services import EditorServers, Services
from codeagent_lsp.shadow.shell import Shell, approve_none
from codeagent_lsp.tools.context import ToolContext
from codeagent_lsp.tools.diagnostics.difference import Diagnostics, Difference
from codeagent_lsp.tools.diagnostics.linters import Job, check, jobs_for
from codeagent_lsp.tools.edit_diagnostics import AfterEdits, BeforeAndAfter, EditDiagnostics, Found
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.files.file_view import FileView, NothingStaged

if TYPE_CHECKING:  # needed for annotations only
    from codeagent_lsp.language_servers.session_servers import SessionServers

PROPOSAL_SECONDS = 5.0
# Those that judge a file by itself; type checkers load the whole project.
_QUICK = frozenset({"ruff", "eslint"})

ShellOver = Callable[[FileView], Awaitable[Shell]]
"""Returns a shell whose commands see a view, and whose writing is dropped."""


def code_index(services: Services, proposal: Proposal) -> RunIndex | None:
    """Return the code index as a run sees it; None if there is none."""
    if services.workspace.indexing is None:
        return None
    return RunIndex(services.workspace.indexing, proposal.view, lambda: services.user.settings().permissions)


def edit_diagnostics(session_id: str, services: Services, staged: FileView) -> EditDiagnostics | None:
    """Return the checks of a run's edits, with the texts in `staged`; None if the user has switched them off."""
    if services.user.settings().edits.diagnostics == "off":
        return None

    async def shell_over(view: FileView) -> Shell:
        # A staging of its own that is thrown away, and no to every question: a linter proposes nothing.
        return await services.shells.environments.shell(session_id, view, Staging(lambda path: None), approve_none)

    servers = services.workspace.servers
    own = servers.of(session_id) if servers is not None else None
    views = BeforeAndAfter(services.workspace.view(NothingStaged()), staged)
    return EditDiagnostics(views, own, QuickLinters(shell_over))


def code_ports(
    session_id: str,
    services: Services,
    proposal: Proposal,
    diagnostics: EditDiagnostics | None,
    note: Callable[[str], None],
) -> tuple[tuple[type[Any], Any], ...]:
    """Return the ports for a run's tools as pairs of type and part, None for a part that is missing; `note` receives
    messages about failing servers.
    """
    workspace = services.workspace
    after = AfterEdits(diagnostics) if diagnostics is not None else None
    if workspace.servers is None:
        return ((Diagnostics, workspace.diagnostics), (AfterEdits, after))
    own = workspace.servers.of(session_id)
    servers = RunServers(proposal.view, proposal.staging, workspace.lent, own, note)
    return ((Diagnostics, workspace.diagnostics), (AfterEdits, after), (CodeServers, servers))


class RunServers:
    """The `CodeServers` of one run; `note` receives messages about failing servers."""

    def __init__(
        self,
        view: FileView,
        staging: Staging,
        editor: EditorServers | None,
        own: SessionServers,
        note: Callable[[str], None],
    ) -> None:
        self._view = view
        self._staging = staging
        self._editor = editor
        self._own = own
        self._note = note

    async def ask(self, question: ServerQuestion) -> tuple[ServerAnswer, ...]:
        """Return the answers of the editor's servers while nothing is staged and they have any, else of our own; () if
        none answers. Waits for servers to start; their failures are noted, not raised.
        """
        if self._editor is not None and not self._staging.changeset:
            text = await asyncio.to_thread(_text, self._view, question.path)
            if answers := await self._lent(self._editor, question, text):
                return answers
        answers = await self._own.ask(self._view, question)
        for trouble in self._own.take_troubles():
            self._note(trouble)
        return answers

    async def _lent(self, editor: EditorServers, question: ServerQuestion, text: str) -> tuple[ServerAnswer, ...]:
        params = parameters(question, text, editor.encoding)
        answers = await editor.ask(uris.from_path(question.path), question.method, params)
        # The user has typed while the editor answered: its positions are for a text that nobody has any more.
        if await asyncio.to_thread(_text, self._view, question.path) != text:
            return ()
        return tuple(each for each in answers if question.server in ("", each.server))


async def diagnose_changes(context: ToolContext, changeset: Changeset) -> Difference | None:
    """Return the diagnostics that all changes of a run make and fix, checked in at most about 5 s before they are
    proposed; None if nothing can check them or nothing has changed.
    """
    after = context.get(AfterEdits)
    return await after.of(context, changeset, PROPOSAL_SECONDS) if after is not None and changeset else None


# Linters that check a file quickly, run in the session's shadow on any view: a source for files without a language
# server.


class QuickLinters:
    """Runs linters that check single files, for one run. A linter that was once too slow is not run again."""

    def __init__(self, shell_over: ShellOver) -> None:
        self._shell_over = shell_over
        self._slow: set[str] = set()

    async def __call__(self, view: FileView, paths: Sequence[str], seconds: float) -> Found:
        """Return the diagnostics of the files that a quick linter checks; None for those that took too long."""
        jobs = await asyncio.to_thread(self._jobs, view, paths)
        files = {file for job in jobs for file in job.files}
        if not jobs:
            return {}
        try:
            async with asyncio.timeout(seconds):
                shell = await self._shell_over(view)
                # A linter loads the project's configuration and plug-ins, which is code that nobody has allowed.
                if not shell.isolation.complete:
                    return {}
                checked = await check(shell, jobs)
        except TimeoutError:
            # All of them, as it is not known which one took the time; each edit would wait for it again.
            self._slow |= {job.linter.name for job in jobs}
            return dict.fromkeys(files)
        except AgentError:
            return {}
        return {file: tuple(item for item in checked.found if item.path == file) for file in checked.files}

    def _jobs(self, view: FileView, paths: Sequence[str]) -> list[Job]:
        return [job for job in jobs_for(view, paths) if job.linter.name in _QUICK - self._slow]


def _text(view: FileView, path: str) -> str:
    return view.read(path).text
