"""All configured servers: brought in step with the settings, their tools with the registry, their states for the user.

Nothing is started before it is needed, which is when a run begins or somebody asks. Not here: one server
(`server.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from codeagent_lsp import events
from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.tools.mcp.listing import RemoteTool
from codeagent_lsp.tools.mcp.pinning import Pins
from codeagent_lsp.tools.mcp.server import CLOSE_SECONDS, Server
from codeagent_lsp.tools.mcp.settings import PREFIX, read_servers
from codeagent_lsp.tools.providers import CachedProvider, CompositeProvider, Plug, Tools
from codeagent_lsp.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from codeagent_lsp.tools.mcp.adapter import McpTool
    from codeagent_lsp.tools.mcp.connection import Host
    from codeagent_lsp.tools.mcp.logins import Logins

LOOK_SECONDS = 300.0
"""How old the list of a server may be, when a run begins, that does not say when its tools change."""


class McpServers:
    """`settings` is the setting `mcp.servers` of now; `told` hears once of each server that cannot be used; `disabled`
    names tools that the user switched off; without `logins` nobody can log in.
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
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._pins = pins
        self._folders = folders
        self._environ = environ
        self._told = told
        self._disabled = disabled
        self._logins = logins
        self._servers: dict[str, Server] = {}
        self._asked: dict[str, CachedProvider] = {}
        self._problems: dict[str, McpProblem] = {}
        self._tools: dict[str, McpTool] = {}
        self._plug = Plug(registry, _All(self))
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self) -> None:
        """Start what the settings name and does not run; stop what they do not name any more."""
        if not self._settings() and not self._servers:
            return
        self._in_step()
        for server in self._servers.values():
            server.begin()

    def observe(self, event: events.Event) -> None:
        """A run that may use tools begins."""
        if isinstance(event, events.RunStarted) and event.kind != "runFile":
            self.begin()
            self._later(self._look())

    async def status(self) -> list[dict[str, Any]]:
        """Each server with its state, and entries that cannot be used. Waits for nothing."""
        self.begin()
        await self._refresh()
        broken = [
            {"name": name, "state": "failed", "error": problem, "tools": []} for name, problem in self._problems.items()
        ]
        return [*map(self._row, self._servers.values()), *broken]

    async def reload(self) -> None:
        """Stop everything, read the settings again and start what they name, also what did not start before."""
        await self._stop(list(self._servers))
        self.begin()

    async def close(self) -> None:
        """Stop everything for good, within seconds."""
        await self._stop(list(self._servers))
        if self._tasks:
            _, late = await asyncio.wait(list(self._tasks), timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()

    def tools_of(self, server: Server) -> Tools:
        """Its tools here; the same objects as long as they are the same. The first of a name has it."""
        if server.state in ("failed", "disabled"):
            return ()
        from codeagent_lsp.tools.mcp.adapter import full_name  # late: tools are heavy; who has no server has none

        found: dict[str, McpTool] = {}
        for remote in server.listed:
            name = full_name(server.settings.name, remote.name)
            tool = self._tools.get(name)
            if tool is None or tool.remote != remote or tool.server is not server:
                tool = self._tools[name] = self._adapted(server, remote)
            found.setdefault(name, tool)
        return tuple(found.values())

    @property
    def servers(self) -> tuple[Server, ...]:
        """Those that the settings name, as far as they can be used."""
        return tuple(self._servers.values())

    def _adapted(self, server: Server, remote: RemoteTool) -> McpTool:
        from codeagent_lsp.tools.mcp.adapter import adapted  # late, as above

        settings, pins = server.settings, self._pins
        return adapted(
            server,
            remote,
            changed=partial(pins.changed, settings, remote),
            accept=partial(pins.accept, settings, remote),
        )

    def _in_step(self) -> None:
        wanted, problems = read_servers(self._settings(), self._environ)
        for name, problem in problems.items():
            if str(problem) != str(self._problems.get(name, "")):
                self._fail(name, problem)
        self._clear(set(self._problems) - set(problems))
        self._problems = problems
        named = {item.name: item for item in wanted}
        gone = [name for name, old in self._servers.items() if name not in named or not old.settings.same(named[name])]
        for name in gone:
            self._asked.pop(name, None)
            self._later(self._servers.pop(name).close())
            self._registry.found(f"{PREFIX}{name}")
        for name, item in named.items():
            if name not in self._servers:
                server = self._servers[name] = Server(item, self._pins.listed(item), self._host, self._changed)
                self._asked[name] = CachedProvider(_Of(self, server, anew=True), LOOK_SECONDS)
        if gone or named:
            self._later(self._refresh())

    def _host(self, changed: Callable[[], None], waits: Callable[[bool], None]) -> Host:
        from codeagent_lsp.tools.mcp.connection import Host  # late: it is heavy; a server that starts has loaded it

        return Host(self._folders, self._environ, changed, self._logins, waits)

    def _changed(self, server: Server) -> None:
        """A server started, ended, failed or has other tools."""
        name = server.settings.name
        if self._servers.get(name) is not server:
            return
        if server.state == "ready":
            self._pins.keep(server.settings, server.listed)
            self._clear({name})
        elif server.state == "failed" and server.problem is not None:
            self._fail(name, server.problem)
        self._later(self._refresh())

    def _fail(self, name: str, problem: McpProblem) -> None:
        self._registry.miss(f"{PREFIX}{name}", problem)
        self._told(problem)

    def _clear(self, names: set[str]) -> None:
        for name in names:
            self._registry.found(f"{PREFIX}{name}")

    async def _stop(self, names: list[str]) -> None:
        servers = [self._servers.pop(name) for name in names]
        self._asked.clear()
        await asyncio.gather(*(server.close() for server in servers))
        self._clear(set(names))
        await self._refresh()

    async def _look(self) -> None:
        """Ask the servers for what they have not said; one that fails keeps what it had."""
        await CompositeProvider("mcp", tuple(self._asked.values())).tools()

    async def _refresh(self) -> None:
        """Bring the registry in step."""
        plugged = await self._plug.refresh()
        for name in set(plugged.added) & set(self._disabled()):
            self._registry.disable(name, "switched off in the settings")

    def _row(self, server: Server) -> dict[str, Any]:
        settings = server.settings
        row: dict[str, Any] = {
            "name": settings.name,
            "state": server.state,
            "transport": settings.transport,
            "where": settings.where,
            "version": server.version,
            "tools": [tool.traits.name for tool in self.tools_of(server)],
            "changed": [tool.traits.name for tool in self.tools_of(server) if tool.caution],
        }
        return {**row, "error": server.problem} if server.problem else row

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _All:
    """The tools of all servers, as a provider."""

    name = "mcp"

    def __init__(self, servers: McpServers) -> None:
        self._servers = servers

    async def tools(self) -> Tools:
        """What there is now."""
        parts = [_Of(self._servers, server) for server in self._servers.servers]
        return await CompositeProvider(self.name, parts).tools()


class _Of:
    """The tools of one server, as a provider; `anew` asks the server, where else what is known is enough."""

    def __init__(self, servers: McpServers, server: Server, *, anew: bool = False) -> None:
        self._anew = anew
        self.name = f"{PREFIX}{server.settings.name}"
        self._servers = servers
        self._server = server

    async def tools(self) -> Tools:
        """What there is now; nothing from a server that does not work."""
        if self._anew:
            await self._server.ask_anew()
        return self._servers.tools_of(self._server)
