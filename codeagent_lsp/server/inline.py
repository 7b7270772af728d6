"""Inline completion of a server: on or off as settings, client and models allow, and how long a list of completions
may wait. Its heavy parts are imported late.

Not here: answering (`inline_completions.py`), next edits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from lsprotocol import types

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import CodeAgentError, EditorError, ModelError
from codeagent_lsp.protocol import INLINE_STATUS_METHOD
from codeagent_lsp.server.finish_changes import FinishChanges
from codeagent_lsp.server.next_edits import NextEdits
from codeagent_lsp.server.next_edits import Parts as NextEditParts
from codeagent_lsp.server.secret_sources import sanitizer_for
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp.inline.completer import Options
    from codeagent_lsp.inline.next_edit.proposals import Proposed
    from codeagent_lsp.llm.fill.filler import Filler
    from codeagent_lsp.server.front import Client
    from codeagent_lsp.server.inline_completions import InlineCompletions
    from codeagent_lsp.session.manager import SessionManager
    from codeagent_lsp.workspace.text.document import Document

LOOK_AGAIN_SECONDS = 30.0
"""How long a machine without a model for it is left alone; then the next opened document looks again."""
REGISTER_SECONDS = 10.0
PLAIN_SECONDS = 1.0
_ID = "codeagent-inline"

State = Literal["off", "starting", "ready", "asking", "unavailable"]


class Parts(NextEditParts, Protocol):
    """Port: the parts of a server that completions and next edits need; only `FinishChanges` uses `manager`."""

    manager: SessionManager


class Inline:
    """The inline completions, next edits and offers to finish a change of one server; `refresh` switches them on and
    off, `close` ends all.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._capability = InlineCapability(parts.front.client)
        self._completions: InlineCompletions | None = None
        # The settings with which the model was opened; None while there is none.
        self._wanted: object = None
        self._looked = 0.0
        self._lock = asyncio.Lock()
        self._tasks = BackgroundTasks()
        self.next_edits = NextEdits(parts)
        self.finish_changes = FinishChanges(parts, self.next_edits)
        parts.front.settings_link.on_change.append(self.refresh)
        self._unsubscribe = parts.front.server.documents.subscribe(lambda uri, document: self._look_again())

    def refresh(self) -> None:
        """Switch completions on or off by the present settings, client and models, in the background; returns
        at once.
        """
        self._tasks.start(self._refresh())

    async def complete(self, params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
        """Return the completion at a place: an edit that is due in its line, else one of the model, for which this
        waits; None for none. Cancellable.
        """
        document = self._known_document(params.text_document.uri)
        due = self.next_edits.at_line(document, params.position.line) if document is not None else None
        # LSP wants the range of an inline completion on a single line.
        if document is not None and due is not None and "\n" not in due.old:
            item = types.InlineCompletionItem(insert_text=due.new, range=self._range(document, due))
            return types.InlineCompletionList([item])
        if self._completions is None:
            return None
        self._capability.tell("asking")
        try:
            return await self._completions.complete(params)
        finally:
            if self._wanted is not None:
                self._capability.tell("ready")

    async def complete_plainly(self, params: types.CompletionParams) -> types.CompletionList | None:
        """Return the model's completion as one entry of a list; the list is empty if it takes longer than 1 s, and the
        completion is then kept for the next key. None if there are no completions.
        """
        if self._completions is None:
            return None
        cuts = self._parts.front.client.policy.cuts_words
        work = self._tasks.start(self._completions.complete_plainly(params, cuts_words=cuts))
        done, _ = await asyncio.wait({work}, timeout=PLAIN_SECONDS)
        items = [item for task in done if (item := task.result()) is not None]
        # Incomplete, so that the client asks again at each key.
        return types.CompletionList(is_incomplete=True, items=items)

    def next_edit(self, params: Any) -> dict[str, Any]:
        """Return the answer to `textDocument/copilotInlineEdit`: `{edits: [{text, range, textDocument}]}` with the
        proposed edit nearest to the cursor, or without any, as for another version of the document. `params` are JSON
        data. The method is GitHub's Copilot language server's.
        """
        params = params if isinstance(params, Mapping) else {}
        named = params.get("textDocument") or {}
        document = self._known_document(str(named.get("uri", "")))
        version = named.get("version")
        if document is None or (version is not None and version != document.version):
            return {"edits": []}
        due = self.next_edits.nearest(document, int(params.get("position", {}).get("line", 0)))
        if due is None:
            return {"edits": []}
        place = self._range(document, due)
        ends = {
            name: {"line": at.line, "character": at.character}
            for name, at in (("start", place.start), ("end", place.end))
        }
        about = {"uri": document.uri, "version": document.version}
        return {"edits": [{"text": due.new, "range": ends, "textDocument": about}]}

    def _known_document(self, uri: str) -> Document | None:
        """Return the open document, if its text is known: else an edit would go to another place."""
        documents = self._parts.front.server.documents
        return documents.get(uri) if documents.in_step(uri) else None

    async def close(self) -> None:
        """End next edits and the finishing of changes, cancel requests, and close the model that fills in, once no
        opening of it goes on.
        """
        await self.finish_changes.close()
        await self.next_edits.close()
        self._unsubscribe()
        self._tasks.cancel()
        async with self._lock:
            await self._shut()

    async def _refresh(self) -> None:
        # Settings may change while a model is being opened: one after the other.
        async with self._lock:
            settings = self._parts.front.settings()
            wanted = (settings.inline.enabled, settings.model, settings.network)
            if not self._parts.front.completes():
                await self._shut()
                self._capability.tell("off")
                await self._capability.offer(offered=False)
            elif self._wanted != wanted:
                await self._shut()
                await self._open(wanted, asked_for=settings.inline.enabled is True)

    async def _open(self, wanted: object, *, asked_for: bool) -> None:
        self._capability.tell("starting")
        self._looked = time.monotonic()
        try:
            found = await self._parts.models.open_filler()
        except CodeAgentError as error:
            await self._none(self._words(error))
            return
        if found is None or not (asked_for or found.at_hand):
            why = "inline.no_model" if found is None else "inline.not_asked"
            await self._none(text(why, self._parts.front.language()))
            if found is not None:
                # A model that would have to be started is not, unless the user asked for completions.
                await found.filler.close()
            return
        self._completions = await asyncio.to_thread(self._make, found.filler)
        self._wanted = wanted
        self._capability.tell("ready")
        await self._capability.offer(offered=True)

    async def _none(self, why: str) -> None:
        self._capability.tell("unavailable", why)
        # What a next-edit model expects is shown in the same way.
        await self._capability.offer(offered=bool(self._parts.front.settings().model.next_edit))

    def _make(self, filler: Filler) -> InlineCompletions:
        from codeagent_lsp.inline.checking import SuggestionChecks  # late: as below
        from codeagent_lsp.inline.completer import Completer  # late: an idle server completes nothing
        from codeagent_lsp.inline.workspace_source import WorkspaceSource  # late: the index is heavy
        from codeagent_lsp.server.inline_completions import InlineCompletions, Texts  # late, as above
        from codeagent_lsp.tools.permissions.policy import may_read  # late, as above

        front, views = self._parts.front, self._parts.views
        sanitizer = sanitizer_for(front, self._parts.redactor)
        clean = sanitizer.for_model().text
        texts = Texts(
            front.server.documents,
            views.plain,
            lambda view: may_read(front.settings().permissions, view.roots),
            clean,
        )

        def may_show(path: str) -> bool:
            return may_read(front.settings().permissions, views.plain().roots)(path)

        # `made` is set below, before anything is asked of the source.
        source = WorkspaceSource(views.plain, self._parts.index, may_show, lambda: tuple(made.recent))
        checks = SuggestionChecks(lambda: self._parts.language_servers.warm, views.plain)
        completer = Completer(filler, source.material, clean, self._on_failure, checks.begin)
        made = InlineCompletions(texts, completer, self._options)
        return made

    def _options(self) -> Options:
        from codeagent_lsp.inline.completer import Options  # late: as above

        settings = self._parts.front.settings().inline
        return Options(settings.debounce_ms / 1000, settings.max_lines)

    def _range(self, document: Document, due: Proposed) -> types.Range:
        encoding = self._parts.front.server.documents.encoding
        ends = [document.position(at, encoding) for at in (due.start, due.end)]
        return types.Range(*(types.Position(at.line, at.character) for at in ends))

    def _on_failure(self, error: ModelError) -> None:
        self._capability.tell("unavailable", self._words(error))

    def _words(self, error: CodeAgentError) -> str:
        return error.localized(self._parts.front.language())

    def _look_again(self) -> None:
        """A model may have been started since: look for it, but rarely."""
        missing = self._completions is None and self._looked
        if missing and time.monotonic() - self._looked > LOOK_AGAIN_SECONDS and self._parts.front.completes():
            self._looked = time.monotonic()
            self.refresh()

    async def _shut(self) -> None:
        completions, self._completions, self._wanted = self._completions, None, None
        if completions is not None:
            completions.close()
            await completions.completer.close()


# Says to the client whether there are inline completions: by registration, and by a status of our own.


class InlineCapability:
    """Registers inline completions with one client while there are any. A client that takes no registrations gets the
    capability at its start, for good.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._registered = False
        self._told: tuple[State, str] | None = None

    async def offer(self, *, offered: bool) -> None:
        """Register or unregister inline completion with the client, if that changes anything; after a refusal the next
        call tries again.
        """
        policy = self._client.policy
        if not (policy.inline and policy.inline_registers) or offered == self._registered:
            return
        method = types.TEXT_DOCUMENT_INLINE_COMPLETION
        try:
            if offered:
                registration = types.Registration(_ID, method, {})
                params = types.RegistrationParams([registration])
                await self._client.server.request(types.CLIENT_REGISTER_CAPABILITY, params, REGISTER_SECONDS)
            else:
                ended = types.UnregistrationParams([types.Unregistration(_ID, method)])
                await self._client.server.request(types.CLIENT_UNREGISTER_CAPABILITY, ended, REGISTER_SECONDS)
        except EditorError:
            return
        self._registered = offered

    def tell(self, state: State, detail: str = "") -> None:
        """Show the state to a client that shows it; nothing if it is the same as before. `detail` is a sentence for the
        user, '' for none.
        """
        if not self._client.policy.inline_status or self._told == (state, detail):
            return
        self._told = (state, detail)
        self._client.server.notify(INLINE_STATUS_METHOD, {"state": state, "detail": detail})
