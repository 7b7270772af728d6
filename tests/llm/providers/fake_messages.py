"""A strict fake of Anthropic's Messages API, from its reference and its pages on thinking and prompt caching."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.faults.model_server import Asked
from tests.llm.providers.fake_server import Answer, FakeServer, Refused, Said, halves, need, only, shared

KEY = "test-" + "a" * 20
BEARER = f"Bearer {KEY}"
NEWER = "2026-10-21"
"""The version of the API that the official package asks for from its own version 2 on, which takes no temperature."""

_BODY = "model messages max_tokens stream system tools tool_choice stop_sequences temperature thinking output_config"
_EFFORTS = ("low", "medium", "high", "xhigh", "max")


class FakeMessages(FakeServer):
    """`adaptive` models take an effort, the others a budget, None of both; `longest` is the most of `max_tokens`."""

    def __init__(self, *script: Said, adaptive: bool | None = True, longest: int = 64_000) -> None:
        super().__init__(*script)
        self.adaptive = adaptive
        self.longest = longest
        self.hides = True  # knows `display`
        self.lasts = True  # knows `ttl`
        self.events: list[dict[str, Any]] = []  # the next events as they are, instead of the script
        self.errors: list[Answer] = []
        self.marks: list[int] = []
        self._issued: dict[str, str] = {}
        self._prompts: list[str] = []

    def answer(self, asked: Asked) -> Answer:
        version = asked.headers.get("anthropic-version")
        need(version in ("2023-06-01", NEWER), "anthropic-version: header is required")
        if asked.headers.get("x-api-key") != KEY and (version, asked.headers.get("authorization")) != (NEWER, BEARER):
            raise Refused("invalid x-api-key", 401)
        if asked.line.startswith("GET"):
            return self._list(asked.path)
        if asked.path != "/v1/messages":
            raise Refused(f"Not found: {asked.path}", 404)
        if self.errors:
            return self.errors.pop(0)
        body = asked.json
        self.bodies.append(body)
        need(version != NEWER or "temperature" not in body, "temperature: Extra inputs are not permitted")
        self._check(body)
        return 200, "text/event-stream; charset=utf-8", self._stream(body)

    def refusal(self, error: Refused) -> Answer:
        kinds = {401: "authentication_error", 404: "not_found_error"}
        told = {"type": kinds.get(error.status, "invalid_request_error"), "message": str(error)}
        return error.status, "application/json", json.dumps({"type": "error", "error": told}).encode()

    def _list(self, path: str) -> Answer:
        if path != "/v1/models":
            raise Refused("Not found", 404)
        model = {"type": "model", "id": "claude-test", "display_name": "Claude", "created_at": "2026-01-01T00:00:00Z"}
        told = {**model, "max_input_tokens": 200_000, "max_tokens": self.longest}
        listed = {"data": [told], "has_more": False, "first_id": "claude-test", "last_id": "claude-test"}
        return 200, "application/json", json.dumps(listed).encode()

    def _check(self, body: dict[str, Any]) -> None:
        only(body, _BODY, "body")
        told = f"max_tokens: {body.get('max_tokens')} > {self.longest}, which is the maximum allowed"
        need(0 < body.get("max_tokens", 0) <= self.longest, told)
        marks = sum("cache_control" in block for block in _blocks(body))
        need(marks <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {marks}.")
        self.marks.append(marks)
        lasting = [block["cache_control"].get("ttl") for block in _blocks(body) if "cache_control" in block]
        need(self.lasts or not any(lasting), "tools.0.cache_control.ephemeral.ttl: Extra inputs are not permitted")
        need(
            all(ttl in (None, "5m", "1h") for ttl in lasting),
            "cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
        )
        first = lasting[: lasting.count("1h")]
        need("1h" not in lasting[len(first) :], "a ttl='1h' block must not come after a ttl='5m' block")
        for block in body.get("system", []):
            need(block["text"].strip(), "system: text content blocks must be non-empty")
        for tool in body.get("tools", []):
            only(tool, "name description input_schema cache_control", "tools")
            need(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]), f"tools.name: {tool['name']}")
        self._check_thinking(body)
        self._check_turns(body["messages"], thinks=body.get("thinking", {}).get("type") == "enabled")

    def _check_thinking(self, body: dict[str, Any]) -> None:
        thinking, effort = body.get("thinking"), body.get("output_config", {}).get("effort")
        need(effort is None or self.adaptive, "output_config.effort: this model does not support effort")
        need(effort in (None, *_EFFORTS), "output_config.effort: Input should be 'low', 'medium' or 'high'")
        if thinking is None:
            return
        only(thinking, "type display budget_tokens" if thinking["type"] == "enabled" else "type display", "thinking")
        need(self.hides or "display" not in thinking, "thinking.adaptive.display: Extra inputs are not permitted")
        need(self.adaptive is not None or thinking["type"] == "disabled", "thinking: not supported by this model")
        need(thinking["type"] != "adaptive" or self.adaptive, "thinking.type: adaptive is not supported by this model")
        if thinking["type"] == "enabled":
            need(not self.adaptive, "thinking.type: enabled is not supported by this model, use adaptive")
            need(1024 <= thinking["budget_tokens"] < body["max_tokens"], "thinking.budget_tokens: out of range")
        if thinking["type"] != "disabled":
            need(body.get("temperature", 1) == 1, "`temperature` may only be set to 1 when thinking is enabled")

    def _check_turns(self, turns: list[dict[str, Any]], *, thinks: bool) -> None:
        need(turns and turns[0]["role"] == "user", "messages: first message must use the user role")
        need(turns[-1]["role"] == "user", "This model does not support assistant message prefill.")
        waiting: list[str] = []
        for at, turn in enumerate(turns):
            only(turn, "role content", f"messages.{at}")
            need(turn["role"] == ("assistant" if at % 2 else "user"), "messages: roles must alternate")
            need(turn["content"], f"messages.{at}: content must be non-empty")
            kinds = [block["type"] for block in turn["content"]]
            for block in turn["content"]:
                self._check_block(block, turn["role"])
            results = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
            need(sorted(results) == sorted(waiting), f"messages.{at}: tool_use ids without tool_result, or the reverse")
            need(kinds[: len(results)] == ["tool_result"] * len(results), "tool_result blocks must come first")
            waiting = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
            need(len(set(waiting)) == len(waiting), "tool_use ids must be unique")
            if thinks and waiting and at == _last_request(turns) + 1:  # an adaptive model may not have thought
                need(kinds[0] in ("thinking", "redacted_thinking"), "Expected `thinking`, but found `tool_use`.")
            need(not waiting or kinds[-1] == "tool_use", "a turn with calls ends with them")
            need(kinds[-1] not in ("thinking", "redacted_thinking"), "the final block cannot be `thinking`.")
        need(not waiting, "tool_use ids were found without tool_result blocks immediately after")

    def _check_block(self, block: dict[str, Any], role: str) -> None:
        kind = block["type"]
        if kind == "text":
            only(block, "type text cache_control", "text")
            need(block["text"].strip(), "messages: text content blocks must be non-empty")
        elif kind == "tool_use":
            only(block, "type id name input cache_control caller", "tool_use")
            need(role == "assistant" and re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]), "tool_use.id")
            need(isinstance(block["input"], dict), "tool_use.input: Input should be a valid dictionary")
        elif kind == "tool_result":
            only(block, "type tool_use_id content is_error cache_control", "tool_result")
            need(all(part["text"].strip() for part in block["content"]), "text content blocks must be non-empty")
        else:
            need(kind in ("thinking", "redacted_thinking") and role == "assistant", f"unknown block {kind}")
            need("cache_control" not in block, "thinking blocks cannot have cache_control")
            sealed = self._issued.get(block.get("signature") or block.get("data") or "")
            need(sealed == json.dumps(block), "thinking blocks in the latest turn cannot be modified")

    def _stream(self, body: dict[str, Any]) -> bytes:
        prompt = json.dumps(unmarked(body))[:-3]
        cached = max((shared(prompt, earlier) for earlier in self._prompts), default=0) if self.marks[-1] else 0
        self._prompts.append(prompt)
        written = (len(prompt) - cached) // 8
        lasting = any("1h" in str(block.get("cache_control")) for block in _blocks(body)) and not cached
        hour = len(json.dumps(prompt_head(body))) // 8 if lasting else 0
        usage: dict[str, Any] = {
            "input_tokens": (len(prompt) - cached) // 8,
            "cache_read_input_tokens": cached // 4,
            "cache_creation_input_tokens": written,
            "cache_creation": {"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour},
            "output_tokens": 1,
        }
        events = self.events or list(self._events(self.next_reply(_names(body)), usage))
        self.events = []
        lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return "".join(lines).encode()

    def _events(self, said: Said, usage: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Thinking, text, calls: each a block in pieces."""
        message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test-1"}
        message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        yield {"type": "message_start", "message": message}
        yield {"type": "ping"}
        for at, (block, deltas) in enumerate(self._parts(said)):
            yield {"type": "content_block_start", "index": at, "content_block": block}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": at, "delta": delta}
            yield {"type": "content_block_stop", "index": at}
        stop = {"stop_reason": "tool_use" if said.calls else "end_turn", "stop_sequence": None}
        made = {"output_tokens": 40, "output_tokens_details": {"thinking_tokens": 15}}
        yield {"type": "message_delta", "delta": stop, "usage": made}
        yield {"type": "message_stop"}

    def _parts(self, said: Said) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        if said.reasoning:
            signature = hashlib.sha256(f"{said.reasoning}{len(self._issued)}".encode()).hexdigest() + "=="
            whole = {"type": "thinking", "thinking": said.reasoning, "signature": signature}
            self._issued[signature] = json.dumps(whole)
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in halves(said.reasoning)]
            begin = {"type": "thinking", "thinking": "", "signature": ""}
            yield begin, [*deltas, {"type": "signature_delta", "signature": signature}]
            hidden = {"type": "redacted_thinking", "data": f"sealed-{signature}"}
            self._issued[hidden["data"]] = json.dumps(hidden)
            yield hidden, []
        if said.text:
            deltas = [{"type": "text_delta", "text": piece} for piece in halves(said.text)]
            yield {"type": "text", "text": ""}, deltas
        for at, (name, arguments) in enumerate(said.calls):
            deltas = [
                {"type": "input_json_delta", "partial_json": piece} for piece in ("", *halves(json.dumps(arguments)))
            ]
            call_id = f"toolu_{len(self.bodies)}_{at}"
            yield {"type": "tool_use", "id": call_id, "name": name, "input": {}}, deltas


def unmarked(body: dict[str, Any]) -> list[Any]:
    """What the model reads of a request: tools, system and messages without the marks for the cache, which move."""
    prompt = copy.deepcopy([body.get("tools", []), body.get("system", []), body["messages"]])
    for block in _blocks({"tools": prompt[0], "system": prompt[1], "messages": prompt[2]}):
        block.pop("cache_control", None)
    return prompt


def prompt_head(body: dict[str, Any]) -> list[Any]:
    """Tools and system prompt of a request, as the model reads them."""
    return unmarked(body)[:2]


def _blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [*body.get("tools", []), *body.get("system", []), *(b for turn in body["messages"] for b in turn["content"])]


def _names(body: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in body.get("tools", [])]


def _last_request(turns: list[dict[str, Any]]) -> int:
    """The last turn of the user that is no result of a tool."""
    return max(
        (at for at, turn in enumerate(turns) if turn["role"] == "user" and turn["content"][0]["type"] != "tool_result"),
        default=0,
    )
