"""Opens the transport that a server's settings name. Not here: the transports themselves (`stdio.py`, `http.py` …)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from codeagent_lsp.tools.mcp.health import Health
from codeagent_lsp.tools.mcp.host import Host
from codeagent_lsp.tools.mcp.http import http_transport, sse_transport
from codeagent_lsp.tools.mcp.login import Waiting, login_for
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.mcp.stdio import launch_of, stdio_transport
from codeagent_lsp.tools.mcp.websocket import websocket_transport


def transport_for(
    settings: ServerSettings, host: Host, health: Health, waiting: Waiting
) -> AbstractAsyncContextManager[Any]:
    """Return the context that opens a server's transport and yields its message streams. What goes wrong is recorded
    in `health`; if a login is needed, the user is waited for within the context `waiting`.
    """
    if settings.transport == "stdio":
        folder = next(iter(host.folders()), "/")
        return stdio_transport(launch_of(settings, folder, host.environ), health)
    if settings.transport == "websocket":
        return websocket_transport(settings, health, host.network)
    return _over_http(settings, host, health, waiting)


@asynccontextmanager
async def _over_http(
    settings: ServerSettings, host: Host, health: Health, waiting: Waiting
) -> AsyncGenerator[Any, None]:
    """Open an HTTP transport, with a login if the settings have no authorization for the server."""
    auth = None
    async with AsyncExitStack() as stack:
        if host.logins is not None and not settings.authorized:
            auth = await stack.enter_async_context(login_for(settings, host.logins, health, waiting))
        opened = http_transport if settings.transport == "http" else sse_transport
        yield await stack.enter_async_context(opened(settings, health, auth, host.network))
