"""The texts that one language server has open, with the version of each, and files that came or went beside them.

Every text that a run has changed is open in the server, so that its answers do not depend on how fast it notices files.
Not here: which texts (`session_servers.py`), what the server says of them (`text_diagnostics.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Literal

from codeagent_lsp.language_servers.known import KnownServer
from codeagent_lsp.language_servers.server_connection import ServerConnection, ServerFailed, ServerLate
from codeagent_lsp.shadow.private_copy import FileChangeKind
from codeagent_lsp.workspace.files import uris

_CHANGES: Mapping[FileChangeKind, Literal[1, 2, 3]] = {"created": 1, "changed": 2, "deleted": 3}


class OpenTexts:
    """The open texts of one server: `texts` and `versions` by absolute path."""

    def __init__(self, known: KnownServer, connection: ServerConnection) -> None:
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self._known = known
        self._connection = connection
        self._unread = False  # whether something was sent that the server may not have read yet
        self._pause = 0.0  # seconds that the server rests before it has noticed everything

    def show(self, texts: Mapping[str, str]) -> None:
        """Make exactly these texts the open ones, of too many the last ones. ServerGone if the server has ended."""
        texts = dict(list(texts.items())[-self._known.max_open :])
        for path in [path for path in self.texts if path not in texts]:
            del self.texts[path]
            self._connection.notify("textDocument/didClose", {"textDocument": {"uri": uris.from_path(path)}})
        for path, text in texts.items():
            if self.texts.get(path) != text:
                self.change(path, text)

    def change(self, path: str, text: str) -> None:
        """Open a text, or change one that is open. ServerGone if the server has ended."""
        uri, version = uris.from_path(path), self.versions.get(path, 0) + 1
        self.versions[path] = version
        if path in self.texts:
            params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
            self._connection.notify("textDocument/didChange", params)
        else:
            language = self._known.language_of(path) or "plaintext"
            item = {"uri": uri, "languageId": language, "version": version, "text": text}
            self._connection.notify("textDocument/didOpen", {"textDocument": item})
        self.texts[path] = text
        self._unread = True
        self._pause = max(self._pause, self._known.pause_texts)

    def note_files(self, changed: Mapping[str, FileChangeKind]) -> None:
        """Tell the server what happened to files that it has not open, by absolute path."""
        # The text of an open one comes from us; its file on the disk does not count.
        told = {path: kind for path, kind in changed.items() if kind != "changed" or path not in self.texts}
        changes = [{"uri": uris.from_path(path), "type": _CHANGES[kind]} for path, kind in told.items()]
        if changes:
            self._connection.notify("workspace/didChangeWatchedFiles", {"changes": changes})
            self._unread = True
            self._pause = max(self._pause, self._known.pause_files)

    async def read(self, deadline: float) -> bool:
        """Wait until the server has read everything that changed; return whether it has by `deadline`, a time of
        `time.monotonic`. ServerGone if it has ended.
        """
        if self._unread:
            try:
                # No server knows this request: it refuses it once it has read all that came before.
                await self._connection.request("$/codeagent/read", None, deadline - time.monotonic())
            except ServerLate:
                return False
            except ServerFailed:  # a refusal, too, means that everything before has been read
                if self._connection.lost.is_set():
                    raise
            self._unread = False
        return True

    async def noticed(self, deadline: float) -> None:
        """Wait until the server has noticed what changed: some look at other files than the changed one only after a
        pause of their own, and until then answer from what they knew. ServerGone if it has ended.

        The pause begins when everything was read, and a timer that is over runs before the next message is read.
        """
        if not self._pause:
            return
        await self.read(deadline)
        await asyncio.sleep(min(self._pause, max(deadline - time.monotonic(), 0)))
        self._pause = 0.0
