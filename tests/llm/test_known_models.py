"""What is known of well-known models, under the spellings of makers, clouds and routers, and from where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.llm.endpoint import TimeLimits, endpoint
from codeagent_lsp.llm.learned_facts import HOSTED_WINDOW, LOCAL_WINDOW, Facts, LearnedFacts, Prices
from codeagent_lsp.llm.providers.openai import facts_of
from codeagent_lsp.llm.survey import Survey, find
from tests.faults import model_server as rig

FAR = "https://models.example.com/v1"
LIMITS = TimeLimits(connect=1.0, first=1.0, silence=1.0)

SPELLINGS = {
    "claude-sonnet-4-5": (
        "claude-sonnet-4-5-20250929",
        "anthropic/claude-sonnet-4-5",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "claude-sonnet-4-5@20250929",
        "Claude-Sonnet-4-5",
    ),
    "claude-opus-4-1": ("claude-opus-4-1-20250805", "anthropic/claude-opus-4-1"),
    "claude-3-5-haiku-latest": ("anthropic/claude-3-5-haiku-latest",),
    "gpt-4o": ("gpt-4o-2024-08-06", "openai/gpt-4o", "azure/gpt-4o"),
    "gpt-4.1-mini": ("gpt-4.1-mini-2025-04-14", "openai/gpt-4.1-mini"),
    "gpt-5": ("openai/gpt-5", "gpt-5-2025-08-07"),
    "o3": ("openai/o3", "o3-2025-04-16"),
    "o4-mini": ("openai/o4-mini",),
    "gemini-2.5-pro": ("models/gemini-2.5-pro", "google/gemini-2.5-pro"),
    "gemini-2.5-flash": ("models/gemini-2.5-flash", "vertex_ai/gemini-2.5-flash"),
    "deepseek-chat": ("deepseek/deepseek-chat", "openrouter/deepseek/deepseek-chat", "deepseek/deepseek-chat:free"),
    "deepseek-reasoner": ("deepseek/deepseek-reasoner",),
    "grok-4": ("x-ai/grok-4",),
    "codestral-latest": ("mistral/codestral-latest",),
}
NAMES = [(known, name) for known, names in SPELLINGS.items() for name in (known, *names)]
UNKNOWN = ("my-model", "default", "qwen2.5-coder:7b", "deepseek-r1:14b", "llama3.1:8b", "gpt-oss:20b", "", "DEPLOYMENT")


def test_there_are_enough() -> None:
    assert len(NAMES) >= 30


@pytest.mark.parametrize(("known", "name"), NAMES)
def test_a_name_in_any_spelling_is_the_same_model(known: str, name: str) -> None:
    facts, same = find(name, FAR), find(known, FAR)
    assert facts == same and facts.prices is not None
    assert 0 < facts.prices.input <= facts.prices.output < 200
    assert facts.prices.cached is None or facts.prices.cached <= facts.prices.input
    assert facts.context_window is None or 32_000 <= facts.context_window <= 20_000_000


@pytest.mark.parametrize("name", UNKNOWN)
def test_names_that_nobody_sells_have_no_prices(name: str) -> None:
    assert find(name, FAR) == Facts()


async def known(tmp_path: Path, name: str, url: str, entries: list[dict[str, Any]], **settings: Any) -> dict[str, Any]:
    """What all sources together know, as (value, source)."""
    survey = Survey(endpoint(url), "llamacpp", tuple(entries), None, LIMITS)
    facts = (await survey.info(name, ModelSettings(**settings), tmp_path)).facts
    return {name: (getattr(facts, name), source) for name, source in facts.sources.items()}


async def test_each_source_comes_before_the_next(tmp_path: Path) -> None:
    name, entry = (
        "gpt-4o",
        {"id": "gpt-4o", "context_length": 64_000, "pricing": {"prompt": "0.000001", "completion": "0.000002"}},
    )
    host = endpoint(FAR).root
    facts = await known(tmp_path, name, FAR, [])
    assert facts["context_window"][1] == facts["prices"][1] == "catalogue"
    LearnedFacts(tmp_path).learn(host, name, Facts(context_window=50_000))
    assert (await known(tmp_path, name, FAR, []))["context_window"] == (50_000, "overflow")
    facts = await known(tmp_path, name, FAR, [entry])
    assert facts["context_window"] == (64_000, "server") and facts["prices"] == (Prices(1.0, 2.0), "server")
    facts = await known(tmp_path, name, FAR, [entry], context_window=4096)
    assert facts["context_window"] == (4096, "setting")


@pytest.mark.parametrize(
    ("url", "window"),
    [(FAR, HOSTED_WINDOW), ("http://127.0.0.1:9/v1", LOCAL_WINDOW), ("http://192.168.3.4:9/v1", HOSTED_WINDOW)],
)
async def test_of_an_unknown_model_only_a_window_is_assumed(tmp_path: Path, url: str, window: int) -> None:
    assert await known(tmp_path, "my-model", url, []) == {"context_window": (window, "assumed")}


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/v1", "http://10.1.2.3:8000/v1", "http://llm.lan:8000/v1"])
async def test_ones_own_servers_have_no_prices_whatever_they_call_their_models(tmp_path: Path, url: str) -> None:
    assert set(await known(tmp_path, "gpt-4o", url, [])) == {"context_window"}


ENTRIES: dict[str, tuple[dict[str, Any], Facts]] = {
    "openrouter": (
        {
            "id": "m",
            "context_length": 200_000,
            "architecture": {"input_modalities": ["text", "image"]},
            "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"},
            "top_provider": {"context_length": 1_000_000, "max_completion_tokens": 64_000},
            "supported_parameters": ["tools", "reasoning", "temperature"],
        },
        Facts(200_000, 64_000, Prices(3.0, 15.0, cached=0.3), reasoning=True, vision=True, native_tools=True),
    ),
    "router of routers": ({"id": "m", "pricing": {"prompt": "-1", "completion": "-1"}}, Facts()),
    "groq": ({"id": "m", "context_window": 131_072, "max_completion_tokens": 32_768}, Facts(131_072, 32_768)),
    "mistral": (
        {"id": "m", "max_context_length": 131_072, "capabilities": {"function_calling": True, "vision": False}},
        Facts(131_072, vision=False, native_tools=True),
    ),
    "together": (
        {"id": "m", "context_length": 32_768, "pricing": {"input": 0.2, "output": 0.6, "hourly": 0, "base": 0}},
        Facts(32_768, prices=Prices(0.2, 0.6)),
    ),
    "vllm": ({"id": "m", "max_model_len": 40_960, "root": "m", "permission": []}, Facts(40_960)),
    "lm studio": (
        {
            "id": "m",
            "type": "vlm",
            "max_context_length": 32_768,
            "loaded_context_length": 4096,
            "capabilities": ["tool_use"],
        },
        Facts(4096, vision=True, native_tools=True),
    ),
    "anthropic": ({"id": "m", "max_input_tokens": 200_000, "max_tokens": 64_000}, Facts(200_000, 64_000)),
    "llama.cpp": ({"id": "m", "meta": {"n_ctx": 16_384, "n_params": 1}}, Facts(16_384)),
    "openai": ({"id": "m", "object": "model", "created": 1, "owned_by": "x"}, Facts()),
    "odd": ({"id": "m", "context_length": "many", "pricing": "free", "capabilities": 3, "max_tokens": -1}, Facts()),
}


@pytest.mark.parametrize("server", ENTRIES)
def test_what_a_list_of_models_says(server: str) -> None:
    entry, facts = ENTRIES[server]
    assert facts_of(entry) == facts


async def test_lm_studios_own_list_is_read(tmp_path: Path) -> None:
    own = rig.status(200, json.dumps({"data": [{"id": "m", "type": "llm", "loaded_context_length": 8192}]}))
    async with rig.model_server(
        rig.stream(), get=rig.by_path(api_v0_models=own, v1_models=rig.models(["m"]))
    ) as server:
        where = endpoint(server.url)
        info = await Survey(where, "openai", ({"id": "m"},), None, LIMITS).info("m", ModelSettings(), tmp_path)
    assert (info.context_window, info.facts.sources["context_window"]) == (8192, "server")
    assert info.known_small
