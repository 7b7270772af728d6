"""Streaming client of `/v1/chat/completions` on any OpenAI-compatible server.

Not here: what is the same for all servers (`http_model.py`), extensions of llama.cpp (`llamacpp.py`), tool calls for
models without tools (`calls/toolcalling.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from codeagent_lsp.errors import ModelError, ModelNotFound, ModelTimeout
from codeagent_lsp.llm import failures, sse, wire
from codeagent_lsp.llm.deltas import Assembler
from codeagent_lsp.llm.endpoint import TROUBLE, Endpoint, TimeLimits, open_client
from codeagent_lsp.llm.exchange import json_object
from codeagent_lsp.llm.model import ModelRequest
from codeagent_lsp.llm.providers.http_model import HttpModel


class OpenAIModel(HttpModel):
    """One model of one OpenAI-compatible server."""

    OPTIONAL: Mapping[str, str] = {
        "stream_options": "",
        "temperature": "",
        "max_tokens": "max_completion_tokens",
        "stop": "",
    }

    def _url(self) -> str:
        return f"{self._where.api}/chat/completions"

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._info.name,
            "messages": wire.chat_messages(request.messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": request.temperature,
        }
        if limit := request.max_tokens or self._max_tokens:
            body["max_tokens"] = limit
        if request.tools:
            body["tools"] = wire.tool_list(request.tools)
        if request.stop:
            body["stop"] = list(request.stop)
        if request.response_schema is not None:
            schema = {"name": "reply", "schema": request.response_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def _assembler(self) -> Assembler:
        return Assembler(self._where)

    async def _missing(self, error: ModelError) -> ModelError:
        names = await list_models(self._where, self._limits)
        return ModelNotFound(
            "model.unknown",
            url=self._where.root,
            name=self._info.name,
            available=", ".join(names[:20]) or "?",
        )


async def list_models(where: Endpoint, limits: TimeLimits) -> list[str]:
    """Return the model names that `/models` gives; empty when the server does not say."""
    try:
        return [str(entry["id"]) for entry in await model_entries(where, limits)]
    except ModelError:
        return []


async def model_entries(where: Endpoint, limits: TimeLimits) -> list[dict[str, Any]]:
    """Return the entries of `/models` that have an `id`, none where there is no such list.

    Raises ModelError if the server is unreachable.
    """
    try:
        value = json_object(await _get(where, f"{where.api}/models", limits))
    except ModelNotFound:
        return []
    data = value.get("data") if value else None
    entries = data if isinstance(data, list) else []
    return [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


async def fetch_json(where: Endpoint, url: str, limits: TimeLimits) -> dict[str, Any] | None:
    """Return the JSON object that a GET gives within the limits; None for anything else."""
    try:
        return json_object(await _get(where, url, limits))
    except ModelError:
        return None


async def _get(where: Endpoint, url: str, limits: TimeLimits) -> bytes:
    try:
        async with (
            asyncio.timeout(limits.first),
            open_client(where, limits) as client,
            client.stream("GET", url) as response,
        ):
            raw = await sse.read_body(response, where, limits, failures.BODY_LIMIT * 16)
    except TimeoutError as error:
        raise ModelTimeout("model.timeout_connect", url=where.root, seconds=f"{limits.first:g}") from error
    except TROUBLE as error:
        raise failures.from_exception(error, where, limits) from error
    if response.status_code != 200:
        raise failures.from_response(response.status_code, response.headers, raw, where)
    return raw
