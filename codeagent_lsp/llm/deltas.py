"""Assembly of one reply from the chunks of a chat-completions stream, in any order.

Tool call deltas are matched by id, then by index, then to the current call. Not here: HTTP, the separation of
thinking from the answer (`thinking.py`), and checking calls against tools (`calls/toolcalling.py`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from codeagent_lsp.errors import ModelRejected, ModelReplyInvalid, ModelStreamBroken
from codeagent_lsp.llm import failures
from codeagent_lsp.llm.calls.jsontext import loads_object
from codeagent_lsp.llm.endpoint import Endpoint
from codeagent_lsp.llm.model import FinishReason, ModelInfo, ReasoningChunk, Reply, TextChunk
from codeagent_lsp.llm.thinking import ThinkFilter
from codeagent_lsp.llm.wire import WrittenCall, pack, read_calls
from codeagent_lsp.messages import Usage
from codeagent_lsp.workspace.text.numbers import whole_number

REPLY_LIMIT = 4 * 1024 * 1024
NO_ANSWER = "The reply reached the token limit before any answer. Think less and answer shorter."

_FINISH: dict[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "limit": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
_FILTERED = ("content_filter", "safety", "refusal")
# Finish reasons of a reply that is not one: of DeepSeek and of servers that abort a request.
_INTERRUPTED = ("error", "abort", "insufficient_system_resource")


@dataclass
class _Slot:
    """A partly received tool call."""

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return bool(self.name) and loads_object("".join(self.arguments)) is not None

    def goes_on(self, call_id: str, name: str, piece: str) -> bool:
        """Whether a piece with the same index is of this call. Some servers give every piece an id of its own, others
        give every call the index 0; the name tells those apart.
        """
        if not name:
            return True
        if call_id and self.id and call_id != self.id:
            return False
        # A complete call goes on only by an empty repetition of its head.
        return not self.complete or (name == self.name and not piece.strip())


class Assembler:
    """Assembles one reply: feed it the chunks, JSON objects of an OpenAI-compatible stream, in order; `finish` returns
    the reply once the stream has ended.

    With an `info` the reply carries the reasoning that its server sent in fields of their own.
    """

    def __init__(self, where: Endpoint, info: ModelInfo | None = None) -> None:
        self.ended = False  # the end is an event of its own, `[DONE]`, after usage and timings
        self.finish_reason = ""  # as the server wrote it; '' while the reply goes on
        self.model = ""
        self._where = where
        self._info = info
        self._said: list[str] = []  # what came as `reasoning_content`, to be sent back under this name
        self._details: list[dict[str, Any]] = []  # what came as `reasoning_details`, to be sent back as it came
        self._think = ThinkFilter()
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._slots: list[_Slot] = []  # the calls, in the order in which they began
        self._current: _Slot | None = None  # the call that a piece without id and index goes on with
        self._usage = Usage()
        self._timings: dict[str, float] = {}
        self._size = 0  # characters of all that was received

    @property
    def stopped(self) -> bool:
        """Whether the reply has its finish reason; only token counts may follow."""
        return bool(self.finish_reason)

    def feed(self, chunk: Mapping[str, Any]) -> list[TextChunk | ReasoningChunk]:
        """Add one chunk and return the text and reasoning in it that can be shown.

        Raises ModelError if the chunk carries an error or the reply is longer than 4 Mi characters.
        """
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        choice = choice if isinstance(choice, Mapping) else {}
        # OpenRouter tells the failure of a provider inside the choice.
        if error := chunk.get("error") or choice.get("error"):
            raise failures.from_event(error, self._where)
        self._note(chunk)
        # The delta of the same chunk still counts: some servers send the last text together with the reason.
        if isinstance(choice.get("finish_reason"), str):
            self.finish_reason = choice["finish_reason"]
        delta = choice.get("delta") or choice.get("message") or {}
        return self._delta(delta) if isinstance(delta, Mapping) else []

    def finish(self, *, done_marker: bool) -> Reply:
        """Return the reply. ModelStreamBroken when the stream was cut before its finish reason, ModelRejected when the
        server has filtered the reply.

        A server may end with `[DONE]` (`done_marker`) and no reason; that is a complete reply unless it has tool calls.
        """
        # A call without a reason to stop may be cut: half of its arguments can be valid JSON.
        unfinished = not self.finish_reason and (self._slots or not done_marker)
        if unfinished or self.finish_reason in _INTERRUPTED:
            raise ModelStreamBroken("model.stream_cut", url=self._where.root)
        if self.finish_reason in _FILTERED:
            raise ModelRejected("model.filtered", url=self._where.root)
        reason = _FINISH.get(self.finish_reason, "stop")
        written = (WrittenCall(slot.name, "".join(slot.arguments), slot.id) for slot in self._slots)
        # Only now: arguments are whole no earlier, and may be valid JSON before that.
        read = read_calls(written, cut=reason == "length")
        problem = read.problem
        if reason == "length" and not read.calls and not problem and not "".join(self._text).strip():
            problem = NO_ANSWER
        return Reply(
            text=self._answer(),
            tool_calls=read.calls,
            finish_reason="tool_calls" if read.calls and reason == "stop" else reason,
            usage=self._usage,
            reasoning="".join(self._reasoning),
            problem=problem,
            unusable=read.unusable,
            timings=self._timings,
            carried=pack(self._info, self._wanted_back()) if self._info else "",
        )

    def flush(self) -> list[TextChunk | ReasoningChunk]:
        """Return the text and reasoning that were held back because a thinking tag might have begun there; call it at
        the end. [] for nothing.
        """
        return self._show(*self._think.close())

    def _answer(self) -> str:
        """Return the text without thoughts that were shown as such, unless there is nothing else."""
        text = "".join(self._text)
        return text[self._think.thoughts :].lstrip() or text if self._think.thoughts else text

    def _note(self, chunk: Mapping[str, Any]) -> None:
        if isinstance(chunk.get("model"), str):
            self.model = chunk["model"]
        if isinstance(chunk.get("usage"), Mapping):
            self._usage = _usage(chunk["usage"])
        if isinstance(chunk.get("timings"), Mapping):
            self._timings = numbers(chunk["timings"])
            # llama.cpp tells what it took from its cache in `timings` alone.
            if not self._usage.cached_tokens:
                self._usage = with_timings(self._usage, self._timings)

    def _delta(self, delta: Mapping[str, Any]) -> list[TextChunk | ReasoningChunk]:
        # Only what came under DeepSeek's name goes back under it.
        self._said.append(_text(delta.get("reasoning_content")))
        for detail in delta["reasoning_details"] if isinstance(delta.get("reasoning_details"), list) else []:
            if isinstance(detail, dict):
                add_detail(self._details, detail)
        items = self._show("", _text(delta.get("reasoning_content") or delta.get("reasoning")))
        items += self._show(*self._think.feed(_text(delta.get("content") or delta.get("refusal"))))
        calls = delta.get("tool_calls")
        legacy = delta.get("function_call")
        if isinstance(legacy, Mapping):
            calls = [{"index": 0, "function": legacy}]
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, Mapping):
                self._call(call)
        return items

    def _wanted_back(self) -> list[dict[str, Any]]:
        """Return the reasoning under the names of DeepSeek and of OpenRouter, as far as there was any."""
        named = {"reasoning_content": "".join(self._said), "reasoning_details": self._details}
        return [{name: value} for name, value in named.items() if value]

    def _show(self, text: str, reasoning: str) -> list[TextChunk | ReasoningChunk]:
        items: list[TextChunk | ReasoningChunk] = []
        if reasoning:
            self._reasoning.append(reasoning)
            items.append(ReasoningChunk(reasoning))
        if text:
            self._text.append(text)
            items.append(TextChunk(text))
        self._grow(len(text) + len(reasoning))
        return items

    def _call(self, delta: Mapping[str, Any]) -> None:
        function = delta.get("function")
        # Some servers leave the level `function` out.
        function = function if isinstance(function, Mapping) else delta
        name, call_id = _text(function.get("name")), _text(delta.get("id"))
        arguments = function.get("arguments")
        piece = arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
        slot = self._slot(call_id, _index(delta.get("index")), name, piece)
        self._current = slot
        slot.name += name if name != slot.name else ""  # some servers repeat it with every piece
        slot.arguments.append(piece)
        self._grow(len(piece))

    def _slot(self, call_id: str, index: int | None, name: str, piece: str) -> _Slot:
        """Return the call a delta belongs to: by id, then index, then the current one; else a new one."""
        if call_id:
            same = next((slot for slot in self._slots if slot.id == call_id), None)
            # An id that comes again with another index and a name begins a second call.
            if same and not (name and index is not None and same.index != index):
                return same
        if index is not None:
            # The latest one: servers that give all calls the index 0 send them one after the other.
            at = next((slot for slot in reversed(self._slots) if slot.index == index), None)
            if at and at.goes_on(call_id, name, piece):
                at.id = at.id or call_id
                return at
        elif self._current and not call_id and not (name and self._current.complete):
            return self._current
        slot = _Slot(index, call_id)
        self._slots.append(slot)
        return slot

    def _grow(self, amount: int) -> None:
        self._size = checked_size(self._size + amount, self._where)


def checked_size(size: int, where: Endpoint) -> int:
    """Return `size`, the number of characters of a reply so far. ModelReplyInvalid if it is above 4 MiB."""
    if size > REPLY_LIMIT:
        raise ModelReplyInvalid("model.reply_too_long", url=where.root, limit=f"{REPLY_LIMIT >> 20} MiB")
    return size


def add_detail(details: list[dict[str, Any]], piece: Mapping[str, Any]) -> None:
    """Add a streamed piece of OpenRouter's `reasoning_details` to the list, in place; a text or summary is appended to
    the last one of its kind.
    """
    last = details[-1] if details else {}
    grows = next((name for name in ("text", "summary") if piece.get("type") == f"reasoning.{name}"), "")
    same = all(piece.get(name) == last.get(name) for name in ("type", "index"))
    # A signature ends its part: it is made over what stands before it.
    if not grows or not same or last.get("signature"):
        details.append(dict(piece))
        return
    news = {name: value for name, value in piece.items() if value is not None and name != grows}
    last.update(news, **{grows: (last.get(grows) or "") + (piece.get(grows) or "")})


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the numeric entries of a server's `timings` as floats; booleans and all others are left out."""
    return {key: float(value) for key, value in values.items() if type(value) in (int, float)}


def with_timings(usage: Usage, timings: Mapping[str, float]) -> Usage:
    """Return the usage with counts that it lacks taken from llama.cpp's timings: `cache_n` tokens reused, `prompt_n`
    evaluated, `predicted_n` written.
    """
    cached = int(timings.get("cache_n", 0))
    return replace(
        usage,
        prompt_tokens=usage.prompt_tokens or cached + int(timings.get("prompt_n", 0)),
        cached_tokens=cached or usage.cached_tokens,
        completion_tokens=usage.completion_tokens or int(timings.get("predicted_n", 0)),
    )


def _usage(value: Mapping[str, Any]) -> Usage:
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    # DeepSeek's name for it.
    cached = cached if cached is not None else value.get("prompt_cache_hit_tokens")
    written = details.get("cache_write_tokens") if isinstance(details, Mapping) else None
    made = value.get("completion_tokens_details")
    reasoning = made.get("reasoning_tokens") if isinstance(made, Mapping) else None
    return Usage(
        token_count(value.get("prompt_tokens")),
        token_count(cached),
        token_count(value.get("completion_tokens")),
        token_count(written),
        reasoning_tokens=token_count(reasoning),
    )


def _index(value: Any) -> int | None:
    """Return the index of a call, which some servers send as text."""
    return int(value) if isinstance(value, int) else whole_number(value) if isinstance(value, str) else None


def token_count(value: Any) -> int:
    """Return `value`, from a server's answer, if it is a positive int, else 0."""
    return value if type(value) is int and value > 0 else 0


def _text(value: Any) -> str:
    """Return the text of a delta, which some servers send as a list of parts."""
    if isinstance(value, list):
        return "".join(_text(part.get("text")) for part in value if isinstance(part, Mapping))
    return value if isinstance(value, str) else ""
