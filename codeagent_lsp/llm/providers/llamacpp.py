"""Client of a llama.cpp server: chat completions and its own endpoints.

`/props` gives the context window, `/tokenize` exact counts, `/apply-template` with the raw `/completion` the
mode `completion`. Prompts are cached; `timings` say how much was reused. Not here: starting a server (`embedded.py`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

from codeagent_lsp.errors import ModelStreamBroken, ModelTimeout, ModelUnreachable
from codeagent_lsp.llm import exchange, failures, wire
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.exchange import Clock
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, StreamItem
from codeagent_lsp.llm.providers.http_model import Options, most_tokens
from codeagent_lsp.llm.providers.openai import OpenAIModel, fetch_json
from codeagent_lsp.state import json_object

# Without a limit llama.cpp writes until the window is full.
LONGEST_REPLY = 4096

_CALL_SECONDS = 10.0
# Characters: counting more takes longer than a precise number is worth.
_EXACT_LIMIT = 400_000


@dataclass(frozen=True)
class Props:
    """The result of `/props`: context window in tokens (None if unknown), model file, and parallel slots."""

    context_window: int | None
    model_path: str = ""
    slots: int = 1


class LlamaCppModel(OpenAIModel):
    """A model on a llama.cpp server; `api_mode` chooses between its chat and its raw completion endpoint, `slot` is the
    one that is asked, None for any.
    """

    def __init__(
        self,
        where: Endpoint,
        info: ModelInfo,
        *,
        api_mode: Literal["chat", "completion"] = "chat",
        slot: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        longest = min(LONGEST_REPLY, (info.context_window or 4 * LONGEST_REPLY) // 4)
        options["max_tokens"] = options.get("max_tokens") or longest
        super().__init__(where, replace(info, api_mode=api_mode), **options)
        self._place: dict[str, Any] = {} if slot is None else {"id_slot": slot}

    async def count_tokens(self, text: str) -> int:
        """Return the server's own count (`/tokenize`); an upper estimate if it does not answer, or for more than
        400,000 characters.
        """
        if len(text) > _EXACT_LIMIT:
            return most_tokens(text)
        value = None
        with suppress(ModelUnreachable):
            value = await self._ask("/tokenize", {"content": text})
        tokens = (value or {}).get("tokens")
        return len(tokens) if isinstance(tokens, list) else most_tokens(text)

    async def apply_template(self, request: ModelRequest) -> str:
        """Return the prompt that the server makes of the messages by the model's chat template. ModelStreamBroken if it
        does not within 10 s, ModelUnreachable if it cannot be reached.
        """
        value = await self._ask("/apply-template", {"messages": wire.chat_messages(request.messages)})
        prompt = (value or {}).get("prompt")
        if not isinstance(prompt, str):
            raise ModelStreamBroken("model.stream_garbled", url=self._where.root, reason="/apply-template")
        return prompt

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        grammar = {"grammar": request.grammar} if request.grammar else {}
        return {**super()._body(request), "cache_prompt": True, **self._place, **grammar}

    async def _exchange(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        source = self._raw(request) if self.info.api_mode == "completion" else super()._exchange(request)
        async with aclosing(source) as items:
            async for item in items:
                yield item

    async def _raw(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield one exchange over `/completion`, its chunks parsed like chat chunks."""
        body: dict[str, Any] = {
            "prompt": await self.apply_template(request),
            "stream": True,
            "cache_prompt": True,
            "temperature": request.temperature,
            "n_predict": request.max_tokens or self._max_tokens,
            **self._place,
        }
        if request.stop:
            body["stop"] = list(request.stop)
        if request.response_schema is not None:
            body["json_schema"] = request.response_schema
        if request.grammar:
            body["grammar"] = request.grammar
        async with aclosing(self._reply(body, f"{self._where.root}/completion")) as items:
            async for item in items:
                yield item

    def _chunk(self, data: str) -> dict[str, Any]:
        chunk = super()._chunk(data)
        return as_chat_chunk(chunk) if "content" in chunk and "choices" not in chunk else chunk

    async def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """Return the JSON object that a small POST gives; None when it gives none. Unreachable servers raise."""
        limits = TimeLimits(self._limits.connect, min(self._limits.first, _CALL_SECONDS), _CALL_SECONDS)
        try:
            async with self._http.post(f"{self._where.root}{path}", body, Clock.start(limits)) as response:
                raw = await exchange.read_body(response, limits, failures.BODY_LIMIT * 64)
            return json_object(raw)
        except (ModelTimeout, ModelStreamBroken):
            return None


async def read_props(where: Endpoint, limits: TimeLimits) -> Props | None:
    """Return the properties (`/props`) of the server at `where`; None if it is not llama.cpp or does not answer."""
    value = await fetch_json(where, f"{where.root}/props", limits)
    settings = (value or {}).get("default_generation_settings")
    if value is None or not isinstance(settings, dict):
        return None
    window = next((n for n in (settings.get("n_ctx"), value.get("n_ctx")) if type(n) is int and n > 0), None)
    slots = value.get("total_slots")
    return Props(window, str(value.get("model_path", "")), slots if type(slots) is int and slots > 0 else 1)


def as_chat_chunk(chunk: dict[str, Any]) -> dict[str, Any]:
    """Return a chunk of llama.cpp's `/completion` (JSON data) in the shape of a chat completions chunk, with token
    counts and `timings` in the last one.
    """
    reason = None
    if chunk.get("stop"):
        reason = "length" if chunk.get("stop_type") == "limit" or chunk.get("truncated") else "stop"
    usage = {}
    if chunk.get("stop"):
        usage = {
            "prompt_tokens": chunk.get("tokens_evaluated"),
            "completion_tokens": chunk.get("tokens_predicted"),
        }
    return {
        "choices": [{"delta": {"content": chunk["content"]}, "finish_reason": reason}],
        "usage": usage or None,
        "timings": chunk.get("timings"),
        "model": chunk.get("model"),
    }
