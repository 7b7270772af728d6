"""Addresses that the user opens outside of the editor, such as the one of a web terminal.

Where the client can open one, it is asked to; else the user is told the address. Not here: documents
(`virtual_documents.py`), and whether the user wants it (whoever shows one asks before).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp.server.client import Client


class External:
    """Opens addresses by `window/showDocument`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def show(self, url: str) -> bool:
        """Open it; True when the client did, False when the user was told it."""
        if await self._client.show(url, external=True):
            return True
        self._client.tell(text("screen.at", self._client.language, url=url))
        return False
