"""Having the client show something: a document or an address by `window/showDocument`, or a sentence.

Not here: what is shown, and what is done where the client cannot (`virtual_documents.py`, `external.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.errors import EditorError

if TYPE_CHECKING:
    from codeagent_lsp.server.clients import ClientPolicy
    from codeagent_lsp.server.server import CodeAgentServer

SHOW_SECONDS = 10.0


async def shown(server: CodeAgentServer, policy: ClientPolicy, params: types.ShowDocumentParams) -> bool:
    """Ask the client to open it; False where it cannot, did not, or did not answer in time."""
    if not policy.shows_documents:
        return False
    try:
        result = await server.request(types.WINDOW_SHOW_DOCUMENT, params, SHOW_SECONDS)
    except EditorError:
        return False
    return bool(result is not None and result.success)


def tell(server: CodeAgentServer, message: str, kind: types.MessageType = types.MessageType.Info) -> None:
    """Show a sentence."""
    server.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(type=kind, message=message))
