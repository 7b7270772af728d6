"""Client of Anthropic's Messages API, and of servers that speak it.

A reply's blocks are kept as they came, thinking with its signatures. Where a person works in an editor, tools and
system prompt are kept in the prompt cache for an hour, as pauses between tasks are longer than the usual five minutes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Unpack

from codeagent_lsp.errors import ContextOverflow, ModelError, ModelRejected, ModelStreamBroken
from codeagent_lsp.llm import failures, wire
from codeagent_lsp.llm.deltas import NO_ANSWER, checked_size
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, ReasoningChunk, Reply, TextChunk
from codeagent_lsp.llm.providers import openai
from codeagent_lsp.llm.providers.http_model import HttpModel, Options, refusal
from codeagent_lsp.llm.wire import WrittenCall, pack, read_calls, tidy, unpack
from codeagent_lsp.messages import Image, Message, ToolSpec, Usage, without_forms

_MOST = re.compile(r"max_tokens: \d+ > (\d+)")
_TTL = re.compile(r"\bttl\b")
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status that an error inside a stream would have had before it."""

VERSION = "2023-06-01"
LONGEST_REPLY = 8192
"""The limit of a reply in tokens where no other is known, as the API requires one."""

THINKING = {"low": 2048, "medium": 8192, "high": 16_384}
"""Tokens that are added to the reply for thinking, and its budget for models that want one."""
MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral"}}
LASTING_MARK: Mapping[str, Any] = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
"""For the beginning of the prompt only: the API requires that what is kept for longer comes first."""

# The last one for the next call, the one before it finds what the last call has written. The API takes four marks.
MARKED_TURNS = 2

_NOT_IN_IDS = re.compile(r"[^a-zA-Z0-9_-]")


class AnthropicModel(HttpModel):
    """One model of Anthropic's Messages API, over connections that `close` ends; prompts are marked for its prompt
    cache.
    """

    OPTIONAL: Mapping[str, str] = {"temperature": "", "stop_sequences": "", "output_config": "", "thinking": ""}

    def __init__(self, where: Endpoint, info: ModelInfo, **options: Unpack[Options]) -> None:
        super().__init__(with_key(where), info, **options)
        self._head_mark = LASTING_MARK if options.get("interactive") else MARK
        self._budgeted = False  # whether the model wants a budget of tokens to think in, learnt from its refusal
        self._longest_reply = 0  # tokens, learnt from a refusal; 0 while it is not known

    def _url(self) -> str:
        return f"{self._where.api}/messages"

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        messages = tidy(request.messages)
        told = turns(messages, self._info)
        thinking = {} if self._budgeted and begun_without_thinking(told) else self._thinking(self._effort_for(request))
        body: dict[str, Any] = {
            "model": self._info.name,
            "max_tokens": self._longest(request, thinking),
            "stream": True,
            "system": system_blocks(messages, self._head_mark),
            "tools": tool_blocks(request.tools, self._head_mark),
            "messages": told,
            "stop_sequences": list(request.stop),
        }
        if request.response_schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.response_schema}}
        if thinking.get("type") in ("adaptive", "enabled"):
            thinks: dict[str, Any] = body.setdefault("output_config", {})
            thinks |= {} if self._budgeted else {"effort": self._effort}
        else:
            body["temperature"] = min(1.0, request.temperature)  # not together with thinking
        body["thinking"] = thinking
        return {name: value for name, value in body.items() if value not in ([], {})}

    def _thinking(self, effort: str) -> dict[str, Any]:
        """Return how the model is to think; {} to leave it to the model."""
        if effort == "auto" or "thinking" in self._refused:
            return {}
        if effort == "none":
            return {"type": "disabled"}
        shown = {} if "display" in self._refused else {"display": "summarized"}  # newer models hide it by default
        if self._budgeted:
            return {"type": "enabled", "budget_tokens": THINKING[effort], **shown}
        return {"type": "adaptive", **shown}

    def _longest(self, request: ModelRequest, thinking: Mapping[str, Any]) -> int:
        """Return the limit of the reply, in which the API counts the thinking."""
        asked = request.max_tokens or self._max_tokens or LONGEST_REPLY
        thinks = thinking.get("type") in ("adaptive", "enabled") or (not thinking and self._info.facts.reasoning)
        room = asked + (THINKING.get(self._effort, THINKING["medium"]) if thinks else 0)
        return min(room, self._longest_reply or self._info.facts.longest_reply or room)

    def _learn(self, error: ModelError, body: dict[str, Any]) -> bool:
        """Learn also the longest reply, how long the cache keeps, and that a model wants a budget for its thinking
        instead of an effort.
        """
        reason = refusal(error)
        # Only a smaller number: the same one again would repeat the request for ever.
        if (most := _MOST.search(reason)) and 0 < int(most[1]) < body["max_tokens"]:
            self._longest_reply = int(most[1])
            return True
        if self._head_mark is LASTING_MARK and _TTL.search(reason):
            self._head_mark = MARK
            return True
        if "display" in body.get("thinking", {}) and "display" in reason:
            self._refused.add("display")
            return True
        if "thinking" in body and ("adaptive" in reason or "effort" in reason):
            if self._budgeted:
                self._refused.add("thinking")  # said of another API's parameter, by a proxy to it
            self._budgeted = True
            return True
        return super()._learn(error, body)

    def _assembler(self) -> MessagesAssembler:
        return MessagesAssembler(self._where, self._info)


class MessagesAssembler:
    """Makes one reply out of the events of one stream of the Messages API; see `http_model.Assembler`."""

    def __init__(self, where: Endpoint, info: ModelInfo) -> None:
        self.ended = self.stopped = False
        self.model = ""
        self._where = where
        self._info = info
        self._blocks: dict[int, dict[str, Any]] = {}  # by index, as they have come so far
        self._arguments: dict[int, str] = {}  # JSON of calls, whole only at the end of their block
        self._stop = ""
        self._counts: dict[str, int] = {}  # the last of each: later events count from the beginning again
        self._size = 0

    def feed(self, chunk: Mapping[str, Any]) -> list[TextChunk | ReasoningChunk]:
        """Add one event and return the text or reasoning in it that can be shown. ModelError if it is an error,
        ModelReplyInvalid if the reply is too long.
        """
        match chunk.get("type"):
            case "error":
                raise self._failure(chunk.get("error"))
            case "message_start" if isinstance(chunk.get("message"), Mapping):
                self.model = str(chunk["message"].get("model") or "")
                self._count(chunk["message"].get("usage"))
            case "message_delta":
                delta = chunk.get("delta")
                self._stop = str((delta.get("stop_reason") if isinstance(delta, Mapping) else "") or self._stop)
                self.stopped = bool(self._stop)
                self._count(chunk.get("usage"))
            case "message_stop":
                self.ended = True
            case "content_block_start" if isinstance(chunk.get("content_block"), dict):
                return self._begin(_index(chunk), chunk["content_block"])
            case "content_block_delta" if isinstance(chunk.get("delta"), Mapping):
                return self._grow(_index(chunk), chunk["delta"])
        return []

    def flush(self) -> list[TextChunk | ReasoningChunk]:
        """Return []: nothing is held back."""
        return []

    def finish(self, *, done_marker: bool) -> Reply:
        """Return the reply. ModelStreamBroken when the stream was cut before its stop reason, ModelRejected for a
        refusal, ContextOverflow if the window is full.
        """
        if not self._stop:
            raise ModelStreamBroken("model.stream_cut", url=self._where.root)
        if self._stop == "refusal":
            raise ModelRejected("model.filtered", url=self._where.root)
        if self._stop == "model_context_window_exceeded":
            raise ContextOverflow("model.overflow", reason=self._stop)
        cut = self._stop == "max_tokens"
        read = read_calls(self._written_calls(), cut=cut)
        text, problem = self._texts("text"), read.problem
        # All of it was thoughts: said as such, or it would count as an empty reply, and be asked for again as it was.
        if cut and not read.calls and not problem and not text.strip():
            problem = NO_ANSWER
        return Reply(
            text=text,
            tool_calls=read.calls,
            finish_reason="length" if cut else "tool_calls" if read.calls else "stop",
            usage=self._usage(),
            reasoning=self._texts("thinking"),
            problem=problem,
            unusable=read.unusable,
            carried=self._carry(),
        )

    def _failure(self, error: Any) -> ModelError:
        told = error if isinstance(error, Mapping) else {"message": str(error)}
        return failures.from_event({**told, "code": _STATUS.get(str(told.get("type")))}, self._where)

    def _begin(self, index: int, block: dict[str, Any]) -> list[TextChunk | ReasoningChunk]:
        self._blocks[index] = dict(block)
        return [*self._show(str(block.get("text") or ""), str(block.get("thinking") or ""))]

    def _grow(self, index: int, delta: Mapping[str, Any]) -> list[TextChunk | ReasoningChunk]:
        """Add a piece to its block. Pieces of an unknown kind are ignored."""
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        for name in ("text", "thinking", "signature"):
            if isinstance(delta.get(name), str):
                block[name] = (block.get(name) or "") + delta[name]
        if isinstance(delta.get("partial_json"), str):
            self._arguments[index] = self._arguments.get(index, "") + delta["partial_json"]
        grown = sum(len(value) for value in delta.values() if isinstance(value, str))
        self._size = checked_size(self._size + grown, self._where)
        return self._show(str(delta.get("text") or ""), str(delta.get("thinking") or ""))

    def _show(self, text: str, thinking: str) -> list[TextChunk | ReasoningChunk]:
        items: list[TextChunk | ReasoningChunk] = [ReasoningChunk(thinking)] if thinking else []
        return [*items, TextChunk(text)] if text else items

    def _written_calls(self) -> list[WrittenCall]:
        return [
            WrittenCall(str(block.get("name") or ""), self._input(index), str(block.get("id") or ""))
            for index, block in sorted(self._blocks.items())
            if block.get("type") == "tool_use"
        ]

    def _input(self, index: int) -> str:
        """Return the text of a call's arguments: its pieces, or what came whole at its beginning."""
        return self._arguments.get(index) or json.dumps(self._blocks[index].get("input") or {}, ensure_ascii=False)

    def _texts(self, kind: str) -> str:
        return "".join(str(block.get(kind) or "") for _, block in sorted(self._blocks.items()))

    def _carry(self) -> str:
        """Return the blocks as they came, if some of them is thinking; the others can be written anew."""
        blocks = []
        for index, block in sorted(self._blocks.items()):
            if block.get("type") == "tool_use":
                read = read_calls([WrittenCall("x", self._input(index))], cut=False).calls
                block = {**block, "input": dict(read[0].arguments)} if read else {}
            if self._can_carry(block):
                blocks.append(block)
        thought = any("thinking" in str(block.get("type")) for block in blocks)
        return pack(self._info, blocks) if thought else ""

    def _can_carry(self, block: Mapping[str, Any]) -> bool:
        """Return whether a block can be given back: no blank text, no thinking that was cut before its signature."""
        if block.get("type") == "thinking":
            return self._stop != "max_tokens" or bool(block.get("signature"))
        return block.get("type") in ("redacted_thinking", "tool_use") or bool(str(block.get("text") or "").strip())

    def _count(self, usage: Any) -> None:
        """Take over the counts of an event, which replace those before."""
        if not isinstance(usage, Mapping):
            return
        parts = (usage.get("output_tokens_details"), usage.get("cache_creation"))
        told = dict(usage) | {name: part[name] for part in parts if isinstance(part, Mapping) for name in part}
        self._counts |= {name: told[name] for name in _COUNTS if type(told.get(name)) is int and told[name] >= 0}

    def _usage(self) -> Usage:
        """Return the counts; the API tells the parts of the prompt."""
        fresh, cached, written, made, thinking, hour = (self._counts.get(name, 0) for name in _COUNTS)
        return Usage(fresh + cached + written, cached, made, written, thinking, written_1h_tokens=hour)


_COUNTS = (
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens",
    "thinking_tokens",
    "ephemeral_1h_input_tokens",
)


def with_key(where: Endpoint) -> Endpoint:
    """Return the address with the key in the header `x-api-key`, and the version header that the API requires."""
    return replace(where, key_header="x-api-key", extra={"anthropic-version": VERSION, **where.extra})


async def model_entries(where: Endpoint, limits: TimeLimits) -> list[dict[str, Any]]:
    """Return the entries of the server's list of models, each with its `id`, and its window if the list has it.
    ModelError if it is unreachable.
    """
    return await openai.model_entries(with_key(where), limits)


def _index(chunk: Mapping[str, Any]) -> int:
    return chunk["index"] if isinstance(chunk.get("index"), int) else 0


# The form of conversations in Anthropic's Messages API: roles in turn, results first, marks for its prompt cache.


def system_blocks(messages: Iterable[Message], mark: Mapping[str, Any] = MARK) -> list[dict[str, Any]]:
    """Return the system messages, joined by blank lines, as one content block of the API (`{"type": "text", …}`), with
    a mark for the prompt cache; [] without any.
    """
    told = [message.content for message in messages if message.role == "system" and message.content.strip()]
    return [{"type": "text", "text": "\n\n".join(told), **mark}] if told else []


def tool_blocks(tools: tuple[ToolSpec, ...], mark: Mapping[str, Any] = MARK) -> list[dict[str, Any]]:
    """Return the tools in the form of the API, their names as `wire_name` spells them, the last one with a mark for the
    prompt cache; [] without tools.
    """
    told = [without_forms(tool) for tool in tools]
    blocks = [
        {"name": wire.wire_name(tool["name"]), "description": tool["description"], "input_schema": tool["parameters"]}
        for tool in told
    ]
    return [*blocks[:-1], {**blocks[-1], **mark}] if blocks else []


def turns(messages: Iterable[Message], info: ModelInfo) -> list[dict[str, Any]]:
    """Return the conversation without its system messages as turns of the API (`{"role", "content"}`): user and
    assistant alternate, the user first, and the last two user turns have a mark for the cache. Turns without text or
    call are left out, as the API refuses them.
    """
    made: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, info)
        # Results of calls are of the user's role here, and all results of a turn have to stand in one.
        if made and made[-1]["role"] == role:
            made[-1]["content"] += blocks
        elif blocks:
            made.append({"role": role, "content": blocks})
    # The API wants the user to begin, and a compaction may have left the assistant's words first.
    if made and made[0]["role"] == "assistant":
        made.insert(0, {"role": "user", "content": [_text("(The conversation goes on.)")]})
    _mark([turn for turn in made if turn["role"] == "user"][-MARKED_TURNS:])
    return made


def begun_without_thinking(told: list[dict[str, Any]]) -> bool:
    """Return whether the last of these turns (as `turns` makes them) continues, after tool results, an assistant's turn
    that began without thinking, as another model does. Models with a thinking budget refuse to think then.
    """
    begun: dict[str, Any] = {}
    for at, turn in enumerate(told):
        # Not behind results: here a turn of the assistant began, and its thinking stands or is missing.
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
