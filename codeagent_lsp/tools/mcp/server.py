"""One configured MCP server, and the tools of servers as the agent's and as providers for the registry.

A server is started on demand, in the background, and restarted when it ends; off if it cannot start. One task owns its
connection. Not here: talking with it (`connection.py`), one of its tools (`adapter.py`), all servers together
(`servers.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from codeagent_lsp.background_tasks import until_first
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.tools.mcp.errors import McpProblem, McpRefused, grade
from codeagent_lsp.tools.mcp.host import Calling
from codeagent_lsp.tools.mcp.listing import Pins, RemoteTool
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.providers import CompositeProvider, Tools

if TYPE_CHECKING:
    from codeagent_lsp.tools.mcp.adapter import McpTool
    from codeagent_lsp.tools.mcp.connection import Connection
    from codeagent_lsp.tools.mcp.host import Host


State = Literal["disabled", "idle", "starting", "login", "ready", "stopped", "failed"]
Connect = Callable[[ServerSettings, "Host"], Any]
Started = Callable[[Callable[[], None], Callable[[bool], None]], "Host"]

DEATHS = 3
"""Number of consecutive ends, without a successful call between them, after which a server is off."""
SETTLE_SECONDS = 0.2
LONGEST_SETTLE = 30.0
"""Most seconds to collect changes of a list; the pause doubles up to this for a server that keeps announcing them."""
CLOSE_SECONDS = 4.0

_MODULE = "codeagent_lsp.tools.mcp.connection"


class Server:
    """One configured MCP server, started on demand and restarted when it ends. `told` is called at every change of
    state or tools; `host` creates the client's side for a connection; `module` is the name of the module whose
    `connected` opens one.
    """

    def __init__(
        self,
        settings: ServerSettings,
        known: tuple[RemoteTool, ...],
        host: Started,
        told: Callable[[Server], None],
        module: str = "",
    ) -> None:
        self.settings = settings
        self.state: State = "disabled" if settings.disabled else "idle"
        self.problem: McpProblem | None = None
        self.listed = known
        self.version = ""
        self._host = host
        self._told = told
        self._module = module
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._settled = asyncio.Event()  # the start has succeeded or failed
        self._stale = asyncio.Event()  # the server has announced another list of tools
        self._deaths = 0

    def begin(self) -> None:
        """Start the server in a background task, unless it runs, is off, or failed before. Returns at once."""
        if self.state in ("idle", "stopped") and (self._task is None or self._task.done()):
            self._settled.clear()
            self._become("starting")
            self._task = asyncio.create_task(self._live(), name=f"mcp {self.settings.name}")

    async def call(self, tool: RemoteTool, arguments: Mapping[str, Any], calling: Calling) -> dict[str, Any]:
        """Call a tool, waiting for the server's start, and return its result as defined by MCP (`CallToolResult`).
        ToolFailed or McpRefused, also if the server cannot start, or the tool has changed or vanished.
        """
        connection = await self._ready()
        # By the list of now: between the model's decision and the call the server may have been started anew.
        current = next((item for item in self.listed if item.name == tool.name), None)
        if current is None:
            raise ToolFailed(f"{calling.label}: the server has no such tool any more.", ErrorCode.MCP_NOT_FOUND)
        # The model has decided by the words of before.
        if current.pin != tool.pin:
            raise McpRefused(f"{calling.label}: its server has just changed it. Look at it, then call again.")
        result = await connection.call(tool.name, arguments, calling)
        self._deaths = 0
        return result

    async def ask_anew(self) -> None:
        """List the tools again, into `listed`, unless the server announces changes. ToolFailed if it is not connected,
        McpProblem if it fails.
        """
        connection = self._connection
        if connection is None:
            raise ToolFailed(f"The server {self.settings.name} is {self.state}.", ErrorCode.MCP_NETWORK_ERROR)
        if connection.tells:
            return
        listed = await connection.tools()
        # The server may have been started anew while it answered.
        if connection is self._connection and listed != self.listed:
            self.listed = listed
            self._told(self)

    async def close(self) -> None:
        """Stop the server and wait up to 4 s for its end; it may be begun again."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=CLOSE_SECONDS)

    async def settled(self) -> None:
        """Wait until the start has succeeded or failed; return at once if it is not starting. `state` says which."""
        if self.state == "starting":
            await self._settled.wait()

    async def _ready(self) -> Connection:
        try:
            async with asyncio.timeout(self.settings.seconds):
                if self._task is not None and self._connection is not None and self._connection.gone.is_set():
                    await asyncio.wait([self._task])  # it has just ended
                self.begin()
                await self.settled()
        except TimeoutError as error:
            words = f"The server {self.settings.name} is still starting after {self.settings.seconds:g} s."
            raise ToolFailed(words, ErrorCode.MCP_TIMEOUT) from error
        if self.state == "login":
            words = f"The server {self.settings.name} waits for the user to log in. Go on without it."
            raise ToolFailed(words, ErrorCode.MCP_TIMEOUT)
        if self._connection is None:
            code = self.problem.code if self.problem else ErrorCode.MCP_NETWORK_ERROR
            raise ToolFailed(str(self.problem or f"The server {self.settings.name} is {self.state}."), code)
        return self._connection

    async def _live(self) -> None:
        """Run one connection from its start to its end."""
        try:
            connect = await asyncio.to_thread(_connector, self._module or _MODULE)
            async with AsyncExitStack() as stack:
                connection: Connection = await self._connect(stack, connect)
                self.version = connection.version
                self.listed = await connection.tools()
                self._connection = connection
                self.problem = None
                self._become("ready")
                await self._attend(connection)
            self._on_end(connection.diagnosis.problem(ConnectionResetError("it ended the connection")))
        except McpProblem as problem:
            self._on_end(problem)
        finally:
            self._connection = None
            self._settled.set()

    async def _connect(self, stack: AsyncExitStack, connect: Connect) -> Connection:
        host = self._host(self._stale.set, self._waits)

        async def once() -> Connection:
            connection: Connection = await stack.enter_async_context(connect(self.settings, host))
            return connection

        if self.settings.transport == "stdio":  # a program that does not start will not start the next moment
            return await once()
        from codeagent_lsp.environments.failures import patient  # late: what it builds on takes time to load

        return await patient(once, grade_of)

    async def _attend(self, connection: Connection) -> None:
        """List the tools again at each announced change, until the connection ends."""
        listening = asyncio.create_task(connection.listen())
        pause, now = SETTLE_SECONDS, asyncio.get_running_loop().time
        try:
            while not connection.gone.is_set():
                began = now()
                await until_first(connection.gone.wait(), self._stale.wait())
                if self._stale.is_set() and not connection.gone.is_set():
                    pause = SETTLE_SECONDS if now() - began > LONGEST_SETTLE else min(2 * pause, LONGEST_SETTLE)
                    await asyncio.sleep(pause)  # several changes are often announced one by one
                    self._stale.clear()
                    self.listed = await connection.tools()
                    self._told(self)
        finally:
            listening.cancel()
            await asyncio.wait([listening])

    def _on_end(self, problem: McpProblem) -> None:
        """Record the end of a connection, or a failed start."""
        worked = self._connection is not None
        self._connection = None
        self._deaths += 1
        self.problem = problem
        self._become("stopped" if worked and self._deaths < DEATHS else "failed")

    def _waits(self, waiting: bool) -> None:
        """Record that the user is asked to log in, or no longer."""
        if self.state in ("starting", "login"):
            self._become("login" if waiting else "starting")

    def _become(self, state: State) -> None:
        self.state = state
        if state == "starting":
            self._settled.clear()
        else:
            self._settled.set()
        self._told(self)


def grade_of(error: BaseException) -> ErrorCode:
    """Return the code of a McpProblem, or the one that `grade` finds for another error."""
    return error.code if isinstance(error, McpProblem) else grade(error)


def _connector(module: str) -> Connect:
    """Import the connection module late, as it is heavy. McpProblem if the library is not installed."""
    try:
        connect: Connect = import_module(module).open_connection
    except ImportError as error:
        raise McpProblem("mcp.library", ErrorCode.MCP_NOT_FOUND, reason=error.name or "mcp") from error
    return connect


class AdaptedTools:
    """The agent's tools for those of all servers, by full name; a tool whose description is unchanged stays the same
    object.
    """

    def __init__(self, pins: Pins) -> None:
        self._pins = pins
        self._tools: dict[str, McpTool] = {}

    def of(self, server: Server) -> tuple[McpTool, ...]:
        """Return the tools of a server; none if it is off or failed. The first tool of a full name wins; unchanged
        tools are the same objects as before.
        """
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
        from codeagent_lsp.tools.mcp.adapter import adapt_tool  # late, as above

        settings, pins = server.settings, self._pins
        return adapt_tool(
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
        """Return the current tools; none for a server that is off or failed. With `anew`, ToolFailed or McpProblem if
        it fails.
        """
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
        """Return the tools of all servers; one that cannot list its own does not hide those of the others."""
        parts = [ServerProvider(self._adapted, server) for server in self._servers()]
        return await CompositeProvider(self.name, parts).tools()
