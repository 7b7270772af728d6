"""Client of OpenAI's Responses API: nothing is stored there, so that reasoning goes back and forth encrypted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, Unpack

from codeagent_lsp.errors import ModelError, ModelRejected, ModelStreamBroken
from codeagent_lsp.llm import failures, wire
from codeagent_lsp.llm.deltas import NO_ANSWER, checked_size, token_count
from codeagent_lsp.llm.endpoint import Endpoint
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, ReasoningChunk, Reply, TextChunk
from codeagent_lsp.llm.providers.http_model import HttpModel, Options, refusal
from codeagent_lsp.llm.providers.openai import BREAKPOINT, cache_key, marks_prefix, refuses_marks
from codeagent_lsp.llm.wire import WrittenCall, pack, read_calls, tidy, unpack
from codeagent_lsp.messages import Message, ToolSpec, Usage, without_forms

REASONING_ROOM = {"low": 4096, "high": 32_768}
"""Tokens added to a limit of the reply, in which the API counts the reasoning; for other efforts, `ROOM`."""
ROOM = 16_384

_TEXTS = ("response.output_text.delta", "response.refusal.delta")
_THOUGHTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_STATUS = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
}
LEAST_REPLY = 16
"""The least limit of a reply, in tokens, that the API accepts."""

_BROKEN = "the reply was interrupted"


class ResponsesModel(HttpModel):
    """One model of OpenAI's Responses API, over connections that `close` ends; nothing is stored at the server."""

    OPTIONAL: Mapping[str, str] = {
        "temperature": "",
        "max_output_tokens": "",
        "reasoning": "",
        "include": "",
        "prompt_cache_key": "",
    }

    def __init__(self, where: Endpoint, info: ModelInfo, **options: Unpack[Options]) -> None:
        super().__init__(where, info, **options)
        self._marks = marks_prefix(where, info)

    def _url(self) -> str:
        return f"{self._where.api}/responses"

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        messages = tidy(request.messages)
        told = instructions(messages)
        marked = [_system_item(told)] if self._marks and told else []
        effort = self._effort_for(request)
        body: dict[str, Any] = {
            "model": self._info.name,
            "instructions": "" if marked else told,
            "input": [*marked, *items(messages, self._info)],
            "tools": tools(request.tools),
            "stream": True,
            # Nothing is kept at the server, so reasoning has to be carried along, encrypted, from one request to the
            # next.
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "temperature": request.temperature,
            "reasoning": self._reasoning(effort),
            **cache_key(self._where, request),
        }
        if limit := request.max_tokens or self._max_tokens:
            room = limit + REASONING_ROOM.get(effort, 0 if effort == "none" else ROOM)
            body["max_output_tokens"] = max(LEAST_REPLY, min(room, self._info.facts.longest_reply or room))
        if request.response_schema is not None:
            # `strict` would want every property required and no other keywords than its own.
            schema = {"type": "json_schema", "name": "reply", "schema": request.response_schema, "strict": False}
            body["text"] = {"format": schema}
        return {name: value for name, value in body.items() if value not in ("", [], {})}

    def _reasoning(self, effort: str) -> dict[str, str]:
        wanted = {"summary": "auto"} if effort == "auto" else {"effort": effort, "summary": "auto"}
        # A value of the effort can be refused alone: another one of the setting is tried the next time.
        return {name: value for name, value in wanted.items() if not {name, f"{name}={value}"} & self._refused}

    def _learn(self, error: ModelError, body: dict[str, Any]) -> bool:
        """Learn also which part of `reasoning` is refused: summaries may want a verified account, efforts differ."""
        reason, sent = refusal(error), body.get("reasoning", {})
        if self._marks and refuses_marks(reason):
            self._marks = False
            return True
        for name, said in (("summary", "summar"), ("effort", "effort")):
            if name in sent and len(sent) > 1 and said in reason:
                self._refused.add(f"effort={sent[name]}" if name == "effort" else name)
                return True
        return super()._learn(error, body)

    def _assembler(self) -> ResponsesAssembler:
        return ResponsesAssembler(self._where, self._info)


class ResponsesAssembler:
    """Makes one reply out of the events of one stream of the Responses API; see `http_model.Assembler`."""

    def __init__(self, where: Endpoint, info: ModelInfo) -> None:
        self.ended = False
        self.model = ""
        self._where = where
        self._info = info
        self._items: dict[int, dict[str, Any]] = {}
        self._reasoning: list[str] = []
        self._response: Mapping[str, Any] = {}
        self._size = 0
        self._part = -1

    @property
    def stopped(self) -> bool:
        """Whether the response has ended."""
        return self.ended

    def feed(self, chunk: Mapping[str, Any]) -> list[TextChunk | ReasoningChunk]:
        """Add one event and return the text or reasoning in it that can be shown. ModelError if it is an error,
        ModelReplyInvalid if the reply is too long.
        """
        kind, response = chunk.get("type"), chunk.get("response")
        if kind == "error":
            raise self._failure(chunk.get("error") if isinstance(chunk.get("error"), Mapping) else chunk)
        if isinstance(response, Mapping):
            self.model = str(response.get("model") or self.model)
        if kind in _ENDS and isinstance(response, Mapping):
            self._response, self.ended = response, True
        if kind == "response.output_item.done" and isinstance(chunk.get("item"), dict):
            at = chunk.get("output_index")  # llama.cpp tells none
            self._items[at if type(at) is int else len(self._items)] = chunk["item"]
        piece = chunk.get("delta")
        if not isinstance(piece, str) or not piece:
            return []
        self._grow(len(piece))
        if kind in _THOUGHTS:
            return self._thought(piece, token_count(chunk.get("summary_index")))
        return [TextChunk(piece)] if kind in _TEXTS else []

    def flush(self) -> list[TextChunk | ReasoningChunk]:
        """Return []: nothing is held back."""
        return []

    def finish(self, *, done_marker: bool) -> Reply:
        """Return the reply. ModelStreamBroken when the stream was cut, ModelRejected when it was filtered, another
        ModelError for a failed response.
        """
        if not self.ended:
            raise ModelStreamBroken("model.stream_cut", url=self._where.root)
        if self._response.get("error"):
            raise self._failure(self._response["error"])
        why = self._response.get("incomplete_details")
        reason = why.get("reason") if isinstance(why, Mapping) else None
        if reason == "content_filter":
            raise ModelRejected("model.filtered", url=self._where.root)
        return self._reply(cut=reason == "max_output_tokens")

    def _reply(self, *, cut: bool) -> Reply:
        # Items can come out of order when reasoning and calls are written side by side.
        output = [item for _, item in sorted(self._items.items())] or self._listed_items()
        calls = (item for item in output if item.get("type") == "function_call")
        read = read_calls((_written_call(item) for item in calls), cut=cut)
        text, problem = "".join(map(_text, output)), read.problem
        if cut and not read.calls and not problem and not text.strip():
            problem = NO_ANSWER
        return Reply(
            text=text,
            tool_calls=read.calls,
            finish_reason="length" if cut else "tool_calls" if read.calls else "stop",
            usage=_usage(self._response.get("usage")),
            reasoning="".join(self._reasoning),
            problem=problem,
            unusable=read.unusable,
            # Reasoning is refused without the item behind it, which a cut reply lacks.
            carried="" if cut else pack(self._info, output),
        )

    def _listed_items(self) -> list[dict[str, Any]]:
        """Return the items of the last event, from a server that sends them there only."""
        listed = self._response.get("output")
        return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []

    def _thought(self, piece: str, part: int) -> list[TextChunk | ReasoningChunk]:
        """Show reasoning, with an empty line between its parts."""
        begun, self._part = self._part, part
        piece = f"\n\n{piece}" if begun not in (-1, part) else piece
        self._reasoning.append(piece)
        return [ReasoningChunk(piece)]

    def _failure(self, error: Any) -> Exception:
        """Return the typed error for what the server says went wrong."""
        code = str(error.get("code") or error.get("type") or "") if isinstance(error, Mapping) else ""
        told = error.get("message") if isinstance(error, Mapping) else str(error)
        told = f"{told or _BROKEN} ({code})" if code else str(told or _BROKEN)
        return failures.from_event({"message": told, "code": _STATUS.get(code)}, self._where)

    def _grow(self, amount: int) -> None:
        self._size = checked_size(self._size + amount, self._where)


def _system_item(told: str) -> dict[str, Any]:
    """Return the system prompt as the first message, whose end can be marked for the cache; `instructions` cannot."""
    return {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": told, **BREAKPOINT}]}


def _written_call(item: Mapping[str, Any]) -> WrittenCall:
    arguments = item.get("arguments")
    return WrittenCall(str(item.get("name") or ""), str(arguments or ""), str(item.get("call_id") or ""))


def _text(item: Mapping[str, Any]) -> str:
    content = item.get("content") if item.get("type") == "message" else None
    parts = (part for part in content if isinstance(part, Mapping)) if isinstance(content, list) else ()
    texts = (part.get("text") or part.get("refusal") for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def _usage(value: Any) -> Usage:
    if not isinstance(value, Mapping):
        return Usage()
    given, made = value.get("input_tokens_details"), value.get("output_tokens_details")
    usage = Usage(token_count(value.get("input_tokens")), completion_tokens=token_count(value.get("output_tokens")))
    if isinstance(given, Mapping):
        cached, written = token_count(given.get("cached_tokens")), token_count(given.get("cache_write_tokens"))
        usage = replace(usage, cached_tokens=cached, written_tokens=written)
    if isinstance(made, Mapping):
        usage = replace(usage, reasoning_tokens=token_count(made.get("reasoning_tokens")))
    return usage


# The form of conversations in OpenAI's Responses API: a list of items, each call and each result one of its own.


def instructions(messages: Iterable[Message]) -> str:
    """Return the system prompt, the system messages joined by blank lines; '' for none."""
    return "\n\n".join(message.content for message in messages if message.role == "system")


def items(messages: Iterable[Message], info: ModelInfo) -> list[dict[str, Any]]:
    """Return the conversation without its system messages, as input items of the API, in order: messages, calls,
    results, and the reasoning of the same model.
    """
    return list(chain.from_iterable(_items(message, info) for message in messages if message.role != "system"))


def tools(specs: tuple[ToolSpec, ...]) -> list[dict[str, Any]]:
    """Return the tools in the form of the API (`{"type": "function", …}`), their names as `wire_name` spells them."""
    return [
        {"type": "function", **without_forms(spec), "name": wire.wire_name(spec["name"]), "strict": False}
        for spec in specs
    ]


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
