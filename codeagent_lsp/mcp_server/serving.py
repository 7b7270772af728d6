"""The sandbox as an MCP server: lists its tools, runs calls, serves the changes as a resource.

Not here: the transports (`transports.py`), what a call does (`sandbox.py`), asking the client's model (`sampling.py`).
"""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from codeagent_lsp import __version__
from codeagent_lsp.errors import ErrorCode, ModelError
from codeagent_lsp.mcp_server.own_words import in_own_words
from codeagent_lsp.mcp_server.progress import Report, telling
from codeagent_lsp.mcp_server.sampling import Context, SamplingNeeded, model_of
from codeagent_lsp.mcp_server.sandbox import Answer, Sandbox
from codeagent_lsp.mcp_server.table import BY_NAME, TABLE, SandboxTool

NAME = "codeagent-sandbox"
CHANGES = "sandbox://changes.diff"
INSTRUCTIONS = (
    "A disposable view of one folder. You can read, edit and run commands in it; nothing you do changes the files on "
    f"disk. To get changes out, read the resource {CHANGES}, a unified diff of all of them. Everything is gone when "
    "the server ends. Failed calls carry a code in structuredContent.error."
)

_DIFF = "text/x-diff"
_CHANGES = Resource(uri=CHANGES, name="changes", description="All changes, as a unified diff.", mime_type=_DIFF)


def make_server(sandbox: Sandbox) -> Server[Any]:
    """Return a server for one sandbox; it can serve many connections."""

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_listed(entry) for entry in TABLE])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        if params.name not in BY_NAME:
            raise MCPError(INVALID_PARAMS, f"There is no tool {params.name!r}.")
        try:
            complete = model_of(context, params)
            async with telling(_report(context)) as listener:
                return _result(await sandbox.call(params.name, params.arguments or {}, complete, listener))
        except ModelError as error:  # what came as an answer is none
            return _result(Answer(str(error), code=ErrorCode.EXECUTION_ERROR))
        except SamplingNeeded as question:
            return question.result

    async def list_resources(context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=[_CHANGES])

    async def read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        if str(params.uri) != CHANGES:
            raise MCPError(INVALID_PARAMS, f"There is only the resource {CHANGES}.")
        diff = TextResourceContents(uri=CHANGES, mime_type=_DIFF, text=sandbox.changes())
        return ReadResourceResult(contents=[diff])

    return Server(
        NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def _report(context: Context) -> Report | None:
    """Return the function that reports progress; None if the client did not give a progress token."""
    wanted = context.meta is not None and "progress_token" in context.meta
    return context.session.report_progress if wanted else None


def _listed(entry: SandboxTool) -> Tool:
    reads = entry.tool.traits.effect == "read"
    hints = ToolAnnotations(read_only_hint=reads, destructive_hint=False, open_world_hint=False)
    return Tool(name=entry.name, description=entry.description, input_schema=entry.schema(), annotations=hints)


def _result(answer: Answer) -> CallToolResult:
    error, said = answer.error(), in_own_words(answer.text)
    data = {} if answer.data is None else {"data": answer.data}
    if error is not None:
        text = f"{error['code']}: {said}"
        return CallToolResult(content=[_text(text)], structured_content={"error": error, **data}, is_error=True)
    return CallToolResult(content=[_text(said)], structured_content=data or None)


def _text(words: str) -> TextContent:
    return TextContent(type="text", text=words)
