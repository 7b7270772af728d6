"""Every way of filling in against a server on loopback that speaks it, refusals, broken answers, and early ends."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.errors import ModelError
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.factory import Surroundings
from codeagent_lsp.llm.fill.filler import FillRequest, Piece, family_of
from codeagent_lsp.llm.fill.open_filler import HttpFiller, open_filler
from codeagent_lsp.llm.fill.ways import MISTRAL, SUFFIX, by_tokens, infill
from tests.inline.fill_server import fill_server

REQUEST = FillRequest("def f(a):\n    return ", "\n\nf(1)\n", "x.py", (Piece("y.py", "def g(): ..."),), max_tokens=9)
AROUND = Surroundings(ports={}, embedded=False)


def say(path: str, body: dict[str, Any]) -> list[str]:
    return ["a ", "+ 1"]


async def filled(filler: Any, request: FillRequest = REQUEST) -> str:
    async with aclosing(filler.stream(request)) as texts:
        found = "".join([text async for text in texts])
    await filler.close()
    return found


async def test_llama_cpp_gets_prefix_suffix_and_the_pieces() -> None:
    with fill_server(say) as server:
        found = await open_filler(ModelSettings(base_url=server.url), AROUND)
        assert found is not None and found.at_hand
        assert await filled(found.filler) == "a + 1"
    ((path, body),) = server.asked
    assert path == "/infill"
    assert (body["input_prefix"], body["input_suffix"]) == (REQUEST.prefix, REQUEST.suffix)
    assert body["input_extra"] == [{"filename": "y.py", "text": "def g(): ..."}]
    assert body["n_predict"] == 9 and body["cache_prompt"] is True


async def test_ollama_gets_a_suffix_and_the_pieces_as_comments() -> None:
    with fill_server(say, kind="ollama", model="qwen2.5-coder:1.5b") as server:
        found = await open_filler(ModelSettings(provider="ollama", base_url=server.url), AROUND)
        assert found is not None and found.at_hand
        assert await filled(found.filler) == "a + 1"
    ((path, body),) = server.asked
    assert path == "/api/generate"
    assert body["suffix"] == REQUEST.suffix
    assert body["prompt"] == f"# y.py:\n# def g(): ...\n{REQUEST.prefix}"
    assert body["options"]["num_predict"] == 9


async def test_ollama_keeps_the_model_as_the_agent_has_loaded_it() -> None:
    with fill_server(say, kind="ollama", model="qwen2.5-coder:1.5b") as server:
        found = await open_filler(ModelSettings(provider="ollama", base_url=server.url), AROUND)
        assert found is not None
        for window in (0, 32_768):
            server.window = window
            async with aclosing(found.filler.stream(REQUEST)) as texts:
                assert "".join([text async for text in texts]) == "a + 1"
        await found.filler.close()
    windows = [body["options"]["num_ctx"] for body in server.bodies]
    assert windows == [8192, 32_768], "the agent's first window where none is loaded"
    assert {body["keep_alive"] for body in server.bodies} == {"30m"}


async def test_an_ollama_model_without_a_template_for_it_gets_its_tokens() -> None:
    def refuse(path: str, body: dict[str, Any]) -> Any:
        return ["x"] if body.get("raw") else (400, "qwen2.5-coder does not support insert")

    with fill_server(refuse, kind="ollama", model="qwen2.5-coder") as server:
        found = await open_filler(ModelSettings(provider="ollama", base_url=server.url), AROUND)
        assert found is not None
        assert await filled(found.filler) == "x"
    assert "<|fim_suffix|>\n\nf(1)\n<|fim_middle|>" in server.bodies[1]["prompt"]


async def test_a_suffix_that_is_refused_is_never_sent_again() -> None:
    def refuse(path: str, body: dict[str, Any]) -> Any:
        return (400, "suffix is not currently supported") if "suffix" in body else ["y"]

    family = family_of("qwen2.5-coder-7b")
    assert family is not None
    with fill_server(refuse) as server:
        filler = HttpFiller(endpoint(server.url), "qwen2.5-coder-7b", [SUFFIX, by_tokens(family)])
        for _ in range(2):
            async with aclosing(filler.stream(REQUEST)) as texts:
                assert [text async for text in texts] == ["y"]
        await filler.close()
    assert ["suffix" in body for body in server.bodies] == [True, False, False]
    assert server.bodies[1]["prompt"].startswith(
        "<|file_sep|>y.py\ndef g(): ...\n<|file_sep|>x.py\n<|fim_prefix|>def f"
    )


async def test_mistrals_own_endpoint() -> None:
    with fill_server(say) as server:
        assert await filled(HttpFiller(endpoint(server.url), "codestral-latest", [MISTRAL])) == "a + 1"
    assert server.asked[0][0] == "/v1/fim/completions"


@pytest.mark.parametrize("provider", ["anthropic", "responses", "gemini", "scripted"])
async def test_servers_that_cannot_fill_in_are_not_asked(provider: Any) -> None:
    assert await open_filler(ModelSettings(provider=provider), AROUND) is None


async def test_a_model_of_an_unknown_name_is_not_at_hand() -> None:
    with fill_server(say, model="mystery-9b") as server:
        found = await open_filler(ModelSettings(base_url=server.url), AROUND)
        assert found is not None and not found.at_hand
        await found.filler.close()


async def test_a_refusal_without_another_way_is_an_error() -> None:
    with fill_server(lambda path, body: (501, "This server does not support infill")) as server:
        filler = HttpFiller(endpoint(server.url), "m", [infill()])
        with pytest.raises(ModelError):
            await filled(filler)


async def test_an_answer_that_is_not_wanted_any_more_is_broken_off() -> None:
    with fill_server(lambda path, body: ["word "] * 2000, pause=0.005) as server:
        filler = HttpFiller(endpoint(server.url), "m", [infill()])
        async with aclosing(filler.stream(REQUEST)) as texts:
            assert await anext(texts) == "word "
        for _ in range(200):
            if server.broken_off:
                break
            await asyncio.sleep(0.02)
        assert server.broken_off == 1
        await filler.close()


async def test_an_answer_without_an_end_is_cut() -> None:
    with fill_server(lambda path, body: ["x" * 1000] * 100) as server:
        filler = HttpFiller(endpoint(server.url), "m", [infill()])
        assert len(await filled(filler)) <= 10_000
