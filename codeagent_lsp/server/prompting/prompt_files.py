"""The files behind prompt documents, in the state folder. Not here: what they are for (`prompting.py`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from codeagent_lsp.errors import UserError
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.files import uris

if TYPE_CHECKING:
    from codeagent_lsp.server.client import Client

INNER = ("documents", "prompt")
MOST_KEPT = 50
KEPT_SECONDS = 30 * 24 * 3600


class PromptFiles:
    """The files of one workspace; `state` returns its state folder."""

    def __init__(self, client: Client, state: Callable[[], Path]) -> None:
        self._client = client
        self._state = state

    def write(self, name: str, content: str) -> str:
        """Write a new file and return its URI; of more than fifty those go that nobody has saved for a month. UserError
        if it cannot be written.
        """
        path = self._folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_text(content, "utf-8", "replace")
            self._forget_old()
        except OSError as error:
            raise UserError("prompt.unwritten", reason=error.strerror or str(error)) from error
        return uris.from_path(str(path))

    def _forget_old(self) -> None:
        saved = sorted((path.stat().st_mtime, path) for path in self._folder.glob("*.md"))
        for when, path in saved[:-MOST_KEPT]:
            if time.time() - when > KEPT_SECONDS:
                path.unlink(missing_ok=True)

    async def open(self, uri: str) -> None:
        """Open a file for editing; where the client cannot, show its path."""
        if not await self._client.show(uri, take_focus=True):
            self._client.tell(text("document.at", self._client.language, place=uris.to_path(uri) or uri))

    def has(self, uri: str) -> bool:
        """Return whether a URI is of such a file."""
        # Real paths on both sides, as the state folder may be behind a link.
        path = uris.real_path(uri)
        return path is not None and path.endswith(".md") and Path(path).parent == self._folder.resolve()

    def saved(self, uri: str) -> str:
        """Return the text of such a file on disk; '' if it cannot be read."""
        try:
            return Path(uris.to_path(uri) or "").read_text("utf-8", "replace")
        except OSError:
            return ""

    @property
    def _folder(self) -> Path:
        return self._state().joinpath(*INNER)
