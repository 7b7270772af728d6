"""A live connection to an MCP server through the official library: current and older protocol, every transport.

Heavy to import, so callers import it late, in a thread. Errors become a McpProblem that names the server, or an
AgentError for the model. Not here: when there is a connection (`server.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import anyio
import httpx2
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.shared.exceptions import MCPError
from mcp.types import Implementation, ListRootsResult, Root, ToolListChangedNotification
from websockets.exceptions import WebSocketException

from codeagent_lsp.environments.failures import wait_before
from codeagent_lsp.errors import AgentError, ErrorCode, ToolFailed
from codeagent_lsp.network import PROXY_AWAY
from codeagent_lsp.tools.mcp.elicitation import Elicitation
from codeagent_lsp.tools.mcp.errors import (
    CONNECTION_CLOSED,
    McpProblem,
    McpRefused,
    error_message,
    grade,
    protocol_code,
)
from codeagent_lsp.tools.mcp.host import Calling, Clock, Host
from codeagent_lsp.tools.mcp.listing import MAX_NAME, MAX_TOOLS, RemoteTool
from codeagent_lsp.tools.mcp.settings import ServerSettings
from codeagent_lsp.tools.mcp.stdio import Health
from codeagent_lsp.tools.mcp.transports import transport_for
from codeagent_lsp.workspace.files import uris

MAX_PAGES = 20
MAX_DESCRIPTION = 16 << 10
LISTEN_SECONDS = 15.0
LISTENS = 3

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
async def open_connection(settings: ServerSettings, host: Host) -> AsyncGenerator[Connection, None]:
    """Open a connection that lasts as long as this context. McpProblem if it cannot be opened within the server's time
    limit, or breaks.
    """
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
        """The event that is set when the connection has ended."""
        return self._health.gone

    @property
    def version(self) -> str:
        """The negotiated protocol version, a date such as `2025-06-18`."""
        return self._open.protocol_version

    @property
    def tells(self) -> bool:
        """Whether the server announces changes of its tool list; then `tools` need not be asked again."""
        offered = self._open.server_capabilities.tools
        return offered is None or bool(offered.list_changed)

    @property
    def diagnosis(self) -> Diagnosis:
        """The facts that explain an error of this connection, as they are now."""
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
                    # Or what the first try has met would explain the errors of the second.
                    self._health = Health()
                    self._client = await stack.enter_async_context(self._talk("legacy"))
        except _TROUBLE as error:
            raise self.diagnosis.problem(error) from error

    async def tools(self) -> tuple[RemoteTool, ...]:
        """Ask the server for its tools; return at most 128, () if it offers none; those whose names have more than 128
        characters are left out. McpProblem if it fails or takes longer than the server's limit.
        """
        if self._open.server_capabilities.tools is None:
            return ()
        found: dict[str, RemoteTool] = {}
        cursor: str | None = None
        try:
            async with self._clock.limited(self._settings.seconds):
                # A server can give a next page for ever.
                for _ in range(MAX_PAGES):
                    page = await self._open.list_tools(cursor=cursor, cache_mode="refresh")
                    for tool in page.tools:
                        if len(tool.name) > MAX_NAME:
                            continue
                        words = (tool.description or tool.title or "")[:MAX_DESCRIPTION]
                        hints = tool.annotations
                        reads = hints is not None and hints.read_only_hint is True
                        remote = RemoteTool(tool.name, words, tool.input_schema, tool.output_schema, reads)
                        # Of two with one name the first counts: the call could not tell them apart.
                        found.setdefault(tool.name, remote)
                    cursor = page.next_cursor
                    if cursor is None or len(found) >= MAX_TOOLS:
                        break
        except _TROUBLE as error:
            raise self.diagnosis.problem(error) from error
        return tuple(found.values())[:MAX_TOOLS]

    async def call(self, name: str, arguments: Mapping[str, Any], calling: Calling) -> dict[str, Any]:
        """Call a tool and return its result as defined by MCP. McpRefused if the server rejects it, ToolFailed for
        other failures and after `calling.seconds`. Cancelling the coroutine sends a cancellation to the server.
        """
        # What an earlier call has met must not explain the failure of this one.
        garbled, self._health.status, self._health.login = self._health.garbled, 0, None
        try:
            with self._elicitation.during(calling):
                async with self._clock.limited(calling.seconds):
                    result = await self._open.call_tool(name, dict(arguments), progress_callback=calling.progress)
            return result.model_dump(by_alias=True, mode="json", exclude_none=True)
        except _TROUBLE as error:
            noisy = self._health.garbled > garbled
            raise self.diagnosis.call_failure(error, name, calling.seconds, noisy=noisy) from error

    async def listen(self) -> None:
        """Subscribe to changes of the tool list, 3 times if it fails; then wait for ever. Ends by cancellation only."""
        for attempt in range(1, LISTENS + 1):
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(LISTEN_SECONDS):
                        events = await stack.enter_async_context(self._open.listen(tools_list_changed=True))
                    async for _ in events:
                        self._host.changed()
            except _TROUBLE:  # an older server, or one that has nothing to tell
                pass
            await asyncio.sleep(wait_before(attempt, 0.5))
        await asyncio.Event().wait()

    @property
    def _open(self) -> Client:
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
            message_handler=self._on_message,
        )
        async with client:
            # A server's schema is not run on its own answer: both are its own, and could keep us busy for ever.
            client.session.validate_tool_result = _check_nothing  # type: ignore[method-assign]
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

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._host.changed()

    async def _roots(self, context: ClientRequestContext) -> ListRootsResult:
        rows = [{"uri": uris.from_path(path), "name": PurePath(path).name} for path in self._host.folders()]
        return ListRootsResult(roots=[Root.model_validate(row) for row in rows])


async def _check_nothing(name: str, result: Any) -> None:
    pass


# Explains why a connection or a call failed, from the error and from what the transport has noticed of the server.


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The settings and the observed health of one connection, by which its errors are explained."""

    settings: ServerSettings
    health: Health

    def problem(self, error: BaseException) -> McpProblem:
        """Return, without raising it, the problem of this server that most likely caused an error, with a sentence for
        the user.
        """
        health, name, where = self.health, self.settings.name, self.settings.where
        # From what is known best to what is only guessed: the error itself is often only "closed".
        if isinstance(health.login, McpProblem):
            return health.login
        if (refused := health.refused) is not None:  # a retry changes nothing, unless the proxy is away
            away = refused.key == PROXY_AWAY
            code = ErrorCode.MCP_NETWORK_ERROR if away else ErrorCode.MCP_EXECUTION_ERROR
            return McpProblem(refused.key, code, **refused.values)
        cause = health.problem or error
        code = grade(cause)
        if isinstance(cause, FileNotFoundError) and self.settings.transport == "stdio":
            return McpProblem("mcp.not_found", code, name=name, command=where)
        if code is ErrorCode.MCP_PARSE_ERROR or (code is ErrorCode.MCP_TIMEOUT and health.garbled):
            reason = health.sample or error_message(cause)
            return McpProblem("mcp.unreadable", ErrorCode.MCP_PARSE_ERROR, name=name, reason=reason)
        if health.ending:
            words = health.last_words or "—"
            return McpProblem("mcp.ended", ErrorCode.MCP_NETWORK_ERROR, name=name, ending=health.ending, words=words)
        if health.status in (401, 403):
            code = ErrorCode.MCP_EXECUTION_ERROR
            return McpProblem("mcp.unauthorized", code, name=name, where=where, status=health.status)
        if health.status in (408, 429) or health.status >= 500:
            reason = f"HTTP {health.status}"
            return McpProblem("mcp.unreachable", ErrorCode.MCP_NETWORK_ERROR, name=name, where=where, reason=reason)
        if code is ErrorCode.MCP_TIMEOUT:
            return McpProblem("mcp.silent", code, name=name, seconds=f"{self.settings.seconds:g}")
        if code is ErrorCode.MCP_NETWORK_ERROR:
            return McpProblem("mcp.unreachable", code, name=name, where=where, reason=error_message(cause))
        return McpProblem("mcp.failed", code, name=name, reason=error_message(cause))

    def call_failure(self, error: BaseException, tool: str, seconds: float, *, noisy: bool) -> AgentError:
        """Return an error of a call, for the model; record that the connection is gone if it shows that. `noisy` is
        whether garbage arrived during the call, `seconds` the call's time limit.
        """
        code = protocol_code(error)
        if code == CONNECTION_CLOSED or self.health.problem is not None:
            self.health.gone.set()
        answered = code is not None and code != CONNECTION_CLOSED and self.health.problem is None
        if answered and self.health.login is None and self.health.status == 0:
            graded = grade(error)
            words = f"The server {self.settings.name} answered the call of {tool}: {error_message(error)}"
            if graded is ErrorCode.MCP_PARAM_ERROR:
                return McpRefused(words, graded)
            if graded is ErrorCode.MCP_NETWORK_ERROR:
                self.health.gone.set()
            return ToolFailed(words, graded)
        if isinstance(error, TimeoutError) and not noisy:
            words = f"The server {self.settings.name} did not answer in {seconds:g} s and was told to stop."
            return ToolFailed(words, ErrorCode.MCP_TIMEOUT)
        problem = self.problem(error)
        return ToolFailed(str(problem), problem.code)

    def may_be_older(self, error: BaseException) -> bool:
        """Return whether a child process exited at the handshake, without garbage output or a failed start."""
        ended = protocol_code(error) == CONNECTION_CLOSED and self.health.problem is None
        return ended and self.settings.transport == "stdio"
