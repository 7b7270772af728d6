"""Models that are taken to be capable without a trial, and what follows where they are not."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.errors import ModelRejected
from codeagent_lsp.llm.factory import open_model
from codeagent_lsp.llm.learned_facts import Facts, combine
from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest, Reply, ToolCalling
from codeagent_lsp.messages import Message, ToolSpec
from tests.bench.by_hand import Answer, playing
from tests.bench.chat_requests import Asked

LOOK: ToolSpec = {
    "name": "look",
    "description": "Look.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
}
REQUEST = ModelRequest((Message("system", "rules"), Message("user", "look at a.py")), (LOOK,), max_tokens=32_000)


@asynccontextmanager
async def opened(url: str, state: Path, **settings: Any) -> AsyncIterator[Model]:
    model = await open_model(ModelSettings(base_url=url, name="strong", **settings), state)
    try:
        yield model
    finally:
        await model.close()


async def asked(model: Model, request: ModelRequest = REQUEST) -> Reply:
    replies = [item async for item in model.stream(request) if isinstance(item, Reply)]
    return replies[0]


async def test_no_call_comes_before_the_users_own(tmp_path: Path) -> None:
    seen: list[Asked] = []

    def play(request: Asked) -> Answer:
        seen.append(request)
        return Answer(calls=[("look", {"at": "a.py"})])

    with playing(play) as url:
        async with opened(url, tmp_path) as model:
            assert model.info.capable and not seen
            reply = await asked(model)
        assert reply.tool_calls[0].arguments == {"at": "a.py"} and [each.number for each in seen] == [1]
        async with opened(url, tmp_path) as model:
            assert model.info.tool_calling == "native"
    assert len(seen) == 1


async def test_two_unreadable_replies_in_a_row_are_a_reason_to_ask(tmp_path: Path) -> None:
    def play(request: Asked) -> Answer:
        if "get_weather" in request.tools or "get_weather" in str(request.body):
            return Answer("It is sunny.")
        return Answer(calls=[("gaze", {})])

    with playing(play) as url:
        async with opened(url, tmp_path) as model:
            assert (await asked(model)).problem and model.info.capable
            assert (await asked(model)).problem
            assert model.info.tool_calling == "text" and not model.info.capable


async def test_readable_replies_between_start_the_count_anew(tmp_path: Path) -> None:
    answers = [Answer(calls=[("gaze", {})]), Answer("words"), Answer(calls=[("gaze", {})]), Answer("words")]
    with playing(lambda request: answers.pop(0)) as url:
        async with opened(url, tmp_path) as model:
            for _ in range(4):
                await asked(model)
            assert model.info.tool_calling == "native"


@contextmanager
def refusing(refusal: Callable[[dict[str, Any]], tuple[int, str] | None]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the URL of a server that refuses some requests, and the bodies that it got."""
    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, {"data": [{"id": "strong", "max_model_len": 200_000}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            bodies.append(body)
            if (refused := refusal(body)) is not None:
                self._send(refused[0], {"error": {"message": refused[1]}})
                return
            call = '{"tool": "look", "args": {"at": "a.py"}}'
            weather = '{"tool": "get_weather", "args": {"city": "Paris"}}'
            text = weather if "get_weather" in str(body) else call
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            self._send(200, {"choices": [choice]})

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            pass

        def _send(self, status: int, value: object) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", bodies
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "registry.example/small does not support tools"),
        (500, "tools param requires --jinja flag"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        (404, "No endpoints found that support tool use."),
        (422, "Function calling is not supported by this model"),
    ],
)
async def test_a_server_that_takes_no_tools_is_worked_with_in_another_way(
    tmp_path: Path, status: int, words: str
) -> None:
    with refusing(lambda body: (status, words) if body.get("tools") else None) as (url, bodies):
        async with opened(url, tmp_path) as model:
            assert model.info.capable
            reply = await asked(model)
            assert reply.tool_calls[0].arguments == {"at": "a.py"}
            mode: ToolCalling = model.info.tool_calling
            assert mode == "constrained" and bodies


async def test_the_users_own_choice_of_native_calls_is_not_changed(tmp_path: Path) -> None:
    with refusing(lambda body: (400, "m does not support tools") if body.get("tools") else None) as (url, _):
        async with opened(url, tmp_path, tool_calling="native") as model:
            with pytest.raises(ModelRejected, match="takes no tools"):
                await asked(model)


async def test_a_refused_length_is_learned_asked_for_and_remembered(tmp_path: Path) -> None:
    words = "max_tokens is too large: 32000. This model supports at most 16384 completion tokens."
    with refusing(lambda body: (400, words) if (body.get("max_tokens") or 0) > 16384 else None) as (url, bodies):
        async with opened(url, tmp_path) as model:
            await asked(model)
            assert [body["max_tokens"] for body in bodies] == [32_000, 16_384]
            assert model.info.facts.longest_reply == 16_384
        async with opened(url, tmp_path) as model:
            assert model.info.facts.longest_reply == 16_384


@pytest.mark.parametrize(
    ("name", "window", "local", "capable"),
    [
        ("gpt-x", 128_000, False, True),
        ("gpt-x", 16_000, False, False),
        ("strong", 200_000, True, True),
        ("llama3.2:3b", 131_072, True, False),
        ("qwen2.5-coder-1.5b-instruct", 32_768, True, False),
        ("qwen3-30b-a3b", 131_072, True, True),
        ("some-8b", 131_072, False, True),
        ("phi-4-mini", 131_072, True, True),
    ],
)
def test_who_is_capable(name: str, window: int, local: bool, capable: bool) -> None:
    facts = combine([("server", Facts(context_window=window))])
    info = ModelInfo(name, "openai", facts=facts, tool_calling="native", local=local)
    assert info.capable is capable
    assert not ModelInfo(name, "openai", facts=facts, tool_calling="constrained", local=local).capable
