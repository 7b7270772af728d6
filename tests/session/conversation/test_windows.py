"""What a model is offered depends on what is known of its window; printed, for people to compare (`pytest -s`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.agent.context.history import size, tools_size
from codeagent_lsp.llm.learned_facts import Facts, Source, combine
from codeagent_lsp.llm.model import ModelInfo, ModelRequest
from codeagent_lsp.llm.providers.scripted import ScriptedModel
from codeagent_lsp.tools.catalogue import SMALL_SET
from tests.session.fakes import call, calls, say, world, write


async def full_task(folder: Path, window: int, source: Source) -> list[ModelRequest]:
    """A task with a look, a change and an answer; its requests."""
    made = world(folder / "w", apply="auto")
    (folder / "w" / "a.py").write_text("def area(side):\n    return side * 4\n" * 200)
    facts = combine([(source, Facts(context_window=window))])
    info = ModelInfo("m", "scripted", facts=facts, tool_calling="native")
    model = ScriptedModel([calls(call("read_file", path="a.py")), write("b.py", "x = 1\n"), say("Fixed.")], info=info)
    made.models["model"] = model
    assert (await made.run("Fix area in a.py")).status == "completed"
    return model.requests


@pytest.mark.slow
async def test_the_same_task_on_large_small_and_unknown_windows(tmp_path: Path) -> None:
    cases: tuple[tuple[int, Source], ...]
    cases = ((200_000, "server"), (8192, "server"), (8192, "assumed"), (128_000, "assumed"))
    tools: dict[tuple[int, Source], set[str]] = {}
    for window, source in cases:
        requests = await full_task(tmp_path / f"{window}{source}", window, source)
        first, last = requests[0], requests[-1]
        tools[window, source] = {spec["name"] for spec in first.tools}
        prompt = size(last.messages) + tools_size(last.tools)
        print(
            f"{window:>7} tokens, {source}: {len(first.tools)} tools of {tools_size(first.tools)} tokens, system "
            f"{size(first.messages[:1])}, last prompt {prompt}, replies up to {first.max_tokens}"
        )
        assert prompt + (last.max_tokens or 0) <= window
    assert tools[8192, "server"] == set(SMALL_SET)
    assert tools[8192, "assumed"] | {"use_tool"} == tools[128_000, "assumed"] == tools[200_000, "server"]
    assert {"run_cmd", "enable_tools", "create_plan"} <= tools[8192, "assumed"]
