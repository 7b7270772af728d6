"""The language server: pygls' registry of features on our own transport, dispatcher, documents and shutdown.

Features live in files of their own and are added by `register(server)` functions. This module and what it imports is
the start-up path, so it stays light: whatever takes long to load belongs into `on_started`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Iterable
from typing import Any, NoReturn

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.workspace import Workspace

from codeagent_lsp import __version__
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.server.documents import Documents
from codeagent_lsp.server.wire import lifecycle
from codeagent_lsp.server.wire.builtin_methods import CodeAgentProtocol
from codeagent_lsp.server.wire.channel import Channel, Reader, socket_channel
from codeagent_lsp.server.wire.outgoing import Outgoing
from codeagent_lsp.server.wire.params import make_converter
from codeagent_lsp.server.wire.served import ExecuteCommand, Served
from codeagent_lsp.workspace.files import uris

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
    """One server for one client. `documents` holds the open documents, `language` the language of messages."""

    protocol: CodeAgentProtocol

    def __init__(self) -> None:
        self.documents = Documents(folders=lambda: folders_of(self.workspace))
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
        """Announce `names` as commands of this server, which `execute(name, arguments)` runs."""
        for name in names:
            self.command(name)(_listed)
        self.execute_command = execute

    def on_started(self, callback: lifecycle.Callback) -> None:
        """Call `callback` once the reply to `initialize` is sent: the place for what takes long to load."""
        self._on_started.append(callback)

    def on_close(self, callback: lifecycle.Callback) -> None:
        """Call `callback` before the process ends; all callbacks together have 1.5 s."""
        self._on_close.append(callback)

    async def request(self, method: str, params: Any, timeout: float) -> Any:  # noqa: ASYNC109
        """Send a request to the client and return its result, converted to LSP types. EditorError when it answers with
        an error or not within `timeout` seconds.
        """
        return await self.protocol.request(method, params, timeout)

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification to the client, from any thread."""
        self.protocol.notify(method, params)

    def leave(self, code: int, reason: str) -> None:
        """End the process soon, from any thread; the first call counts."""
        self.departure.begin(code, reason)

    def serve_stdio(self) -> NoReturn:
        """Serve the client on the standard streams; ends the process."""
        self._serve(lifecycle.take_stdio())

    def serve_tcp(self, host: str = "127.0.0.1", port: int = 0) -> NoReturn:
        """Serve the first client that connects, refuse all others; ends the process."""
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
        """Start what follows a successful `initialize`; called by the protocol before the reply is sent."""
        self._tasks.start(self._after_reply())
        self._tasks.start(lifecycle.watch_parent(process_id, self.leave, lambda: self.protocol.phase.exit_code))

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log pygls' own failures by their type; nothing is shown to the user."""
        _log.error("The protocol failed: %s.", type(error).__name__)

    def _serve(self, channel: Channel) -> NoReturn:
        logging.getLogger("pygls").setLevel(logging.ERROR)  # below that it logs what users type
        lifecycle.leave_on_signals(self.leave)
        asyncio.run(self._main(channel))
        lifecycle.end_process(self.departure.code or 0)

    async def _main(self, channel: Channel) -> NoReturn:
        loop = asyncio.get_running_loop()
        self.departure.bind(loop)
        outgoing = Outgoing(channel.write, self._lost)
        outgoing.start()
        self.protocol.outgoing = outgoing
        Reader(channel, self.protocol.receive, self._lost).start(loop)
        code = await self.departure.wait()
        self.protocol.close()
        await lifecycle.run_callbacks(self._on_close)
        outgoing.flush(_FLUSH_SECONDS)
        lifecycle.end_process(code)

    def _lost(self, reason: str, code: int) -> None:
        self.leave(self.protocol.phase.exit_code if code == 1 else code, reason)

    async def _after_reply(self) -> None:
        outgoing, rounds = self.protocol.outgoing, int(_REPLY_SECONDS / 0.001)
        while outgoing is not None and outgoing.waiting and (rounds := rounds - 1):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        await lifecycle.run_callbacks(self._on_started, seconds=_START_SECONDS)


async def _no_command(name: str, arguments: list[Any]) -> Any:
    raise JsonRpcInvalidParams(f"There is no command {name[:100]!r}")


def _listed() -> None:
    """Do nothing; registered for each command in pygls' list, from which the capabilities are made."""
