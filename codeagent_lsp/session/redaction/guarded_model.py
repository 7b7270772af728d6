"""Wraps a model so that its requests contain no secrets, and requests and replies are recorded.

Not here: finding secrets and writing records (`records/`), the models themselves.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from codeagent_lsp.errors import CodeAgentError
from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest, Reply, StreamItem, WrappedModel
from codeagent_lsp.messages import Message, ToolCall

Hide = Callable[[str], str]
Record = Callable[[str, Mapping[str, Any]], None]
"""Receives the kind (`request` or `reply`) and the data."""


class GuardedModel(WrappedModel):
    """The `Model` port around another model. `hide` masks secrets in a text; `record` gets requests and replies."""

    def __init__(self, model: Model, hide: Hide, record: Record) -> None:
        super().__init__(model)
        self._hide = hide
        self._record = record

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Stream the wrapped model's reply to the request with its secrets masked; record request, reply and error."""
        hidden = replace(request, messages=tuple(map(self._hidden, request.messages)))
        # Before the call, so that a request whose answer never comes is in the trace.
        self._record("request", told(hidden, self.info))
        try:
            async with aclosing(self._model.stream(hidden)) as stream:
                async for item in stream:
                    if isinstance(item, Reply):
                        self._record("reply", replied(item))
                    yield item
        except CodeAgentError as error:
            self._record("reply", {"error": str(error)})
            raise

    def _hidden(self, message: Message) -> Message:
        content = self._hide(message.content)
        return message if content == message.content else replace(message, content=content)


def told(request: ModelRequest, info: ModelInfo) -> dict[str, Any]:
    """Return a request as plain data; tools only by name, since their descriptions are part of the program."""
    return {
        "model": info.name,
        "provider": info.provider,
        "base_url": info.url,
        "api_mode": info.api_mode,
        "messages_count": len(request.messages),
        "messages": [_message(message) for message in request.messages],
        "tools": [tool["name"] for tool in request.tools],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
    }


def replied(reply: Reply) -> dict[str, Any]:
    """Return a reply as plain data."""
    usage = reply.usage
    return {
        "text_length": len(reply.text),
        "truncated": reply.finish_reason == "length",
        "has_tool_call": bool(reply.tool_calls),
        "text": reply.text,
        "tool_calls": [_call(call) for call in reply.tool_calls],
        "finish_reason": reply.finish_reason,
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "completion_tokens": usage.completion_tokens,
        },
    }


def _message(message: Message) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        data["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.name:
        data["name"] = message.name
    return data


def _call(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name, "arguments": dict(call.arguments)}
