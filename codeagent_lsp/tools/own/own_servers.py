"""The workers of all own tools: each source asked about before any of its code runs, its tools in the registry.

Sources are looked for when a run begins, in the background; a run does not wait for the user's answer. Not here: which
sources there are (`tool_sources.py`), one worker (`worker_connection.py`), its tools as the agent's (`tools/mcp`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from codeagent_lsp import events
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.tools.mcp.host import Host
from codeagent_lsp.tools.mcp.listing import Pins
from codeagent_lsp.tools.mcp.server import CLOSE_SECONDS, AdaptedTools, Server
from codeagent_lsp.tools.own.tool_sources import ToolSource, find_sources
from codeagent_lsp.tools.providers import Plug, Tools
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.skills.trust import Trust

_MODULE = "codeagent_lsp.tools.own.worker_connection"


class OwnToolsUser(Protocol):
    """Port: asks the user for trust in tools of their own, and shows problems."""

    async def trusts(self, source: ToolSource, *, changed: bool) -> bool | None:
        """Ask the user whether this source may run, one that was `changed` since they trusted it or a new one, and
        return: True from now on, False not in this session, None without an answer.
        """

    def told(self, problem: McpProblem) -> None:
        """Show a problem of a source."""


@dataclass(frozen=True, slots=True)
class OwnToolsPlace:
    """The places of own tools and how they run: the user's folder, the workspace's folders, the environment, the time
    limit of a call in seconds, and the names of tools that are switched off.
    """

    own: Path
    folders: Callable[[], Sequence[str]]
    environ: Mapping[str, str]
    seconds: Callable[[], float]
    disabled: Callable[[], Sequence[str]] = tuple


class OwnTools:
    """The own tools of one workspace. `trust` has the user's approvals of files in the user's folder and of packages,
    `project_trust` those of the workspace's files.
    """

    name = "own"

    def __init__(
        self,
        place: OwnToolsPlace,
        registry: ToolRegistry,
        pins: Pins,
        trust: Trust,
        project_trust: Trust,
        user: OwnToolsUser,
    ) -> None:
        self.trust = trust
        self._project_trust = project_trust
        self._place = place
        self._pins = pins
        self._user = user
        self._servers: dict[str, tuple[Server, AdaptedTools]] = {}
        self._answered: set[str] = set()  # questions that are open, or answered with no
        self._said: set[str] = set()
        self._plug = Plug(registry, self, disabled=place.disabled)
        self._tasks = BackgroundTasks()

    def observe(self, event: events.Event) -> None:
        """Look for tools, as `look` does but in the background, when the event says that a run begins that may use
        them; other events do nothing. Returns at once.
        """
        if isinstance(event, events.RunStarted) and event.kind not in events.WITHOUT_TOOLS:
            self._tasks.start(self.look())

    async def look(self) -> None:
        """Find the present sources: start those that are trusted, stop those that are gone, and ask about the others in
        the background, once. Waits for the disk, not for the workers.
        """
        sources, problems = await asyncio.to_thread(find_sources, self._place.own, self._place.folders())
        for problem in problems:
            self._tell(problem)
        trusted = [source for source in sources if self._trust_of(source).covers(source.approval)]
        self._keep_only({source.name: source for source in trusted})
        for source in sources:
            if source in trusted:
                self._start(source)
            elif source.approval not in self._answered:
                self._answered.add(source.approval)
                self._tasks.start(self._ask(source))
        await self._plug.refresh()

    async def tools(self) -> Tools:
        """Return the tools of all sources that run; of two with the same name the first, and the user is shown the
        problem. () while none runs; nothing is waited for.
        """
        found: dict[str, tuple[str, Tools]] = {}
        for server, adapted in self._servers.values():
            for tool in adapted.of(server):
                holder, _ = found.setdefault(tool.traits.name, (server.settings.name, (tool,)))
                if holder != server.settings.name:
                    self._tell(McpProblem("own.twice", name=server.settings.name, tool=tool.traits.name, other=holder))
        return tuple(tool for _, tools in found.values() for tool in tools)

    async def settled(self) -> None:
        """Wait until each worker that is starting has started or failed, and put their tools into the registry."""
        for server, _ in tuple(self._servers.values()):
            await server.settled()
        await self._plug.refresh()

    async def close(self) -> None:
        """Stop all workers and withdraw their tools for good; takes at most a few seconds."""
        self._tasks.cancel()
        servers = [server for server, _ in self._servers.values()]
        self._servers.clear()
        await asyncio.gather(*(server.close() for server in servers))
        await self._tasks.close(CLOSE_SECONDS)
        self._plug.unplug()

    async def _ask(self, source: ToolSource) -> None:
        trust = self._trust_of(source)
        changed = any(item.name == source.name for item in trust.all())
        answer = await self._user.trusts(source, changed=changed)
        # None is no answer: the next run asks again.
        if answer is not False:
            self._answered.discard(source.approval)
        if answer:
            trust.add(source.approval, source.name)
            self._start(source)
            await self._plug.refresh()

    def _trust_of(self, source: ToolSource) -> Trust:
        return self._project_trust if source.place == "project" else self.trust

    def _keep_only(self, sources: Mapping[str, ToolSource]) -> None:
        """Stop the workers of other sources, of changed ones, and of those that failed, which get another chance."""
        for name, (server, _) in tuple(self._servers.items()):
            source = sources.get(name)
            same = source is not None and source.settings(self._place.seconds()).same(server.settings)
            if not same or server.state == "failed":
                del self._servers[name]
                self._tasks.start(server.close())

    def _start(self, source: ToolSource) -> None:
        """Offer the tools of a source. A file whose tools are known from before is not run until one is called."""
        if source.name not in self._servers:
            settings = source.settings(self._place.seconds())
            server = Server(settings, self._pins.listed(settings), self._host, self._on_change, _MODULE)
            self._servers[source.name] = server, AdaptedTools(self._pins)
            if source.place == "package" or not server.listed:
                server.begin()

    def _host(self, changed: Callable[[], None], waits: Callable[[bool], None]) -> Host:
        return Host(self._place.folders, self._place.environ, changed, None, waits)

    def _on_change(self, server: Server) -> None:
        """Handle a change of state or tools of a worker."""
        known, _ = self._servers.get(server.settings.name, (None, None))
        if known is not server:
            return
        if server.state == "ready":
            self._pins.keep(server.settings, server.listed)
        elif server.state == "failed" and server.problem is not None:
            self._tell(server.problem)
        self._tasks.start(self._plug.refresh())

    def _tell(self, problem: McpProblem) -> None:
        """Show a problem once; the same source may fail at each run."""
        if str(problem) not in self._said:
            self._said.add(str(problem))
            self._user.told(problem)
