"""The LSP handlers of the server. Each converts, calls one function, and converts back. Part of the start-up path.

What is heavy is in the `Backend`, which is loaded after `initialize` has been answered (`loader.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from lsprotocol import types

from codeagent_lsp.errors import CodeAgentError, EditorError
from codeagent_lsp.protocol import COMMANDS, DOCUMENT_SCHEME, PROMPT_TRIGGERS
from codeagent_lsp.server.actions import KINDS, Offers, code_actions, lenses
from codeagent_lsp.server.front import Front
from codeagent_lsp.server.loader import Load, Loader
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.workspace.files import uris


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
