"""Streaming client of `/v1/chat/completions` on any OpenAI-compatible server, and the use of OpenAI's own prompt cache.

OpenAI's models from GPT-5.6 on bill what they write into the cache, and find in it only what ends at a breakpoint: one
at the end of the latest message, which the server sets, and those that are marked in texts. So the end of the stable
prefix, which is the system prompt behind the tools, is marked. No other server gets the fields for it
(https://developers.openai.com/api/docs/guides/prompt-caching).

What servers say of a model in their lists is read, too, each in its own words: vLLM, OpenRouter, Groq, Mistral and
Together in `/v1/models`, LM Studio in `/api/v0/models`.

Not here: what is the same for all servers (`http_model.py`), extensions of llama.cpp (`llamacpp.py`), tool calls for
models without tools (`calls/toolcalling.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
from collections.abc import Mapping
from typing import Any, Unpack

from codeagent_lsp.errors import ModelError, ModelNotFound, ModelTimeout
from codeagent_lsp.llm import exchange, failures, wire
from codeagent_lsp.llm.deltas import Assembler
from codeagent_lsp.llm.endpoint import TROUBLE, Endpoint, TimeLimits, open_client
from codeagent_lsp.llm.learned_facts import Facts, Prices
from codeagent_lsp.llm.model import ModelInfo, ModelRequest
from codeagent_lsp.llm.providers.http_model import HttpModel, Options, refusal
from codeagent_lsp.llm.wire import unpack
from codeagent_lsp.messages import Message
from codeagent_lsp.state import json_object

OPENAI = "api.openai.com"
BREAKPOINT = {"prompt_cache_breakpoint": {"mode": "explicit"}}

_REASONING = ("reasoning_content", "reasoning_details")
_BILLS_WRITES = (5, 6)
_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_MISSED = re.compile(r"missing|must be|required|expected", re.IGNORECASE)

_WINDOW = (
    "max_model_len",
    "loaded_context_length",
    "context_window",
    "context_length",
    "max_context_length",
    "max_input_tokens",
    "n_ctx",
)
_REPLY = ("max_completion_tokens", "max_output_tokens", "max_output_length", "max_tokens")


class OpenAIModel(HttpModel):
    """One model of one OpenAI-compatible server (`/v1/chat/completions`), over connections that `close` ends."""

    OPTIONAL: Mapping[str, str] = {
        "stream_options": "",
        "temperature": "",
        "max_tokens": "max_completion_tokens",
        "stop": "",
        "reasoning_effort": "",
        "chat_template_kwargs": "",
        "prompt_cache_key": "",
    }

    def __init__(
        self,
        where: Endpoint,
        info: ModelInfo,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(where, info, **options)
        self._demanded: set[str] = set()
        self._marks = marks_prefix(where, info)

    def _url(self) -> str:
        return f"{self._where.api}/chat/completions"

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._info.name,
            "messages": self._conversation(request),
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": request.temperature,
            **cache_key(self._where, request),
        }
        if limit := request.max_tokens or self._max_tokens:
            body["max_tokens"] = limit
        if (effort := self._effort_for(request)) != "auto":
            body["reasoning_effort"] = effort
        if effort == "none" and self._where.loopback:  # the templates of open models have a switch of their own
            body["chat_template_kwargs"] = {"enable_thinking": False}
        if request.tools:
            body["tools"] = wire.tool_list(request.tools)
        if request.stop:
            body["stop"] = list(request.stop)
        if request.response_schema is not None:
            schema = {"name": "reply", "schema": request.response_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def _conversation(self, request: ModelRequest) -> list[dict[str, Any]]:
        """Return the messages, the end of the system prompt marked for the cache where that is wanted."""
        told = wire.chat_messages(request.messages, self._given_back)
        first = told[0] if told else {}
        if self._marks and first.get("role") == "system" and first["content"]:
            # A mark stands at a part of the content, so that has to be a list of parts.
            told[0] = {**first, "content": [{"type": "text", "text": first["content"], **BREAKPOINT}]}
        return told

    def _assembler(self) -> Assembler:
        return Assembler(self._where, self._info)

    def _given_back(self, message: Message) -> dict[str, Any]:
        """Return the reasoning of a message as its server wants it back: DeepSeek's only in turns with tool calls.

        A server on this machine gets it only if it has demanded it: most ignore it, and it takes room in the window.
        """
        if not message.carried and not self._demanded:
            return {}
        known = {name: value for item in unpack(self._info, message.carried) for name, value in item.items()}
        wanted = self._demanded if self._where.loopback else {*_REASONING} - self._refused
        given = {name: known[name] for name in _REASONING if name in wanted & known.keys()}
        if not message.tool_calls:
            given.pop("reasoning_content", None)
        elif "reasoning_content" in self._demanded:
            given.setdefault("reasoning_content", "")  # of turns that another model has written
        return given

    def _learn(self, error: ModelError, body: dict[str, Any]) -> bool:
        """Learn also from a refusal which reasoning the server wants back, and which it does not take."""
        reason = refusal(error)
        learned = super()._learn(error, body)
        if self._marks and refuses_marks(reason):
            self._marks, learned = False, True
        for name in (name for name in _REASONING if name in reason):
            if _MISSED.search(reason) and name not in self._demanded:
                self._demanded.add(name)
                self._refused.discard(name)
                learned = True
            # Only what was sent can have been refused; else the next try would be the same again.
            elif name not in self._refused and any(name in message for message in body.get("messages", ())):
                self._refused.add(name)
                self._demanded.discard(name)
                learned = True
        return learned

    async def _missing(self, error: ModelError) -> ModelError:
        return failures.unknown_model(error, self._info.name, await list_models(self._where, self._limits))


def cache_key(where: Endpoint, request: ModelRequest) -> dict[str, str]:
    """Return the field by which OpenAI sends requests with the same prefix to the same machine; {} for other servers.

    All requests of a session share one key; those of none share one with the same system prompt and first request.
    """
    if not where.is_of(OPENAI):
        return {}
    begin = request.session or "\0".join(message.content for message in request.messages[:2])
    return {"prompt_cache_key": hashlib.sha256(begin.encode("utf-8", "replace")).hexdigest()[:32]}


def marks_prefix(where: Endpoint, info: ModelInfo) -> bool:
    """Return whether the end of the stable prefix gets a mark for the cache: at OpenAI's own address, for a model that
    has a price for cache writes, or is not in the price list and has a version from 5.6 on in its name.
    """
    if not where.is_of(OPENAI):
        return False
    if (prices := info.facts.prices) is not None:
        return prices.written is not None
    version = _VERSION.search(info.name)
    return version is not None and (int(version[1]), int(version[2] or 0)) >= _BILLS_WRITES


def refuses_marks(reason: str) -> bool:
    """Return whether the text of a refusal is about a mark for the prompt cache (`prompt_cache_breakpoint`)."""
    return next(iter(BREAKPOINT)) in reason


async def list_models(where: Endpoint, limits: TimeLimits) -> list[str]:
    """Return the model names that `/models` lists; in its order; [] if there is no list or the request fails."""
    try:
        return [str(entry["id"]) for entry in await model_entries(where, limits)]
    except ModelError:
        return []


async def model_entries(where: Endpoint, limits: TimeLimits) -> list[dict[str, Any]]:
    """Return the entries of `/models`, JSON objects, that have an `id`; [] if the server has no such list (404).
    ModelError if it is unreachable or refuses.
    """
    try:
        value = await get_json(where, f"{where.api}/models", limits)
    except ModelNotFound:
        return []
    return _entries(value)


def _entries(value: dict[str, Any] | None) -> list[dict[str, Any]]:
    data = value.get("data") if value else None
    entries = data if isinstance(data, list) else []
    return [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


async def read_facts(where: Endpoint, name: str, limits: TimeLimits) -> Facts:
    """Return the facts that LM Studio's own list has about a model; empty for other servers. Only servers in a private
    network are asked.
    """
    value = await fetch_json(where, f"{where.root}/api/v0/models", limits) if where.private else None
    return next((facts_of(entry) for entry in _entries(value) if entry["id"] == name), Facts())


async def fetch_json(where: Endpoint, url: str, limits: TimeLimits) -> dict[str, Any] | None:
    """Return the JSON object that a GET gives; None for any other value and for any failure; never raises
    ModelError.
    """
    try:
        return await get_json(where, url, limits)
    except ModelError:
        return None


async def get_json(where: Endpoint, url: str, limits: TimeLimits) -> dict[str, Any] | None:
    """Return the JSON object that a GET gives, None for any other value. ModelError if the request fails or its status
    is not a success. No retries.
    """
    return json_object(await _get(where, url, limits))


async def _get(where: Endpoint, url: str, limits: TimeLimits) -> bytes:
    try:
        async with (
            asyncio.timeout(limits.first),
            open_client(where, limits) as client,
            client.stream("GET", url) as response,
        ):
            exchange.check_coding(response, where)
            raw = await exchange.read_body(response, limits, failures.BODY_LIMIT * 16)
    except TimeoutError as error:
        raise ModelTimeout("model.timeout_connect", url=where.root, seconds=f"{limits.first:g}") from error
    except TROUBLE as error:
        raise failures.from_exception(error, where, limits) from error
    if response.status_code not in wire.REPLIES:
        raise failures.from_response(response.status_code, response.headers, raw, where)
    return raw


def facts_of(entry: Mapping[str, Any]) -> Facts:
    """Return the facts in one entry of a server's list of models, under the names that the servers named above use;
    None for each that it does not state.
    """
    # OpenRouter tells limits under `top_provider`, llama.cpp under `meta`.
    places = [entry, *(value for key in ("top_provider", "meta") if isinstance(value := entry.get(key), Mapping))]
    return Facts(
        context_window=_number(places, _WINDOW),
        longest_reply=_number(places, _REPLY),
        prices=_prices(entry.get("pricing")),
        reasoning=_is_listed(entry.get("supported_parameters"), "reasoning"),
        vision=_vision(entry),
        native_tools=_tools(entry),
    )


def _number(places: list[Mapping[str, Any]], keys: tuple[str, ...]) -> int | None:
    found = (place[key] for place in places for key in keys if type(place.get(key)) is int and place[key] > 0)
    return next(found, None)


def _prices(pricing: Any) -> Prices | None:
    """Return the prices: OpenRouter writes USD per token as text, Together USD per million as numbers."""
    if not isinstance(pricing, Mapping):
        return None
    if isinstance(pricing.get("prompt"), str):
        scale, keys = 1_000_000, ("prompt", "completion", "input_cache_read", "input_cache_write")
    else:
        scale, keys = 1, ("input", "output", "cached_input", "")
    given, reply, cached, written = (_price(pricing.get(key), scale) for key in keys)
    return None if given is None or reply is None else Prices(given, reply, cached, written)


def _price(value: Any, scale: int) -> float | None:
    try:
        price = float(value) * scale
    except (TypeError, ValueError):
        return None
    return round(price, 9) if math.isfinite(price) and price >= 0 else None  # -1 stands for a price that varies


def _is_listed(values: Any, wanted: str) -> bool | None:
    return wanted in values if isinstance(values, list) else None


def _vision(entry: Mapping[str, Any]) -> bool | None:
    architecture, abilities = entry.get("architecture"), entry.get("capabilities")
    if isinstance(architecture, Mapping) and isinstance(architecture.get("input_modalities"), list):
        return "image" in architecture["input_modalities"]
    if isinstance(abilities, Mapping) and isinstance(abilities.get("vision"), bool):
        return bool(abilities["vision"])
    # LM Studio.
    return entry["type"] == "vlm" if entry.get("type") in ("vlm", "llm") else None


def _tools(entry: Mapping[str, Any]) -> bool | None:
    abilities = entry.get("capabilities")
    if isinstance(abilities, Mapping) and isinstance(abilities.get("function_calling"), bool):
        return bool(abilities["function_calling"])
    if isinstance(abilities, list):
        return "tool_use" in abilities
    return _is_listed(entry.get("supported_parameters"), "tools")
