"""Streaming client of `/v1/chat/completions` on any OpenAI-compatible server.

Not here: extensions of llama.cpp (`llamacpp.py`), tool calls for models without tools (`calls/toolcalling.py`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any

import httpx

from codeagent_lsp.errors import ModelError, ModelNotFound, ModelRejected, ModelStreamBroken, ModelTimeout
from codeagent_lsp.llm import failures, retry, sse, wire
from codeagent_lsp.llm.deltas import Assembler
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits, open_client
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, Reply, StreamItem
from codeagent_lsp.llm.retry import RetryPolicy
from codeagent_lsp.llm.sse import Clock

# parameters that a server may reject: left out, or sent under the other name, on the second try
_OPTIONAL = {"stream_options": "", "temperature": "", "max_tokens": "max_completion_tokens", "stop": ""}
_JSON_BODY_LIMIT = 8 * 1024 * 1024


class OpenAIModel:
    """One model of one server. `max_tokens` is the limit for requests that name none."""

    def __init__(
        self,
        where: Endpoint,
        info: ModelInfo,
        *,
        limits: TimeLimits | None = None,
        policy: RetryPolicy | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.served_model = ""
        self._where = where
        self._info = info
        self._limits = limits or TimeLimits()
        self._policy = policy or RetryPolicy()
        self._max_tokens = max_tokens
        self._refused: set[str] = set()
        self._client = open_client(where, self._limits)

    @property
    def info(self) -> ModelInfo:
        """The model's name, provider, URL and capabilities."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer; transient failures are retried before the first item, an empty answer once."""
        once = partial(self._exchange, request)
        patient = partial(retry.patient, once, self._policy)
        async with aclosing(retry.answered(patient, self._info.name)) as items:
            async for item in items:
                yield item

    async def count_tokens(self, text: str) -> int:
        """Return a conservative estimate."""
        return estimate_tokens(text)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

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

    def _acceptable(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body without the parameters that this server has rejected before."""
        for option in self._refused & body.keys():
            value = body.pop(option)
            if _OPTIONAL[option]:
                body[_OPTIONAL[option]] = value
        return body

    async def _exchange(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield one exchange; it is repeated at once without an optional parameter that the server rejects."""
        while True:
            body = self._acceptable(self._body(request))
            try:
                async with aclosing(self._reply(body)) as items:
                    async for item in items:
                        yield item
                return
            except ModelRejected as error:
                if not self._learn(error, body):
                    raise

    def _learn(self, error: ModelError, body: dict[str, Any]) -> bool:
        reason = str(error.values.get("reason", "")) if error.key == "model.rejected" else ""
        refused = {option for option in _OPTIONAL if option in reason and option in body}
        self._refused |= refused
        return bool(refused)

    async def _reply(self, body: dict[str, Any], url: str = "") -> AsyncGenerator[StreamItem, None]:
        clock = Clock.start(self._limits)
        async with self._post(url or f"{self._where.api}/chat/completions", body, clock) as response:
            if "json" in response.headers.get("content-type", ""):
                async for item in self._whole(response):
                    yield item
                return
            assembler = Assembler(self._where)
            done = False
            async with aclosing(sse.events(response, self._where, self._limits, clock)) as events:
                async for data in events:
                    done = data.strip() == "[DONE]"
                    if done:
                        break
                    for item in assembler.feed(self._chunk(data)):
                        yield item
            if not clock.started:
                raise ModelStreamBroken("model.stream_cut", url=self._where.root)
        for item in assembler.flush():
            yield item
        yield self._finish(assembler, done_marker=done)

    async def _whole(self, response: httpx.Response) -> AsyncGenerator[StreamItem, None]:
        """Yield the items of a response that is one JSON body, from a server that ignores `stream`."""
        raw = await sse.read_body(response, self._where, self._limits, _JSON_BODY_LIMIT)
        value = json_object(raw.decode("utf-8", "replace"))
        if value is None:
            raise ModelStreamBroken("model.stream_cut", url=self._where.root)
        assembler = Assembler(self._where)
        for item in [*assembler.feed(value), *assembler.flush()]:
            yield item
        yield self._finish(assembler, done_marker=bool(value.get("choices")))

    def _chunk(self, data: str) -> dict[str, Any]:
        """Parse the object of one event. Anything else (a ping) is empty.

        Broken objects raise ModelStreamBroken, as a piece of the answer could be missing.
        """
        value = json_object(data)
        if value is None and data.lstrip().startswith("{"):
            raise ModelStreamBroken("model.stream_error", url=self._where.root, reason="a chunk is not JSON")
        return value or {}

    def _finish(self, assembler: Assembler, *, done_marker: bool) -> Reply:
        reply = assembler.finish(done_marker=done_marker)
        self.served_model = assembler.model or self.served_model
        return reply

    @asynccontextmanager
    async def _post(self, url: str, body: dict[str, Any], clock: Clock) -> AsyncGenerator[httpx.Response, None]:
        """Send a request and yield the open response, headers read. Failures up to there raise ModelError."""
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
        request = self._client.build_request("POST", url, content=wire.encode(body), headers=headers)
        try:
            async with asyncio.timeout_at(clock.deadline):
                response = await self._client.send(request, stream=True)
        except TimeoutError as error:
            raise sse.silence(self._where, self._limits, clock) from error
        except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
            raise failures.from_exception(error, self._where, self._limits) from error
        try:
            if response.status_code != 200:
                raise await self._refusal(response)
            if "html" in response.headers.get("content-type", ""):
                raise ModelStreamBroken("model.stream_garbled", url=self._where.root, reason="an HTML page")
            yield response
        finally:
            await response.aclose()

    async def _refusal(self, response: httpx.Response) -> ModelError:
        body = await sse.read_body(response, self._where, self._limits, failures.BODY_LIMIT)
        error = failures.from_response(response.status_code, response.headers, body, self._where)
        if error.key != "model.unknown":
            return error
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
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
        raise failures.from_exception(error, where, limits) from error
    if response.status_code != 200:
        raise failures.from_response(response.status_code, response.headers, raw, where)
    return raw


def json_object(data: str | bytes) -> dict[str, Any] | None:
    """Return the JSON object in `data`; None when it is anything else."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of `text` for any tokenizer, rather too many: 1 per 3 ASCII, 5 per 4 other characters."""
    ascii_count = sum(1 for c in text if c.isascii())
    return -(-ascii_count // 3) + -(-(len(text) - ascii_count) * 5 // 4)
