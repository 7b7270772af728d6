"""Client of Google's Gemini API: `streamGenerateContent`, its errors, and what it says of its models.

A reply's parts are kept as they came, with their thought signatures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any, Unpack

from codeagent_lsp.errors import ModelError, ModelRejected
from codeagent_lsp.llm import deltas, failures
from codeagent_lsp.llm.endpoint import Endpoint, TimeLimits
from codeagent_lsp.llm.learned_facts import Facts
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, ReasoningChunk, Reply, TextChunk
from codeagent_lsp.llm.providers.http_model import HttpModel, Options
from codeagent_lsp.llm.providers.openai import fetch_json, get_json
from codeagent_lsp.llm.wire import new_call_id, pack, tidy, unpack, wire_name
from codeagent_lsp.messages import Message, ToolSpec

THINKING_ROOM = 8192
"""Tokens added to a limit of the reply, which counts the thoughts too."""

_BUDGETS = {"none": 0, "low": 1024, "medium": 8192, "high": 24_576}
_FINISH = {"STOP": "stop", "MAX_TOKENS": "length", "OTHER": "error"}
_BAD_CALL = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE")
_FILTERED = ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR")
Part = dict[str, Any]

NO_SIGNATURE = "skip_thought_signature_validator"
"""Stands, by Google's documentation, for the signature of a call that another model has written."""

_START = "(The conversation goes on.)"
Schema = dict[str, Any]

_DEPTH = 12
_ANYTHING = {"type": "string", "description": "Any value, as JSON."}
_TYPES = ("string", "number", "integer", "boolean", "array", "object")
_KEPT = {
    "string": ("minLength", "maxLength", "pattern"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_FORMATS = {"string": ("date-time",), "number": ("float", "double"), "integer": ("int32", "int64")}


class GeminiModel(HttpModel):
    """One model of the Gemini API; the key goes into a header of its own, not into the address."""

    def __init__(
        self,
        where: Endpoint,
        info: ModelInfo,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(_with_key(where), info, **options)

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
        # In the reduced form of this API, as for tools.
        if request.response_schema is not None:
            config |= {"responseMimeType": "application/json", "responseSchema": reduce_schema(request.response_schema)}
        return {**config, "thinkingConfig": thinking} if thinking else config

    def _thinking(self, effort: str) -> dict[str, Any] | None:
        """Return how much the model may think, in the terms of its generation; None for one that does not."""
        if not self._info.facts.reasoning:
            return None
        name = self._info.name
        if effort == "auto":
            return {"includeThoughts": True}
        if _generation(name) >= 3:
            # Not to be switched off from this generation on, only to be kept small.
            level = ("low" if "pro" in name else "minimal") if effort == "none" else effort
            return {"includeThoughts": True, "thinkingLevel": level}
        budget = max(_BUDGETS[effort], 128) if "pro" in name else _BUDGETS[effort]  # 2.5 Pro cannot do without
        return {"includeThoughts": budget > 0, "thinkingBudget": budget}

    def _assembler(self) -> GeminiAssembler:
        return GeminiAssembler(self._where, self._info)

    def _learn(self, error: ModelError, body: dict[str, Any]) -> bool:
        # Whether a model takes this setting is known by its refusal alone; it is left out from the next attempt on.
        reason = str(error.values.get("reason", "")) if error.key == "model.rejected" else ""
        refused = "thinking" in reason.lower() and "thinkingConfig" in body["generationConfig"]
        if refused:
            self._refused.add("thinkingConfig")
        return refused

    async def _missing(self, error: ModelError) -> ModelError:
        try:
            names = [str(entry["id"]) for entry in await model_entries(self._where, self._limits)]
        except ModelError:
            names = []
        return failures.unknown_model(error, self._info.name, names)


class GeminiAssembler(deltas.Assembler):
    """Makes one reply out of the chunks of one stream of the Gemini API, and keeps its parts as they came, to be sent
    back.
    """

    def __init__(self, where: Endpoint, info: ModelInfo) -> None:
        super().__init__(where)
        self._model_info = info
        self._parts: list[tuple[str, dict[str, Any]]] = []
        self._complaint = ""

    def feed(self, chunk: Mapping[str, Any]) -> list[TextChunk | ReasoningChunk]:
        """Add one chunk and return the text or reasoning in it that can be shown. ModelError for an error in it and for
        a blocked prompt.
        """
        # Sent in place of any candidate, with status 200.
        if _object(chunk.get("promptFeedback")).get("blockReason"):
            raise ModelRejected("model.filtered", url=self._where.root)
        candidate = next(iter(_objects(chunk.get("candidates"))), {})
        parts = _objects(_object(candidate.get("content")).get("parts"))
        # The call itself is not sent then, only that it was bad.
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
        """Return the reply with its parts. A call that the model could not write is its `problem`. ModelStreamBroken
        when it was cut, ModelRejected when it was filtered.
        """
        reply = super().finish(done_marker=done_marker)
        # Signatures of thoughts belong to their parts, and the API wants them back at their places.
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
                # An index for each part, as the API gives none: all would be taken for pieces of one call.
                calls.append({"id": call_id, "index": len(self._parts), "function": function})
            elif isinstance(part.get("text"), str):
                said[part.get("thought") is True] += part["text"]
            self._keep(call_id, part)
        return {"reasoning_content": said[True], "content": said[False], "tool_calls": calls}

    def _new_id(self, given: object) -> str:
        used = {call_id for call_id, _ in self._parts}
        # Most models give none, and results are told apart by them here.
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
    """Return the entries of the API's list for the models that can chat, each with its name as `id`; only the first
    1,000 are asked for. Raises ModelError if they cannot be read.
    """
    value = await get_json(_with_key(where), f"{_base(where)}/models?pageSize=1000", limits) or {}
    models = _objects(value.get("models"))
    able = [model for model in models if "generateContent" in (model.get("supportedGenerationMethods") or ())]
    return [{**model, "id": str(model.get("name")).removeprefix("models/")} for model in able]


async def read_facts(where: Endpoint, name: str, limits: TimeLimits) -> Facts:
    """Ask the server for its facts about a model and return them; empty if it does not know the model or does not
    answer.
    """
    value = await fetch_json(_with_key(where), _place(where, name), limits) or {}
    window, longest = value.get("inputTokenLimit"), value.get("outputTokenLimit")
    return Facts(
        context_window=window if type(window) is int and window > 0 else None,
        longest_reply=longest if type(longest) is int and longest > 0 else None,
        reasoning=value.get("thinking") is True if value else None,
        # Gemma, served by the same API, has to prove that it calls tools.
        native_tools=name.removeprefix("models/").startswith("gemini") or None,
    )


def _with_key(where: Endpoint) -> Endpoint:
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
    # `type`, as a bool is an int for `isinstance`.
    counts = {name: value for name, value in told.items() if type(value) is int}
    thoughts = counts.get("thoughtsTokenCount", 0)
    return {
        "prompt_tokens": counts.get("promptTokenCount"),
        "prompt_tokens_details": {"cached_tokens": counts.get("cachedContentTokenCount")},
        "completion_tokens": counts.get("candidatesTokenCount", 0) + thoughts,
        "completion_tokens_details": {"reasoning_tokens": thoughts},
    }


# A conversation as the `contents` of the Gemini API: turns of parts, each call answered in the next turn, in order.


def contents(messages: Iterable[Message], info: ModelInfo, *, signed: bool) -> list[dict[str, Any]]:
    """Return the turns of a conversation in the form of the API, `{role, parts}` with roles that alternate and the user
    first, without its system message; never empty. `signed` is for models that refuse a turn whose first call has no
    thought signature.
    """
    turns: list[dict[str, Any]] = []
    for role, parts in _turns(list(messages), info, signed=signed):
        if not turns and role == "model":
            turns.append({"role": "user", "parts": [{"text": _START}]})
        if turns and role == "model" == turns[-1]["role"]:
            turns[-1]["parts"] += parts  # calls must follow a turn of the user
        else:
            turns.append({"role": role, "parts": parts})
    return turns or [{"role": "user", "parts": [{"text": _START}]}]


def _turns(messages: list[Message], info: ModelInfo, *, signed: bool) -> Iterator[tuple[str, list[Part]]]:
    """Yield role and parts of each turn that has any. Results without their call become a text of the user."""
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if message.role != "assistant":
            yield from _text_parts(message)
            continue
        # Its results stand right behind a message; they become the one turn that this API wants behind it.
        results = list(takewhile(lambda later: later.role == "tool", messages[at:]))
        at += len(results)
        by_call = {said.tool_call_id: said for said in results}
        # Calls without results are left out: the API refuses a turn whose counts differ.
        kept = _parts_of(message, info, by_call)
        if parts := [part for _, part in kept]:
            yield "model", _sign_first_call(parts) if signed else parts
        if answers := [_answer(part, by_call.pop(call_id)) for call_id, part in kept if call_id]:
            yield "user", answers
        for said in by_call.values():
            yield from _text_parts(said)


def _text_parts(message: Message) -> Iterator[tuple[str, list[Part]]]:
    result = f"Result of {message.name or 'a tool'}:\n" if message.role == "tool" else ""
    if text := f"{result}{message.content}".strip():
        pictures = ({"inlineData": {"mimeType": item.media_type, "data": item.data}} for item in message.images)
        yield "user", [{"text": text}, *pictures]


def _parts_of(message: Message, info: ModelInfo, answered: Mapping[str, Message]) -> list[tuple[str, Part]]:
    """Return the parts of a message, a call with its id: as they came, without calls that have no result."""
    stored = (item for item in unpack(info, message.carried) if isinstance(item, list) and len(item) == 2)
    # What was carried comes from a file of the session, and may be anything.
    came: list[tuple[str, Part]] = [(call_id, part) for call_id, part in stored if isinstance(part, dict)]
    if not came and message.content.strip():
        came = [("", {"text": message.content})]
    wanted = {call.id: call for call in message.tool_calls if call.id in answered}
    kept = [(call_id, part) for call_id, part in came if (call_id in wanted if call_id else _says(part))]
    known = {call_id for call_id, _ in kept}
    for call_id, call in wanted.items():
        if call_id not in known:
            kept.append((call_id, {"functionCall": {"name": wire_name(call.name), "args": dict(call.arguments)}}))
    return kept


def _says(part: Part) -> bool:
    """Return whether a part is not only an empty text, which the API refuses; one with a signature counts."""
    return bool(part.get("text")) or bool(part.keys() - {"text", "thought"})


def _sign_first_call(parts: list[Part]) -> list[Part]:
    """Return the parts, the first call with a signature: that of another model, or one whose first call is gone."""
    first = next((at for at, part in enumerate(parts) if "functionCall" in part), None)
    if first is None or "thoughtSignature" in parts[first]:
        return parts
    return [*parts[:first], {**parts[first], "thoughtSignature": NO_SIGNATURE}, *parts[first + 1 :]]


def _answer(part: Part, said: Message) -> Part:
    call = part["functionCall"]
    named = {"id": call["id"], "name": call["name"]} if "id" in call else {"name": call["name"]}
    return {"functionResponse": {**named, "response": {"output": said.content}}}


# JSON Schema reduced to the `Schema` of the Gemini API, a subset of OpenAPI 3.0, which refuses any other keyword.


def declaration(tool: ToolSpec) -> Schema:
    """Return a tool in the form of the API (`FunctionDeclaration`), its name as `wire_name` spells it; `parameters` is
    left out if there are none, as the API refuses empty objects.
    """
    named = {"name": wire_name(tool["name"]), "description": tool["description"]}
    if not tool["parameters"].get("properties"):
        return named
    return {**named, "parameters": reduce_schema(tool["parameters"])}


def reduce_schema(schema: Mapping[str, Any]) -> Schema:
    """Return a JSON Schema with references resolved and without the keywords that the API does not know (its `Schema`
    type).
    """
    return _reduce(schema, {**schema.get("definitions", {}), **schema.get("$defs", {})}, ())


def _reduce(schema: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Schema:
    """Return one schema; `inside` are the properties and references that lead to it."""
    if not isinstance(schema, Mapping) or len(inside) > _DEPTH:  # `true` allows anything
        return dict(_ANYTHING)
    if isinstance(name := schema.get("$ref"), str):
        target = definitions.get(name.rpartition("/")[2])
        if name in inside or not isinstance(target, Mapping):  # a recursion has to end somewhere
            return dict(_ANYTHING)
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _reduce({**target, **rest}, definitions, (*inside, name))
    schema = _join_all_of(schema)
    options = _options(schema)
    real = [_reduce(option, definitions, (*inside, "")) for option in options if not _is_null(option)]
    nullable = len(real) < len(options) or schema.get("nullable") is True
    if not real:
        return _with_description(_with_type(schema, definitions, inside), schema, nullable=nullable)
    noted = [_with_description(option, schema, nullable=nullable) for option in real]
    return noted[0] if len(noted) == 1 else {"anyOf": noted}  # nothing may stand beside it


def _with_description(made: Schema, schema: Mapping[str, Any], *, nullable: bool) -> Schema:
    """Return a reduced schema with the description of the whole before its own."""
    said = dict.fromkeys(filter(None, (schema.get("description"), made.get("description"))))
    described = {"description": " ".join(said)} if said else {}
    return {**made, **described, **({"nullable": True} if nullable else {})}


def _join_all_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with `allOf` laid together; of what several say, the last wins."""
    parts = [part for part in schema.get("allOf") or () if isinstance(part, Mapping)]
    joined: Schema = {}
    for part in parts:
        both = {**joined.get("properties", {}), **part.get("properties", {})}
        joined |= {**part, **({"properties": both} if both else {})}
    return {**joined, **{key: value for key, value in schema.items() if key != "allOf"}}


def _options(schema: Mapping[str, Any]) -> list[Any]:
    """Return the alternatives of `anyOf`, `oneOf` and a list of types; none where there is only one."""
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return list(schema[key])
    if isinstance(stated := schema.get("type"), list):
        rest = {key: value for key, value in schema.items() if key != "description"}
        return [{**rest, "type": name} for name in stated]
    return []


def _is_null(option: Any) -> bool:
    return isinstance(option, Mapping) and (option.get("type") == "null" or option.get("enum") == [None])


def _with_type(schema: Mapping[str, Any], definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Schema:
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    kind = _kind(schema, allowed)
    made: Schema = {"type": kind}
    if schema.get("format") in _FORMATS.get(kind, ()):
        made["format"] = schema["format"]
    if isinstance(allowed, list):
        made |= _enum(kind, [value for value in allowed if value is not None])
    made |= {key: schema[key] for key in _KEPT.get(kind, ()) if key in schema}
    if kind == "array":
        made["items"] = _reduce(schema.get("items"), definitions, (*inside, ""))
    if kind == "object":
        return _object_schema(schema, made, definitions, inside)
    return made


def _kind(schema: Mapping[str, Any], allowed: Any) -> str:
    if schema.get("type") in _TYPES:
        return str(schema["type"])
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    first = allowed[0] if isinstance(allowed, list) and allowed else ""
    return next((name for name, kind in (("boolean", bool), ("integer", int)) if type(first) is kind), "string")


def _enum(kind: str, allowed: list[Any]) -> Schema:
    """Return the allowed values: an enum only of texts that are not empty, of others in words."""
    texts = [value for value in allowed if isinstance(value, str) and value]
    if kind == "string" and texts:
        return {"enum": texts}
    words = ", ".join(json.dumps(value) for value in allowed)
    return {"description": f"One of {words}."} if words else {}


def _object_schema(
    schema: Mapping[str, Any], made: Schema, definitions: Mapping[str, Any], inside: tuple[str, ...]
) -> Schema:
    """Return an object; one whose keys are free cannot be described, so it is asked for as JSON text."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        return {"type": "string", "description": "A JSON object, as text."}
    made["properties"] = {name: _reduce(value, definitions, (*inside, "")) for name, value in properties.items()}
    required = [name for name in schema.get("required") or () if name in properties]
    return {**made, "required": required} if required else made
