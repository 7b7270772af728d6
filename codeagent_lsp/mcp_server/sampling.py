"""MCP sampling: requests to the client's model, in both versions of the protocol.

With a handshake (2025 and before) it is a request to the client. Without (2026) the call returns the question as its
result, and the client calls again with the answer: the tool starts anew, and each answered question gets its answer at
once. Not here: what is asked (the tools).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import warnings
from collections.abc import Mapping
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.types import (
    CallToolRequestParams,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    InputRequests,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)

from codeagent_lsp.errors import CodeAgentError, ModelReplyInvalid, ModelTimeout, ModelUnreachable
from codeagent_lsp.tools.context import Complete

REPLY_TOKENS = 4096
REPLY_SECONDS = 120.0

Context = ServerRequestContext[Any, Any]


class SamplingNeeded(CodeAgentError):
    """Raised if a call cannot continue before the client has answered; `result` is the call's
    result with the question.
    """

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("the client's model is asked")
        self.result = result


def model_of(context: Context, params: CallToolRequestParams) -> Complete | None:
    """Return the client's model; None if the client offers none. Without requests to the client, SamplingNeeded is
    raised.
    """
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        return None
    return _requested(context) if context.session.can_send_request else _replayed(params)


def _requested(context: Context) -> Complete:
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


def _replayed(params: CallToolRequestParams) -> Complete:
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
    try:
        known = json.loads(state or "{}")
    except ValueError:
        return {}
    return {str(name): str(answer) for name, answer in known.items()} if isinstance(known, dict) else {}


def _message(text: str) -> SamplingMessage:
    return SamplingMessage(role="user", content=TextContent(type="text", text=text))


def _words(reply: object) -> str:
    if not isinstance(reply, CreateMessageResult) or not isinstance(reply.content, TextContent):
        raise ModelReplyInvalid("sandbox.model_wordless")
    return reply.content.text
