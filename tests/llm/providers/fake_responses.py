"""A strict fake of OpenAI's Responses API, from its reference and its pages on reasoning without storage."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.faults.model_server import Asked
from tests.llm.providers.fake_server import Answer, FakeServer, Refused, Said, halves, need, only, shared

KEY = "test-" + "o" * 20
MARKED = {"mode": "explicit"}
OWN_ADDRESS = "http://api.openai.com"
_BODY = (
    "model instructions input tools stream store include temperature reasoning max_output_tokens text tool_choice "
    "parallel_tool_calls"
)


class FakeResponses(FakeServer):
    """A `reasons` model refuses a temperature and wants its encrypted reasoning back; the others refuse `reasoning`.

    Asked as the proxy to OpenAI's own address, it knows the fields for its prompt cache, breakpoints if it `marks`;
    at any other address it is a server that knows none.
    """

    def __init__(self, *script: Said, reasons: bool = True) -> None:
        super().__init__(*script)
        self.reasons = reasons
        self.verified = True
        self.marks = True
        self.efforts: tuple[str, ...] = ("none", "minimal", "low", "medium", "high")
        self.events: list[dict[str, Any]] = []  # the next events as they are, instead of the script
        self.errors: list[Answer] = []
        self._issued: dict[str, str] = {}
        self._prompts: dict[str, list[str]] = {}

    def answer(self, asked: Asked) -> Answer:
        if asked.headers.get("authorization") != f"Bearer {KEY}":
            raise Refused("Incorrect API key provided", 401)
        path = asked.path.removeprefix(OWN_ADDRESS)
        if path == "/v1/models":
            listed = {"object": "list", "data": [{"id": "gpt-test", "object": "model", "owned_by": "x"}]}
            return 200, "application/json", json.dumps(listed).encode()
        if path != "/v1/responses":
            raise Refused(f"Invalid URL (GET {asked.path})", 404)
        if self.errors:
            return self.errors.pop(0)
        body = asked.json
        self.bodies.append(body)
        self._check(body, own=asked.path.startswith(OWN_ADDRESS))
        return 200, "text/event-stream; charset=utf-8", self._stream(body)

    def refusal(self, error: Refused) -> Answer:
        told = {"message": str(error), "type": "invalid_request_error", "param": error.param, "code": None}
        return error.status, "application/json", json.dumps({"error": told}).encode()

    def _check(self, body: dict[str, Any], *, own: bool) -> None:
        only(body, f"{_BODY} {'prompt_cache_key' if own else ''}", "body")
        self._check_marks(body, own=own)
        need(body["store"] is False, "this organisation stores nothing")
        if "temperature" in body and self.reasons:
            raise Refused("Unsupported parameter: 'temperature' is not supported", param="temperature")
        if not self.reasons:
            need("reasoning" not in body, "Unsupported parameter: 'reasoning.summary' is not supported")
            if "include" in body:
                raise Refused("Encrypted content is not supported with this model.", param="include")
        if "summary" in body.get("reasoning", {}) and not self.verified:
            told = "Your organization must be verified to generate reasoning summaries."
            raise Refused(told, param="reasoning.summary")
        effort = body.get("reasoning", {}).get("effort", "low")
        if effort not in self.efforts:
            raise Refused(f"Unsupported value: '{effort}' is not supported with this model.", param="reasoning.effort")
        need(body.get("max_output_tokens", 16) >= 16, "max_output_tokens: integer below minimum value")
        for tool in body.get("tools", []):
            only(tool, "type name description parameters strict", "tools")
            need(re.fullmatch(r"[a-zA-Z0-9_-]+", tool["name"]), f"tools.name: {tool['name']}")
        self._check_items(body["input"])

    def _check_marks(self, body: dict[str, Any], *, own: bool) -> None:
        for item in body["input"]:
            parts = item["content"] if isinstance(item.get("content"), list) else []
            for part in (part for part in parts if part["type"].startswith("input_")):
                known = "type text image_url detail" + (" prompt_cache_breakpoint" if own and self.marks else "")
                only(part, known, "input.content")
                need(part.get("prompt_cache_breakpoint", MARKED) == MARKED, "prompt_cache_breakpoint.mode: explicit")

    def _check_items(self, items: list[dict[str, Any]]) -> None:
        waiting: list[str] = []
        previous: dict[str, Any] = {}
        for at, item in enumerate(items):
            kind = item["type"]
            if kind == "function_call_output":
                only(item, "type call_id output", f"input[{at}]")
                need(item["call_id"] in waiting, f"No tool call found for function call output {item['call_id']}.")
                waiting.remove(item["call_id"])
            elif kind == "function_call":
                only(item, "type id call_id name arguments status", f"input[{at}]")
                json.loads(item["arguments"])
                waiting.append(item["call_id"])
            elif kind == "reasoning":
                need(self._issued.get(item.get("encrypted_content", "")) == json.dumps(item), "could not be verified")
            else:
                only(item, "type id role content status phase", f"input[{at}]")
                need(not waiting, f"No tool output found for function call {waiting[:1]}.")
                need(item["content"], f"input[{at}].content: empty")
            if previous.get("type") == "reasoning" and self.reasons:
                need(kind in ("function_call", "message"), "reasoning was provided without its required following item")
            previous = item
        need(not waiting, f"No tool output found for function call {waiting[:1]}.")

    def _stream(self, body: dict[str, Any]) -> bytes:
        prompt = json.dumps(prompt_of(body))[:-2]
        earlier = self._prompts.setdefault(body.get("prompt_cache_key", ""), [])
        cached = max((shared(prompt, other) for other in earlier), default=0)
        earlier.append(prompt)
        usage = {
            "input_tokens": len(prompt) // 4,
            "input_tokens_details": {"cached_tokens": cached // 4, "cache_write_tokens": 0},
            "output_tokens": 30,
            "output_tokens_details": {"reasoning_tokens": 12},
            "total_tokens": len(prompt) // 4 + 30,
        }
        events = self.events or list(self._events(self.next_reply(_names(body)), usage, body))
        self.events = []
        numbered = ({**event, "sequence_number": at} for at, event in enumerate(events))
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in numbered).encode()

    def _events(self, said: Said, usage: dict[str, Any], body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        begun = {**RESPONSE, "status": "in_progress"}
        yield {"type": "response.created", "response": begun}
        output: list[dict[str, Any]] = []
        for kind, item, pieces in self._parts(said, body):
            at = len(output)
            yield {"type": "response.output_item.added", "output_index": at, "item": {**item, "status": "in_progress"}}
            for piece in pieces:
                place = {"item_id": item["id"], "output_index": at}
                indexed = {"summary_index": 0} if "summary" in kind else {"content_index": 0, "logprobs": []}
                yield {"type": kind, "delta": piece, **place, **(indexed if "arguments" not in kind else {})}
            yield {"type": "response.output_item.done", "output_index": at, "item": item}
            output.append(item)
        done = {**RESPONSE, "status": "completed", "output": output, "usage": usage}
        yield {"type": "response.completed", "response": done}

    def _parts(self, said: Said, body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
        number = len(self.bodies)
        if said.reasoning and self.reasons:
            sealed = hashlib.sha256(f"{said.reasoning}{number}".encode()).hexdigest()
            summary = [{"type": "summary_text", "text": said.reasoning}]
            item = {"id": f"rs_{number}", "type": "reasoning", "summary": summary, "encrypted_content": sealed}
            self._issued[sealed] = json.dumps(item)
            yield "response.reasoning_summary_text.delta", item, halves(said.reasoning)
        if said.text:
            content = [{"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}]
            told = {"type": "message", "role": "assistant", "status": "completed", "content": content}
            yield "response.output_text.delta", {"id": f"msg_{number}", **told}, halves(said.text)
        for at, (name, arguments) in enumerate(said.calls):
            call = {"id": f"fc_{number}_{at}", "type": "function_call", "status": "completed"}
            call |= {"call_id": f"call_{number}_{at}", "name": name, "arguments": json.dumps(arguments)}
            yield "response.function_call_arguments.delta", call, halves(json.dumps(arguments))


RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1.0,
    "model": "gpt-test-1",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "temperature": 1.0,
    "top_p": 1.0,
}


def prompt_of(body: dict[str, Any]) -> list[Any]:
    """What the model reads of a request."""
    return [body.get("instructions"), body.get("tools", []), body["input"]]


def _names(body: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in body.get("tools", [])]
