"""Addresses that the user opens outside of the editor, such as the one of a web terminal.

Where the client can open one, it is asked to; else the user is told the address. Not here: documents
(`virtual_documents.py`), and whether the user wants it (whoever shows one asks before).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.server.showing import shown, tell
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp.server.clients import ClientPolicy
    from codeagent_lsp.server.server import CodeAgentServer


class External:
    """Opens addresses by `window/showDocument`."""

    def __init__(
        self, server: CodeAgentServer, policy: Callable[[], ClientPolicy], language: Callable[[], str]
    ) -> None:
        self._server = server
        self._policy = policy
        self._language = language

    async def show(self, url: str) -> bool:
        """Open it; True when the client did, False when the user was told it."""
        if await shown(self._server, self._policy(), types.ShowDocumentParams(uri=url, external=True)):
            return True
        tell(self._server, text("screen.at", self._language(), url=url))
        return False
