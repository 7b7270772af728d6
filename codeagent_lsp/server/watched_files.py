"""Registers for the client's notifications of changed files. Not here: what the index does (`index/host.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.errors import EditorError

if TYPE_CHECKING:
    from codeagent_lsp.server.server import CodeAgentServer

REGISTER_SECONDS = 10.0


async def watch(server: CodeAgentServer) -> bool:
    """Register for `workspace/didChangeWatchedFiles`; return whether the client agreed."""
    options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(glob_pattern="**/*")])
    registration = types.Registration("codeagent-index", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
    try:
        params = types.RegistrationParams([registration])
        await server.request(types.CLIENT_REGISTER_CAPABILITY, params, REGISTER_SECONDS)
    except EditorError:
        return False
    return True
