"""A reply that is asked for without thoughts, whatever the setting says: each server is told so in its own words."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from codeagent_lsp.errors import ModelError
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.learned_facts import Facts, combine
from codeagent_lsp.llm.model import ModelInfo, ModelRequest
from codeagent_lsp.llm.providers.anthropic import AnthropicModel
from codeagent_lsp.llm.providers.gemini import GeminiModel
from codeagent_lsp.llm.providers.http_model import HttpModel, RetryPolicy
from codeagent_lsp.llm.providers.llamacpp import LlamaCppModel
from codeagent_lsp.llm.providers.ollama import OllamaModel
from codeagent_lsp.llm.providers.openai import OpenAIModel
from codeagent_lsp.llm.providers.responses import ResponsesModel
from codeagent_lsp.messages import Message
from tests.faults import model_server as rig
from tests.llm.asking import LIMITS
from tests.llm.support import collect

CASES: dict[str, tuple[type[HttpModel], str, str, tuple[Any, Any]]] = {
    "openai": (OpenAIModel, "qwen3-8b", "reasoning_effort", ("high", "none")),
    "the template's switch": (
        LlamaCppModel,
        "qwen3-8b",
        "chat_template_kwargs",
        (None, {"enable_thinking": False}),
    ),
    "ollama": (OllamaModel, "qwen3:8b", "think", (True, False)),
    "anthropic": (
        AnthropicModel,
        "claude-sonnet-5",
        "thinking",
        ({"type": "adaptive", "display": "summarized"}, {"type": "disabled"}),
    ),
    "gemini": (
        GeminiModel,
        "gemini-2.5-flash",
        "generationConfig.thinkingConfig",
        ({"includeThoughts": True, "thinkingBudget": 24576}, {"includeThoughts": False, "thinkingBudget": 0}),
    ),
    "responses": (ResponsesModel, "gpt-6", "reasoning.effort", ("high", "none")),
}


@pytest.mark.parametrize(("kind", "name", "field", "sent"), CASES.values(), ids=CASES.keys())
async def test_a_request_without_thoughts(kind: type[HttpModel], name: str, field: str, sent: tuple[Any, Any]) -> None:
    facts = combine([("server", Facts(40_960, reasoning=True))])
    async with rig.model_server(rig.status(400, "{}"), rig.status(400, "{}")) as server:
        info = ModelInfo(name, "x", server.url, facts)
        model = kind(endpoint(server.url), info, effort="high", limits=LIMITS, policy=RetryPolicy(attempts=1))
        for thinks in (True, False):
            with suppress(ModelError):
                await collect(model, ModelRequest((Message("user", "hi"),), thinks=thinks))
        await model.close()
    for body, wanted in zip((asked.json for asked in server.chats[-2:]), sent, strict=True):
        value: Any = body
        for part in field.split("."):
            value = value.get(part)
        assert value == wanted
