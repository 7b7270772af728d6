"""A conversation as the `contents` of the Gemini API: turns of parts, each call answered in the next turn, in order.

The parts of a model's turn go back as they came (`llm/carried.py`). Not here: requests and replies (`gemini.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any

from codeagent_lsp.llm.carried import unpack
from codeagent_lsp.llm.model import ModelInfo
from codeagent_lsp.llm.wire import wire_name
from codeagent_lsp.messages import Message

Part = dict[str, Any]

NO_SIGNATURE = "skip_thought_signature_validator"
"""Stands, by Google's documentation, for the signature of a call that another model has written."""

_START = "(The conversation goes on.)"


def contents(messages: Iterable[Message], info: ModelInfo, *, signed: bool) -> list[dict[str, Any]]:
    """Return the turns of a conversation without its system message.

    `signed` is for models that refuse a turn whose first call has no thought signature.
    """
    turns: list[dict[str, Any]] = []
    for role, parts in _turns(list(messages), info, signed=signed):
        if not turns and role == "model":
            turns.append({"role": "user", "parts": [{"text": _START}]})
        if turns and role == "model" == turns[-1]["role"]:
            turns[-1]["parts"] += parts  # calls must follow a turn of the user
        else:
            turns.append({"role": role, "parts": parts})
    return turns or [{"role": "user", "parts": [{"text": _START}]}]


def _turns(messages: list[Message], info: ModelInfo, *, signed: bool) -> Iterator[tuple[str, list[Part]]]:
    """Yield role and parts of each turn that has any. Results without their call become a text of the user."""
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if message.role != "assistant":
            yield from _told(message)
            continue
        results = list(takewhile(lambda later: later.role == "tool", messages[at:]))
        at += len(results)
        by_call = {said.tool_call_id: said for said in results}
        kept = _kept(message, info, by_call)
        if parts := [part for _, part in kept]:
            yield "model", _signed(parts) if signed else parts
        if answers := [_answer(part, by_call.pop(call_id)) for call_id, part in kept if call_id]:
            yield "user", answers
        for said in by_call.values():
            yield from _told(said)


def _told(message: Message) -> Iterator[tuple[str, list[Part]]]:
    result = f"Result of {message.name or 'a tool'}:\n" if message.role == "tool" else ""
    if text := f"{result}{message.content}".strip():
        pictures = ({"inlineData": {"mimeType": item.media_type, "data": item.data}} for item in message.images)
        yield "user", [{"text": text}, *pictures]


def _kept(message: Message, info: ModelInfo, answered: Mapping[str, Message]) -> list[tuple[str, Part]]:
    """Return the parts of a message, a call with its id: as they came, without calls that have no result."""
    stored = (item for item in unpack(info, message.carried) if isinstance(item, list) and len(item) == 2)
    came: list[tuple[str, Part]] = [(call_id, part) for call_id, part in stored if isinstance(part, dict)]
    if not came and message.content.strip():
        came = [("", {"text": message.content})]
    wanted = {call.id: call for call in message.tool_calls if call.id in answered}
    kept = [(call_id, part) for call_id, part in came if (call_id in wanted if call_id else _says(part))]
    known = {call_id for call_id, _ in kept}
    for call_id, call in wanted.items():
        if call_id not in known:
            kept.append((call_id, {"functionCall": {"name": wire_name(call.name), "args": dict(call.arguments)}}))
    return kept


def _says(part: Part) -> bool:
    """Return whether a part is not only an empty text, which the API refuses; one with a signature counts."""
    return bool(part.get("text")) or bool(part.keys() - {"text", "thought"})


def _signed(parts: list[Part]) -> list[Part]:
    """Return the parts, the first call with a signature: that of another model, or one whose first call is gone."""
    first = next((at for at, part in enumerate(parts) if "functionCall" in part), None)
    if first is None or "thoughtSignature" in parts[first]:
        return parts
    return [*parts[:first], {**parts[first], "thoughtSignature": NO_SIGNATURE}, *parts[first + 1 :]]


def _answer(part: Part, said: Message) -> Part:
    call = part["functionCall"]
    named = {"id": call["id"], "name": call["name"]} if "id" in call else {"name": call["name"]}
    return {"functionResponse": {**named, "response": {"output": said.content}}}
