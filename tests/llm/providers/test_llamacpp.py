"""What only llama.cpp has: exact counts, templates, the raw endpoint with a schema."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from codeagent_lsp.errors import ContextOverflow, ModelStreamBroken, ModelUnreachable
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.learned_facts import window_known
from codeagent_lsp.llm.model import ModelInfo, ModelRequest
from codeagent_lsp.llm.providers.http_model import most_tokens
from codeagent_lsp.llm.providers.llamacpp import LlamaCppModel
from codeagent_lsp.messages import Message
from tests.faults import model_server as rig
from tests.faults.model_server import ModelServer, Script
from tests.llm.asking import LIMITS, QUICK
from tests.llm.support import collect

TEMPLATE = rig.status(200, '{"prompt": "<s>hi"}')
DONE = rig.stream({"content": "Hi"}, {"content": "", "stop": True, "stop_type": "eos"}, done=False)
SCHEMA: dict[str, Any] = {"type": "object"}


@asynccontextmanager
async def raw(*scripts: Script) -> AsyncGenerator[tuple[LlamaCppModel, ModelServer]]:
    async with rig.model_server(*scripts) as server:
        info = ModelInfo("m", "llamacpp", facts=window_known(4096))
        model = LlamaCppModel(endpoint(server.url), info, api_mode="completion", limits=LIMITS, policy=QUICK)
        yield model, server
        await model.close()


def asking(**more: Any) -> ModelRequest:
    return ModelRequest((Message("user", "hi"),), **more)


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        rig.status(200, "nonsense"),
        rig.status(200, '{"tokens": 3}'),
        rig.status(200, "[]"),
        rig.status(200, "[" * 60_000),
        rig.then_reset(b""),
        rig.raw(b""),
        rig.then_hang(),
    ],
)
async def test_a_count_is_an_estimate_when_the_server_gives_none(script: Script) -> None:
    async with raw(script) as (model, _):
        assert await model.count_tokens("hello world") == most_tokens("hello world") == 4


async def test_a_count_is_the_servers_and_very_long_text_is_not_sent() -> None:
    async with raw(rig.status(200, '{"tokens": [1, 2]}')) as (model, server):
        assert await model.count_tokens("hello world") == 2
        assert await model.count_tokens("x" * 500_000) > 100_000
        assert len(server.asked) == 1


@pytest.mark.parametrize("text", ["", "a", "abc", "é", "中文字", "🎉🎉", "def f(x): return x", "a" * 100])
def test_an_estimate_is_never_below_a_token_for_every_four_characters(text: str) -> None:
    assert most_tokens(text) >= len(text) / 4
    assert (most_tokens(text) == 0) == (not text)


async def test_the_raw_endpoint_is_given_schema_stops_and_limit() -> None:
    async with raw(rig.by_path(apply_template=TEMPLATE, completion=DONE)) as (model, server):
        _, reply = await collect(model, asking(response_schema=SCHEMA, stop=("END",), max_tokens=7))
        assert reply.text == "Hi"
        body = server.chats[-1].json
        assert (body["json_schema"], body["stop"], body["n_predict"]) == (SCHEMA, ["END"], 7)
        await collect(model, asking())
        assert server.chats[-1].json["n_predict"] == 1024, "a quarter of the window"


async def test_a_template_that_fails_is_told() -> None:
    for answer in ("{}", "[]", '{"prompt": 3}'):
        async with raw(rig.by_path(apply_template=rig.status(200, answer))) as (model, server):
            with pytest.raises(ModelStreamBroken, match="apply-template"):
                await collect(model, asking())
            assert len(server.chats) == 1


@pytest.mark.slow
async def test_errors_of_the_raw_endpoint_are_the_same() -> None:
    full = rig.status(400, json.dumps({"error": {"message": "the request exceeds the available context size"}}))
    async with raw(rig.by_path(apply_template=TEMPLATE, completion=full)) as (model, _):
        with pytest.raises(ContextOverflow):
            await collect(model, asking())
    cut = rig.stream({"content": "Half"}, done=False)
    async with raw(rig.by_path(apply_template=TEMPLATE, completion=cut)) as (model, _):
        with pytest.raises(ModelStreamBroken, match="cut"):
            await collect(model, asking())
    async with raw(rig.by_path(apply_template=rig.then_reset(b""))) as (model, server):
        with pytest.raises(ModelUnreachable):
            await collect(model, asking())
        assert len(server.chats) == 3
