"""The real embedded model fills in, in a slot of its own: the agent's prompt stays in the cache of the other."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.llm import weights
from codeagent_lsp.llm.factory import Surroundings, open_model
from codeagent_lsp.llm.fill.filler import Filler, FillRequest
from codeagent_lsp.llm.fill.open_filler import open_filler
from codeagent_lsp.llm.model import ModelRequest
from codeagent_lsp.llm.providers.embedded import EmbeddedHost, engine_installed
from codeagent_lsp.messages import Message
from tests.llm.support import TOOLS, collect

pytestmark = [
    pytest.mark.slow,
    pytest.mark.model,
    pytest.mark.skipif(
        not (weights.installed() and engine_installed()),
        reason="needs the extra `local` and `codeagent-lsp model pull`",
    ),
]
SETTINGS = ModelSettings(provider="embedded")


async def filled(filler: Filler, prefix: str, suffix: str = "\n") -> str:
    request = FillRequest(prefix, suffix, "x.py", max_tokens=24, stop=("\n",))
    async with aclosing(filler.stream(request)) as texts:
        return "".join([text async for text in texts])


async def test_the_agents_prompt_stays_in_the_cache_while_the_user_types(tmp_path: Path) -> None:
    around = Surroundings(ports={}, fills=True)
    model = await open_model(SETTINGS, tmp_path, around=around)
    found = await open_filler(SETTINGS, around)
    assert found is not None and found.at_hand
    filler, done, answers = found.filler, asyncio.Event(), 0

    async def type_on() -> None:
        nonlocal answers
        while not done.is_set():
            for end in range(8, 30, 4):
                await filled(filler, f"def add(a, b):\n    {'return a + b  # the sum of both'[:end]}")
                answers += 1

    typing = asyncio.create_task(type_on())
    try:
        messages = [Message("system", "You are a coding agent."), Message("user", "Read the file f0.py.")]
        earlier = sent = reused = 0
        for turn in range(3):
            _, reply = await collect(model, ModelRequest(tuple(messages), tools=TOOLS, max_tokens=40))
            if turn:
                sent, reused = sent + earlier, reused + min(earlier, reply.usage.cached_tokens)
            earlier = reply.usage.prompt_tokens
            messages.append(Message("assistant", reply.text, tool_calls=reply.tool_calls))
            messages += [Message("tool", f"x = {turn}", tool_call_id=call.id) for call in reply.tool_calls]
            messages.append(Message("user", f"Read the file f{turn + 1}.py."))
    finally:
        done.set()
        await typing
        await model.close()
        await filler.close()
    print(f"{answers} completions meanwhile; {100 * reused / sent:.1f} % of the prompt before from the cache")
    assert answers >= 3
    assert reused / sent >= 0.95


async def test_it_fills_in_and_ends_with_its_last_user(tmp_path: Path) -> None:
    around = Surroundings(ports={}, fills=True)
    model = await open_model(SETTINGS, tmp_path, around=around)
    found = await open_filler(SETTINGS, around)
    assert found is not None
    began = time.monotonic()
    assert "a + b" in await filled(found.filler, "def add(a, b):\n    return ", "\n\n\nprint(add(1, 2))\n")
    print(f"{time.monotonic() - began:.1f} s with the start of the model")
    await found.filler.close()
    assert await model.count_tokens("hello world") == 2, "the agent's model goes on"
    await model.close()
    with pytest.raises(OSError):
        await asyncio.wait_for(asyncio.open_connection("127.0.0.1", int(model.info.url.rsplit(":", 1)[1])), 5)


async def test_who_does_not_wait_for_the_start_does_not_end_it() -> None:
    host = EmbeddedHost(weights.weights_path(), 1024, fills=True).taken()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(host.ready(), 0.05)
    first = await host.ready()
    assert await host.ready() is first
    await host.release()
