"""Addresses that the user opens outside of the editor, such as the one of a web terminal.

Where the client can open one, it is asked to; else the user is told the address. Not here: documents
(`virtual_documents.py`), and whether the user wants it (whoever shows one asks before).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.errors import EditorError
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp.server.clients import ClientPolicy
    from codeagent_lsp.server.server import CodeAgentServer

SHOW_SECONDS = 10.0


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
        if self._policy().shows_documents:
            params = types.ShowDocumentParams(uri=url, external=True)
            try:
                result = await self._server.request(types.WINDOW_SHOW_DOCUMENT, params, SHOW_SECONDS)
                if result is not None and result.success:
                    return True
            except EditorError:
                pass  # said below
        message = text("screen.at", self._language(), url=url)
        self._server.notify(
            types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(type=types.MessageType.Info, message=message)
        )
        return False
