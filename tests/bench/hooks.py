"""How long a hook takes: the whole of it, and its command in the shadow alone, in turns, in one run.

    python -m tests.bench.hooks [--times 200]

The difference is our own: reading the files and the script, trust, the event, the answer. A tool call without any hooks
is beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from codeagent_lsp.shadow.shell import Command, Shell
from codeagent_lsp.tools.hooks.hook_files import HookShelf
from codeagent_lsp.tools.hooks.hooks import Hooks, RunFacts
from codeagent_lsp.tools.skills.trust import Trust
from tests.session.hooks.real_shadows import RealShadows
from tests.tools.fakes import Bench

SCRIPT = Path(__file__).parents[2] / "scripts" / "prepare.sh"  # some hundred lines that do nothing by themselves
COMMAND = 'sh "$CLAUDE_PROJECT_DIR"/.claude/hooks/check.sh'
HOOKS = {"hooks": {"PreToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": COMMAND}]}]}}


async def _milliseconds(work: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await work()
    return (time.perf_counter() - started) * 1000


async def _measured(folder: Path, times: int) -> dict[str, list[float]]:
    plain, hooked = Bench(folder / "plain"), Bench(folder / "hooked")
    hooked.write(".claude/settings.json", json.dumps(HOOKS))
    hooked.write(".claude/hooks/check.sh", SCRIPT.read_text())
    shadows = RealShadows(folder / "state")
    try:
        shell: Shell = await shadows.shell("s", hooked.view, hooked.staging, _yes)
        hooked.shell = shell
        shelf = HookShelf((), Trust(folder / "trusted.json"))
        for bench in (plain, hooked):
            bench.mode = "acceptEdits"
            bench.asker.answers = ["Trust this content"]
            bench.add((Hooks, Hooks(shelf, RunFacts("s", "r", lambda: "ask", lambda: True))))
        found: dict[str, list[float]] = {"no hooks": [], "a hook": [], "its command alone": []}
        command = Command("sh .claude/hooks/check.sh", str(hooked.root), apart=True, stdin=b"{}")
        for number in range(times + 5):
            row = {
                "no hooks": await _milliseconds(lambda: _wrote(plain, number)),  # noqa: B023 - awaited here
                "a hook": await _milliseconds(lambda: _wrote(hooked, number)),  # noqa: B023
                "its command alone": await _milliseconds(lambda: shell.run(command)),
            }
            for name, value in row.items() if number >= 5 else ():
                found[name].append(value)
        return found
    finally:
        await shadows.close()


async def _wrote(bench: Bench, number: int) -> None:
    result = await bench.call("write_file", path="a.py", content=f"x = {number}\n")
    assert result.ok, result.text


async def _yes(paths: tuple[str, ...]) -> bool:
    return True


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(_measured(Path(folder), parser.parse_args().times))
    own = [
        hook - plain - command
        for hook, plain, command in zip(found["a hook"], found["no hooks"], found["its command alone"], strict=True)
    ]
    for name, values in {**found, "our own": own}.items():
        ordered = sorted(values)
        print(
            f"{name:>18}: median {statistics.median(ordered):6.1f} ms, 95th percentile "
            f"{ordered[int(len(ordered) * 0.95)]:6.1f} ms"
        )


if __name__ == "__main__":
    main()
