"""Strict fakes of chat-completions servers, from their documentation: LM Studio, DeepSeek and OpenRouter."""

from __future__ import annotations

import json
from typing import Any

from tests.faults.model_server import Asked
from tests.llm.providers.fake_server import Answer, FakeServer, Refused, Said, halves, need, only, shared

_BODY = "model messages tools tool_choice temperature max_tokens stream stream_options stop response_format seed"
_EFFORTS = ("none", "minimal", "low", "medium", "high")


class FakeChat(FakeServer):
    """A server with one model. `style` is `lmstudio`, `deepseek`, `openrouter`, `openai`, which knows the fields for a
    prompt cache, or `plain`, which refuses reasoning.
    """

    def __init__(self, *script: Said, style: str = "lmstudio") -> None:
        super().__init__(*script)
        self.style = style
        self._written: list[dict[str, Any]] = []
        self._prompts: list[str] = []

    def answer(self, asked: Asked) -> Answer:
        path = asked.path.replace("http://models.test", "").removeprefix("http://api.openai.com")
        if path == "/v1/models":
            return _json({"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "organization_owner"}]})
        if path == "/api/v0/models" and self.style == "lmstudio":
            window = {"state": "loaded", "max_context_length": 32_768, "loaded_context_length": 16_384}
            return _json({"object": "list", "data": [{"id": "m", "type": "llm", "arch": "qwen3", **window}]})
        if path != "/v1/chat/completions":
            raise Refused(f"Unexpected endpoint or method. ({asked.line})", 404)
        body = asked.json
        self.bodies.append(body)
        self._check(body)
        return 200, "text/event-stream", self._stream(body)

    def _check(self, body: dict[str, Any]) -> None:
        also = {"plain": "", "openai": "reasoning_effort prompt_cache_key"}.get(self.style, "reasoning_effort")
        only(body, f"{_BODY} {also}", "body")
        need(body.get("reasoning_effort", "low") in _EFFORTS, "Unsupported value: 'reasoning_effort'")
        pending: list[str] = []
        for at, message in enumerate(body["messages"]):
            only(message, f"role content name tool_calls tool_call_id {self._fields()}", f"messages[{at}]")
            if message["role"] == "tool":
                need(message["tool_call_id"] in pending, "messages with role 'tool' must follow their 'tool_calls'")
                pending.remove(message["tool_call_id"])
                continue
            need(not pending, f"An assistant message with 'tool_calls' must be followed by tool messages: {pending}")
            need(message["role"] != "system" or at == 0, "the system message must be at the beginning")
            pending = [call["id"] for call in message.get("tool_calls", ())]
            if message["role"] == "assistant":
                self._check_reasoning(message, at)
        need(not pending, f"An assistant message with 'tool_calls' must be followed by tool messages: {pending}")

    def _fields(self) -> str:
        return {"openrouter": "reasoning reasoning_details", "plain": ""}.get(self.style, "reasoning_content")

    def _check_reasoning(self, message: dict[str, Any], at: int) -> None:
        """Refuse reasoning that is missing or is not as it was written."""
        if self.style == "deepseek" and message.get("tool_calls"):
            need("reasoning_content" in message, f"Missing `reasoning_content` field in the assistant message {at}")
        for name in ("reasoning_content", "reasoning_details"):
            if name in message and message[name] != "":
                same = [written for written in self._written if written.get(name) == message[name]]
                need(same, f"the {name} of message {at} was modified")
        if self.style == "openrouter" and message.get("tool_calls"):
            need("reasoning_details" in message, "reasoning_details is required for this model")

    def _stream(self, body: dict[str, Any]) -> bytes:
        said = self.next_reply([tool["function"]["name"] for tool in body.get("tools", [])])
        prompt = json.dumps([body.get("tools"), body["messages"]])[:-2]
        cached = max((shared(prompt, earlier) for earlier in self._prompts), default=0)
        self._prompts.append(prompt)
        deltas = [*self._reasoning(said), *({"content": piece} for piece in halves(said.text))]
        for at, (name, arguments) in enumerate(said.calls):
            call = {"index": at, "id": f"call_{len(self._prompts)}_{at}", "type": "function"}
            deltas.append({"tool_calls": [{**call, "function": {"name": name, "arguments": ""}}]})
            pieces = halves(json.dumps(arguments))
            deltas += [{"tool_calls": [{"index": at, "function": {"arguments": piece}}]} for piece in pieces]
        chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        reason = "tool_calls" if said.calls else "stop"
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        usage = {
            "prompt_tokens": len(prompt) // 4,
            "prompt_tokens_details": {"cached_tokens": cached // 4},
            "completion_tokens": 30,
            "completion_tokens_details": {"reasoning_tokens": 9},
        }
        chunks.append({"choices": [], "usage": usage})
        lines = [json.dumps({"id": "c", "model": "m", **chunk}) for chunk in chunks]
        return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()

    def _reasoning(self, said: Said) -> list[dict[str, Any]]:
        """The deltas of the reasoning; what they make together is remembered."""
        if self.style != "openrouter":
            self._written.append({"reasoning_content": said.reasoning})
            return [{"reasoning_content": piece} for piece in halves(said.reasoning)]
        text = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
        signature = f"sig{len(self._written)}"
        sealed = {"type": "reasoning.encrypted", "data": f"data{len(self._written)}", "format": None, "index": 1}
        whole = {**text, "text": said.reasoning, "signature": signature}
        self._written.append({"reasoning_details": [whole, sealed]})
        parts: list[dict[str, Any]] = [{**text, "text": piece} for piece in halves(said.reasoning)]
        parts += [{**text, "signature": signature}, sealed]
        return [{"reasoning": part.get("text"), "reasoning_details": [part]} for part in parts]


def _json(value: Any) -> Answer:
    return 200, "application/json", json.dumps(value).encode()
