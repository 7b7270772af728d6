"""All configured MCP servers: kept in step with the settings, their tools with the registry, their states for the user.

A server is started when a run begins or its status is requested. Not here: one server, and its tools as the
agent's (`server.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codeagent_lsp import events
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.call_forms import MCP_PREFIX
from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.tools.mcp.host import Host, Logins
from codeagent_lsp.tools.mcp.listing import Pins
from codeagent_lsp.tools.mcp.server import CLOSE_SECONDS, AdaptedTools, AllServersProvider, Server, ServerProvider
from codeagent_lsp.tools.mcp.settings import read_servers
from codeagent_lsp.tools.providers import CachedProvider, CompositeProvider, Plug
from codeagent_lsp.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from codeagent_lsp.tools.mcp.adapter import McpTool

LOOK_SECONDS = 300.0
"""Most age in seconds, at the start of a run, of the tool list of a server that does not announce changes."""


class McpServers:
    """The MCP servers of one workspace. `settings` returns the current `mcp.servers`; `told` is called once with each
    server's problem; `disabled` returns the tools that the user switched off; without `logins` no login is possible.
    """

    def __init__(
        self,
        settings: Callable[[], Mapping[str, Any]],
        registry: ToolRegistry,
        pins: Pins,
        folders: Callable[[], Sequence[str]],
        environ: Mapping[str, str],
        told: Callable[[McpProblem], None],
        disabled: Callable[[], Sequence[str]] = tuple,
        logins: Logins | None = None,
        network: Callable[[], NetworkSettings] = NetworkSettings,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._pins = pins
        self._folders = folders
        self._environ = environ
        self._told = told
        self._logins = logins
        self._network = network
        self._servers: dict[str, Server] = {}
        self._asked: dict[str, CachedProvider] = {}
        self._problems: dict[str, McpProblem] = {}
        self._adapted = AdaptedTools(pins)
        self._plug = Plug(registry, AllServersProvider(self._adapted, lambda: self.servers), disabled=disabled)
        self._tasks = BackgroundTasks()

    def begin(self) -> None:
        """Start the servers of the settings that do not run, in the background, and stop those that are no longer in
        the settings. Returns at once; what fails shows in the server's state.
        """
        # Without servers, nothing of this package is loaded.
        if not self._settings() and not self._servers:
            return
        self._in_step()
        for server in self._servers.values():
            server.begin()

    def observe(self, event: events.Event) -> None:
        """Start the servers, as `begin` does, when the event says that a run begins that may use tools; other events do
        nothing. Returns at once.
        """
        if isinstance(event, events.RunStarted) and event.kind not in events.WITHOUT_TOOLS:
            self.begin()
            self._tasks.start(self._look())

    async def status(self) -> list[dict[str, Any]]:
        """Start the servers and return a row for each (`name`, `state`, `transport`, `where`, `version`, `tools`,
        `changed`, perhaps `error`), also for invalid entries of the settings; does not wait for a start.
        """
        self.begin()
        await self._plug.refresh()
        broken = [
            {"name": name, "state": "failed", "error": problem, "tools": []} for name, problem in self._problems.items()
        ]
        return [*(_row(server, self._adapted.of(server)) for server in self.servers), *broken]

    async def reload(self) -> None:
        """Stop all servers, read the settings again and start them, also those that failed before. Does not wait for
        the starts.
        """
        await self._stop(list(self._servers))
        self.begin()

    async def close(self) -> None:
        """Stop all servers for good; takes at most a few seconds, whatever they do."""
        await self._stop(list(self._servers))
        await self._tasks.close(CLOSE_SECONDS)

    @property
    def servers(self) -> tuple[Server, ...]:
        """The servers in the settings with valid entries, disabled ones included."""
        return tuple(self._servers.values())

    def _in_step(self) -> None:
        wanted, problems = read_servers(self._settings(), self._environ)
        for name, problem in problems.items():
            # Told once: the settings are read again with every run.
            if str(problem) != str(self._problems.get(name, "")):
                self._fail(name, problem)
        self._clear(set(self._problems) - set(problems))
        self._problems = problems
        named = {item.name: item for item in wanted}
        gone = [name for name, old in self._servers.items() if name not in named or not old.settings.same(named[name])]
        for name in gone:
            self._asked.pop(name, None)
            self._tasks.start(self._servers.pop(name).close())
            self._registry.found(f"{MCP_PREFIX}{name}")
        for name, item in named.items():
            if name not in self._servers:
                server = self._servers[name] = Server(item, self._pins.listed(item), self._host, self._on_change)
                self._asked[name] = CachedProvider(ServerProvider(self._adapted, server, anew=True), LOOK_SECONDS)
        if gone or named:
            self._tasks.start(self._plug.refresh())

    def _host(self, changed: Callable[[], None], waits: Callable[[bool], None]) -> Host:
        return Host(self._folders, self._environ, changed, self._logins, waits, self._network())

    def _on_change(self, server: Server) -> None:
        """Handle a change of state or tools of a server."""
        name = server.settings.name
        # A server that was replaced may still be ending; its states are no news of the new one.
        if self._servers.get(name) is not server:
            return
        if server.state == "ready":
            self._pins.keep(server.settings, server.listed)
            self._clear({name})
        elif server.state == "failed" and server.problem is not None:
            self._fail(name, server.problem)
        self._tasks.start(self._plug.refresh())

    def _fail(self, name: str, problem: McpProblem) -> None:
        self._registry.miss(f"{MCP_PREFIX}{name}", problem)
        self._told(problem)

    def _clear(self, names: set[str]) -> None:
        for name in names:
            self._registry.found(f"{MCP_PREFIX}{name}")

    async def _stop(self, names: list[str]) -> None:
        servers = [self._servers.pop(name) for name in names]
        self._asked.clear()
        await asyncio.gather(*(server.close() for server in servers))
        self._clear(set(names))
        await self._plug.refresh()

    async def _look(self) -> None:
        """List the tools of servers that do not announce changes; one that fails keeps its list."""
        await CompositeProvider("mcp", tuple(self._asked.values())).tools()


def _row(server: Server, tools: Sequence[McpTool]) -> dict[str, Any]:
    """Return the state of a server for the user."""
    settings = server.settings
    row: dict[str, Any] = {
        "name": settings.name,
        "state": server.state,
        "transport": settings.transport,
        "where": settings.where,
        "version": server.version,
        "tools": [tool.traits.name for tool in tools],
        "changed": [tool.traits.name for tool in tools if tool.caution],
    }
    return {**row, "error": server.problem} if server.problem else row
