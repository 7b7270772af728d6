"""The composition root: builds a server with all its parts. There is no global state here or below."""

from __future__ import annotations

import asyncio
from importlib import import_module

from codeagent_lsp.server.features import Loaded, register
from codeagent_lsp.server.front import Front
from codeagent_lsp.server.server import CodeAgentServer


def create_server() -> CodeAgentServer:
    """Return a language server that is ready to serve, not yet connected to a client; its heavy parts load after
    `initialize` has been answered.
    """
    server = CodeAgentServer()
    register(server, load)
    return server


async def load(front: Front) -> Loaded:
    """Import and build the heavy part of a server for its light part, `front`, once, after `initialize` was answered.
    The import runs in a thread, so that the event loop is not blocked; ImportError as from any import.
    """
    for name in ("backend", "commands.commands", "inline"):
        await asyncio.to_thread(import_module, f"codeagent_lsp.server.{name}")
    from codeagent_lsp.server.backend import Backend  # late: the start-up path must stay light
    from codeagent_lsp.server.commands.commands import Commands  # late, as above
    from codeagent_lsp.server.inline import Inline  # late, as above

    backend = Backend(front)
    inline = Inline(backend)
    return Loaded(backend, Commands(backend, inline), inline)
