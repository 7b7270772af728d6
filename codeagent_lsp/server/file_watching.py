"""Has the client report changed files (`workspace/didChangeWatchedFiles`), once for all who follow them.

Not here: who follows them (`index_host.py`, `foreign_changes.py`).
"""

from __future__ import annotations

import asyncio

from lsprotocol import types

from codeagent_lsp.errors import EditorError
from codeagent_lsp.server.client import Client

REGISTER_SECONDS = 10.0


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
