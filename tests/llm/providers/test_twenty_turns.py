"""Twenty turns with parallel calls and reasoning on each provider: prompts grow at their end only, nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.learned_facts import Facts, combine
from codeagent_lsp.llm.model import Model, ModelInfo
from codeagent_lsp.llm.providers.anthropic import AnthropicModel
from codeagent_lsp.llm.providers.gemini import GeminiModel
from codeagent_lsp.llm.providers.ollama import OllamaModel
from codeagent_lsp.llm.providers.openai import OpenAIModel
from codeagent_lsp.llm.providers.responses import ResponsesModel
from tests.llm.providers import fake_messages, fake_responses
from tests.llm.providers.fake_chat import FakeChat
from tests.llm.providers.fake_gemini import KEY, FakeGemini
from tests.llm.providers.fake_messages import FakeMessages, unmarked
from tests.llm.providers.fake_ollama import FakeOllama
from tests.llm.providers.fake_responses import FakeResponses
from tests.llm.providers.fake_server import FakeServer, serving
from tests.llm.providers.twenty_turns import TURNS, converse, kept_prefixes, script

FACTS = combine([("server", Facts(context_window=40_960, reasoning=True))])


def anthropic(url: str) -> Model:
    return AnthropicModel(
        endpoint(url, fake_messages.KEY), ModelInfo("claude-test", "anthropic", url, FACTS), effort="high"
    )


def anthropic_budget(url: str) -> Model:
    model = AnthropicModel(
        endpoint(url, fake_messages.KEY), ModelInfo("claude-test", "anthropic", url, FACTS), effort="low"
    )
    model._budgeted = True
    return model


def responses(url: str) -> Model:
    return ResponsesModel(endpoint(url, fake_responses.KEY), ModelInfo("gpt-test", "responses", url, FACTS))


def gemini(url: str) -> Model:
    return GeminiModel(endpoint(url, KEY), ModelInfo("gemini-3.1-pro", "gemini", url, FACTS))


def gemini_2(url: str) -> Model:
    return GeminiModel(endpoint(url, KEY), ModelInfo("gemini-2.5-flash", "gemini", url, FACTS))


def ollama(url: str) -> Model:
    return OllamaModel(endpoint(url), ModelInfo("qwen3:8b", "ollama", url, FACTS))


def chat(url: str) -> Model:
    return OpenAIModel(endpoint(url), ModelInfo("m", "openai", url, FACTS))


def of_responses(body: Any) -> Any:
    return fake_responses.prompt_of(body)


def of_gemini(body: Any) -> Any:
    return [body["systemInstruction"], body["tools"], body["contents"]]


def of_chat(body: Any) -> Any:
    return [body["tools"], body["messages"]]


PROVIDERS: dict[str, tuple[Callable[[], FakeServer], Callable[[str], Model], Callable[[Any], Any]]] = {
    "anthropic": (lambda: FakeMessages(*script()), anthropic, unmarked),
    "anthropic-budget": (lambda: FakeMessages(*script(), adaptive=False), anthropic_budget, unmarked),
    "responses": (lambda: FakeResponses(*script()), responses, of_responses),
    "gemini-3": (lambda: FakeGemini(*script()), gemini, of_gemini),
    "gemini-2.5": (lambda: FakeGemini(*script(), model="gemini-2.5-flash"), gemini_2, of_gemini),
    "ollama": (lambda: FakeOllama(*script()), ollama, of_chat),
    "lmstudio": (lambda: FakeChat(*script()), chat, of_chat),
    "deepseek": (lambda: FakeChat(*script(), style="deepseek"), chat, of_chat),
    "openrouter": (lambda: FakeChat(*script(), style="openrouter"), chat, of_chat),
    "plain": (lambda: FakeChat(*script(), style="plain"), chat, of_chat),
}


@pytest.mark.slow
@pytest.mark.parametrize("stored", [False, True], ids=["", "stored"])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_prompt_only_grows_and_all_reasoning_is_given_back(
    name: str, stored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, model_at, prompt = PROVIDERS[name]
    fake = start()
    async with serving(fake) as url:
        if name in ("deepseek", "openrouter", "plain"):  # not a server on this machine
            monkeypatch.setenv("HTTP_PROXY", url)
            url = "http://models.test"
        model = model_at(url)
        usage, reasoning = await converse(model, stored=stored)
        await model.close()
    assert reasoning == [said.reasoning for said in script()]
    assert fake.refusals == refusals(name)
    fake.bodies = fake.bodies[-TURNS:] if name == "responses" else fake.bodies  # the first had a temperature
    bodies = [body for at, body in enumerate(fake.bodies) if name != "plain" or at != 1]
    assert len(bodies) == TURNS
    assert min(kept_prefixes(bodies, prompt)) >= 0.95
    if name != "ollama":  # it does not tell
        assert all(told.cached_tokens > 0.9 * before.prompt_tokens for before, told in pairwise(usage))
    assert all(told.prompt_tokens and told.completion_tokens for told in usage)
    check_given_back(name, bodies[-1])


def refusals(name: str) -> list[str]:
    """The one that a server gives which takes no reasoning."""
    if name == "responses":
        return ["Unsupported parameter: 'temperature' is not supported"]
    if name != "plain":
        return []
    return ["Invalid JSON payload received. Unknown name \"reasoning_content\" at 'messages[2]': Cannot find field."]


def check_given_back(name: str, body: Any) -> None:
    """The last request has the reasoning of the turns before, where the provider wants it."""
    sent = json.dumps(body, ensure_ascii=False)
    thoughts = [json.dumps(said.reasoning, ensure_ascii=False) for said in script()[:-1]]
    given = [thought in sent for thought in thoughts]
    with_calls = [bool(said.calls) for said in script()[:-1]]
    assert given == {"deepseek": with_calls, "lmstudio": [False] * 19, "plain": [False] * 19}.get(name, [True] * 19)
    if name.startswith("gemini"):
        assert sent.count("thoughtSignature") == TURNS - 1
        assert "skip_thought" not in sent
