"""A strict fake of the Gemini API (v1beta), from its reference and its pages on function calling and signatures."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

from tests.faults.model_server import Asked
from tests.llm.providers.fake_server import Answer, FakeServer, Refused, Said, halves, need, only, shared

KEY = "test-" + "g" * 20
SKIP = "skip_thought_signature_validator"

_SCHEMA = (
    "type format title description nullable enum maxItems minItems properties required minProperties maxProperties "
    "minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum"
)
_CONFIG = (
    "stopSequences responseMimeType responseSchema responseModalities candidateCount maxOutputTokens temperature topP "
    "topK seed presencePenalty frequencyPenalty responseLogprobs logprobs thinkingConfig mediaResolution"
)
_FORMATS = {"string": {"enum", "date-time"}, "number": {"float", "double"}, "integer": {"int32", "int64"}}


class FakeGemini(FakeServer):
    """Models of generation 3 and above refuse calls of the current turn without their signatures.

    `skipped` counts the signatures by which a client says that it has none.
    """

    def __init__(self, *script: Said, model: str = "gemini-3.1-pro", thinking: bool = True) -> None:
        super().__init__(*script)
        self.model = model
        self.thinking = thinking
        self.skipped = 0
        self.ends: list[dict[str, Any]] = []  # the next chunks as they are, instead of the script
        self.errors: list[Answer] = []
        self._issued: dict[str, str] = {}
        self._prompts: list[str] = []

    def answer(self, asked: Asked) -> Answer:
        if asked.headers.get("x-goog-api-key") != KEY or "authorization" in asked.headers:
            raise Refused("API key not valid. Please pass a valid API key.")
        path = asked.path.partition("?")[0]
        if asked.line.startswith("GET"):
            return self._look_up(path)
        if path != f"/v1beta/models/{self.model}:streamGenerateContent" or not asked.path.endswith("?alt=sse"):
            raise Refused(f"models/x is not found for API version v1beta, or is not supported: {path}", 404)
        if self.errors:
            return self.errors.pop(0)
        body = asked.json
        config = body.get("generationConfig", {})
        if "thinkingConfig" in config:  # Google's own package spells these names with underscores; both are taken
            config["thinkingConfig"] = {_camel(name): value for name, value in config["thinkingConfig"].items()}
        self.bodies.append(body)
        self._check(body)
        return 200, "text/event-stream", self._stream(body)

    def refusal(self, error: Refused) -> Answer:
        status = {404: "NOT_FOUND"}.get(error.status, "INVALID_ARGUMENT")
        value: dict[str, Any] = {"code": error.status, "message": str(error), "status": status}
        if "API key" in str(error):
            info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
            value["details"] = [info]
        return error.status, "application/json", json.dumps({"error": value}).encode()

    def _look_up(self, path: str) -> Answer:
        model = {
            "name": f"models/{self.model}",
            "version": "1",
            "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
            **({"thinking": True} if self.thinking else {}),
        }
        other = {"name": "models/embedding-001", "supportedGenerationMethods": ["embedContent"]}
        if path == "/v1beta/models":
            return 200, "application/json", json.dumps({"models": [other, model]}).encode()
        if path == f"/v1beta/models/{self.model}":
            return 200, "application/json", json.dumps(model).encode()
        raise Refused("models/x is not found", 404)

    def _check(self, body: dict[str, Any]) -> None:
        only(body, "contents tools toolConfig safetySettings systemInstruction generationConfig cachedContent", "body")
        need(body.get("contents"), "contents is not specified")
        if "systemInstruction" in body:
            only(body["systemInstruction"], "role parts", "system_instruction")
            for part in body["systemInstruction"]["parts"]:
                need(set(part) == {"text"} and part["text"], "system_instruction has an empty part")
        for tool in body.get("tools", []):
            only(tool, "functionDeclarations", "tools")
            for item in tool["functionDeclarations"]:
                only(item, "name description parameters", "function_declarations")
                need(re.fullmatch(r"[A-Za-z_][\w.:-]{0,63}", item["name"]), f"Invalid function name: {item['name']}")
                if "parameters" in item:
                    check_schema(item["parameters"], item["name"])
        self._check_config(body.get("generationConfig", {}))
        self._check_turns(body["contents"])

    def _check_config(self, config: dict[str, Any]) -> None:
        only(config, _CONFIG, "generation_config")
        if "responseSchema" in config:
            need(config.get("responseMimeType") == "application/json", "responseSchema needs application/json")
            check_schema(config["responseSchema"], "response_schema")
        need(0 < config.get("maxOutputTokens", 1) <= 65_536, "maxOutputTokens is out of range")
        need(len(config.get("stopSequences", [])) <= 5, "too many stop sequences")
        if thinking := config.get("thinkingConfig"):
            need(self.thinking, "Thinking is not enabled for this model")
            only(thinking, "includeThoughts thinkingBudget thinkingLevel", "thinking_config")
            new = not self.model.startswith("gemini-2")
            need(not ("thinkingLevel" in thinking and not new), "Thinking level is not supported for this model.")
            need(thinking.get("thinkingLevel", "low") in ("minimal", "low", "medium", "high"), "thinkingLevel")
            least = 128 if "pro" in self.model else 0
            need(thinking.get("thinkingBudget", 1024) >= least, "The thinking budget 0 is invalid.")

    def _check_turns(self, contents: list[dict[str, Any]]) -> None:
        need(contents[0]["role"] == "user", "Please ensure that multiturn requests begin with a user turn")
        need(contents[-1]["role"] == "user", "Please ensure that the last turn has the user role")
        start = max(at for at, turn in enumerate(contents) if any("text" in part for part in _user_parts(turn)))
        calls: list[dict[str, Any]] = []
        for at, turn in enumerate(contents):
            only(turn, "role parts", f"contents[{at}]")
            need(turn["role"] in ("user", "model"), "Please use a valid role: user, model.")
            need(turn["parts"], f"contents[{at}].parts must not be empty")
            for part in turn["parts"]:
                _check_part(part, turn["role"])
            answers = [part["functionResponse"] for part in turn["parts"] if "functionResponse" in part]
            need(
                [answer["name"] for answer in answers] == [call["name"] for call in calls],
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn.",
            )
            need(
                [answer.get("id") for answer in answers] == [call.get("id") for call in calls],
                "function response ids differ from those of the calls",
            )
            calls = [part["functionCall"] for part in turn["parts"] if "functionCall" in part]
            need(
                not calls or contents[at - 1]["role"] == "user",
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn.",
            )
            self._check_signatures(turn, current=at > start)
        need(not calls, "the last calls have no response")

    def _check_signatures(self, turn: dict[str, Any], *, current: bool) -> None:
        parts = turn["parts"]
        first = next((part for part in parts if "functionCall" in part), None)
        if first and current and not self.model.startswith("gemini-2"):
            name = first["functionCall"]["name"]
            need("thoughtSignature" in first, f"Function call {name} is missing a thought_signature")
        for part in parts:
            signature = part.get("thoughtSignature")
            self.skipped += signature == SKIP
            if signature and signature != SKIP:
                rest = {key: value for key, value in part.items() if key != "thoughtSignature"}
                need(self._issued.get(signature) == json.dumps(rest), "Corrupted thought signature.")

    def _stream(self, body: dict[str, Any]) -> bytes:
        prompt = json.dumps([body.get("systemInstruction"), body.get("tools"), body["contents"]])[:-2]
        cached = max((shared(prompt, earlier) for earlier in self._prompts), default=0)
        self._prompts.append(prompt)
        usage = {"promptTokenCount": len(prompt) // 4, "cachedContentTokenCount": cached // 4}
        chunks = self.ends or self._chunks(self.next_reply(_names(body)), body)
        self.ends = []
        told = {"modelVersion": self.model, "responseId": "r1"}
        last = {**usage, "candidatesTokenCount": 20, "thoughtsTokenCount": 7, "totalTokenCount": len(prompt) // 4 + 27}
        whole = [{**chunk, **told, "usageMetadata": usage} for chunk in chunks[:-1]]
        whole += [{**chunks[-1], **told, "usageMetadata": last}]
        return "".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in whole).encode()

    def _chunks(self, said: Said, body: dict[str, Any]) -> list[dict[str, Any]]:
        """One part a chunk: thoughts, text, calls. The first call is signed, else an empty text at the end."""
        shows = body.get("generationConfig", {}).get("thinkingConfig", {}).get("includeThoughts")
        parts = [{"text": piece, "thought": True} for piece in halves(said.reasoning)] if shows else []
        parts += [{"text": piece} for piece in halves(said.text)]
        calls: list[dict[str, Any]] = [
            {"functionCall": {"name": name, "args": arguments, "id": f"fc{len(self._issued)}-{at}"}}
            for at, (name, arguments) in enumerate(said.calls)
        ]
        signed = calls[0] if calls else {"text": ""}
        digest = hashlib.sha256(json.dumps([signed, len(self._issued)]).encode()).digest()
        signature = base64.b64encode(digest).decode()
        self._issued[signature] = json.dumps(signed)
        parts += [{**signed, "thoughtSignature": signature}, *calls[1:]]
        chunks = [{"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]} for part in parts]
        chunks[-1]["candidates"][0]["finishReason"] = "STOP"
        return chunks


def check_schema(schema: Any, where: str) -> None:
    """Refuse a schema that is not one of the API."""
    need(isinstance(schema, dict), f"{where}: Proto field is not repeating")
    only(schema, _SCHEMA, where)
    if "anyOf" in schema:
        need(set(schema) == {"anyOf"}, f"{where}: When using any_of, it must be the only field set")
        for option in schema["anyOf"]:
            check_schema(option, f"{where}.any_of")
        return
    kind = schema.get("type")
    need(kind in ("string", "number", "integer", "boolean", "array", "object"), f"{where}.type: {kind!r} is invalid")
    need(schema.get("format") in {None, *_FORMATS.get(kind, ())}, f"{where}.format: only some are supported")
    if "enum" in schema:
        need(kind == "string", f"{where}.enum: only allowed for STRING type")
        need(all(isinstance(value, str) and value for value in schema["enum"]), f"{where}.enum: cannot be empty")
    if kind == "array":
        need("items" in schema, f"{where}.items: missing field.")
        check_schema(schema["items"], f"{where}.items")
    if kind == "object":
        need(schema.get("properties"), f"{where}.properties: should be non-empty for OBJECT type")
        for name, value in schema["properties"].items():
            check_schema(value, f"{where}.properties[{name}]")
        need(set(schema.get("required", ())) <= set(schema["properties"]), f"{where}.required: property is not defined")


def _check_part(part: dict[str, Any], role: str) -> None:
    only(part, "text thought thoughtSignature functionCall functionResponse inlineData", "parts")
    data = [name for name in ("text", "functionCall", "functionResponse") if name in part]
    need(len(data) == 1, "required oneof field 'data' must have one initialized field")
    need(data != ["text"] or part["text"] or "thoughtSignature" in part, "Unable to submit an empty text parameter")
    need(data != ["functionCall"] or role == "model", "a function call in a turn of the user")
    need(data != ["functionResponse"] or role == "user", "a function response in a turn of the model")
    if data == ["functionCall"]:
        only(part["functionCall"], "id name args", "function_call")
    if data == ["functionResponse"]:
        only(part["functionResponse"], "id name response", "function_response")
        need(isinstance(part["functionResponse"]["response"], dict), "response: must be a Struct")


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.title, rest))


def _user_parts(turn: dict[str, Any]) -> list[dict[str, Any]]:
    return list(turn["parts"]) if turn["role"] == "user" else []


def _names(body: dict[str, Any]) -> list[str]:
    return [item["name"] for tool in body.get("tools", []) for item in tool["functionDeclarations"]]
