"""The sandbox as an MCP server: lists its tools, runs calls, serves the changes as a resource.

Not here: the transports (`transports.py`), what a call does (`sandbox.py`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import warnings
from collections.abc import Mapping
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    InputRequests,
    InputRequiredResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    SamplingMessage,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from codeagent_lsp import __version__
from codeagent_lsp.errors import (
    CodeAgentError,
    ErrorCode,
    ModelError,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnreachable,
)
from codeagent_lsp.mcp_server.progress import report_of, telling
from codeagent_lsp.mcp_server.sandbox import Answer, Sandbox
from codeagent_lsp.mcp_server.table import BY_NAME, TABLE, SandboxTool
from codeagent_lsp.state import json_object
from codeagent_lsp.tools.context import Complete

NAME = "codeagent-sandbox"
CHANGES = "sandbox://changes.diff"
INSTRUCTIONS = (
    "A disposable view of one folder. You can read, edit and run commands in it; nothing you do changes the files on "
    f"disk. To get changes out, read the resource {CHANGES}, a unified diff of all of them. Everything is gone when "
    "the server ends. Failed calls carry a code in structuredContent.error."
)

_DIFF = "text/x-diff"
_CHANGES = Resource(uri=CHANGES, name="changes", description="All changes, as a unified diff.", mime_type=_DIFF)
_INSTEAD = {
    "Staged for the user's decision:": "Changed in the sandbox:",
    "Staged from what it wrote:": "Changed in the sandbox by it:",
    "Not staged:": "Not kept:",
    "(left out, as reading them needs the user's approval:": "(left out, as they may hold secrets:",
}
_PHRASE = re.compile("|".join(rf"^{re.escape(phrase)}" for phrase in _INSTEAD), re.MULTILINE)
REPLY_TOKENS = 4096
REPLY_SECONDS = 120.0

Context = ServerRequestContext[Any, Any]


def make_server(sandbox: Sandbox) -> Server[Any]:
    """Return an MCP server (the library's `Server`) for one sandbox; it can serve many connections at once. Failures
    are answers; MCPError only for an unknown tool or resource.
    """

    async def list_tools(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_list_entry(entry) for entry in TABLE])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        if params.name not in BY_NAME:
            raise MCPError(INVALID_PARAMS, f"There is no tool {params.name!r}.")
        try:
            complete = model_of(context, params)
            async with telling(report_of(context)) as listener:
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


def _list_entry(entry: SandboxTool) -> Tool:
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


# Says what a tool has done in words for the clients of a sandbox, which has no user who decides and nothing staged.


def in_own_words(text: str) -> str:
    """Return a result's text with sentences about a user's decision replaced by those of the sandbox, which has no
    user.
    """
    return _PHRASE.sub(lambda match: _INSTEAD[match.group()], text)


# MCP sampling: requests to the client's model, in both versions of the protocol.


class SamplingNeeded(CodeAgentError):
    """Raised if a call cannot continue before the client has answered; `result` is the call's
    result with the question.
    """

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("the client's model is asked")
        self.result = result


def model_of(context: Context, params: CallToolRequestParams) -> Complete | None:
    """Return a function that asks the client's model; None if the client offers none. If the client takes no requests,
    calling it raises SamplingNeeded unless the answer is in `params` already.
    """
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        return None
    return _request_completions(context) if context.session.can_send_request else _replay_completions(params)


def _request_completions(context: Context) -> Complete:
    async def complete(instructions: str, text: str) -> str:
        try:
            async with asyncio.timeout(REPLY_SECONDS):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", MCPDeprecationWarning)  # these clients have no other way
                    asking = context.session.create_message(
                        [_message(text)],
                        max_tokens=REPLY_TOKENS,
                        system_prompt=instructions,
                        related_request_id=context.request_id,
                    )
                return _words(await asking)
        except TimeoutError:
            raise ModelTimeout("sandbox.model_silent", seconds=round(REPLY_SECONDS)) from None
        except MCPError as error:
            raise ModelUnreachable("sandbox.model_failed", reason=error.message) from error

    return complete


def _replay_completions(params: CallToolRequestParams) -> Complete:
    answers = dict(_answers(params.request_state))
    for name, response in (params.input_responses or {}).items():
        answers[name] = _words(response)

    numbers = itertools.count(1)

    async def complete(instructions: str, text: str) -> str:
        name = f"question-{next(numbers)}"  # not its words: the output of tests says how long they took
        if name in answers:
            return answers[name]
        asked = CreateMessageRequestParams(
            messages=[_message(text)], max_tokens=REPLY_TOKENS, system_prompt=instructions
        )
        requests: InputRequests = {name: CreateMessageRequest(method="sampling/createMessage", params=asked)}
        raise SamplingNeeded(InputRequiredResult(input_requests=requests, request_state=json.dumps(answers)))

    return complete


def _answers(state: str | None) -> Mapping[str, str]:
    """Return the answers of earlier rounds from the client's own state, which need not be trusted."""
    return {name: str(answer) for name, answer in (json_object(state or "{}") or {}).items()}


def _message(text: str) -> SamplingMessage:
    return SamplingMessage(role="user", content=TextContent(type="text", text=text))


def _words(reply: object) -> str:
    if not isinstance(reply, CreateMessageResult) or not isinstance(reply.content, TextContent):
        raise ModelReplyInvalid("sandbox.model_wordless")
    return reply.content.text
