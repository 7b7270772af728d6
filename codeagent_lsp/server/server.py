"""The language server: pygls' registry of features on our own transport, dispatcher, documents and shutdown.

Features live in files of their own and are added by `register(server)` functions. This module and what it imports is
the start-up path, so it stays light: whatever takes long to load belongs into `on_started`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Generator, Iterable
from typing import Any, NoReturn, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.protocol import lsp_method
from pygls.workspace import Workspace

from codeagent_lsp import __version__
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.server.clients import completes_always, loses_behind_answers, real_encoding
from codeagent_lsp.server.documents import Documents
from codeagent_lsp.server.wire import lifecycle
from codeagent_lsp.server.wire.framing import make_converter
from codeagent_lsp.server.wire.lifecycle import Channel, ExecuteCommand, Phase, Reader, Served, socket_channel
from codeagent_lsp.server.wire.outgoing import Outgoing
from codeagent_lsp.server.wire.protocol_guard import GuardedProtocol
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.files import uris
from codeagent_lsp.workspace.text.document import Change, Document
from codeagent_lsp.workspace.text.position import Encoding

Steps = Generator[Any, Any, Any]


class CodeAgentProtocol(GuardedProtocol):
    """The dispatcher of this server's messages, with the LSP methods that pygls would handle otherwise."""

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Steps:
        """Agree on capabilities and the position encoding (LSP `initialize`); a failure leaves the server as it was, to
        be asked again.
        """
        # Set before anything can wait: a second `initialize` meanwhile is refused.
        self.phase = Phase.STARTING
        try:
            result = yield from super().lsp_initialize(params)
        except BaseException:
            self.phase = Phase.FRESH
            raise
        # pygls announces it for every client; one that registers later would then have it twice.
        result.capabilities.inline_completion_provider = completes_always(params) or None
        agreed = result.capabilities.position_encoding or "utf-16"
        self._server.documents.encoding = real_encoding(params, cast("Encoding", getattr(agreed, "value", agreed)))
        self.phase = Phase.READY
        if self.outgoing is not None:
            self.outgoing.answers_alone = loses_behind_answers(params)
        self._server.started(params.process_id)
        return result

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Steps:
        """Refuse all further messages but `exit`, call the feature's handler to clean up, and cancel running
        requests.
        """
        # First, as the feature's handler may wait, and nothing new may begin meanwhile.
        self.phase = Phase.SHUT
        yield from self._user(types.SHUTDOWN, *args)
        self.open_requests.cancel_others()

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> Steps:
        """End the process, soon after this returns: with code 0 after `shutdown`, else 1."""
        yield from self._user(types.EXIT, *args)
        self._server.leave(self.phase.exit_code, "the client asked for it")

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Steps:
        """Add the opened document to `documents`, then call the feature's handler."""
        item = params.text_document
        self._server.documents.open(Document(item.uri, item.text, item.version, str(item.language_id)))
        yield from self._user(types.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Steps:
        """Apply the changes to the document in order; what cannot be applied puts it out of step, without an error."""
        item = params.text_document
        changes = [_change(change) for change in params.content_changes]
        self._server.documents.change(item.uri, item.version, changes)
        yield from self._user(types.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Steps:
        """Remove the closed document from `documents`, if it is there, then call the feature's handler."""
        self._server.documents.close(params.text_document.uri)
        yield from self._user(types.TEXT_DOCUMENT_DID_CLOSE, params)

    def not_understood(self, method: str, raw: dict[str, Any]) -> None:
        """Mark a document as out of step if the parameters of its `didOpen` or `didChange` could not be read; nothing
        for other methods, or without a URI. `raw` is the whole message as a dict.
        """
        if method not in (types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE):
            return
        params = raw.get("params")
        item = params.get("textDocument") if isinstance(params, dict) else None
        uri = item.get("uri") if isinstance(item, dict) else None
        if isinstance(uri, str):
            self._server.documents.lose(uri)

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]
        self, params: types.ExecuteCommandParams
    ) -> Any:
        """Execute a command and return its answer; a coroutine, so that `$/cancelRequest` can cancel it."""
        return await self._server.execute_command(params.command, list(params.arguments or ()))

    def _user(self, method: str, *args: Any) -> Steps:
        """Call the handler that a feature registered for a built-in method, if there is one."""
        handler = self.fm.features.get(method)
        if handler is not None:
            yield handler, args, None


def _change(change: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return Change(change.text)
    start, end = change.range.start, change.range.end
    return Change(change.text, (start.line, start.character), (end.line, end.character))


_THREADS = 16  # for handlers marked with `server.thread()`; the reader and the writer have their own
_FLUSH_SECONDS = 0.2
_REPLY_SECONDS = 0.5
_START_SECONDS = 60.0

_log = logging.getLogger(__name__)


def folders_of(workspace: Workspace) -> list[str]:
    """Return the paths of the workspace folders, as the client names them."""
    named = [uris.to_path(folder.uri) for folder in workspace.folders.values()]
    root = [uris.to_path(workspace.root_uri)] if workspace.root_uri else []
    return [path for path in (named or root) if path is not None]


class CodeAgentServer(Served):
    """One server for one client, until the process ends. `documents` holds the open documents, `language` the language
    of messages.
    """

    protocol: CodeAgentProtocol

    def __init__(self) -> None:
        self.documents = Documents(folders=lambda: folders_of(self.workspace), lost=self._text_lost)
        self.language = "en"
        self.execute_command = _no_command
        self.departure = lifecycle.Departure()
        self._on_started: list[lifecycle.Callback] = []
        self._on_close: list[lifecycle.Callback] = []
        self._tasks = BackgroundTasks()
        super().__init__(
            name="codeagent-lsp",
            version=__version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            protocol_cls=CodeAgentProtocol,
            converter_factory=make_converter,
            max_workers=_THREADS,
        )

    def offer_commands(self, names: Iterable[str], execute: ExecuteCommand) -> None:
        """Register `names` as commands of this server, which `execute(name, arguments)` executes; call before
        `initialize`.
        """
        for name in names:
            self.command(name)(_do_nothing)
        self.execute_command = execute

    def on_started(self, callback: lifecycle.Callback) -> None:
        """Have `callback` called, in the event loop, once the reply to `initialize` is sent: the place for what takes
        long to load. Register it before.
        """
        self._on_started.append(callback)

    def on_close(self, callback: lifecycle.Callback) -> None:
        """Have `callback` called, in the event loop, before the process ends; all callbacks together have 1.5 s."""
        self._on_close.append(callback)

    async def request(self, method: str, params: Any, timeout: float) -> Any:  # noqa: ASYNC109
        """Send a request to the client and return its result, converted to LSP types (plain JSON for methods of our
        own). EditorError when it answers with an error or not within `timeout` seconds.
        """
        return await self.protocol.request(method, params, timeout)

    def notify(self, method: str, params: Any = None) -> None:
        """Queue a notification to the client and return at once, from any thread; `params` are of lsprotocol or plain
        data.
        """
        self.protocol.notify(method, params)

    def leave(self, code: int, reason: str) -> None:
        """Begin to end the process with exit code `code` and return at once; `reason` is logged. Safe from any thread;
        later calls are ignored.
        """
        self.departure.begin(code, reason)

    def serve_stdio(self) -> NoReturn:
        """Serve the client on the standard streams, which nothing else may use any more; never returns, but ends the
        process.
        """
        self._serve(lifecycle.take_stdio())

    def serve_tcp(self, host: str = "127.0.0.1", port: int = 0) -> NoReturn:
        """Wait for a client on a port (0: a free one), print the address to stderr, serve the first client and refuse
        all others; never returns, but ends the process. OSError if the port cannot be opened.
        """
        lifecycle.guard_stdio()
        with socket.create_server((host, port), backlog=1) as listener:
            sys.stderr.write(f"Listening on {host}:{listener.getsockname()[1]}\n")
            sys.stderr.flush()
            try:
                connection, _ = listener.accept()
            except KeyboardInterrupt:
                lifecycle.end_process(130)
        self._serve(socket_channel(connection))

    def started(self, process_id: int | None) -> None:
        """Start the callbacks of `on_started`, and watch the client's process (`process_id`, None if the client gives
        none); called before the reply to `initialize` is sent.
        """
        self._tasks.start(self._after_reply())
        self._tasks.start(lifecycle.watch_parent(process_id, self.leave, lambda: self.protocol.phase.exit_code))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log pygls' own failures by their type; nothing is shown to the user."""
        _log.error("The protocol failed: %s.", type(error).__name__)

    def _serve(self, channel: Channel) -> NoReturn:
        logging.getLogger("pygls").setLevel(logging.ERROR)  # below that it logs what users type
        # Before the loop: asyncio.run leaves handlers of SIGINT alone that are not Python's own.
        lifecycle.leave_on_signals(self.leave)
        asyncio.run(self._main(channel))
        lifecycle.end_process(self.departure.code or 0)

    async def _main(self, channel: Channel) -> NoReturn:
        loop = asyncio.get_running_loop()
        self.departure.bind(loop)
        outgoing = Outgoing(channel.write, self._on_lost, channel.unread)
        outgoing.start()
        self.protocol.outgoing = outgoing
        # Last: from here on messages come, and their answers need the writer.
        Reader(channel, self.protocol.receive, self._on_lost).start(loop)
        code = await self.departure.wait()
        # Before the callbacks, which would else wait for answers of a client that may be gone.
        self.protocol.close()
        await lifecycle.run_callbacks(self._on_close)
        outgoing.flush(_FLUSH_SECONDS)
        lifecycle.end_process(code)

    def _text_lost(self, uri: str) -> None:
        words = text("editor.out_of_step", self.language, file=uris.to_path(uri) or uri)
        self.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(types.MessageType.Warning, words))

    def _on_lost(self, reason: str, code: int) -> None:
        self.leave(self.protocol.phase.exit_code if code == 1 else code, reason)

    async def _after_reply(self) -> None:
        outgoing, rounds = self.protocol.outgoing, int(_REPLY_SECONDS / 0.001)
        # Loading keeps the interpreter busy, which would delay the reply if it were still in the queue.
        while outgoing is not None and outgoing.waiting and (rounds := rounds - 1):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await lifecycle.run_callbacks(self._on_started, seconds=_START_SECONDS)


async def _no_command(name: str, arguments: list[Any]) -> Any:
    raise JsonRpcInvalidParams(f"There is no command {name[:100]!r}")


def _do_nothing() -> None:
    """Do nothing; registered for each command in pygls' list, from which the capabilities are made."""
