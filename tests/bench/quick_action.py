"""A quick action's own time: from the command to the question about its change, in milliseconds.

    python -m tests.bench.quick_action [--rounds N] [--lines N]

A function in the middle of a file of that many lines is rewritten, in three languages; the model is a script that
answers at once, no language server is asked, and the first round does not count. Wall time: run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.server.replies import say
from tests.server.stock_editor import StockEditor

FUNCTIONS = {
    "a.py": 'def f{n}(one: int, two: str = "x") -> str:\n    """Say it."""\n    if one > {n}:\n'
    "        return two * one\n    return two\n\n\n",
    "a.ts": "export function f{n}(one: number, two = 'x'): string {{\n  if (one > {n}) {{\n"
    "    return two.repeat(one);\n  }}\n  return two;\n}}\n\n",
    "a.go": 'func F{n}(one int, two string) string {{\n\tif one > {n} {{\n\t\treturn two + "x"\n\t}}\n'
    "\treturn two\n}}\n\n",
}
ALONE = {"languageServers": {"gopls": False}}  # its time is not ours
HEADS = {"a.go": "package a\n\n"}


def source(name: str, lines: int) -> tuple[str, int, str]:
    """A file's text, the 0-based line at which its middle function begins, and that function."""
    one = FUNCTIONS[name]
    many = lines // one.count("\n")
    head = HEADS.get(name, "")
    before = head + "".join(one.format(n=number) for number in range(many // 2))
    middle = one.format(n=many // 2)
    after = "".join(one.format(n=number) for number in range(many // 2 + 1, many))
    return before + middle + after, before.count("\n"), middle


def measured(name: str, rounds: int, lines: int) -> list[float]:
    """Milliseconds of each round but the first."""
    text, line, function = source(name, lines)
    changed = function.rstrip().replace("return two", "return two + two")
    asked: list[float] = []

    def choose(params: dict[str, Any]) -> str:
        asked.append(time.perf_counter())
        return "Discard"

    with tempfile.TemporaryDirectory() as folder:
        workspace, state = Path(folder) / "ws", Path(folder) / "state"
        workspace.mkdir()
        (workspace / name).write_text(text)
        script = [say(f"```\n{changed}\n```") for _ in range(rounds + 1)]
        editor = StockEditor(workspace, state, script=script, settings=ALONE, choose=choose, warm=False)
        with editor:
            uri = editor.open(workspace / name)
            last = line + len(function.strip().splitlines())
            span = {"start": {"line": line, "character": 0}, "end": {"line": last, "character": 0}}
            took = []
            for _ in range(rounds + 1):
                began = time.perf_counter()
                editor.run("codeagent.refactor", uri=uri, range=span)
                took.append(1000 * (asked[-1] - began))
        assert len(asked) == rounds + 1, "not every round asked"
        return took[1:]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--lines", type=int, default=3000)
    arguments = parser.parse_args()
    for name in FUNCTIONS:
        took = sorted(measured(name, arguments.rounds, arguments.lines))
        print(f"{name}: median {statistics.median(took):.0f} ms, longest {took[-1]:.0f} ms")


if __name__ == "__main__":
    main()
