"""Client of Ollama's own chat endpoint, `/api/chat`, which alone lets a request choose the size of the window.

Ollama cuts a prompt that is longer than the window, by default at 4,096 tokens, and says nothing: the window begins
large enough for an agent, grows with the prompt, and the count of tokens that comes back is checked. A chunk is read as
one of a chat completion. Not here: Ollama's OpenAI-compatible endpoint (`openai.py`), pulling models.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Unpack

from codeagent_lsp.errors import ContextOverflow, ModelBusy, ModelError, ModelNotFound
from codeagent_lsp.llm import exchange, failures, wire
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.exchange import Clock, Exchange
from codeagent_lsp.llm.learned_facts import LOCAL_WINDOW, Facts
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, Reply, StreamItem
from codeagent_lsp.llm.providers.http_model import Options, most_tokens
from codeagent_lsp.llm.providers.openai import OpenAIModel, fetch_json, list_models
from codeagent_lsp.llm.wire import unpack
from codeagent_lsp.messages import Message, Usage
from codeagent_lsp.state import json_object
from codeagent_lsp.system import memory_bytes

AGENT_WINDOW = 32_768
"""The window that is asked for first, in tokens, where model and memory have it: a prompt with tools and some files
that were read fits, so the model is not loaded anew amid the first task. Each later step doubles it."""
SMALLEST_WINDOW = 8192
_MEMORY_SHARE = 4  # of the machine's memory, the part that may be for the window; the weights need some as well

LONGEST_REPLY = 4096
THINKING_ROOM = 4096
"""Tokens added to a limit of the reply, which counts the thoughts too."""

KEEP_ALIVE = "30m"
"""The time for which the model stays loaded: longer than a command that the agent waits for."""

_LOWEST_SHARE = 0.6
"""The smallest part of our estimate, which is rather too high, that a prompt has in tokens, while none was counted."""

_CACHED_SHARE = 0.3
"""A smaller one shows that the server leaves tokens in its cache out of its count."""

_DOUBT = 0.85
_TOO_SHORT = 1000  # tokens: of less, the notation of the messages is too large a part
_NO_MEMORY = re.compile(r"more system memory|out of memory|insufficient memory", re.IGNORECASE)


class OllamaModel(OpenAIModel):
    """One model of an Ollama server. Its window, `num_ctx`, only grows, as the server loads the model again for another
    one.
    """

    OPTIONAL: Mapping[str, str] = {"think": ""}

    def __init__(
        self,
        where: Endpoint,
        info: ModelInfo,
        **options: Unpack[Options],
    ) -> None:
        most = info.context_window or LOCAL_WINDOW
        options["max_tokens"] = options.get("max_tokens") or min(LONGEST_REPLY, most // 4)
        super().__init__(where, info, **options)
        self._most = most
        self._first = min(AGENT_WINDOW, most)
        self._num_ctx = 0
        self._needed = 0  # tokens of the last request, by our estimate
        self._low: float | None = None  # the least and the most that a prompt had in tokens, by our estimate
        self._high = 1.0

    def _url(self) -> str:
        return f"{self._where.root}/api/chat"

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._info.name, "messages": self._messages(request.messages)}
        if request.tools:
            body["tools"] = wire.tool_list(request.tools)
        if request.response_schema is not None:
            body["format"] = request.response_schema
        if (think := self._think(self._effort_for(request))) is not None:
            body["think"] = think
        limit = (request.max_tokens or self._max_tokens or LONGEST_REPLY) + (THINKING_ROOM if think else 0)
        # By the highest ratio that was seen: a window too large costs memory, one too small cuts the prompt in
        # silence.
        self._needed = int(_estimate(body) * self._high) + limit
        self._num_ctx = self._window_for(self._needed)
        options: dict[str, Any] = {"temperature": request.temperature, "num_predict": limit, "num_ctx": self._num_ctx}
        if request.stop:
            options["stop"] = list(request.stop)
        # since 0.12 a prompt that is too long can be refused, and a reply ended, instead of being cut
        return {**body, "stream": True, "truncate": False, "shift": False, "keep_alive": KEEP_ALIVE, "options": options}

    def _messages(self, messages: tuple[Message, ...]) -> list[dict[str, Any]]:
        names = {call.id: wire.wire_name(call.name) for message in messages for call in message.tool_calls}
        return [self._message(message, names) for message in wire.tidy(messages)]

    def _message(self, message: Message, names: Mapping[str, str]) -> dict[str, Any]:
        said: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.images:
            return {**said, "images": [image.data for image in message.images]}
        if message.role == "tool":
            return {**said, "tool_name": names.get(message.tool_call_id, message.name)}
        thoughts = [item.get("reasoning_content", "") for item in unpack(self._info, message.carried)]
        if thinking := "".join(thoughts):
            said["thinking"] = thinking
        if message.tool_calls:
            said["tool_calls"] = [
                {"function": {"name": names[call.id], "arguments": dict(call.arguments)}} for call in message.tool_calls
            ]
        return said

    def _think(self, effort: str) -> bool | str | None:
        """Return whether to think, None to leave it to the model. Only gpt-oss knows levels, and cannot do without."""
        if effort == "auto" or not self._info.facts.reasoning:
            return None
        if "gpt-oss" in self._info.name:
            return "low" if effort == "none" else effort
        return effort != "none"

    def _window_for(self, tokens: int) -> int:
        """Return the window for so many tokens: the next step, at most what the model has, never less than before."""
        step = self._first
        # In doubling steps: each change of the window has the server load the model anew.
        while step < tokens:
            step *= 2
        return max(self._num_ctx, min(step, self._most))

    def _chunk(self, data: str) -> dict[str, Any]:
        chunk = super()._chunk(data)
        return as_chat_chunk(chunk) if "message" in chunk or "done" in chunk else chunk

    async def _look(self) -> None:
        """Limit the window to the model's length, choose the first, and keep a larger one with which the model runs
        already: it is not loaded anew.
        """
        where, name, limits = self._where, self._info.name, self._limits
        shown, running = await asyncio.gather(_show(where, name, limits), _running(where, name, limits))
        self._most = min(self._most, _length(shown) or self._most)
        self._first = _first_window(where, shown, self._most)
        loaded = running.get("context_length")
        if type(loaded) is int and loaded >= self._first:
            self._num_ctx = min(self._most, loaded)

    async def _exchange(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield one exchange. A window for which there is no memory is not asked for again."""
        if not self._num_ctx:
            await self._look()
        before = self._num_ctx
        while True:
            try:
                async with aclosing(super()._exchange(request)) as items:
                    async for item in items:
                        yield item
                return
            except ModelBusy as error:
                reason = str(error.values.get("reason", ""))
                if not _NO_MEMORY.search(reason) or max(before, SMALLEST_WINDOW) >= self._num_ctx:
                    raise
                # The last window that was loaded; without one, half of what did not fit.
                self._most = before or max(self._num_ctx // 2, SMALLEST_WINDOW)
                self._first = min(self._first, self._most)
                self._num_ctx = before
                self._info = replace(self._info, facts=replace(self._info.facts, context_window=self._most))
                if self._needed > self._most:
                    raise ContextOverflow("model.overflow", reason=reason) from error

    async def _reply(self, body: dict[str, Any], url: str = "") -> AsyncGenerator[StreamItem, None]:
        async with aclosing(super()._reply(body, url)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    self._check(body, item.usage)
                    item = _with_ids(item, body)
                yield item

    def _check(self, body: dict[str, Any], usage: Usage) -> None:
        """Raise ContextOverflow if the server must have cut the prompt, by the number of tokens that it has read.

        Only a prompt that may not fit can be cut, unless the count is about that of the whole window.
        """
        told, window, ours = usage.prompt_tokens, int(body["options"]["num_ctx"]), _estimate(body)
        if not told:
            return
        # A count near the whole window means that it was cut to fit; nearer still where our own estimate expected as
        # much.
        full = window - window // (8 if told > ours else 64)
        least = ours * (_LOWEST_SHARE if self._low is None else self._low) * _DOUBT
        if told >= full or (ours > window and told < least):
            self._high = max(self._high, told / ours)
            self._num_ctx = self._window_for(window + 1)
            name = self._info.name
            raise ContextOverflow("model.prompt_cut", name=name, told=told, ours=ours, window=window)
        if _TOO_SHORT < ours <= window:
            low = min(told / ours, 1.0 if self._low is None else self._low)
            # 0 for a server whose counts leave out its cache: small counts then prove nothing.
            self._low, self._high = low if low > _CACHED_SHARE else 0.0, max(self._high, told / ours)

    async def _missing(self, error: ModelError) -> ModelError:
        names = ", ".join((await list_models(self._where, self._limits))[:20])
        return ModelNotFound("model.not_pulled", url=self._where.root, name=self._info.name, available=names or "-")


async def is_ollama(where: Endpoint, limits: TimeLimits) -> bool:
    """Return whether the server at `where` is Ollama; False also if it does not answer."""
    return isinstance((await fetch_json(where, f"{where.root}/api/version", limits) or {}).get("version"), str)


async def read_facts(where: Endpoint, name: str, limits: TimeLimits) -> Facts:
    """Ask `/api/show` about a model and return its facts; empty if the server does not answer. The window is smaller if
    the model is loaded already and does not fit the GPU.
    """
    shown, running = await asyncio.gather(_show(where, name, limits), _running(where, name, limits))
    window = _length(shown)
    size, on_gpu, loaded = (running.get(key) for key in ("size", "size_vram", "context_length"))
    if window and isinstance(size, int) and isinstance(on_gpu, int) and isinstance(loaded, int) and 0 < on_gpu < size:
        window = min(window, max(loaded, SMALLEST_WINDOW))
    able = shown.get("capabilities")
    if not isinstance(able, list):
        return Facts(context_window=window)
    return Facts(
        context_window=window,
        reasoning="thinking" in able,
        vision="vision" in able,
        native_tools="tools" in able,
    )


async def loaded_window(where: Endpoint, name: str, limits: TimeLimits) -> int:
    """Return the window in tokens with which the model is loaded, else the one that is requested first (also if the
    server does not answer); a request with another one makes the server load it again.
    """
    shown, running = await asyncio.gather(_show(where, name, limits), _running(where, name, limits))
    loaded = running.get("context_length")
    if type(loaded) is int and loaded > 0:
        return loaded
    return _first_window(where, shown, _length(shown) or LOCAL_WINDOW)


def as_chat_chunk(chunk: dict[str, Any]) -> dict[str, Any]:
    """Return a line of Ollama's `/api/chat` (JSON data) in the shape of a chat completions chunk; each call in it is
    complete, and the last one has the token counts.
    """
    message: dict[str, Any] = chunk["message"] if isinstance(chunk.get("message"), dict) else {}
    given = message["tool_calls"] if isinstance(message.get("tool_calls"), list) else []
    calls = [call.get("function") for call in given if isinstance(call, dict)]
    delta = {
        "content": message.get("content"),
        "reasoning_content": message.get("thinking"),
        "tool_calls": [
            {"function": {"name": call.get("name"), "arguments": json.dumps(call.get("arguments") or {})}}
            for call in calls
            if isinstance(call, dict)
        ],
    }
    reason = (chunk.get("done_reason") or "stop") if chunk.get("done") else None
    usage = {"prompt_tokens": chunk.get("prompt_eval_count"), "completion_tokens": chunk.get("eval_count")}
    return {
        "choices": [{"delta": delta, "finish_reason": reason}],
        "usage": usage if chunk.get("done") else None,
        "model": chunk.get("model"),
        "error": chunk.get("error"),
    }


def _with_ids(reply: Reply, body: dict[str, Any]) -> Reply:
    """Return the reply with ids for its calls, which Ollama does not have: the same for the same conversation."""
    digest = hashlib.sha256(wire.encode({"messages": body["messages"]})).hexdigest()[:12]
    calls = (replace(call, id=f"call_{digest}_{number}") for number, call in enumerate(reply.tool_calls))
    return replace(reply, tool_calls=tuple(calls))


def _estimate(body: dict[str, Any]) -> int:
    read = [body["messages"], body.get("tools") or ""]
    return most_tokens(json.dumps(read, ensure_ascii=False, separators=(",", ":")))


def _first_window(where: Endpoint, shown: dict[str, Any], most: int) -> int:
    """Return the window to begin with: AGENT_WINDOW, or less where the model or the memory of this machine has less."""
    window = min(AGENT_WINDOW, most)
    # What another machine has, nobody tells.
    room = memory_bytes() // _MEMORY_SHARE if where.loopback else None
    each = _bytes_per_token(shown)
    while room is not None and window > SMALLEST_WINDOW and window * each > room:
        window = max(window // 2, SMALLEST_WINDOW)
    return window


def _bytes_per_token(shown: dict[str, Any]) -> int:
    """Return what a token takes in the window, keys and values of 16 bits in each layer; 0 if it is not told."""
    details = shown.get("model_info")
    told = details if isinstance(details, dict) else {}
    numbers = {key.partition(".")[2]: value for key, value in told.items() if type(value) is int}
    layers, heads = numbers.get("block_count", 0), numbers.get("attention.head_count", 0)
    length = numbers.get("attention.key_length") or numbers.get("embedding_length", 0) // max(heads, 1)
    return 2 * 2 * layers * numbers.get("attention.head_count_kv", heads) * length


def _length(shown: dict[str, Any]) -> int | None:
    """Return the window that a model was trained for, in the keys of its architecture."""
    details = shown.get("model_info")
    found = details.items() if isinstance(details, dict) else ()
    lengths = [value for key, value in found if key.endswith(".context_length") and type(value) is int and value > 0]
    return min(lengths, default=None)


async def _running(where: Endpoint, name: str, limits: TimeLimits) -> dict[str, Any]:
    value = await fetch_json(where, f"{where.root}/api/ps", limits) or {}
    full = name if ":" in name else f"{name}:latest"
    listed = value["models"] if isinstance(value.get("models"), list) else []
    models = [model for model in listed if isinstance(model, dict)]
    return next((model for model in models if full in (model.get("name"), model.get("model"))), {})


async def _show(where: Endpoint, name: str, limits: TimeLimits) -> dict[str, Any]:
    http = Exchange(where, limits, {})
    try:
        async with http.post(f"{where.root}/api/show", {"model": name}, Clock.start(limits)) as response:
            raw = await exchange.read_body(response, limits, failures.BODY_LIMIT * 64)
        return json_object(raw) or {}
    except ModelError:
        return {}
    finally:
        await http.close()
