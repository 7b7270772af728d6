"""Everything behind the wire, built once the client is connected: sessions, tools, models, and what shows them.

This is where the parts meet that must not be loaded at start-up. Not here: the wire and the capabilities
(`features.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from codeagent_lsp import events
from codeagent_lsp.agent.forms.known import KnownForms
from codeagent_lsp.agent.forms.proof import ProofStore
from codeagent_lsp.agent.prompt import Environment
from codeagent_lsp.index.host import IndexHost
from codeagent_lsp.server.announcer import Announcer, transcript_name
from codeagent_lsp.server.commands.commands import Commands
from codeagent_lsp.server.commands.mcp_commands import mcp_servers
from codeagent_lsp.server.diagnostics import ClientDiagnostics
from codeagent_lsp.server.editor import LspEditor
from codeagent_lsp.server.external import External
from codeagent_lsp.server.index_meaning import key_for, meaning
from codeagent_lsp.server.index_progress import IndexProgress
from codeagent_lsp.server.lenses import Waiting, pending_changes, pending_plan, pending_question, pending_rollback
from codeagent_lsp.server.models import Models
from codeagent_lsp.server.plans import PlanDocuments, plan_name
from codeagent_lsp.server.progress import Progress
from codeagent_lsp.server.prompts import Prompts
from codeagent_lsp.server.views import Views
from codeagent_lsp.server.virtual_documents import VirtualDocuments
from codeagent_lsp.server.watched_files import watch
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.session.manager import SessionManager
from codeagent_lsp.session.memory.knowledge import knowledge_in
from codeagent_lsp.session.memory.remembering import Remembering
from codeagent_lsp.session.plan.orders import roll_back
from codeagent_lsp.session.redaction.redactor import OpenRecords, Redactor
from codeagent_lsp.session.screens import SessionScreens
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session_variables import SessionVariables
from codeagent_lsp.session.shadows import SessionShadows
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.state import state_root, workspace_state
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.circuit_breaker import CircuitBreaker
from codeagent_lsp.tools.mcp.settings import secrets_in
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.permissions.approvals import StandingApprovals
from codeagent_lsp.tools.permissions.decision import Mode
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.variables.os_keyring import open_keyring
from codeagent_lsp.workspace.files import uris

if TYPE_CHECKING:
    from codeagent_lsp.index.port import VectorSearch
    from codeagent_lsp.index.scan import Folders
    from codeagent_lsp.index.store import Store
    from codeagent_lsp.records.sanitizer import Sanitizer
    from codeagent_lsp.server.features import Front
    from codeagent_lsp.session.run import Run
    from codeagent_lsp.tools.tool import Tool


class Backend:
    """The parts of one server. `front` is the wire's side: client, settings, policy."""

    def __init__(self, front: Front) -> None:
        self.front = front
        client = front.client
        self.documents = front.server.documents
        self.state = workspace_state(front.folders())
        circuits = CircuitBreaker(lambda: front.settings().circuit_breaker)
        self.registry = ToolRegistry(_builtin(), front.settings().tools.disabled, circuits)
        folders = ":".join(front.folders())
        self.variables = SessionVariables(lambda: open_keyring(folders), os.environ)
        self.models = Models(front.settings_link, state_root())
        self.views = Views(front.folders, self.documents)
        self.redactor = Redactor(self._open_records, self._keys)
        front.settings_link.on_change = self.redactor.settings_changed
        self.own_documents = VirtualDocuments(client, lambda: self.state, self.redactor.hide)
        self.progress = Progress(client)
        self.announcer = Announcer(client, self.progress, self.own_documents, self.redactor.hide)
        self.prompts = Prompts(client, self.own_documents)
        self.inbox = self.prompts.inbox = Inbox(self.prompts)
        self.standing = StandingApprovals(self.state / "approvals.json")
        self.shadows = SessionShadows(lambda: front.settings().shell, state_root(), self.state / "outputs")
        self.knowledge = knowledge_in(
            state_root(), self.state, lambda: front.settings().skills.paths, lambda: front.settings().memory.enabled
        )
        self.index = self._index_host()
        self.mcp = mcp_servers(self)
        self._store = SessionStore(self.state / "sessions", self.announcer.store_failed, self.redactor.clean)
        self.plans = PlanDocuments(self.own_documents, lambda run_id: self.manager.run(run_id).record, front.language)
        self.remembering = Remembering(self.knowledge.memory, self._store, self.models.open, self._cleaner)
        listeners = [self.redactor.observe, self.plans.observe, self.announcer.observe, self.remembering.observe]
        listeners.append(self.mcp.observe)
        self.manager = SessionManager(self._store, self._services(), listeners)
        self.commands = Commands(self)

    async def ready(self) -> None:
        """Load what runs need and an idle server does not, in threads, so that the loop goes on serving."""
        await asyncio.to_thread(import_module, "codeagent_lsp.session.run")
        await self.redactor.ready()

    def set_mode(self, mode: Mode) -> dict[str, str]:
        """Change the permission mode at once."""
        self.front.settings_link.choose("permissions.mode", mode)
        return {"mode": mode}

    async def doctor(self) -> list[dict[str, Any]]:
        """What works here, and a look at this client."""
        from codeagent_lsp.doctor import diagnose  # late: it loads what opens models, which is heavy

        checks = await diagnose(self.front.settings(), self.state, self.front.language())
        return [*(check.to_dict() for check in checks), self.front.describe_client()]

    def stored_events(self, session_id: str) -> Iterable[events.Event]:
        """The events of a session as they were recorded."""
        for record in self._store.load(session_id):
            try:
                yield events.from_dict(record)
            except (KeyError, TypeError):
                continue

    def review_text(self, run_id: str) -> str:
        """A run's changeset as a unified diff."""
        proposal = self.manager.run(run_id).proposal
        return proposal.changeset.diff(proposal.view.roots.relative)

    async def show_review(self, run_id: str) -> None:
        """Open the diff of a run."""
        name = f"review/{run_id}.diff"
        self.own_documents.put(name, self.review_text(run_id))
        await self.own_documents.show(name)

    async def forget_documents(self, session_id: str, run_ids: Iterable[str], cleared: asyncio.Task[None]) -> None:
        """Remove our documents about a deleted session, once nothing is added to them any more."""
        await asyncio.wait((cleared,))
        self.own_documents.remove(transcript_name(session_id), f"export/{session_id}.md")
        for run_id in run_ids:
            self.own_documents.remove(f"review/{run_id}.diff", plan_name(run_id))

    async def apply(self, run: Run, files: frozenset[str] | None, hunks: Mapping[str, frozenset[int]] | None) -> None:
        """Apply what the user chose outside of a prompt, and say what came of it."""
        applied = await run.proposal.apply(files, hunks)
        self.announcer.tell_outcome(applied)

    async def undo(self, run: Run, steps: tuple[str, ...] | None = None) -> None:
        """Take back a run, or some steps of its plan, and say what came of it."""
        applied = await run.proposal.undo(steps)
        self.announcer.tell_outcome(applied, undo=True)

    async def rollback(self, run: Run, step_id: str) -> None:
        """Take a plan back to before a step and say what came of it."""
        applied = await roll_back(self.manager, run.record.run_id, step_id)
        if applied is not None:
            self.announcer.tell_outcome(applied, undo=True)
        self.announcer.refresh_lenses()

    def answer_saved(self, uri: str) -> None:
        """An answer document was saved: send what it says."""
        document = self.documents.get(uri)
        found = self.own_documents.answer_in(uri, document.text if document else "")
        if found is not None and found[1]:
            self.inbox.respond(found[0], (found[1],))

    def waiting(self) -> tuple[Waiting, ...]:
        """Everything that waits for the user, for lenses and actions."""
        language = self.front.language()
        items: list[Waiting] = []
        for item in self.inbox.open():
            question = item.question
            uri = None if question.path is None else uris.from_path(question.path)
            items.append(pending_question(item.request_id, question.title, question.choices, uri, language))
        for run in self.manager.runs():
            if run.proposal.changeset:
                items.extend(pending_changes(run.record.run_id, run.proposal.changeset.paths, language))
        return (*items, *self._waiting_plan(language))

    def _waiting_plan(self, language: str) -> tuple[Waiting, ...]:
        """The plan of the latest run, when nobody works on it; older ones are found by command."""
        run = next(iter(reversed(self.manager.runs())), None)
        step = run.steering.open_step if run is not None else None
        if run is None or step is None or run.record.plan is None:
            return ()
        run_id, begun = run.record.run_id, next(reversed(run.record.marks), None)
        offered = pending_plan(run_id, step.step_id, run.record.plan.label(step.step_id), language)
        return (offered,) if begun is None else (offered, pending_rollback(run_id, begun, language))

    async def close(self) -> None:
        """Stop everything."""
        self.prompts.close()
        await asyncio.gather(self.remembering.close(), self.manager.close(), self.index.close(), self.mcp.close())
        await self.redactor.close()
        await self.models.close()

    def _index_host(self) -> IndexHost:
        """The code index; nothing of it is loaded here."""
        front, progress = self.front, IndexProgress(self.front.client)

        async def watched() -> bool:
            return front.client.policy.watches_files and await watch(front.server)

        def vectors(store: Store, folders: Folders) -> VectorSearch | None:
            settings = front.settings()
            key = key_for(settings.index.embeddings_base_url, settings.model)
            return meaning(settings.index, store, folders, front.language(), self.announcer.tell, key)

        host = IndexHost(front.folders, lambda: front.settings().index, progress.observe, watched, vectors)
        self.documents.subscribe(lambda uri, document: host.document_opened())
        if self.documents.all():
            host.document_opened()
        return host

    def _cleaner(self) -> Sanitizer:
        """What finds secrets in texts that shall be kept; our own keys are some."""
        if self.redactor.opened is not None:
            return self.redactor.opened.masking.sanitizer
        from codeagent_lsp.records.sanitizer import Sanitizer  # late: it is heavy, and an idle server does without it

        return Sanitizer(secrets=self._keys(), identities=False, homes=())

    def _open_records(self) -> OpenRecords:
        """Masks and records by the settings of now; runs in a thread."""
        # late: it is heavy, and an idle server does without it
        from codeagent_lsp.session.redaction.records_factory import open_records

        return open_records(self.state, self.front.settings().trace, self._keys(), self.front.client.policy.name)

    def _keys(self) -> list[str]:
        """The secrets in the settings of now."""
        settings = self.front.settings()
        keys = filter(None, (settings.model.api_key, settings.web.search_api_key))
        return [*keys, *secrets_in(settings.mcp.servers, os.environ)]

    def _services(self) -> Services:
        external = External(self.front.client)
        return Services(
            settings=self.front.settings,
            mode=lambda: self.front.settings().permissions.mode,
            language=self.front.language,
            environment=lambda: Environment(tuple(self.front.folders()), self.front.client.policy.name),
            open_model=self.models.open,
            view=self.views.over,
            editor=LspEditor(self.front.client, self.views.disk_text),
            inbox=self.inbox,
            registry=self.registry,
            show_review=self.show_review,
            show_plan=self.plans.show,
            shadows=self.shadows,
            standing=self.standing,
            outputs=lambda session_id: OutputStore(self.state / "outputs" / session_id),
            artifacts=lambda session_id: ArtifactStore(self.state / "artifacts" / session_id),
            knowledge=self.knowledge,
            open_named=self.models.open_named,
            variables=self.variables.of,
            redactor=self.redactor,
            diagnostics=ClientDiagnostics(self.front.client),
            indexing=self.index,
            screens=SessionScreens(self.shadows, external.show),
            answer_forms=KnownForms(ProofStore(state_root())),
        )


def _builtin() -> Iterator[Tool[Any]]:
    """The built-in tools, loaded when the registry is first asked."""
    from codeagent_lsp.tools.catalogue import BUILTIN  # late: they are heavy, and an idle server does without them

    for tool in BUILTIN:
        yield tool()
