"""A live connection to an MCP server through the official library: current and older protocol, every transport.

Heavy to import, so callers import it late, in a thread. Errors become a McpProblem that names the server, or an
AgentError for the model. Not here: when there is a connection (`server.py`), which error it becomes (`diagnosis.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp.types import (
    Implementation,
    ListRootsResult,
    Root,
    ToolListChangedNotification,
)
from websockets.exceptions import WebSocketException

from codeagent_lsp.environments.patience import wait_before
from codeagent_lsp.errors import AgentError
from codeagent_lsp.tools.mcp.calling import Calling
from codeagent_lsp.tools.mcp.clock import Clock
from codeagent_lsp.tools.mcp.diagnosis import Diagnosis
from codeagent_lsp.tools.mcp.elicitation import Elicitation
from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.tools.mcp.health import Health
from codeagent_lsp.tools.mcp.host import Host
from codeagent_lsp.tools.mcp.listing import MAX_TOOLS, RemoteTool
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.mcp.transports import transport_for
from codeagent_lsp.workspace.files import uris

MAX_PAGES = 20
MAX_DESCRIPTION = 16 << 10
LISTEN_SECONDS = 15.0
LISTENS = 4

_TROUBLE = (
    MCPError,
    OSError,
    RuntimeError,
    ValueError,
    ExceptionGroup,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.EndOfStream,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    WebSocketException,
    AgentError,
)


@asynccontextmanager
async def connected(settings: ServerSettings, host: Host) -> AsyncGenerator[Connection, None]:
    """Open a connection that lasts as long as this context. McpProblem if it cannot be opened, or breaks."""
    connection = Connection(settings, host)
    try:
        async with AsyncExitStack() as stack:
            await connection.open(stack)
            yield connection
    except McpProblem:
        raise
    except _TROUBLE as error:
        raise connection.diagnosis.problem(error) from error


class Connection:
    """An open connection to a server; `gone` is set when it has ended."""

    def __init__(self, settings: ServerSettings, host: Host) -> None:
        self._settings = settings
        self._host = host
        self._health = Health()
        self._client: Client | None = None
        self._clock = Clock()
        self._elicitation = Elicitation(settings.name, self._clock)

    @property
    def gone(self) -> asyncio.Event:
        """Return the event that is set when the connection has ended."""
        return self._health.gone

    @property
    def version(self) -> str:
        """Return the negotiated protocol version."""
        return self._opened.protocol_version

    @property
    def tells(self) -> bool:
        """Return whether the server announces changes of its tool list."""
        offered = self._opened.server_capabilities.tools
        return offered is None or bool(offered.list_changed)

    @property
    def diagnosis(self) -> Diagnosis:
        """Return the facts that explain an error of this connection."""
        return Diagnosis(self._settings, self._health)

    async def open(self, stack: AsyncExitStack) -> None:
        """Initialize the connection within the server's time limit; a child process that exits at the current handshake
        is tried once more with the older one. McpProblem if it fails.
        """
        try:
            async with self._clock.limited(self._settings.seconds):
                try:
                    self._client = await stack.enter_async_context(self._talk("auto"))
                except _TROUBLE as error:
                    if not self.diagnosis.may_be_older(error):
                        raise
                    self._health = Health()
                    self._client = await stack.enter_async_context(self._talk("legacy"))
        except _TROUBLE as error:
            raise self.diagnosis.problem(error) from error

    async def tools(self) -> tuple[RemoteTool, ...]:
        """Return the tools that the server lists now. McpProblem if it fails."""
        if self._opened.server_capabilities.tools is None:
            return ()
        found: dict[str, RemoteTool] = {}
        cursor: str | None = None
        try:
            async with self._clock.limited(self._settings.seconds):
                for _ in range(MAX_PAGES):
                    page = await self._opened.list_tools(cursor=cursor, cache_mode="refresh")
                    for tool in page.tools:
                        words = (tool.description or tool.title or "")[:MAX_DESCRIPTION]
                        hints = tool.annotations
                        reads = hints is not None and hints.read_only_hint is True
                        remote = RemoteTool(tool.name, words, tool.input_schema, tool.output_schema, reads)
                        found.setdefault(tool.name, remote)
                    cursor = page.next_cursor
                    if cursor is None or len(found) >= MAX_TOOLS:
                        break
        except _TROUBLE as error:
            raise self.diagnosis.problem(error) from error
        return tuple(found.values())[:MAX_TOOLS]

    async def call(self, name: str, arguments: Mapping[str, Any], calling: Calling) -> dict[str, Any]:
        """Call a tool and return its result as defined by MCP. McpRefused or ToolFailed with a graded code.

        Cancelling the coroutine sends a cancellation to the server.
        """
        garbled, self._health.status, self._health.login = self._health.garbled, 0, None
        try:
            with self._elicitation.during(calling):
                async with self._clock.limited(calling.seconds):
                    result = await self._opened.call_tool(name, dict(arguments), progress_callback=calling.progress)
            return result.model_dump(by_alias=True, mode="json", exclude_none=True)
        except _TROUBLE as error:
            noisy = self._health.garbled > garbled
            raise self.diagnosis.call_failure(error, name, calling.seconds, noisy=noisy) from error

    async def listen(self) -> None:
        """Subscribe to changes of the tool list, a few times if it fails; then wait for ever."""
        for attempt in range(1, LISTENS):
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(LISTEN_SECONDS):
                        events = await stack.enter_async_context(self._opened.listen(tools_list_changed=True))
                    async for _ in events:
                        self._host.changed()
            except _TROUBLE:  # an older server, or one that has nothing to tell
                pass
            await asyncio.sleep(wait_before(attempt, 0.5))
        await asyncio.Event().wait()

    @property
    def _opened(self) -> Client:
        assert self._client is not None
        return self._client

    @asynccontextmanager
    async def _talk(self, mode: str) -> AsyncGenerator[Client, None]:
        client = Client(
            transport_for(self._settings, self._host, self._health, self._waiting),
            mode=mode,
            cache=None,
            client_info=Implementation(name="codeagent-lsp", version=version("codeagent-lsp")),
            list_roots_callback=self._roots,
            elicitation_callback=self._elicitation.answer,
            message_handler=self._heard,
        )
        async with client:
            # A server's schema is not run on its own answer: both are its own, and could keep us busy for ever.
            client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]
            yield client

    @asynccontextmanager
    async def _waiting(self) -> AsyncGenerator[None, None]:
        """Suspend the time limits and report that the user is waited for."""
        self._host.waits(True)
        try:
            async with self._clock.paused():
                yield
        finally:
            self._host.waits(False)

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._host.changed()

    async def _roots(self, context: ClientRequestContext) -> ListRootsResult:
        rows = [{"uri": uris.from_path(path), "name": PurePath(path).name} for path in self._host.folders()]
        return ListRootsResult(roots=[Root.model_validate(row) for row in rows])


async def _unchecked(name: str, result: Any) -> None:
    pass
