"""The LSP handlers of the server, and the loading of its heavy part. Each handler converts, calls one function, and
converts back. Part of the start-up path.

What is heavy is in the `Backend`, which is loaded once, after `initialize` has been answered. Not here: building it
(`app.py`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codeagent_lsp.errors import CodeAgentError, EditorError
from codeagent_lsp.protocol import COMMANDS, DOCUMENT_SCHEME, PROMPT_TRIGGERS
from codeagent_lsp.server.actions import KINDS, Offers, code_actions, lenses
from codeagent_lsp.server.front import Front
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.workspace.files import uris

if TYPE_CHECKING:
    from codeagent_lsp.server.actions import Waiting
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.server.commands.commands import Commands
    from codeagent_lsp.server.inline import Inline
    from codeagent_lsp.workspace.text.document import Document


def register(server: CodeAgentServer, load: Load) -> None:
    """Register all LSP handlers with the server. `load` builds the heavy part, once, after `initialize` was answered.
    Call it before the server serves.
    """
    front = Front(server)
    loader = Loader(front, load)
    _register_lifecycle(server, front, loader)
    _register_editing(server, front, loader)
    _register_completion(server, front, loader)
    _register_files(server, front, loader)
    _register_commands(server, loader)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The heavy parts of one server, made once and kept until its end: the backend, and over it the commands and the
    inline completions.
    """

    backend: Backend
    commands: Commands
    inline: Inline


Load = Callable[[Front], Awaitable[Loaded]]


class Loader:
    """Calls `load` when the heavy part is first needed, and only once. Most methods answer at once, from memory, with
    nothing before it is loaded.
    """

    def __init__(self, front: Front, load: Load) -> None:
        self._front = front
        self._load = load
        self._loading: asyncio.Task[Loaded] | None = None

    async def loaded(self) -> Loaded:
        """Wait for the heavy part and return it; loading begins with the first call. What `load` raises is raised to
        all callers; a cancelled call does not stop the loading.
        """
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._load(self._front))
        # A request that is cancelled must not cancel the loading for all others.
        return await asyncio.shield(self._loading)

    async def backend(self) -> Backend:
        """Wait for the heavy part, whose loading the first call starts, and return the backend."""
        return (await self.loaded()).backend

    def ready(self) -> Backend | None:
        """Return the backend if it is loaded, for handlers that must answer at once; else None."""
        there = self._there()
        return there.backend if there is not None else None

    def commands(self) -> Commands | None:
        """Return the commands if they are loaded, for handlers that must answer at once; else None."""
        there = self._there()
        return there.commands if there is not None else None

    def waiting(self) -> tuple[Waiting, ...]:
        """Return an item for everything that waits for the user, for lenses and actions; () before the backend is
        loaded.
        """
        there = self._there()
        if there is None:
            return ()
        prompts = there.commands.prompting.documents.waiting(self._front.language())
        return (
            *prompts,
            *there.backend.waiting(),
            *there.inline.next_edits.waiting(),
            *there.inline.finish_changes.waiting(),
        )

    def at_problems(self, document: Document, problems: Sequence[types.Diagnostic]) -> tuple[Waiting, ...]:
        """Return the offers at errors that the editor shows in a document; () before the backend is loaded."""
        there = self._there()
        return there.inline.finish_changes.at_problems(document, problems) if there is not None else ()

    def parts(self, uri: str) -> tuple[Waiting, ...]:
        """Return an offer for each hunk and file in a document that can be decided about. () for clients with events,
        which show these in their own way, unless they want the lenses.
        """
        there, policy = self._there(), self._front.client.policy
        return there.backend.reviews.parts(uri) if there is not None and (policy.hunks or not policy.events) else ()

    def is_review(self, uri: str) -> bool:
        """Return whether a document is the diff of a run's changes; False before the backend is loaded."""
        there = self._there()
        return there is not None and there.backend.reviews.run_of(uri) is not None

    def own_commands(self) -> tuple[tuple[str, str], ...]:
        """Return (name, description) of the users' own commands as last read; () before the backend is loaded."""
        there = self._there()
        return there.commands.menu.offered() if there is not None else ()

    async def close(self) -> None:
        """Close the heavy part if it was loaded, and wait for that; nothing otherwise."""
        there = self._there()
        if there is not None:
            there.commands.close()
            await there.inline.close()
            await there.backend.close()

    def _there(self) -> Loaded | None:
        task = self._loading
        done = task is not None and task.done() and not task.cancelled() and task.exception() is None
        return task.result() if task is not None and done else None


def _register_lifecycle(server: CodeAgentServer, front: Front, loader: Loader) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        front.begin(params)

    @server.feature(types.INITIALIZED)
    async def initialized(params: types.InitializedParams) -> None:
        if front.client.policy.configuration:
            await front.settings_link.pull(server)
        if front.client.policy.text_content:
            await _register_content(server)

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configuration(params: types.DidChangeConfigurationParams) -> None:
        front.settings_link.push(_plain(params.settings))
        if front.client.policy.configuration:
            await front.settings_link.pull(server)
        if (backend := loader.ready()) is not None:
            backend.foreign.renew()

    async def load() -> None:
        await loader.backend()
        server.language = front.language()
        (await loader.loaded()).inline.refresh()
        if front.client.policy.asks:  # it opens the sessions that it shows itself, each in a process of its own
            return
        from codeagent_lsp.server.commands.session_commands import tell_what_waits  # late: with the parts of a session

        backend = await loader.backend()
        if front.interactive():
            backend.lender.start()
        await tell_what_waits(backend)
        backend.foreign.renew()

    server.on_started(load)
    server.on_close(loader.close)


def _register_editing(server: CodeAgentServer, front: Front, loader: Loader) -> None:
    # Nothing is left to resolve, and a client that is told so would ask once more, and wait, for each action.
    options = types.CodeActionOptions(code_action_kinds=[*KINDS])

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    def actions(params: types.CodeActionParams) -> Any:
        waiting = (*loader.parts(params.text_document.uri), *loader.waiting())
        document = server.documents.get(params.text_document.uri)
        whole = None
        if document is not None:
            end = document.position(len(document.text), server.documents.encoding)
            whole = types.Range(types.Position(0, 0), types.Position(end.line, end.character))
            waiting = (*loader.at_problems(document, params.context.diagnostics), *waiting)
        offers = Offers(waiting, loader.own_commands(), is_review=loader.is_review(params.text_document.uri))
        return code_actions(params, front.client.policy, offers, whole, front.language())

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        return lenses((*loader.waiting(), *loader.parts(uri)), uri)


def _register_completion(server: CodeAgentServer, front: Front, loader: Loader) -> None:
    @server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION)
    async def complete(params: types.InlineCompletionParams) -> types.InlineCompletionList | None:
        return await (await loader.loaded()).inline.complete(params)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[*PROMPT_TRIGGERS]))
    async def offer(params: types.CompletionParams) -> types.CompletionList | None:
        there, uri, place = loader.commands(), params.text_document.uri, params.position
        offered = await there.prompting.completion.complete(uri, place.line, place.character) if there else None
        if offered is None and there and front.completes() and front.completes_plainly():
            return await (await loader.loaded()).inline.complete_plainly(params)
        return offered

    @server.feature("textDocument/copilotInlineEdit")
    async def next_edit(params: Any) -> Any:
        return (await loader.loaded()).inline.next_edit(_plain(params))


def _register_files(server: CodeAgentServer, front: Front, loader: Loader) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        backend = loader.ready()
        if backend is not None:
            backend.index.touched(_paths([params.text_document.uri]))
            backend.foreign.saved(params.text_document.uri, params.text)
            backend.written(_paths([params.text_document.uri]))
        if backend is not None and backend.own_documents.is_answer(params.text_document.uri):
            try:
                backend.answer_saved(params.text_document.uri)
            except CodeAgentError as error:
                backend.announcer.tell(error.localized(front.language()), types.MessageType.Warning)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def changed(params: types.DidChangeWatchedFilesParams) -> None:
        backend = loader.ready()
        if backend is not None:
            paths = tuple(_paths(change.uri for change in params.changes))
            backend.index.touched(paths)
            backend.foreign.touched(paths)
            backend.written(paths)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        backend = loader.ready()
        if backend is not None:
            backend.index.folders_changed()
            backend.foreign.renew()

    @server.feature("workspace/textDocumentContent")
    async def content(params: Any) -> Any:
        backend = await loader.backend()
        return {"text": backend.own_documents.content(str(_plain(params).get("uri", "")))}


def _register_commands(server: CodeAgentServer, loader: Loader) -> None:
    async def execute(name: str, arguments: list[Any]) -> Any:
        commands = (await loader.loaded()).commands
        return await commands.execute(name, [_plain(item) for item in arguments])

    server.offer_commands((command.name for command in COMMANDS), execute)

    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancel(params: types.WorkDoneProgressCancelParams) -> None:
        backend = loader.ready()
        run_id = backend.progress.run_of(params.token) if backend is not None else None
        if backend is not None and run_id is not None:
            backend.manager.runs.cancel(run_id)


async def _register_content(server: CodeAgentServer) -> None:
    """Register our URI scheme for `workspace/textDocumentContent`; pygls has no static capability for it."""
    registration = types.Registration(
        id="codeagent-content",
        method="workspace/textDocumentContent",
        register_options={"schemes": [DOCUMENT_SCHEME]},
    )
    try:
        params = types.RegistrationParams(registrations=[registration])
        await server.request(types.CLIENT_REGISTER_CAPABILITY, params, 10.0)
    except EditorError:
        return  # the documents are then files in the state folder


def _paths(named: Iterable[str]) -> Iterator[str]:
    """Yield the paths of files as the index knows them: in real folders. Of a link, also what it leads to."""
    real = cache(os.path.realpath)  # many files are in few folders
    for uri in named:
        path = uris.to_path(uri)
        if path is not None:
            folder, name = os.path.split(path)
            own = os.path.join(real(folder), name)  # noqa: PTH118 (as the index writes paths)
            yield own
            if os.path.islink(own):  # noqa: PTH114 (no error for a name that is none)
                yield real(own)


def _plain(value: Any) -> Any:
    """Convert what pygls made of a JSON object into plain dictionaries and lists."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_asdict"):
        return [_plain(item) for item in value]
    if hasattr(value, "_asdict"):
        return {key: _plain(item) for key, item in value._asdict().items()}
    if hasattr(value, "__attrs_attrs__"):
        return {item.name: _plain(getattr(value, item.name)) for item in value.__attrs_attrs__}
    return value
