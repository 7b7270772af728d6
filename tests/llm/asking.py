"""Asks a badly behaved server one question and writes down all that came of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from codeagent_lsp.errors import ModelError
from codeagent_lsp.llm.endpoint import TimeLimits, endpoint
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, ReasoningChunk, Reply, TextChunk
from codeagent_lsp.llm.providers.http_model import RetryPolicy
from codeagent_lsp.llm.providers.openai import OpenAIModel
from codeagent_lsp.messages import Message, ToolSpec
from tests.faults import model_server as rig
from tests.faults.model_server import Script

KEY = "test-" + "k" * 24
QUICK = RetryPolicy(first_wait=0.01, longest_wait=2.0, longest_asked=2.0, jitter=0.01, total=5.0)
LIMITS = TimeLimits(connect=0.5, first=0.4, silence=0.3)
TOOLS: tuple[ToolSpec, ...] = (
    {
        "name": "read_file",
        "description": "",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
)
ASK = ModelRequest((Message("system", "s"), Message("user", "u")), tools=TOOLS)


@dataclass
class Outcome:
    """What one call gave."""

    text: str = ""
    reasoning: str = ""
    reply: Reply | None = None
    error: ModelError | None = None
    requests: int = 0
    seconds: float = 0.0
    bodies: list[Any] = field(default_factory=list)
    served: str = ""


async def ask(*scripts: Script, get: Script | None = None, limits: TimeLimits = LIMITS) -> Outcome:
    async with rig.model_server(*scripts, get=get) as server:
        outcome = await ask_at(server.url, limits)
        outcome.requests = len(server.chats)
        outcome.bodies = [asked.json for asked in server.chats]
        return outcome


async def ask_at(url: str, limits: TimeLimits = LIMITS) -> Outcome:
    outcome = Outcome()
    model = OpenAIModel(endpoint(url, KEY), ModelInfo("m", "openai"), limits=limits, policy=QUICK)
    begun = time.monotonic()
    try:
        async for item in model.stream(ASK):
            if isinstance(item, TextChunk):
                outcome.text += item.text
            elif isinstance(item, ReasoningChunk):
                outcome.reasoning += item.text
            else:
                assert outcome.reply is None
                outcome.reply = item
    except ModelError as error:
        outcome.error = error
    finally:
        await model.close()
    outcome.seconds = time.monotonic() - begun
    outcome.served = model.served_model
    return outcome
