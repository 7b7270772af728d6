"""The connected LSP client: sends it messages, holds its capabilities and its user's language, and has it report
changed files (`workspace/didChangeWatchedFiles`), once for all who follow them.

Not here: how its capabilities are read (`clients.py`), what is shown to it, who follows the files (`index_host.py`,
`foreign_changes.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.errors import EditorError
from codeagent_lsp.protocol import SYNC_METHOD
from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.workspace.text.visible import in_box

if TYPE_CHECKING:
    from codeagent_lsp.server.server import CodeAgentServer

SHOW_SECONDS = 10.0
SYNC_SECONDS = 10.0
REGISTER_SECONDS = 10.0


class Client:
    """One client. `policy` is what it supports: nothing until `initialize` came; `language` returns the current
    language.
    """

    def __init__(
        self, server: CodeAgentServer, language: Callable[[], str] = lambda: "en", policy: ClientPolicy | None = None
    ) -> None:
        self.server = server
        self.policy = policy or ClientPolicy()
        self._language = language

    @property
    def language(self) -> str:
        """Return the language of the user."""
        return self._language()

    def tell(self, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show a sentence by `window/showMessage`."""
        self.server.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(type=kind, message=in_box(message)))

    async def show(self, uri: str, *, external: bool | None = None, take_focus: bool | None = None) -> bool:
        """Open a document or an address by `window/showDocument`. Return False where the client cannot, did not, or did
        not answer within 10 seconds.
        """
        if not self.policy.shows_documents:
            return False
        params = types.ShowDocumentParams(uri=uri, external=external, take_focus=take_focus)
        try:
            result = await self.server.request(types.WINDOW_SHOW_DOCUMENT, params, SHOW_SECONDS)
        except EditorError:
            return False
        return bool(result is not None and result.success)

    async def sync(self, uris: Iterable[str]) -> None:
        """Have a client that has to be asked tell the present texts of these files, and of all that it has open, by
        `codeagent/sync`. A client that does not answer within 10 seconds changes nothing.
        """
        if not self.policy.syncs:
            return
        with suppress(EditorError):
            await self.server.request(SYNC_METHOD, {"uris": list(uris)}, SYNC_SECONDS)


class FileWatching:
    """The registration with one client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asked: asyncio.Task[bool] | None = None

    async def begin(self) -> bool:
        """Ask the client, unless it was asked before; return whether it reports changed files."""
        if not self._client.policy.watches_files:
            return False
        if self._asked is None:
            self._asked = asyncio.ensure_future(self._ask())
        return await asyncio.shield(self._asked)

    def close(self) -> None:
        """Wait for no answer any longer."""
        if self._asked is not None:
            self._asked.cancel()

    async def _ask(self) -> bool:
        options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(glob_pattern="**/*")])
        registration = types.Registration("codeagent-index", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        try:
            params = types.RegistrationParams([registration])
            await self._client.server.request(types.CLIENT_REGISTER_CAPABILITY, params, REGISTER_SECONDS)
        except EditorError:
            return False
        return True
