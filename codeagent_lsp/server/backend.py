"""The heavy part of the server, built once the client is connected: sessions, tools, models, and what shows them.

Each part is made here and passed to those that need it. Not here: the light part (`front.py`), the protocol and its
handlers (`features.py`), what runs get of all this (`run_services.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from codeagent_lsp.environments.environments import Environments
from codeagent_lsp.server.actions import (
    QUESTION_LENGTH,
    Waiting,
    at_work,
    other_attempt,
    pending_changes,
    pending_plan,
    pending_question,
    pending_rollback,
    task_of,
)
from codeagent_lsp.server.announcer import Announcer
from codeagent_lsp.server.conflicts import ConflictQuestions
from codeagent_lsp.server.foreign_changes import ForeignChanges
from codeagent_lsp.server.front import FileWatching, Front
from codeagent_lsp.server.index_host import index_host
from codeagent_lsp.server.lender import Lender
from codeagent_lsp.server.mcp_servers import mcp_servers, own_tools
from codeagent_lsp.server.models import Models
from codeagent_lsp.server.plans import PlanDocuments
from codeagent_lsp.server.progress import Progress
from codeagent_lsp.server.prompts import Prompts
from codeagent_lsp.server.reviews import Reviews
from codeagent_lsp.server.run_services import Views, language_servers, run_services, session_variables
from codeagent_lsp.server.secret_sources import redactor_for, sanitizer_for
from codeagent_lsp.server.virtual_documents import VirtualDocuments
from codeagent_lsp.session.history.listing import KeptSessions
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.session.manager import SessionManager
from codeagent_lsp.session.memory.knowledge import knowledge_for
from codeagent_lsp.session.memory.remembering import Remembering
from codeagent_lsp.state import state_root, workspace_state
from codeagent_lsp.tools.permissions.approvals import StandingApprovals
from codeagent_lsp.tools.registry import builtin_registry
from codeagent_lsp.workspace.files import uris

if TYPE_CHECKING:
    from codeagent_lsp.tools.skills.trust import WorkspaceItem


class Backend:
    """The heavy parts of one server, which live as long as the connection; `close` stops them."""

    manager: SessionManager

    def __init__(self, front: Front) -> None:
        self.front = front
        self.state = workspace_state(front.folders())
        # This order: what runs work with refers to what the user sees; the manager, to both.
        self._show(front)
        self._offer(front)
        announcer = self.announcer
        self.kept = KeptSessions(self.state, announcer.store_failed, self.redactor.clean, announcer.store_restored)
        self.store = self.kept.store
        self.remembering = Remembering(
            self.knowledge.memory, self.store, self.models.open, lambda: sanitizer_for(front, self.redactor)
        )
        self.conflicts = ConflictQuestions(front, self.announcer, lambda: self.manager)
        self.foreign = ForeignChanges(self)
        listeners = (
            *(self.redactor, self.plans, self.announcer, self.conflicts, self.remembering, self.mcp, self.own),
            self.foreign,
        )
        self.manager = SessionManager(self.store, run_services(self), [listener.observe for listener in listeners])
        self.lender = Lender(self)

    def _show(self, front: Front) -> None:
        """Create what the user sees: documents, progress, questions."""
        self.documents = front.server.documents
        self.views = Views(front.folders, self.documents)
        self.redactor = redactor_for(front, self.state)
        self.own_documents = VirtualDocuments(front.client, lambda: self.state, self.redactor.hide)
        self.progress = Progress(front.client)
        self.announcer = Announcer(front.client, self.progress, self.own_documents, self.redactor.hide)
        self.prompts = Prompts(front.client, self.own_documents)
        # Each needs the other: the inbox shows by the prompts, which answer to it.
        self.inbox = self.prompts.inbox = Inbox(self.prompts)
        self.plans = PlanDocuments(
            self.own_documents, lambda run_id: self.manager.runs.get(run_id).record, front.language, self.documents
        )
        self.reviews = Reviews(self.own_documents, self.announcer, lambda: self.manager, self.documents)

    def _offer(self, front: Front) -> None:
        """Create what runs work with: models, tools, shells, the index, MCP servers, own tools."""
        self.models = Models(front.settings_link, state_root(), front.completes, front.interactive)
        self.registry = builtin_registry(front.settings)
        self.variables = session_variables(front.folders())
        self.standing = StandingApprovals(self.state / "approvals.json")
        self.environments = Environments(lambda: front.settings().shell, state_root(), self.state / "outputs")
        self.knowledge = knowledge_for(front.settings, state_root(), self.state)
        self.watching = FileWatching(front.client)
        self.index = index_host(front, self.announcer.tell, self.watching.begin)
        self.language_servers = language_servers(front)
        self.mcp, self.own = mcp_servers(self), own_tools(self)

    async def ready(self) -> None:
        """Load the modules and the redactor that runs need, in threads, and wait for that; quick after the first
        time.
        """
        await asyncio.to_thread(import_module, "codeagent_lsp.session.run")
        await self.redactor.ready()

    def brought(self) -> tuple[WorkspaceItem, ...]:
        """Return what the workspace brings that needs the user's trust. Blocks."""
        return self.knowledge.brought(self.views.plain())

    def waiting(self) -> tuple[Waiting, ...]:
        """Return an item for everything that waits for the user, for lenses and code actions."""
        return waiting_items(self.inbox, self.manager, self.front.language())

    def written(self, paths: Iterable[str]) -> None:
        """Note that files, by their real paths, may have been written to the disk, so that runs can set which can be
        executed, and see what the editor has made late.
        """
        known = frozenset(paths)
        self.reviews.changed(known)
        for run in self.manager.runs.all():
            run.proposal.files_written(known)

    def answer_saved(self, uri: str) -> None:
        """Answer the question whose answer document was saved, if its text has an answer; nothing for other documents.
        SessionError if the question is not open any more.
        """
        document = self.documents.get(uri)
        found = self.own_documents.answer_in(uri, document.text if document else "")
        if found is not None and found[1]:
            self.inbox.respond(found[0], (found[1],))

    async def close(self) -> None:
        """Stop all parts, cancel all runs and write the remaining records; takes a few seconds at most. Call it
        once.
        """
        # First what asks, so that nothing new is begun; last the records, as the other parts still write to them.
        self.reviews.close()
        self.conflicts.close()
        await self.lender.close()
        self.prompts.close()
        self.watching.close()
        parts = (self.foreign, self.remembering, self.manager, self.index, self.mcp, self.own)
        await asyncio.gather(*(part.close() for part in parts))
        await self.redactor.close()
        await self.models.close()
        self.kept.close()


# Lists what waits for the user: open questions, staged changes, runs at work, paused plans. From memory only.


def waiting_items(inbox: Inbox, manager: SessionManager, language: str) -> tuple[Waiting, ...]:
    """Return an item for everything that waits for the user: questions first, then changes, runs and plans; () for
    nothing. No file is read.
    """
    items: list[Waiting] = []
    # What an open question offers about the changes of a run is not offered a second time beside it.
    asked: dict[str, tuple[str, ...]] = {}
    for item in inbox.open():
        question = item.question
        uri = None if question.path is None else uris.from_path(question.path)
        unseen = question.kind == "approval" and len(question.title) > QUESTION_LENGTH
        choices = question.choices[:1] if unseen else question.choices  # nothing is allowed that is not shown here
        asked.update(
            (run.record.run_id, choices) for run in manager.runs.all() if run.proposal.questions.asks(question)
        )
        by_agent = question.by_agent
        items.append(pending_question(item.request_id, question.title, choices, uri, language, by_agent=by_agent))
    for run in manager.runs.all():
        # Another attempt than the chosen one: it waits, but is not proposed.
        if run.proposal.changeset and run.record.attempt_of:
            items.append(other_attempt(run.record.run_id, run.record.title, language))
        elif run.proposal.changeset:
            foreign = run.record.foreign
            paths, task = run.proposal.changeset.paths, task_of(run, manager.runs.all())
            changes = pending_changes(run.record.run_id, paths, language, foreign=foreign, task=task)
            items.extend(each.without(asked.get(run.record.run_id, ())) for each in changes)
    for record in (manager.runs.get(run_id).record for run_id in manager.runs.active()):
        if not record.attempt_of:
            items.append(at_work(record.run_id, record.title, language))
    return (*items, *_waiting_plan(manager, language))


def _waiting_plan(manager: SessionManager, language: str) -> tuple[Waiting, ...]:
    """Return the offers for the plan of the latest run, when it is paused; older ones are reached by command."""
    run = next(iter(reversed(manager.runs.all())), None)
    step = run.steering.open_step if run is not None else None
    if run is None or step is None or run.record.plan is None:
        return ()
    run_id, begun = run.record.run_id, next(reversed(run.record.marks), None)
    offered = pending_plan(run_id, step.step_id, run.record.plan.steps.label(step.step_id), language)
    return (offered,) if begun is None else (offered, pending_rollback(run_id, begun, language))
