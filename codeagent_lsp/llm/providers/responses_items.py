"""The form of conversations in OpenAI's Responses API: a list of items, each call and each result one of its own.

What a model wrote is given back as it came, encrypted reasoning included, as long as the same model reads it. Not here:
requests and replies (`responses.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from typing import Any

from codeagent_lsp.llm import wire
from codeagent_lsp.llm.carried import unpack
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.messages import Message, ToolSpec, sent


def instructions(messages: Iterable[Message]) -> str:
    """Return the system prompt."""
    return "\n\n".join(message.content for message in messages if message.role == "system")


def items(messages: Iterable[Message], info: ModelInfo) -> list[dict[str, Any]]:
    """Return the conversation without its system messages."""
    return list(chain.from_iterable(_items(message, info) for message in messages if message.role != "system"))


def tools(specs: tuple[ToolSpec, ...]) -> list[dict[str, Any]]:
    """Return the tools."""
    return [{"type": "function", **sent(spec), "name": wire.wire_name(spec["name"]), "strict": False} for spec in specs]


def _items(message: Message, info: ModelInfo) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": message.content}]
    if message.role == "assistant":
        return _as_written(message, info) or _rebuilt(message)
    if message.images:
        pictures = [{"type": "input_image", "image_url": image.url, "detail": "auto"} for image in message.images]
        content = [{"type": "input_text", "text": message.content}, *pictures]
        return [{"type": "message", "role": "user", "content": content}]
    return [{"type": "message", "role": "user", "content": message.content}] if message.content.strip() else []


def _as_written(message: Message, info: ModelInfo) -> list[dict[str, Any]]:
    """Return the items that the same model wrote; none if the calls are no longer those of the message, as reasoning
    is refused without the item that followed it.
    """
    written = unpack(info, message.carried)
    calls = [item.get("call_id") for item in written if item.get("type") == "function_call"]
    return written if sorted(map(str, calls)) == sorted(call.id for call in message.tool_calls) else []


def _rebuilt(message: Message) -> list[dict[str, Any]]:
    said = [{"type": "message", "role": "assistant", "content": message.content}] if message.content.strip() else []
    calls = [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": wire.wire_name(call.name),
            "arguments": json.dumps(dict(call.arguments), ensure_ascii=False),
        }
        for call in message.tool_calls
    ]
    return said + calls
