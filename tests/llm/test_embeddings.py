"""The client of `/v1/embeddings`: what it asks, what it takes for an answer, and what it makes of failures."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from codeagent_lsp.errors import (
    ContextOverflow,
    ModelBusy,
    ModelError,
    ModelNotFound,
    ModelRejected,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnreachable,
)
from codeagent_lsp.llm.embeddings import Embedder
from codeagent_lsp.llm.endpoint import TimeLimits, endpoint
from tests.faults.model_server import Script, error, free_port, head, model_server, models, raw, status, then_hang

QUICK = TimeLimits(connect=0.5, first=0.5, silence=0.5)


def answer(*vectors: list[Any], order: list[int] | None = None) -> Script:
    entries = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    return status(200, json.dumps({"data": [entries[at] for at in order or range(len(entries))]}))


def at(url: str, model: str = "m") -> Embedder:
    return Embedder(endpoint(url, None), model, QUICK)


async def test_one_vector_a_text_in_their_order() -> None:
    async with model_server(answer([1.0, 0], [0, 2.5], order=[1, 0])) as server:
        vectors = await at(server.url).embed(["one", "two"])

    assert vectors == [(1.0, 0.0), (0.0, 2.5)]
    asked = server.asked[-1]
    assert asked.path == "/v1/embeddings"
    assert asked.json == {"model": "m", "input": ["one", "two"], "encoding_format": "float"}


async def test_nothing_is_not_asked() -> None:
    assert await at(f"http://127.0.0.1:{free_port()}").embed([]) == []


async def test_entries_without_a_number_count_in_their_order() -> None:
    reply = json.dumps({"data": [{"embedding": [1]}, {"embedding": [2]}]})
    async with model_server(status(200, reply)) as server:
        assert await at(server.url).embed(["a", "b"]) == [(1.0,), (2.0,)]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [(["chat", "nomic-Embed-text"], "nomic-Embed-text"), (["e5-small", "other"], "e5-small"), ([], "default")],
)
async def test_the_model_is_found_once(names: list[str], chosen: str) -> None:
    async with model_server(answer([1.0]), get=models(names)) as server:
        embedder = at(server.url, "")
        await embedder.embed(["a"])
        await embedder.embed(["a"])

        assert await embedder.model() == chosen
        assert [asked.json["model"] for asked in server.chats] == [chosen, chosen]
        assert len(server.asked) == 3


async def test_a_server_without_a_list_of_models_will_do() -> None:
    async with model_server(answer([1.0])) as server:
        assert await at(server.url, "").model() == "default"


async def test_the_model_of_a_server_that_is_not_there_is_not_guessed() -> None:
    embedder = at(f"http://127.0.0.1:{free_port()}", "")
    with pytest.raises(ModelUnreachable):
        await embedder.model()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (error(429, "slow down"), ModelBusy),
        (error(503, "loading"), ModelBusy),
        (error(401, "no"), ModelRejected),
        (error(404, "not here"), ModelNotFound),
        (error(400, "input is too long, the maximum context length is 512"), ContextOverflow),
        (status(413, "{}"), ContextOverflow),
        (status(200, "<html>"), ModelReplyInvalid),
        (status(200, "[]"), ModelReplyInvalid),
        (status(200, '{"data": {}}'), ModelReplyInvalid),
        (status(200, "[" * 100_000), ModelReplyInvalid),
        (answer([1.0]), ModelReplyInvalid),  # one for two
        (answer([1.0], [1.0, 2.0]), ModelReplyInvalid),
        (answer([], []), ModelReplyInvalid),
        (answer(["x"], [1.0]), ModelReplyInvalid),
        (status(200, '{"data": [{"embedding": [NaN]}, {"embedding": [1]}]}'), ModelReplyInvalid),
        (raw(head(200, "application/json", Content_Length="500") + b'{"data": ['), ModelReplyInvalid),
    ],
)
async def test_what_is_no_answer_is_an_error_that_says_so(script: Script, expected: type[ModelError]) -> None:
    async with model_server(script) as server:
        with pytest.raises(expected):
            await at(server.url).embed(["a", "b"])


@pytest.mark.slow
async def test_a_server_that_says_nothing_is_given_up() -> None:
    async with model_server(then_hang()) as server:
        begun = time.monotonic()
        with pytest.raises(ModelTimeout):
            await at(server.url).embed(["a"])
    assert time.monotonic() - begun < 5


async def test_no_server() -> None:
    with pytest.raises(ModelUnreachable):
        await at(f"http://127.0.0.1:{free_port()}").embed(["a"])
