"""The tools of MCP servers as the agent's, and as providers for the registry. Not here: one tool (`adapter.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from codeagent_lsp.tools.mcp.listing import RemoteTool
from codeagent_lsp.tools.mcp.pinning import Pins
from codeagent_lsp.tools.mcp.server import Server
from codeagent_lsp.tools.providers import CompositeProvider, Tools

if TYPE_CHECKING:
    from codeagent_lsp.tools.mcp.adapter import McpTool


class AdaptedTools:
    """The agent's tools for those of all servers; an unchanged tool stays the same object."""

    def __init__(self, pins: Pins) -> None:
        self._pins = pins
        self._tools: dict[str, McpTool] = {}

    def of(self, server: Server) -> tuple[McpTool, ...]:
        """Return the tools of a server; none if it is off or failed. The first tool of a name wins."""
        if server.state in ("failed", "disabled"):
            return ()
        from codeagent_lsp.tools.mcp.adapter import full_name  # late: tools are heavy; who has no server has none

        found: dict[str, McpTool] = {}
        for remote in server.listed:
            name = full_name(server.settings.group, remote.name)
            tool = self._tools.get(name)
            if tool is None or tool.remote != remote or tool.server is not server:
                tool = self._tools[name] = self._adapted(server, remote)
            found.setdefault(name, tool)
        return tuple(found.values())

    def _adapted(self, server: Server, remote: RemoteTool) -> McpTool:
        from codeagent_lsp.tools.mcp.adapter import adapted  # late, as above

        settings, pins = server.settings, self._pins
        return adapted(
            server,
            remote,
            changed=partial(pins.changed, settings, remote),
            before=partial(pins.approved, settings, remote),
            accept=partial(pins.accept, settings, remote),
        )


class ServerProvider:
    """The tools of one server, as a provider; with `anew` they are listed again, else the known ones are used."""

    def __init__(self, adapted: AdaptedTools, server: Server, *, anew: bool = False) -> None:
        self.name = server.settings.group
        self._adapted = adapted
        self._server = server
        self._anew = anew

    async def tools(self) -> Tools:
        """Return the current tools; none for a server that is off or failed."""
        if self._anew:
            await self._server.ask_anew()
        return self._adapted.of(self._server)


class AllServersProvider:
    """The tools of all servers, as a provider; `servers` returns those that there are now."""

    name = "mcp"

    def __init__(self, adapted: AdaptedTools, servers: Callable[[], Iterable[Server]]) -> None:
        self._adapted = adapted
        self._servers = servers

    async def tools(self) -> Tools:
        """Return the current tools."""
        parts = [ServerProvider(self._adapted, server) for server in self._servers()]
        return await CompositeProvider(self.name, parts).tools()
