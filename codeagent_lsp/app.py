"""The composition root: builds a server with everything in it. Nothing here or below is global."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from codeagent_lsp.server.features import Front, register
from codeagent_lsp.server.server import CodeAgentServer

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend


def create_server() -> CodeAgentServer:
    """A language server, ready to serve; its heavy parts load after `initialize` has been answered."""
    server = CodeAgentServer()
    register(server, load_backend)
    return server


async def load_backend(front: Front) -> Backend:
    """Build what stands behind the wire. The import runs in a thread, so that the loop goes on serving."""
    await asyncio.to_thread(import_module, "codeagent_lsp.server.backend")
    from codeagent_lsp.server.backend import Backend  # late: the start-up path must stay light

    return Backend(front)
