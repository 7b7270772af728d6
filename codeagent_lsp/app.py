"""The composition root: builds a server with everything in it. Nothing here or below is global."""

from __future__ import annotations

import asyncio
from importlib import import_module

from codeagent_lsp.server.features import register
from codeagent_lsp.server.front import Front
from codeagent_lsp.server.loader import Loaded
from codeagent_lsp.server.server import CodeAgentServer


def create_server() -> CodeAgentServer:
    """A language server, ready to serve; its heavy parts load after `initialize` has been answered."""
    server = CodeAgentServer()
    register(server, load)
    return server


async def load(front: Front) -> Loaded:
    """Build the heavy side of a server. The import runs in a thread, so that the loop goes on serving."""
    for name in ("backend", "commands.commands"):
        await asyncio.to_thread(import_module, f"codeagent_lsp.server.{name}")
    from codeagent_lsp.server.backend import Backend  # late: the start-up path must stay light
    from codeagent_lsp.server.commands.commands import Commands  # late, as above

    backend = Backend(front)
    return Loaded(backend, Commands(backend))
