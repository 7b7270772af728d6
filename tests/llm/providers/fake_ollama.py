"""A strict fake of Ollama's own API, from its reference: it cuts long prompts silently, as the real one, or refuses."""

from __future__ import annotations

import json
from typing import Any

from tests.faults.model_server import Asked
from tests.llm.providers.fake_server import Answer, FakeServer, Refused, Said, halves, need, only, shared

DEFAULT_WINDOW = 4096
_HEADS = {
    "general.architecture": "qwen3",
    "qwen3.attention.head_count": 32,
    "qwen3.attention.head_count_kv": 8,
    "qwen3.attention.key_length": 128,
    "qwen3.embedding_length": 4096,
}
_OPTIONS = "num_ctx num_predict temperature stop seed top_k top_p min_p num_keep repeat_penalty num_gpu num_thread"


class FakeOllama(FakeServer):
    """`length` is the model's own window. `cuts`: a prompt that is too long is cut, as before `truncate` was known.

    `counts` is how tokens are counted: `full`, `uncached` (as some versions do), `omitted`.
    """

    def __init__(
        self,
        *script: Said,
        model: str = "qwen3:8b",
        length: int = 40_960,
        capabilities: tuple[str, ...] = ("completion", "tools", "thinking"),
        cuts: bool = False,
        counts: str = "full",
        memory: int = 1_000_000,
        layers: int = 36,
    ) -> None:
        super().__init__(*script)
        self.model, self.length, self.capabilities = model, length, capabilities
        self.cuts, self.counts, self.memory, self.layers = cuts, counts, memory, layers
        self.loads: list[int] = []
        self.chars_per_token = 4.0
        self.running: dict[str, Any] | None = None
        self.lines: list[dict[str, Any]] = []  # the next lines as they are, instead of the script
        self._cached = ""

    def answer(self, asked: Asked) -> Answer:
        route = (asked.line.split(" ")[0], asked.path)
        match route:
            case "GET", "/api/version":
                return _json({"version": "0.13.1"})
            case "GET", "/v1/models":
                return _json({"object": "list", "data": [{"id": self.model, "object": "model", "owned_by": "library"}]})
            case "GET", "/api/ps":
                return _json({"models": [self.running] if self.running else []})
            case "POST", "/api/show":
                self._known(asked.json)
                about = {"qwen3.context_length": self.length, "qwen3.block_count": self.layers} | _HEADS
                return _json({"model_info": about, "capabilities": list(self.capabilities), "details": {}})
            case "POST", "/api/chat":
                return self._chat(asked.json)
        raise Refused("404 page not found", 404)

    def refusal(self, error: Refused) -> Answer:
        return error.status, "application/json", json.dumps({"error": str(error)}).encode()

    def _known(self, body: dict[str, Any]) -> None:
        if body["model"] != self.model:
            raise Refused(f"model '{body['model']}' not found", 404)

    def _chat(self, body: dict[str, Any]) -> Answer:
        self.bodies.append(body)
        self._known(body)
        only(body, "model messages tools format options stream keep_alive think truncate shift", "chat")
        only(body.get("options", {}), _OPTIONS, "options")
        self._check(body)
        window = min(body.get("options", {}).get("num_ctx", DEFAULT_WINDOW), self.length)
        if window > self.memory:
            raise Refused("model requires more system memory (41.2 GiB) than is available (15.9 GiB)", 500)
        if not self.loads or self.loads[-1] != window:
            self.loads.append(window)
            self._cached = ""
        count = self._read(body, window)
        lines = self.lines or self._lines(self.next_reply([tool["function"]["name"] for tool in body.get("tools", [])]))
        self.lines = []
        last = {"prompt_eval_count": count} if count else {}
        ends = {"done": True, "done_reason": "stop", "eval_count": 30, "message": {"role": "assistant", "content": ""}}
        if not any("error" in line or line.get("done") for line in lines):
            lines = [*({**line, "done": False} for line in lines), {**ends, **last}]
        told = {"model": self.model, "created_at": "2026-01-01T00:00:00Z"}
        text = "".join(json.dumps(line if "error" in line else {**told, **line}) + "\n" for line in lines)
        return 200, "application/x-ndjson", text.encode()

    def _check(self, body: dict[str, Any]) -> None:
        name = f"registry.ollama.ai/library/{self.model}"
        if body.get("tools"):
            need("tools" in self.capabilities, f"{name} does not support tools")
        if body.get("think"):
            need("thinking" in self.capabilities, f'"{self.model}" does not support thinking')
        if isinstance(body.get("think"), str):
            need("gpt-oss" in self.model, f'think value "{body["think"]}" is not supported for this model')
        names: list[str] = []
        for message in body["messages"]:
            only(message, "role content thinking images tool_calls tool_name", "messages")
            need(message["role"] in ("system", "user", "assistant", "tool"), f"invalid role: {message['role']}")
            need(isinstance(message["content"], str), "content must be a string")
            if message["role"] == "tool":
                need(names and message.get("tool_name") == names.pop(0), "a result without its call")
                continue
            need(not names, "a call without its result")
            for call in message.get("tool_calls", []):
                only(call, "function", "tool_calls")
                only(call["function"], "name arguments", "function")
                need(isinstance(call["function"]["arguments"], dict), "arguments must be an object")
                names.append(call["function"]["name"])

    def _read(self, body: dict[str, Any], window: int) -> int:
        """The tokens of the prompt as they are told: without those of the messages that were dropped to make it fit."""
        messages = list(body["messages"])
        while self._tokens(body, messages) > window:
            if not self.cuts and body.get("truncate") is False:
                raise Refused("the input length exceeds the context length")
            if len(messages) <= 2:
                break
            del messages[1]  # the system message and the last one stay
        prompt = json.dumps(messages)[:-1]
        cached, self._cached = shared(prompt, self._cached), prompt
        count = min(self._tokens(body, messages), window)
        if self.counts == "omitted" and cached:
            return 0
        return count - int(cached / self.chars_per_token) if self.counts == "uncached" else count

    def _tokens(self, body: dict[str, Any], messages: list[Any]) -> int:
        return int(len(json.dumps([messages, body.get("tools", [])])) / self.chars_per_token)

    def _lines(self, said: Said) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = [{"content": "", "thinking": piece} for piece in halves(said.reasoning)]
        lines += [{"content": piece} for piece in halves(said.text)]
        lines += [
            {"content": "", "tool_calls": [{"function": {"name": name, "arguments": arguments}}]}
            for name, arguments in said.calls
        ]
        return [{"message": {"role": "assistant", **line}} for line in lines]


def _json(value: Any) -> Answer:
    return 200, "application/json", json.dumps(value).encode()
