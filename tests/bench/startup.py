"""Start-up time and idle memory against a bare pygls server, and the latency of code actions.

`python -m tests.bench.startup [--runs N] [--command ...]`. The bare server has one command and nothing else.
Runs alternate, so that a busy machine slows both; the ratio is of the medians. Code actions are measured when
the server offers them, whatever it answers.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.server.rawclient import RawClient
from tests.server.stock_editor import STOCK, StockEditor

_BARE = """
from pygls.lsp.server import LanguageServer
server = LanguageServer("bare", "1")
@server.command("bare.command")
def command(*args):
    return None
server.start_io()
"""
_SERVER_ONLY = "from codeagent_lsp.server.server import CodeAgentServer; CodeAgentServer().serve_stdio()"
_IDLE_SECONDS = 1.0
TEXT = "".join(f"def function_{n}(a, b):\n    return a + b * {n}\n\n\n" for n in range(250))


class Start(NamedTuple):
    """One start: seconds from spawn to the `initialize` reply, resident KiB when idle afterwards."""

    seconds: float
    kib: int


def measure(command: Sequence[str], *, idle_seconds: float = _IDLE_SECONDS) -> Start:
    """Start `command` once."""
    begun = time.perf_counter()
    with RawClient(command) as client:
        client.result("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, seconds=60)
        seconds = time.perf_counter() - begun
        client.notify("initialized", {})
        return Start(seconds, _settled_kib(client.process.pid, idle_seconds))


def code_action_seconds(command: Sequence[str], *, requests: int = 200) -> list[float]:
    """The time of each of `requests` code action requests at moving places; empty when none are offered."""
    with tempfile.TemporaryDirectory() as folder, RawClient(command, cwd=Path.cwd()) as client:
        root = Path(folder).as_uri()
        result = client.initialize(rootUri=root, workspaceFolders=[{"uri": root, "name": "bench"}])
        if not result["capabilities"].get("codeActionProvider"):
            return []
        item: dict[str, Any] = {"uri": f"{root}/a.py", "languageId": "python", "version": 1, "text": TEXT}
        client.notify("textDocument/didOpen", {"textDocument": item})
        return [one_code_action(client, item["uri"], line % 1000) for line in range(requests)]


def code_action_seconds_in_a_run(*, requests: int = 300) -> list[float]:
    """The same while a run streams 200 pieces of text a second, with a client that takes our events."""
    reply = {"text": "word " * 4000, "chunks": 4000, "delay": 0.005}
    events = {**STOCK, "experimental": {"codeagent": {"event": True}}}
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        with StockEditor(workspace, Path(folder, "state"), script=[reply], capabilities=events) as editor:
            (workspace / "a.py").write_text(TEXT)
            uri = editor.open(workspace / "a.py")
            editor.command("codeagent.run", task="talk")
            _wait_for_tokens(editor)
            return [one_code_action(editor.client, uri, line % 1000) for line in range(requests)]


def _wait_for_tokens(editor: StockEditor) -> None:
    def streams() -> bool:
        return any(params["type"] == "token" for params in editor.notifications("codeagent/event"))

    editor.wait_until(streams)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--command", nargs="+", default=_our_command())
    options = parser.parse_args(arguments)
    bare: list[Start] = []
    ours: list[Start] = []
    for _ in range(options.runs):
        bare.append(measure([sys.executable, "-c", _BARE]))
        ours.append(measure(options.command))
    _print_ratio("spawn -> initialize, ms", [s.seconds * 1000 for s in bare], [s.seconds * 1000 for s in ours])
    _print_ratio("idle memory, MiB", [s.kib / 1024 for s in bare], [s.kib / 1024 for s in ours])
    _print_times("code actions, idle, ms", code_action_seconds(options.command))
    _print_times("code actions, while a run streams, ms", code_action_seconds_in_a_run())
    return 0


def _print_times(title: str, seconds: Sequence[float]) -> None:
    ordered = sorted(value * 1000 for value in seconds)
    if ordered:
        p99 = ordered[int(len(ordered) * 0.99)]
        print(f"{title}: p50 {statistics.median(ordered):.2f}  p99 {p99:.2f}")
    else:
        print(f"{title}: not offered")


def _our_command() -> list[str]:
    if importlib.util.find_spec("codeagent_lsp.cli"):
        return [sys.executable, "-m", "codeagent_lsp.cli", "serve"]
    return [sys.executable, "-c", _SERVER_ONLY]


def one_code_action(client: RawClient, uri: str, line: int) -> float:
    """The seconds of one request."""
    place = {"line": line, "character": 0}
    params = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    begun = time.perf_counter()
    client.request("textDocument/codeAction", params)
    return time.perf_counter() - begun


def _print_ratio(title: str, bare: Sequence[float], ours: Sequence[float]) -> None:
    base, own = statistics.median(bare), statistics.median(ours)
    print(f"{title}: bare {base:.1f}  ours {own:.1f}  ratio {own / base:.3f}")


def _settled_kib(pid: int, idle_seconds: float) -> int:
    """Its memory once it stays: what loads after `initialize` takes its time on a busy machine."""
    last, same = 0, 0
    for _ in range(40):
        time.sleep(idle_seconds)
        now = _resident_kib(pid)
        same = same + 1 if now == last else 0
        last = now
        if same == 2:
            break
    return last


def _resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
