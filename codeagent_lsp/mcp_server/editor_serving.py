"""The editor as an MCP server: lists its tools, and passes calls on to the server of the editor.

Not here: finding and asking the editor (`attachment.py`), the tools (`session/lending/lent_tools.py`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from codeagent_lsp import __version__
from codeagent_lsp.lend import clean_name
from codeagent_lsp.mcp_server.attachment import Attachment
from codeagent_lsp.mcp_server.progress import Listener, report_of, telling
from codeagent_lsp.mcp_server.stdio import claimed, stdio_streams
from codeagent_lsp.session.lending.lent_tools import LENT_TOOLS, LentTool, lent_tool

NAME = "codeagent-editor"
UNNAMED = "an MCP client"
PULSE_SECONDS = 5.0
"""After so long, and as often, a client that wants progress hears that a call is still going on."""
INSTRUCTIONS = (
    "The user's editor. read, diagnostics, definition, references and hover show the text as the user has it now, not "
    "saved or not; prefer them to the disk for files that open_files lists. edit, write and rename are staged: nothing "
    "is written until the user has reviewed it in the editor. Do not write the same files yourself, too. Call propose "
    "when your change is complete. run works in a private copy in which staged edits are present."
)

Context = ServerRequestContext[Any, Any]


async def over_stdio(attachment: Attachment) -> None:
    """Serve the parent process until it closes our standard input."""
    server = make_server(attachment)
    async with stdio_streams(*claimed()) as (read, write):
        await server.run(read, write, server.create_initialization_options())


def make_server(attachment: Attachment) -> Server[Any]:
    """Return a server for one client, whose calls go by this attachment."""

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_listed(tool) for tool in LENT_TOOLS])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        if lent_tool(params.name) is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {params.name!r}.")
        async with telling(report_of(context)) as listener:
            pulse = asyncio.ensure_future(_pulse(listener))
            try:
                outcome = await attachment.call(_client(context), params.name, params.arguments or {})
            finally:
                pulse.cancel()
        return CallToolResult(content=[TextContent(type="text", text=outcome.text)], is_error=not outcome.ok)

    return Server(
        NAME, version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


async def _pulse(listener: Listener) -> None:
    """Tell again and again that a call goes on: the user may take their time, and clients give up on silence."""
    while True:
        await asyncio.sleep(PULSE_SECONDS)
        listener.note("Waiting for the editor …")


def _client(context: Context) -> str:
    """Return the name by which the client has introduced itself."""
    known = context.session.client_params
    return clean_name(known.client_info.name if known is not None else "") or UNNAMED


def _listed(tool: LentTool) -> Tool:
    hints = ToolAnnotations(read_only_hint=tool.reads, destructive_hint=False, open_world_hint=False)
    return Tool(name=tool.name, description=tool.description, input_schema=tool.schema(), annotations=hints)
