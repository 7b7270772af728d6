"""Conversations as the JSON of `/chat/completions`, and the values that come back with a reply: calls, and what is
carried.

The same messages always give the same bytes, so that a prompt cache is hit. Arguments of calls that a server sent as
text are read once they are complete. What a provider wants back byte for byte (signed thinking, encrypted reasoning) is
kept in the message as JSON text, with the provider and model that wrote it; it is given back only to these, and holds
no secrets, as models only read what is masked. Not here: tool calls as text (`calls/text_calls.py`), checking calls
against their tools (`calls/toolcalling.py`), what carried values mean (`providers/`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from codeagent_lsp.llm.calls.jsontext import loads_object
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.messages import UNREADABLE, Image, Message, ToolCall, ToolSpec, without_forms

PICTURES = "(The pictures of the results above.)"

REPLIES = (200, 201)  # gateways whose framework answers each POST with 201 are servers, too

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")

LIMIT = 4 * 1024 * 1024
"""The most characters that are kept for one message; a longer text is left out as a whole."""


def encode(body: dict[str, Any]) -> bytes:
    """Return the body as compact JSON in UTF-8, keys in their order; lone surrogates, which no server accepts, become
    question marks.
    """
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


Given = Callable[[Message], dict[str, Any]]
"""Returns the fields in which a server gets its own state back with an assistant message."""


def chat_messages(messages: Iterable[Message], given: Given | None = None) -> list[dict[str, Any]]:
    """Return the messages in the form of `/chat/completions`, made `tidy` first; `given` adds fields to those of the
    assistant.
    """
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
    """Return the tool descriptions in the form of `/chat/completions`, in the given order, their names as `wire_name`
    spells them.
    """
    return [
        {"type": "function", "function": {**without_forms(tool), "name": wire_name(tool["name"])}} for tool in tools
    ]


def wire_name(name: str) -> str:
    """Return a tool's name as every server accepts it: every character but ASCII letters, digits, `_` and `-` is
    replaced (`a.b` becomes `a__b`), which replies may use as well.
    """
    return name if _PLAIN_NAME.fullmatch(name) else _NOT_IN_NAMES.sub("__", name)


def new_call_id() -> str:
    """Return a random id, `call_` and 12 hexadecimal digits, for a call whose model gave none."""
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


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as it was sent: its name, the text of its arguments, its id ('' for none)."""

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class ReadCalls:
    """The calls of a reply, with unique ids; a sentence for the model on those that could not be read, '' for none; and
    these, as they were written.
    """

    calls: tuple[ToolCall, ...]
    problem: str
    unusable: tuple[ToolCall, ...]


def read_calls(written: Iterable[WrittenCall], *, cut: bool) -> ReadCalls:
    """Return the calls whose arguments are a JSON object, '' for an empty one; an id that is missing or came before is
    replaced. Arguments that are not quite one are repaired, unless the reply was `cut` at its limit, as that would
    invent their end.
    """
    calls: list[ToolCall] = []
    unusable: list[ToolCall] = []
    problems: list[str] = []
    used: set[str] = set()
    for call in written:
        # A call without parameters comes with empty arguments from many servers.
        arguments = loads_object(call.arguments or "{}", repair=not cut)
        if not call.name or arguments is None:
            problems.append(_complaint(call.name, cut=cut))
            unusable.append(ToolCall(call.name or UNREADABLE, {}))
            continue
        call_id = call.id if call.id and call.id not in used else new_call_id()
        used.add(call_id)
        calls.append(ToolCall(call.name, arguments, call_id))
    return ReadCalls(tuple(calls), " ".join(problems), tuple(unusable))


def _complaint(name: str, *, cut: bool) -> str:
    if cut:
        return f"The call of {name or 'a tool'} was cut at the token limit and did not run. Do less at once."
    if not name:
        return "A tool call had no name and did not run. Name the tool."
    return f"The arguments of {name} are not a JSON object, so it did not run. Send one JSON object."


def pack(info: ModelInfo, items: Sequence[Any]) -> str:
    """Return `items` (JSON values), with the model that wrote them, as text for `Message.carried`; '' if there are none
    or the text is longer than LIMIT characters.
    """
    if not items:
        return ""
    text = json.dumps({"by": _origin(info), "items": list(items)}, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= LIMIT else ""


def unpack(info: ModelInfo, carried: str) -> list[Any]:
    """Return the items in the text of `pack`, if the same model of the same provider wrote them; [] from any other, for
    '', or if damaged.
    """
    if not carried:
        return []
    try:
        value = json.loads(carried)
    except (ValueError, RecursionError):
        return []
    if not isinstance(value, dict) or value.get("by") != _origin(info) or not isinstance(value.get("items"), list):
        return []
    items: list[Any] = value["items"]
    return items


def _origin(info: ModelInfo) -> str:
    return f"{info.provider} {info.name}"
