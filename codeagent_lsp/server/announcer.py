"""Shows events of sessions to the user: as progress, `codeagent/event` notification, transcript, or message.

A client without support for our notification misses nothing: errors and one-line answers are messages, longer ones open
the transcript. Not here: questions (`prompts.py`), pending changes (`actions.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp import events, protocol
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import EditorError
from codeagent_lsp.session.request import ANSWERS, FOREIGN
from codeagent_lsp.session.spending import cost_words
from codeagent_lsp.session.transcript import block, inert
from codeagent_lsp.state import STATE_VARIABLE
from codeagent_lsp.texts import text
from codeagent_lsp.tools.mcp.settings import names_server
from codeagent_lsp.workspace.text.visible import some_of

if TYPE_CHECKING:
    from codeagent_lsp.server.front import Client
    from codeagent_lsp.server.progress import Progress
    from codeagent_lsp.server.virtual_documents import VirtualDocuments
    from codeagent_lsp.workspace.changes.changeset import Applied

SHORT_ANSWER = 160
MOST_CONFLICTS = 5

_LENS_EVENTS = (
    events.ApprovalRequested,
    events.ApprovalResolved,
    events.QuestionAsked,
    events.QuestionAnswered,
    events.ChangesProposed,
    events.ChangesApplied,
    events.ChangesDiscarded,
    events.RunCompleted,
    events.PlanModified,
)

SAYS = ("completed", "waiting")
"""Statuses of runs whose last word is shown as what the model says."""


class Announcer:
    """Shows the events of all sessions of one server to its client; `observe` gets each event. `hide` masks secrets in
    what goes into transcripts.
    """

    def __init__(
        self,
        client: Client,
        progress: Progress,
        documents: VirtualDocuments,
        hide: Callable[[str], str] = str,
    ) -> None:
        self._client = client
        self._progress = progress
        self._documents = documents
        self._hide = hide
        self._begun: dict[str, tuple[str, str]] = {}  # kind and title of the runs that are not over
        self._tasks = BackgroundTasks()

    @property
    def language(self) -> str:
        """The user's language, `en` or `zh-cn`."""
        return self._client.language

    def observe(self, event: events.Event) -> None:
        """Show one event in every way that the client supports: notification, transcript, message, lenses, progress.
        Returns at once.
        """
        self._before_clients(event)
        if self._client.policy.events and not event.internal:
            self._client.server.notify(protocol.EVENT_METHOD, events.to_dict(event))
        if addition := block(event, self._client.language):
            self._documents.append(transcript_name(event.session_id), self._hide(addition))
        self._tell_of(event)
        if isinstance(event, events.RunCompleted):
            self._show_end(event)
        if isinstance(event, _LENS_EVENTS):
            self.refresh_lenses()
        self._progress.observe(event)  # last: when progress ends, all messages about the run have been sent

    def _before_clients(self, event: events.Event) -> None:
        """Do what comes before a client learns of an event: begin to show the progress, say that a task waits."""
        match event:
            case events.RunStarted():
                self._begun[event.run_id] = (event.kind, event.title)
                if event.kind != FOREIGN:  # it has no work to show
                    self._progress.begin(event.run_id, event.title)
            case events.TaskQueued() if event.task:
                self.tell(text("queue.waits", self._client.language, title=event.title))
            case events.ExecutionStarted():
                self._progress.resume(event.run_id)

    def _tell_of(self, event: events.Event) -> None:
        """Show a message about an event that the user should not miss."""
        language = self._client.language
        match event:
            case events.ChangesApplied():
                for old, new in (event.renamed or {}).items():
                    self.tell(text("outcome.renamed", language, old=old, new=new))
                if event.outcome != "full":
                    self.tell(outcome_line(event, language), types.MessageType.Warning)
            case events.ToolDisabled() if not names_server(event.tool):  # MCP servers report their failure
                words = text("tool.rests", language, tool=event.tool, reason=event.reason)
                self.tell(words, types.MessageType.Warning)

    def tell(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show one line to the user as a message; returns at once."""
        self._client.tell(message, kind)

    def tell_outcome(self, applied: Applied, key: str = "outcome.full") -> None:
        """Show in one line, by the `key` of its sentence in the text catalogue, that all was applied; nothing for other
        outcomes, which their event shows.
        """
        if applied.outcome == "full":
            self.tell(text(key, self._client.language, count=len(applied.done.paths)))

    def tell_restored(self, title: str) -> None:
        """Show by a message that the rewind with this title is undone; returns at once."""
        self.tell(text("rewind.undone", self._client.language, title=title))

    def store_failed(self, error: OSError) -> None:
        """Warn the user by a message that a session cannot be recorded, and why."""
        reason = error.strerror or str(error)
        words = text("store.failed", self._client.language, reason=reason, variable=STATE_VARIABLE)
        self.tell(words, types.MessageType.Warning)

    def store_restored(self) -> None:
        """Warn the user by a message that another program removed the file of a session, which was written again."""
        self.tell(text("store.restored", self._client.language), types.MessageType.Warning)

    def _show_end(self, event: events.RunCompleted) -> None:
        """Show the end of a run as a message or transcript."""
        # A run of an earlier process has not begun here.
        kind, title = self._begun.pop(event.run_id, ("run", ""))
        long = len(event.summary) > SHORT_ANSWER or "\n" in event.summary.strip()
        cost = cost_words(event.usage, event.session_usage, self._client.language)
        summary = f"{event.summary} ({cost})" if cost else event.summary
        if event.unconfirmed and event.status != "stopped":  # there the summary is told, which begins with it
            self.tell(event.summary.partition("\n")[0], types.MessageType.Warning)
        if event.error:
            self.tell(event.error, types.MessageType.Error)
        elif event.status == "stopped":
            self.tell(summary, types.MessageType.Warning)
        elif event.status in SAYS and (kind in ANSWERS or long):
            self._tasks.start(self._documents.show(self._answer(event, title)))
        elif event.status in SAYS and event.summary:
            self.tell(summary)

    def _answer(self, event: events.RunCompleted, title: str) -> str:
        """Return the name of the document that shows what a run says: the transcript, where the client has a window for
        it, else one of its own, which begins with the answer and is not open yet, so that the user sees it.
        """
        whole = transcript_name(event.session_id)
        if self._documents.client_has_windows:
            return whole
        name = f"said/{event.run_id}.md"
        head = f"## {' '.join(title.split())}\n\n" if title else ""
        more = text("answer.more", self._client.language, place=self._documents.place(whole))
        self._documents.put(name, self._hide(inert(f"{head}{event.summary.strip()}\n\n---\n\n{more}\n")))
        return name

    def refresh_lenses(self) -> None:
        """Ask the client to request code lenses again (`workspace/codeLens/refresh`), if it supports that; does not
        wait.
        """
        if self._client.policy.lens_refresh:
            self._tasks.start(self._refresh_lenses())

    async def _refresh_lenses(self) -> None:
        with suppress(EditorError):  # a client that fails to refresh needs no message
            await self._client.server.request(types.WORKSPACE_CODE_LENS_REFRESH, None, 5.0)


def transcript_name(session_id: str) -> str:
    """Return the name of a session's transcript among the virtual documents: `transcript/ID.md`."""
    return f"transcript/{session_id}.md"


def outcome_line(event: events.ChangesApplied, language: str) -> str:
    """Return a sentence for the user on the outcome of applying changes, in the language `en` or `zh-cn`; at most 5
    files or places are named.
    """
    if event.unconfirmed:
        names = some_of((PurePath(path).name for path in event.unconfirmed), 5)
        return text("outcome.unconfirmed", language, names=names)
    if event.conflicts:
        return text("outcome.conflict", language, places=some_of(event.conflicts, MOST_CONFLICTS))
    if event.outcome == "none":
        return text("outcome.none", language, reason=event.reason) if event.reason else text("outcome.silent", language)
    return text(f"outcome.{event.outcome}", language, count=len(event.files_changed))
