"""Opens addresses outside of the editor, such as that of a web terminal.

The client opens the address if it can; else the user is shown it. Not here: documents (`virtual_documents.py`), and
whether the user agrees (callers ask before).
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
        """Open an address. Return True when the client did, False when the address was shown to the user instead."""
        if await self._client.show(url, external=True):
            return True
        self._client.tell(text("screen.at", self._client.language, url=url))
        return False
