"""The form of conversations in Anthropic's Messages API: roles in turn, results first, marks for its prompt cache.

An assistant's turn is given back as it was written, thinking and signatures included, as long as the same model reads
it. Not here: requests and replies (`anthropic.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from codeagent_lsp.llm import wire
from codeagent_lsp.llm.carried import unpack
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.messages import Image, Message, ToolSpec, sent

MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}
LASTING_MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
"""For the beginning of the prompt only: the API wants what is kept for longer to come first."""

MARKED_TURNS = 2

_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")


def system_blocks(messages: Iterable[Message], mark: Mapping[str, Any] = MARK) -> list[dict[str, Any]]:
    """Return the system prompt, marked for the cache."""
    told = [message.content for message in messages if message.role == "system" and message.content.strip()]
    return [{"type": "text", "text": "\n\n".join(told), **mark}] if told else []


def tool_blocks(tools: tuple[ToolSpec, ...], mark: Mapping[str, Any] = MARK) -> list[dict[str, Any]]:
    """Return the tools, the last one marked for the cache."""
    told = [sent(tool) for tool in tools]
    blocks = [
        {"name": wire.wire_name(tool["name"]), "description": tool["description"], "input_schema": tool["parameters"]}
        for tool in told
    ]
    return [*blocks[:-1], {**blocks[-1], **mark}] if blocks else []


def turns(messages: Iterable[Message], info: ModelInfo) -> list[dict[str, Any]]:
    """Return the conversation without its system messages: user and assistant in turn, the last two user turns marked.

    A turn without any text or call is left out, as empty ones are refused.
    """
    made: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, info)
        if made and made[-1]["role"] == role:
            made[-1]["content"] += blocks
        elif blocks:
            made.append({"role": role, "content": blocks})
    if made and made[0]["role"] == "assistant":
        made.insert(0, {"role": "user", "content": [_text("(The conversation goes on.)")]})
    _mark([turn for turn in made if turn["role"] == "user"][-MARKED_TURNS:])
    return made


def begun_without_thinking(told: list[dict[str, Any]]) -> bool:
    """Return whether the last turn of the assistant goes on after results of its calls, and began without thinking.

    Models with a budget then refuse to think: another model has begun it.
    """
    begun: dict[str, Any] = {}
    for at, turn in enumerate(told):
        if turn["role"] == "assistant" and told[at - 1]["content"][0]["type"] != "tool_result":
            begun = turn
    goes_on = told[-1]["content"][0]["type"] == "tool_result" if told else False
    return goes_on and "thinking" not in begun["content"][0]["type"]


def _blocks(message: Message, info: ModelInfo) -> list[dict[str, Any]]:
    if message.role == "tool":
        content = [_text(message.content)] if message.content.strip() else []
        return [{"type": "tool_result", "tool_use_id": _id(message.tool_call_id), "content": content}]
    if message.role == "assistant":
        return _as_written(message, info) or _rebuilt(message)
    return [*([_text(message.content)] if message.content.strip() else []), *map(_picture, message.images)]


def _picture(image: Image) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _as_written(message: Message, info: ModelInfo) -> list[dict[str, Any]]:
    """Return the blocks that the same model wrote, without calls that are no longer part of the message.

    None of them if a call is missing, or if only thinking is left; thinking must not be the end either.
    """
    calls = {_id(call.id) for call in message.tool_calls}
    written = unpack(info, message.carried)
    kept = [block for block in written if block.get("type") != "tool_use" or block.get("id") in calls]
    while kept and "thinking" in str(kept[-1].get("type")):
        kept.pop()
    return kept if calls <= {block.get("id") for block in kept} else []


def _rebuilt(message: Message) -> list[dict[str, Any]]:
    said = [_text(message.content)] if message.content.strip() else []
    calls = [
        {"type": "tool_use", "id": _id(call.id), "name": wire.wire_name(call.name), "input": dict(call.arguments)}
        for call in message.tool_calls
    ]
    return said + calls


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _id(call_id: str) -> str:
    """Return an id as the API takes it, also of a call that another model has made."""
    return _NOT_IN_IDS.sub("_", call_id)


def _mark(marked: list[dict[str, Any]]) -> None:
    for turn in marked:
        turn["content"][-1] = {**turn["content"][-1], **MARK}
