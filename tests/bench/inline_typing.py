"""Typing while the agent works on the same embedded model: `python -m tests.bench.inline_typing [--seconds N]`.

How long a key's own answer takes (code actions after a change of the text), with nothing else going on and with a run
and completions; how much of the agent's prompt comes from its cache; the memory of the model's process with one slot
and with two.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.children import command_lines
from tests.server.stock_editor import STOCK, StockEditor

TEXT = "def add(a, b):\n    return a + b\n\n\n"
WORDS = "def total(items, tax):\n    result = sum(items)\n    return result * (1 + tax)\n\n\n"
FIRST = 5
"""So many keys of a fresh server are told apart: their answers wait for parts that are loaded late."""
TASK = "Read the file a.py, then the file b.py, then say in one sentence what each of them does."


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=40)
    options = parser.parse_args()
    print("| | keys | answer, ms, median | 99th percentile | the first keys, at most | the model's process, MiB |")
    print("|---|---|---|---|---|---|")
    for name, inline, run in (("idle", False, False), ("run", False, True), ("run and completions", True, True)):
        with tempfile.TemporaryDirectory() as folder:
            print(_row(name, *measured(Path(folder), options.seconds, inline=inline, run=run)))


def measured(
    folder: Path, seconds: float, *, inline: bool, run: bool
) -> tuple[list[float], float, list[dict[str, Any]]]:
    """Return the seconds of each key's answer, the memory of the model in MiB, and the usages of the run."""
    workspace = folder / "ws"
    workspace.mkdir()
    for name in ("a.py", "b.py", "typed.py"):
        (workspace / name).write_text(TEXT)
    capabilities = copy.deepcopy(STOCK)
    capabilities["textDocument"]["inlineCompletion"] = {"dynamicRegistration": True}
    capabilities["experimental"] = {"codeagent": {"event": True}}
    settings = {"model": {"provider": "embedded"}, "inline": {"enabled": inline}}
    with StockEditor(workspace, folder / "state", capabilities=capabilities, settings=settings) as editor:
        uri = editor.open(workspace / "typed.py")
        editor.command("codeagent.pending")
        if run:
            editor.command("codeagent.ask", question=TASK)
        times = list(_typed(editor, uri, seconds, inline=inline))
        events = [event for event in editor.notifications("codeagent/event") if event["type"] == "usage"]
        return times, _memory(editor.client.process.pid), events


def _typed(editor: StockEditor, uri: str, seconds: float, *, inline: bool) -> Iterator[float]:
    line, column = 4, 0
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        char = WORDS[number % len(WORDS)]
        number += 1
        editor.type(uri, (line, column), (line, column), char)
        line, column = (line + 1, 0) if char == "\n" else (line, column + 1)
        place = {"line": line, "character": column}
        if inline:
            editor.client.start(
                "textDocument/inlineCompletion",
                {"textDocument": {"uri": uri}, "position": place, "context": {"triggerKind": 2}},
            )
        about = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
        began = time.perf_counter()
        editor.client.request("textDocument/codeAction", about)
        yield time.perf_counter() - began
        time.sleep(0.15)


def _memory(server: int) -> float:
    """Return the resident memory of the model's process, 0 if there is none."""
    for pid, command in command_lines(parent=server).items():
        if "embedded_server" in command:
            status = Path(f"/proc/{pid}/status").read_text()
            return int(status.split("VmRSS:")[1].split()[0]) / 1024
    return 0.0


def _row(name: str, times: list[float], memory: float, usages: list[dict[str, Any]]) -> str:
    ordered = sorted(times[FIRST:])
    late = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    for usage in usages[1:]:
        print(json.dumps({key: usage.get(key) for key in ("prompt_tokens", "cached_tokens", "completion_tokens")}))
    figures = [1000 * each for each in (statistics.median(ordered), late, max(times[:FIRST]))]
    return f"| {name} | {len(times)} | {' | '.join(f'{each:.1f}' for each in figures)} | {memory:.0f} |"


if __name__ == "__main__":
    main()
