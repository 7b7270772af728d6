"""Client of Google's Gemini API: `streamGenerateContent`, its errors, and what it says of its models.

A reply's parts are kept as they came, with their thought signatures. Not here: the form of conversations
(`gemini_contents.py`) and of schemas (`gemini_schema.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

from codeagent_lsp.errors import ModelError, ModelNotFound, ModelRejected
from codeagent_lsp.llm import deltas
from codeagent_lsp.llm.carried import pack
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.facts import Facts
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, ReasoningChunk, Reply, TextChunk
from codeagent_lsp.llm.providers.gemini_contents import contents
from codeagent_lsp.llm.providers.gemini_schema import declaration, reduced
from codeagent_lsp.llm.providers.http_model import HttpModel, Options
from codeagent_lsp.llm.providers.openai import fetch_json, get_json
from codeagent_lsp.llm.wire import new_call_id, tidy

THINKING_ROOM = 8192
"""Tokens added to a limit of the reply, which counts the thoughts too."""

_BUDGETS = {"none": 0, "low": 1024, "medium": 8192, "high": 24_576}
_FINISH = {"STOP": "stop", "MAX_TOKENS": "length", "OTHER": "error"}
_BAD_CALL = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE")
_FILTERED = ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR")


class GeminiModel(HttpModel):
    """One model of the Gemini API."""

    def __init__(
        self,
        where: Endpoint,
        info: ModelInfo,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(_keyed(where), info, **options)

    def _url(self) -> str:
        return f"{_place(self._where, self._info.name)}:streamGenerateContent?alt=sse"

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        messages = tidy(request.messages)
        told = [message.content for message in messages if message.role == "system" and message.content.strip()]
        body: dict[str, Any] = {"systemInstruction": {"parts": [{"text": text} for text in told]}} if told else {}
        if request.tools:
            body["tools"] = [{"functionDeclarations": [declaration(tool) for tool in request.tools]}]
        spoken = (message for message in messages if message.role != "system")
        body["contents"] = contents(spoken, self._info, signed=_generation(self._info.name) >= 3)
        body["generationConfig"] = self._config(request)
        return body

    def _config(self, request: ModelRequest) -> dict[str, Any]:
        config: dict[str, Any] = {}
        thinking = None if "thinkingConfig" in self._refused else self._thinking(self._effort_for(request))
        if request.temperature or _generation(self._info.name) < 3:  # from 3 on, it says, a low one makes loops
            config["temperature"] = request.temperature
        if limit := request.max_tokens or self._max_tokens:
            room = limit + (THINKING_ROOM if thinking else 0)
            config["maxOutputTokens"] = min(room, self._info.facts.longest_reply or room)
        if request.stop:
            config["stopSequences"] = list(request.stop)
        if request.response_schema is not None:
            config |= {"responseMimeType": "application/json", "responseSchema": reduced(request.response_schema)}
        return {**config, "thinkingConfig": thinking} if thinking else config

    def _thinking(self, effort: str) -> dict[str, Any] | None:
        """Return how much the model may think, in the terms of its generation; None for one that does not."""
        if not self._info.facts.reasoning:
            return None
        name = self._info.name
        if effort == "auto":
            return {"includeThoughts": True}
        if _generation(name) >= 3:
            level = ("low" if "pro" in name else "minimal") if effort == "none" else effort
            return {"includeThoughts": True, "thinkingLevel": level}
        budget = max(_BUDGETS[effort], 128) if "pro" in name else _BUDGETS[effort]  # 2.5 Pro cannot do without
        return {"includeThoughts": budget > 0, "thinkingBudget": budget}

    def _assembler(self) -> GeminiAssembler:
        return GeminiAssembler(self._where, self._info)

    def _learn(self, error: ModelError, body: dict[str, Any]) -> bool:
        reason = str(error.values.get("reason", "")) if error.key == "model.rejected" else ""
        refused = "thinking" in reason.lower() and "thinkingConfig" in body["generationConfig"]
        if refused:
            self._refused.add("thinkingConfig")
        return refused

    async def _missing(self, error: ModelError) -> ModelError:
        try:
            names = ", ".join(str(entry["id"]) for entry in await model_entries(self._where, self._limits))
        except ModelError:
            names = ""
        where = self._where.root
        return ModelNotFound("model.unknown", url=where, name=self._info.name, available=names[:1000] or "?")


class GeminiAssembler(deltas.Assembler):
    """Assembles one reply as that of a chat completion, and keeps its parts beside."""

    def __init__(self, where: Endpoint, info: ModelInfo) -> None:
        super().__init__(where)
        self._model_info = info
        self._parts: list[tuple[str, dict[str, Any]]] = []
        self._complaint = ""

    def feed(self, chunk: Mapping[str, Any]) -> list[TextChunk | ReasoningChunk]:
        """Return what can be shown of one chunk. Raises ModelError for an error in it and for a blocked prompt."""
        if _object(chunk.get("promptFeedback")).get("blockReason"):
            raise ModelRejected("model.filtered", url=self._where.root)
        candidate = next(iter(_objects(chunk.get("candidates"))), {})
        parts = _objects(_object(candidate.get("content")).get("parts"))
        if (reason := candidate.get("finishReason")) in _BAD_CALL:
            self._complaint = f"{candidate.get('finishMessage') or reason}."
        return super().feed(
            {
                "choices": [{"delta": self._delta_of(parts), "finish_reason": _finish(reason)}],
                "usage": _usage(chunk.get("usageMetadata")),
                "model": chunk.get("modelVersion"),
                "error": chunk.get("error"),
            }
        )

    def finish(self, *, done_marker: bool) -> Reply:
        """Return the reply with its parts. Raises ModelError when it was cut or filtered."""
        reply = super().finish(done_marker=done_marker)
        reply = replace(reply, carried=pack(self._model_info, self._parts))
        if not self._complaint:
            return reply
        problem = f"The tool call could not be read and did not run: {self._complaint} Write it again, one call."
        return replace(reply, problem=" ".join(filter(None, (reply.problem, problem))))

    def _delta_of(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        """Keep the parts, and return what they say as a delta of a chat completion."""
        said: dict[bool, str] = {True: "", False: ""}
        calls = []
        for part in parts:
            call_id = ""
            if isinstance(call := part.get("functionCall"), dict):
                call_id = self._new_id(call.get("id"))
                function = {"name": call.get("name"), "arguments": json.dumps(call.get("args") or {})}
                calls.append({"id": call_id, "index": len(self._parts), "function": function})
            elif isinstance(part.get("text"), str):
                said[part.get("thought") is True] += part["text"]
            self._keep(call_id, part)
        return {"reasoning_content": said[True], "content": said[False], "tool_calls": calls}

    def _new_id(self, given: object) -> str:
        used = {call_id for call_id, _ in self._parts}
        return given if isinstance(given, str) and given and given not in used else new_call_id()

    def _keep(self, call_id: str, part: dict[str, Any]) -> None:
        """Keep a part. A text goes on in the last one, unless one of them has a signature: that belongs to its part."""
        last = self._parts[-1][1] if self._parts else {}
        texts = all("text" in either and either.keys() <= {"text", "thought"} for either in (part, last))
        if texts and part.get("thought") == last.get("thought"):
            last["text"] += part["text"]
        else:
            self._parts.append((call_id, dict(part)))


async def model_entries(where: Endpoint, limits: TimeLimits) -> list[dict[str, Any]]:
    """Return the models that can chat, each with its name as `id`. Raises ModelError if they cannot be read."""
    value = await get_json(_keyed(where), f"{_base(where)}/models?pageSize=1000", limits) or {}
    models = _objects(value.get("models"))
    able = [model for model in models if "generateContent" in (model.get("supportedGenerationMethods") or ())]
    return [{**model, "id": str(model.get("name")).removeprefix("models/")} for model in able]


async def read_facts(where: Endpoint, name: str, limits: TimeLimits) -> Facts:
    """Return what the server says of a model: nothing, if it does not know it."""
    value = await fetch_json(_keyed(where), _place(where, name), limits) or {}
    window, longest = value.get("inputTokenLimit"), value.get("outputTokenLimit")
    return Facts(
        context_window=window if type(window) is int and window > 0 else None,
        longest_reply=longest if type(longest) is int and longest > 0 else None,
        reasoning=value.get("thinking") is True if value else None,
        native_tools=name.removeprefix("models/").startswith("gemini") or None,
    )


def _keyed(where: Endpoint) -> Endpoint:
    return replace(where, key_header="x-goog-api-key")


def _base(where: Endpoint) -> str:
    return f"{where.root}/v1beta"


def _place(where: Endpoint, name: str) -> str:
    return f"{_base(where)}/{name if '/' in name else f'models/{name}'}"


def _generation(name: str) -> float:
    """Return the number in a model's name, 3.5 of `gemini-3.5-flash`; 0 where there is none."""
    found = re.search(r"gemini-(\d+(?:\.\d+)?)", name)
    return float(found[1]) if found else 0.0


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(values: object) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)] if isinstance(values, list) else []


def _finish(reason: object) -> str | None:
    """Return a reason as chat completions name it. Unknown ones end a reply like any other."""
    if not isinstance(reason, str) or reason == "FINISH_REASON_UNSPECIFIED":
        return None
    return "content_filter" if reason in _FILTERED else _FINISH.get(reason, "stop")


def _usage(told: object) -> dict[str, Any] | None:
    """Return the counts as chat completions name them; thoughts are part of the completion."""
    if not isinstance(told, Mapping):
        return None
    counts = {name: value for name, value in told.items() if type(value) is int}
    thoughts = counts.get("thoughtsTokenCount", 0)
    return {
        "prompt_tokens": counts.get("promptTokenCount"),
        "prompt_tokens_details": {"cached_tokens": counts.get("cachedContentTokenCount")},
        "completion_tokens": counts.get("candidatesTokenCount", 0) + thoughts,
        "completion_tokens_details": {"reasoning_tokens": thoughts},
    }
