"""A model behind redactor: what it reads has no secrets in it, and what goes in and out is recorded.

Not here: finding secrets and writing records (`records/`), the models themselves.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from codeagent_lsp.errors import CodeAgentError
from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest, Reply, StreamItem
from codeagent_lsp.messages import Message, ToolCall

Hide = Callable[[str], str]
Record = Callable[[str, Mapping[str, Any]], None]
"""Takes `request` or `reply`, and what it was."""


class GuardedModel:
    """The `Model` port around another model."""

    def __init__(self, model: Model, hide: Hide, record: Record) -> None:
        self._model = model
        self._hide = hide
        self._record = record

    @property
    def info(self) -> ModelInfo:
        """The other model's."""
        return self._model.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """What the other model answers to the request without its secrets."""
        hidden = replace(request, messages=tuple(map(self._hidden, request.messages)))
        self._record("request", told(hidden))
        try:
            async with aclosing(self._model.stream(hidden)) as stream:
                async for item in stream:
                    if isinstance(item, Reply):
                        self._record("reply", replied(item))
                    yield item
        except CodeAgentError as error:
            self._record("reply", {"error": str(error)})
            raise

    async def count_tokens(self, text: str) -> int:
        """As the other model counts."""
        return await self._model.count_tokens(text)

    async def close(self) -> None:
        """Close the other model."""
        await self._model.close()

    def _hidden(self, message: Message) -> Message:
        content = self._hide(message.content)
        return message if content == message.content else replace(message, content=content)


def told(request: ModelRequest) -> dict[str, Any]:
    """A request as plain data; tools by name, since their descriptions are the code's."""
    return {
        "messages": [_message(message) for message in request.messages],
        "tools": [tool["name"] for tool in request.tools],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
    }


def replied(reply: Reply) -> dict[str, Any]:
    """A reply as plain data."""
    usage = reply.usage
    return {
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
