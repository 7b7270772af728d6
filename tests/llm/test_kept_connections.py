"""One connection serves the calls of a run and those of the next: counted by the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, Reply
from codeagent_lsp.llm.providers.openai import OpenAIModel
from codeagent_lsp.messages import Message
from tests.faults.authority import Authority
from tests.faults.model_server import delta
from tests.llm.keeping_server import keeping_server

ASK = ModelRequest((Message("user", "hi"),))


def hello(number: int, body: dict[str, Any]) -> list[dict[str, Any]]:
    return [delta("Hel"), delta("lo"), delta(finish="stop"), {"choices": [], "usage": {"prompt_tokens": 5}}]


async def ask(model: OpenAIModel) -> Reply:
    replies = [item async for item in model.stream(ASK) if isinstance(item, Reply)]
    return replies[0]


@pytest.mark.slow
async def test_thirty_calls_take_one_connection() -> None:
    with keeping_server(hello) as kept:
        model = OpenAIModel(endpoint(kept.url), ModelInfo("m", "openai"))
        replies = [await ask(model) for _ in range(30)]
        await model.close()
    assert kept.connections == 1 and len(kept.bodies) == 30
    assert {(reply.text, reply.usage.prompt_tokens) for reply in replies} == {("Hello", 5)}


@pytest.mark.slow
async def test_thirty_calls_take_one_connection_over_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    network = NetworkSettings(ca_file=authority.ca_file)
    with keeping_server(hello, authority.server("localhost")) as kept:
        model = OpenAIModel(endpoint(kept.url, network=network), ModelInfo("m", "openai"))
        assert {(await ask(model)).text for _ in range(30)} == {"Hello"}
        await model.close()
    assert kept.connections == 1 and len(kept.bodies) == 30


async def test_a_server_that_lingers_after_its_reply_is_not_awaited_twice() -> None:
    with keeping_server(hello, linger=1.5) as kept:
        model = OpenAIModel(endpoint(kept.url), ModelInfo("m", "openai"))
        assert [(await ask(model)).text for _ in range(3)] == ["Hello"] * 3
        await model.close()
    assert kept.connections == 3


async def test_a_connection_that_was_closed_meanwhile_is_opened_again() -> None:
    """The server restarts on another port would be another server; here it only drops what is idle."""
    with keeping_server(hello) as kept:
        model = OpenAIModel(endpoint(kept.url), ModelInfo("m", "openai"))
        await ask(model)
        for connection in model._http._client._transport._pool.connections:  # type: ignore[attr-defined]
            await connection.aclose()
        assert (await ask(model)).text == "Hello"
        await model.close()
    assert kept.connections == 2
