"""How long our own language servers take: `python -m tests.bench.language_servers [--rounds N] [--only NAME]`.

Each installed server gets a project of fifty files that use one function (`tests/language_servers/samples.py`), in the
sandbox and on staged texts, as in the product. Prints the first answer from a cold start, and the median and 95th
percentile of diagnostics after an edit, references and a rename over the fifty files; then the resident memory of its
process tree. Not here: whether the answers are right (`tests/language_servers/test_real_servers.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from codeagent_lsp.language_servers.answers import ServerQuestion
from codeagent_lsp.language_servers.session_servers import SessionServers
from tests.language_servers.real import missing, real_session
from tests.language_servers.rig import Workspace
from tests.language_servers.samples import SAMPLES, USERS, Sample

SECONDS = 60.0


async def measured(sample: Sample, rounds: int, folder: Path) -> list[str]:
    """Return the columns of one server."""
    project = Workspace(folder / "ws")
    project.folder.mkdir()
    sample.lay(project.folder)
    text = (project.folder / sample.library).read_text()
    number = 0

    def edit() -> str:
        nonlocal number
        number += 1
        return project.stage(sample.library, f"{text}{sample.comment.strip()} {number}\n")

    async with real_session(folder / "state") as servers:

        async def diagnosed() -> None:
            path = edit()
            found = await servers.diagnostics(project.view, [path], SECONDS)
            assert found[path] is not None, "no diagnostics in time"

        async def asked(method: str, **more: Any) -> None:
            path = edit()
            start = project.view.read(path).text.index("total")
            question = ServerQuestion(method, path, start, start, more, sample.server)
            answers = await servers.ask(project.view, question, SECONDS)
            assert answers and str(answers[0].result).count("'range'") >= USERS, f"{method} is not complete"

        cold = await seconds(diagnosed, 1)
        first = await seconds(lambda: asked("textDocument/references", context={"includeDeclaration": True}), 1)
        await asyncio.sleep(15)  # a young server is asked twice
        warm = [
            await seconds(diagnosed, rounds),
            await seconds(lambda: asked("textDocument/references", context={"includeDeclaration": True}), rounds),
            await seconds(lambda: asked("textDocument/rename", newName="summe"), rounds),
        ]
        return [f"{cold[0]:.2f}", f"{first[0]:.2f}", *map(shown, warm), f"{memory(servers):.0f}"]


async def seconds(work: Callable[[], Awaitable[None]], rounds: int) -> list[float]:
    """Return how long each of some rounds took."""
    found = []
    for _ in range(rounds):
        started = time.monotonic()
        await work()
        found.append(time.monotonic() - started)
    return found


def shown(times: list[float]) -> str:
    """Return median and 95th percentile."""
    return f"{median(times):.3f} / {quantiles(times, n=20)[-1]:.3f}"


def memory(servers: SessionServers) -> float:
    """Return the resident memory in MiB of all processes below this one, other than sandboxes and watchdogs."""
    assert servers.names
    pages = sum(int((Path("/proc") / pid / "statm").read_text().split()[1]) for pid in below("self"))
    return pages * 4096 / (1 << 20)


def below(pid: str) -> Iterator[str]:
    """Yield the ids of the processes below one."""
    for path in Path("/proc", pid, "task").glob("*/children"):
        for child in path.read_text().split():
            yield child
            yield from below(child)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.language_servers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", default="", help="a server's name")
    chosen = parser.parse_args(arguments)
    print(
        "| server | cold: diagnostics, s | first references, s | diagnostics after an edit, median / p95, s |", end=""
    )
    print(" references over 50 files | rename over 50 files | memory, MiB |\n|---|---|---|---|---|---|---|")
    for sample in SAMPLES:
        if chosen.only not in ("", sample.server):
            continue
        if reason := missing(sample.server):
            print(f"| {sample.server} | {reason} |")
            continue
        with tempfile.TemporaryDirectory() as folder:
            columns = asyncio.run(measured(sample, chosen.rounds, Path(folder).resolve()))
        print("|", " | ".join([sample.server, *columns]), "|", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
