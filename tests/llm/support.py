"""What the tests of `llm` share."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from typing import Any

from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest, Reply, StreamItem, TextChunk
from codeagent_lsp.messages import ToolSpec

READ: ToolSpec = {
    "name": "read_file",
    "description": "Read a file.",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Where."}, "offset": {"type": "integer"}},
        "required": ["path"],
    },
}
TODO: ToolSpec = {
    "name": "todo",
    "description": "Keep a list.",
    "parameters": {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"title": {"type": "string"}, "state": {"enum": ["open", "done"]}},
                    "required": ["title"],
                },
            }
        },
        "required": ["items"],
    },
}
TOOLS = (READ, TODO)


def tool(name: str, required: tuple[str, ...] = (), **types: str | dict[str, Any]) -> ToolSpec:
    """A tool whose properties are given by a JSON type or by a schema."""
    properties = {key: {"type": kind} if isinstance(kind, str) else kind for key, kind in types.items()}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": "", "parameters": parameters}


def chunked(text: str, seed: int) -> list[str]:
    """The text in pieces of random sizes, most of them small."""
    dice = random.Random(seed)
    pieces = []
    while text:
        size = dice.choice((1, 1, 2, 3, 7, 20))
        pieces.append(text[:size])
        text = text[size:]
    return pieces


class Typewriter:
    """A backend that writes given texts, one a request, some characters at a time; no tools of its own."""

    def __init__(self, *texts: str, size: int = 3, finish: str = "stop") -> None:
        self.requests: list[ModelRequest] = []
        self._texts = list(texts)
        self._size = size
        self._finish = finish

    @property
    def info(self) -> ModelInfo:
        return ModelInfo("typewriter", "test", url="test://")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self.requests.append(request)
        text = self._texts.pop(0) if len(self._texts) > 1 else self._texts[0]
        for at in range(0, len(text), self._size):
            yield TextChunk(text[at : at + self._size])
        yield Reply(text, finish_reason="length" if self._finish == "length" else "stop")

    async def count_tokens(self, text: str) -> int:
        return len(text)

    async def close(self) -> None:
        self._texts.clear()


async def collect(model: Model, request: ModelRequest) -> tuple[str, Reply]:
    """What was shown, and the reply that ended it."""
    shown = ""
    reply = None
    async for item in model.stream(request):
        assert reply is None, "nothing follows the reply"
        if isinstance(item, TextChunk):
            shown += item.text
        elif isinstance(item, Reply):
            reply = item
    assert reply is not None
    return shown, reply
