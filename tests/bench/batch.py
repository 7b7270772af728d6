"""What a batch costs beside its tasks: scripted tasks by `run` alone, on one worker, on several, on Ray nodes.

`python -m tests.bench.batch [--tasks 200] [--workers 1,2] [--ray ADDRESS] [--check]` prints a table, no verdict.
The own time of a task is what it took beyond the same `codeagent-lsp run` in a folder that was there already.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.batch.rig import BatchRig

RUNS = 10
HEAD = ("way", "tasks", "seconds", "tasks a minute", "seconds a task", "of them the run", "own time a task")


def main() -> None:
    """Measure and print."""
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="batch-"))
    try:
        alone = _runs_alone(folder)
        print(f"| {' | '.join(HEAD)} |\n{'|---' * len(HEAD)}|")
        print(f"| `run` alone | {RUNS} | {alone * RUNS:.1f} | {60 / alone:.0f} | {alone:.2f} | {alone:.2f} | - |")
        ways = [(f"{count} workers", ("--jobs", str(count)), count) for count in options.workers]
        ways += [("Ray", ("--ray", options.ray), options.slots)] if options.ray else []
        for name, words, slots in ways:
            print(_row(folder, name, words, slots, options), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _row(folder: Path, name: str, words: tuple[str, ...], slots: int, options: argparse.Namespace) -> str:
    rig = BatchRig(Path(tempfile.mkdtemp(dir=folder)))
    more = {} if options.check else {"check": ""}
    tasks = [rig.task(f"t{number}", **more) for number in range(options.tasks)]
    began = time.monotonic()
    done = rig.run(tasks, *words, seconds=7200)
    took = time.monotonic() - began
    results = list(rig.results().values())
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert len(results) == options.tasks
    whole, run = median(result.seconds for result in results), median(result.run_seconds for result in results)
    own = took * slots / options.tasks - sum(result.run_seconds for result in results) / options.tasks
    each = took / options.tasks
    return f"| {name} | {options.tasks} | {took:.1f} | {60 / each:.0f} | {whole:.2f} | {run:.2f} | {own:.2f} |"


def _runs_alone(folder: Path) -> float:
    """Return the seconds of one `codeagent-lsp run`, the mean of a few."""
    rig = BatchRig(Path(tempfile.mkdtemp(dir=folder)))
    rig.command([rig.task()])  # writes the script
    began = time.monotonic()
    for number in range(RUNS):
        place = rig.root / f"alone{number}"
        shutil.copytree(rig.project, place)
        command = [sys.executable, "-m", "codeagent_lsp.cli", "run", "--json", "--yes", "--workspace", str(place)]
        command += [
            "--set",
            "model.provider=scripted",
            "--set",
            f"model.name={rig.root / 'script.json'}",
            "Mend double",
        ]
        subprocess.run(command, env=rig.environ(), stdout=subprocess.DEVNULL, check=True, timeout=120)
    return (time.monotonic() - began) / RUNS


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.batch", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=200, help="so many (200)")
    parser.add_argument(
        "--workers", type=lambda words: [int(word) for word in words.split(",")], default=[1, 2], metavar="N,N"
    )
    parser.add_argument("--ray", metavar="ADDRESS", help="also on this cluster")
    parser.add_argument("--slots", type=int, default=os.cpu_count() or 1, help="processors of the cluster")
    parser.add_argument("--check", action="store_true", help="with a check, which runs in the sandbox")
    return parser.parse_args()


if __name__ == "__main__":
    main()
