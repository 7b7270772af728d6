"""Our own time for a step: from the end of a model's reply to its next request, a small tool call between them.

    python -m tests.bench.own_time [--steps N]

Sessions of 10 and of 1,000 messages, over a server on loopback that keeps its connections; medians and 99th
percentiles in milliseconds, without the tools' own time, and the connections that carried the calls (two more ask the
server what it is). Wall time: run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from codeagent_lsp.config import ModelSettings, Settings
from codeagent_lsp.events import ToolFinished
from codeagent_lsp.llm.factory import open_model
from codeagent_lsp.messages import Message
from tests.faults.model_server import delta
from tests.llm.keeping_server import Kept, keeping_server
from tests.session.fakes import World, world

LENGTHS = (10, 1000)


def stepping(steps: int) -> Callable[[int, dict[str, Any]], list[dict[str, Any]]]:
    """Replies that read and search so many times, never the same twice, and then answer."""

    def reply(number: int, body: dict[str, Any]) -> list[dict[str, Any]]:
        if number > steps:
            return [delta("Done."), delta(finish="stop")]
        arguments = f'{{"path": "a{number % 7}.py", "start_line": {number % 40 + 1}}}'
        if number % 2:
            arguments = f'{{"pattern": "x{number}", "path": "a{number % 7}.py"}}'
        call = {"index": 0, "id": f"c{number}", "function": {"name": "grep" if number % 2 else "read_file"}}
        call["function"]["arguments"] = arguments  # type: ignore[index]
        return [delta(calls=[call]), delta(finish="tool_calls")]

    return reply


async def measured(length: int, steps: int) -> Kept:
    """Run a task of so many steps in a session that has so many messages already."""
    with tempfile.TemporaryDirectory() as folder, keeping_server(stepping(steps)) as kept:
        made = _world(Path(folder) / "w", steps)
        settings = ModelSettings(provider="openai", base_url=kept.url, tool_calling="native")
        made.models["model"] = model = await open_model(settings, Path(folder))
        session = made.manager.session(None)
        session.context.conversation.extend(
            Message("assistant" if at % 2 else "user", f"Message {at} with some words in it.") for at in range(length)
        )
        asked_before = kept.connections
        await made.run("Look around", session.session_id)
        await model.close()
        kept.connections -= asked_before
        spent = [event.time_ms or 0 for event in made.events if isinstance(event, ToolFinished)]
        kept.waits = [wait - tool / 1000 for wait, tool in zip(kept.waits[-len(spent) :], spent, strict=True)]
        return kept


def _world(root: Path, steps: int) -> World:
    root.mkdir(parents=True)
    for number in range(7):
        (root / f"a{number}.py").write_text("def x():\n    return 1\n" * 20)

    def wanted(settings: Settings) -> Settings:
        agent = replace(settings.agent, max_iterations=steps + 10)
        return replace(settings, agent=agent, context=replace(settings.context, max_messages=5000))

    return world(root, settings=wanted, apply="auto")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    steps = parser.parse_args().steps
    for length in LENGTHS:
        kept = asyncio.run(measured(length, steps))
        times = sorted(1000 * wait for wait in kept.waits)
        last = times[min(len(times) - 1, int(len(times) * 0.99))]
        print(
            f"{length:5} messages, {len(kept.bodies)} calls, {kept.connections} connection(s): "
            f"median {statistics.median(times):.1f} ms, 99th percentile {last:.1f} ms"
        )


if __name__ == "__main__":
    main()
