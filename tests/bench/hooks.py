"""How long a hook takes: the whole of it, its command in the shadow, and what is left, which is our own.

    python -m tests.bench.hooks [--times 200]

That is: reading the files and the script, trust, the event, the answer. A tool call without any hooks, which is taken
off, is beside it.
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

from codeagent_lsp.shadow.shell import Command, CommandResult, Isolation, OnOutput, Shell, no_output
from codeagent_lsp.tools.hooks.hook_files import HookLibrary
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
        hooked.shell = timed = _TimedShell(shell)
        shelf = HookLibrary((), Trust(folder / "trusted.json"))
        for bench in (plain, hooked):
            bench.mode = "acceptEdits"
            bench.asker.answers = ["Trust this content"]
            bench.add((Hooks, Hooks(shelf, RunFacts("s", "r", lambda: "ask", lambda: True))))
        found: dict[str, list[float]] = {"no hooks": [], "a hook": [], "its command": [], "our own": []}
        for number in range(times + 5):
            without = await _milliseconds(lambda: _wrote(plain, number))  # noqa: B023 - awaited here
            with_it = await _milliseconds(lambda: _wrote(hooked, number))  # noqa: B023
            row = {
                "no hooks": without,
                "a hook": with_it,
                "its command": timed.took,
                "our own": with_it - timed.took - without,
            }
            for name, value in row.items() if number >= 5 else ():
                found[name].append(value)
        return found
    finally:
        await shadows.close()


class _TimedShell:
    """A shell that keeps how long its last command took, in milliseconds."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self.took = 0.0

    @property
    def isolation(self) -> Isolation:
        return self._shell.isolation

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        began = time.perf_counter()
        try:
            return await self._shell.run(command, on_output)
        finally:
            self.took = (time.perf_counter() - began) * 1000


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
    for name, values in found.items():
        ordered = sorted(values)
        print(
            f"{name:>18}: median {statistics.median(ordered):6.1f} ms, 95th percentile "
            f"{ordered[int(len(ordered) * 0.95)]:6.1f} ms"
        )


if __name__ == "__main__":
    main()
