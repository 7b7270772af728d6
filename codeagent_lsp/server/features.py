"""What the server offers over LSP, and the light side of it: client, settings, folders. The start-up path.

Whatever is heavy stands behind `Backend`, which is loaded after `initialize` has been answered. Handlers
convert, call one function, convert back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codeagent_lsp.errors import CodeAgentError, EditorError, SettingError, UserError
from codeagent_lsp.protocol import COMMANDS, DOCUMENT_SCHEME
from codeagent_lsp.server.actions import KINDS, code_actions
from codeagent_lsp.server.client import Client
from codeagent_lsp.server.clients import policy_of
from codeagent_lsp.server.lenses import lenses
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.server.settings import SettingsLink
from codeagent_lsp.texts import choose_language
from codeagent_lsp.workspace.files import uris

if TYPE_CHECKING:
    from codeagent_lsp.config import Settings
    from codeagent_lsp.server.backend import Backend

LoadBackend = Callable[["Front"], Awaitable["Backend"]]


class Front:
    """The connection as the other parts see it. `load` builds the backend, once."""

    def __init__(self, server: CodeAgentServer, load: LoadBackend) -> None:
        self.server = server
        self.settings_link = SettingsLink(self._bad_setting)
        self._load = load
        self._loading: asyncio.Task[Backend] | None = None
        self.client = Client(server, self.language)
        self._locale: str | None = None

    def settings(self) -> Settings:
        """The settings in force."""
        return self.settings_link.settings

    def language(self) -> str:
        """The user's language."""
        return choose_language(self.settings().language, self._locale)

    def folders(self) -> list[str]:
        """Paths of the workspace folders."""
        workspace = self.server.workspace
        named = [uris.to_path(folder.uri) for folder in workspace.folders.values()]
        root = [uris.to_path(workspace.root_uri)] if workspace.root_uri else []
        return [path for path in (named or root) if path is not None]

    def begin(self, params: types.InitializeParams) -> None:
        """Take in what `initialize` says."""
        self.client.policy = policy_of(params)
        self._locale = params.locale
        self.server.language = choose_language("auto", params.locale)
        self.settings_link.initialize(params.initialization_options)

    async def backend(self) -> Backend:
        """Everything behind the wire."""
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._load(self))
        return await asyncio.shield(self._loading)

    def loaded(self) -> Backend | None:
        """The backend when it is there already: what must answer at once does not wait for it."""
        task = self._loading
        return task.result() if task is not None and task.done() and task.exception() is None else None

    async def close(self) -> None:
        """Stop what runs."""
        backend = self.loaded()
        if backend is not None:
            await backend.close()

    def describe_client(self) -> dict[str, Any]:
        """This client, for the doctor."""
        policy = self.client.policy
        can = [name for name in policy.__slots__ if name != "name" and getattr(policy, name)]
        lacks = [name for name in policy.__slots__ if name != "name" and not getattr(policy, name)]
        detail = f"{policy.name or 'unnamed'}: {', '.join(can)}"
        return {"name": "client", "verdict": "ok", "detail": detail, "advice": f"not offered: {', '.join(lacks)}"}

    def _bad_setting(self, problem: SettingError) -> None:
        words = problem.localized(self.language())
        asyncio.get_running_loop().call_soon(self._warn, words)

    def _warn(self, words: str) -> None:
        self.client.tell(words, types.MessageType.Warning)


def register(server: CodeAgentServer, load: LoadBackend) -> Front:
    """Add every feature to the server."""
    front = Front(server, load)
    _register_lifecycle(server, front)
    _register_editing(server, front)
    _register_files(server, front)
    _register_commands(server, front)
    return front


def _register_lifecycle(server: CodeAgentServer, front: Front) -> None:
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

    async def load() -> None:
        await front.backend()
        server.language = front.language()

    server.on_started(load)
    server.on_close(front.close)


def _register_editing(server: CodeAgentServer, front: Front) -> None:
    options = types.CodeActionOptions(code_action_kinds=[*KINDS], resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    def actions(params: types.CodeActionParams) -> Any:
        backend = front.loaded()
        waiting = backend.waiting() if backend is not None else ()
        document = server.documents.get(params.text_document.uri)
        whole = None
        if document is not None:
            end = document.position(len(document.text), server.documents.encoding)
            whole = types.Range(types.Position(0, 0), types.Position(end.line, end.character))
        return code_actions(params, front.client.policy, waiting, whole, front.language())

    @server.feature(types.CODE_ACTION_RESOLVE)
    def resolve(action: types.CodeAction) -> types.CodeAction:
        return action

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        backend = front.loaded()
        return lenses(backend.waiting(), params.text_document.uri) if backend is not None else []


def _register_files(server: CodeAgentServer, front: Front) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        backend = front.loaded()
        if backend is not None:
            backend.index.touched(_paths([params.text_document.uri]))
        if backend is not None and backend.own_documents.is_answer(params.text_document.uri):
            try:
                backend.answer_saved(params.text_document.uri)
            except CodeAgentError as error:
                words = error.localized(front.language()) if isinstance(error, UserError) else str(error)
                backend.announcer.tell(words, types.MessageType.Warning)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def changed(params: types.DidChangeWatchedFilesParams) -> None:
        backend = front.loaded()
        if backend is not None:
            backend.index.touched(_paths(change.uri for change in params.changes))

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        backend = front.loaded()
        if backend is not None:
            backend.index.folders_changed()

    @server.feature("workspace/textDocumentContent")
    async def content(params: Any) -> Any:
        backend = await front.backend()
        return {"text": backend.own_documents.content(str(_plain(params).get("uri", "")))}


def _register_commands(server: CodeAgentServer, front: Front) -> None:
    async def execute(name: str, arguments: list[Any]) -> Any:
        backend = await front.backend()
        return await backend.commands.execute(name, [_plain(item) for item in arguments])

    server.offer_commands((command.name for command in COMMANDS), execute)

    @server.feature(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def cancel(params: types.WorkDoneProgressCancelParams) -> None:
        backend = front.loaded()
        run_id = backend.progress.run_of(params.token) if backend is not None else None
        if backend is not None and run_id is not None:
            backend.manager.cancel(run_id)


async def _register_content(server: CodeAgentServer) -> None:
    """Offer our scheme; pygls has no static capability for it."""
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


def _paths(named: Iterable[str]) -> list[str]:
    return [path for uri in named if (path := uris.to_path(uri)) is not None]


def _plain(value: Any) -> Any:
    """Mappings whatever pygls made of a JSON object."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_asdict"):
        return [_plain(item) for item in value]
    if hasattr(value, "_asdict"):
        return {key: _plain(item) for key, item in value._asdict().items()}
    if hasattr(value, "__attrs_attrs__"):
        return {item.name: _plain(getattr(value, item.name)) for item in value.__attrs_attrs__}
    return value
