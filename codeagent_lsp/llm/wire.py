"""Serialization of conversations as the JSON of `/chat/completions`.

The same messages always give the same bytes, so that a prompt cache is hit. Not here: tool calls as text for
models without tools (`calls/call_history.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

from codeagent_lsp.messages import Image, Message, ToolSpec, sent

PICTURES = "(The pictures of the results above.)"

REPLIES = (200, 201)  # gateways whose framework answers each POST with 201 are servers, too

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def encode(body: dict[str, Any]) -> bytes:
    """Return the body as UTF-8; lone surrogates, which no server accepts, become question marks."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


Given = Callable[[Message], dict[str, Any]]
"""Returns the fields in which a server gets its own state back with an assistant message."""


def chat_messages(messages: Iterable[Message], given: Given | None = None) -> list[dict[str, Any]]:
    """Return the messages in the form of the API, with at most one system message."""
    return [
        {**_message(message), **(given(message) if given and message.role == "assistant" else {})}
        for message in tidy(messages)
    ]


def tidy(messages: Iterable[Message]) -> list[Message]:
    """Return the messages with one system message, first; later ones become user messages.

    Neighbouring user messages are joined. Many chat templates refuse anything else. The pictures of tools' results
    follow them as a message of the user, since few servers take them in the result.
    """
    tidied: list[Message] = []
    for message in _shown_after(messages):
        if message.role == "system" and any(earlier.role != "system" for earlier in tidied):
            message = replace(message, role="user")
        previous = tidied[-1] if tidied else None
        if previous and previous.role == message.role and message.role in ("system", "user"):
            images = previous.images + message.images
            tidied[-1] = replace(previous, content=f"{previous.content}\n\n{message.content}", images=images)
        else:
            tidied.append(message)
    return tidied


def _shown_after(messages: Iterable[Message]) -> Iterator[Message]:
    waiting: tuple[Image, ...] = ()
    for message in messages:
        # Not between two results: those of one reply have to follow each other.
        if waiting and message.role != "tool":
            yield Message("user", PICTURES, images=waiting)
            waiting = ()
        if message.role == "tool" and message.images:
            waiting += message.images
            message = replace(message, images=())
        yield message
    if waiting:
        yield Message("user", PICTURES, images=waiting)


def tool_list(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return the tool descriptions in the form of the API, in the given order."""
    return [{"type": "function", "function": {**sent(tool), "name": wire_name(tool["name"])}} for tool in tools]


def wire_name(name: str) -> str:
    """Return a tool's name as every server accepts it: `a.b` becomes `a__b`, which is understood in replies."""
    return name if _PLAIN_NAME.fullmatch(name) else _NOT_IN_NAMES.sub("__", name)


def new_call_id() -> str:
    """Return a random id for a call whose model gave none."""
    return f"call_{uuid4().hex[:12]}"


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if message.images:
        pictures = [{"type": "image_url", "image_url": {"url": image.url}} for image in message.images]
        return {"role": message.role, "content": [{"type": "text", "text": message.content}, *pictures]}
    if not message.tool_calls:
        return {"role": message.role, "content": message.content}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {
                "name": wire_name(call.name),
                "arguments": json.dumps(dict(call.arguments), ensure_ascii=False),
            },
        }
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": message.content, "tool_calls": calls}
