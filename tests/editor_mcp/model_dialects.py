"""What providers of models are asked and answer, as far as a scripted model needs it: chat completions and Responses of
OpenAI, Messages of Anthropic, contents of Gemini. It imports nothing of ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]


class Dialect:
    """One provider's way. `last` is the text of a request's last message, `stream` the events of a reply: a text, or a
    call of a tool.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self._request = request

    @property
    def has_tools(self) -> bool:
        """Whether the request is the agent's own: others, such as for a title, come without tools."""
        return bool(self._request.get("tools"))

    def last(self) -> str:
        raise NotImplementedError

    def stream(self, step: Json, number: int) -> str:
        raise NotImplementedError


class ChatCompletions(Dialect):
    def last(self) -> str:
        return _text(self._request["messages"][-1]["content"])

    def stream(self, step: Json, number: int) -> str:
        if "text" in step:
            delta, ending = {"content": step["text"]}, "stop"
        else:
            function = {"name": step["tool"], "arguments": json.dumps(step["arguments"])}
            call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
            delta, ending = {"tool_calls": [call]}, "tool_calls"
        head = {"id": "reply", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
        choices = (
            {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": ending},
        )
        events = [f"data: {json.dumps({**head, 'choices': [choice]})}\n\n" for choice in choices]
        return "".join(events) + "data: [DONE]\n\n"


class Responses(Dialect):
    def last(self) -> str:
        item = self._request["input"][-1]
        return _text(item.get("output", item.get("content", "")))

    def stream(self, step: Json, number: int) -> str:
        if "text" in step:
            content = [{"type": "output_text", "text": step["text"], "annotations": []}]
            item = {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": content}
        else:
            given, call = json.dumps(step["arguments"]), {"call_id": f"call_{number}", "id": f"fc_{number}"}
            # Tools of a server of MCP are in the namespace of the server.
            space, _, name = step["tool"].rpartition("/")
            item = {"type": "function_call", **call, "name": name, "arguments": given}
            if space:
                item["namespace"] = space
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        response = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item]}
        return _events(
            {"type": "response.created", "response": {"id": f"resp_{number}"}},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {**response, "usage": usage}},
        )


class Messages(Dialect):
    def last(self) -> str:
        return _text(self._request["messages"][-1]["content"])

    def stream(self, step: Json, number: int) -> str:
        if "text" in step:
            block: dict[str, Any] = {"type": "text", "text": ""}
            ending = "end_turn"
            delta = {"type": "text_delta", "text": step["text"]}
        else:
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": step["tool"], "input": {}}
            delta, ending = {"type": "input_json_delta", "partial_json": json.dumps(step["arguments"])}, "tool_use"
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": []}
        return _events(
            {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": ending, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        )


class Contents(Dialect):
    def last(self) -> str:
        return "\n".join(
            json.dumps(part["functionResponse"]["response"]) if "functionResponse" in part else part.get("text", "")
            for part in self._request["contents"][-1]["parts"]
        )

    def stream(self, step: Json, number: int) -> str:
        part = {"text": step["text"]} if "text" in step else _gemini_call(step)
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return f"data: {json.dumps({'candidates': [candidate], 'usageMetadata': usage})}\r\n\r\n"


def dialect_of(path: str, request: dict[str, Any]) -> Dialect:
    """Return the dialect of a request to this path."""
    place = path.partition("?")[0]
    if "GenerateContent" in place or ":generateContent" in place:
        return Contents(request)
    known: dict[str, type[Dialect]] = {"/responses": Responses, "/messages": Messages}
    return next((made for end, made in known.items() if place.endswith(end)), ChatCompletions)(request)


def _gemini_call(step: Json) -> dict[str, Any]:
    return {"functionCall": {"name": step["tool"], "args": step["arguments"]}}


def _events(*events: Json) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def _text(content: Any) -> str:
    """Return all text in a message's content, in tool results as well."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(map(_text, content))
    if isinstance(content, dict):
        return _text(content.get("text", content.get("content", "")))
    return ""
