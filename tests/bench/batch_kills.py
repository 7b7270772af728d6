"""One large batch that is killed again and again: `python -m tests.bench.batch_kills [--tasks 200] [--ray]`.

Scripted tasks, each of which notes in a file that it began. On two local workers the driver and a worker are killed in
turn, with `--ray`, on a cluster of three nodes in a network namespace, also a node; after a driver the batch goes on
with `--resume`. Prints what was killed and when, and exits with 1 if a finished task was begun again, or if
one is missing or was not solved.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, cycle, islice
from pathlib import Path

from tests.batch.ray_rig import RayRig, running
from tests.batch.rig import BatchRig, until, workers_of

PATIENCE = 1800.0


@dataclass(frozen=True)
class Killed:
    """A batch, how it is started, and what is killed of it, in turn: a name, and the process id by the driver's."""

    rig: BatchRig
    options: tuple[str, ...]
    victims: Iterable[tuple[str, Callable[[int], int]]]


def main() -> int:
    """Run the batch with its kills, and print what became of the tasks."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.batch_kills", description="A batch with kills.")
    parser.add_argument("--tasks", type=int, default=200, help="so many (200)")
    parser.add_argument("--kills", type=int, default=9, help="so many, at equal distances (9)")
    parser.add_argument("--ray", action="store_true", help="on a Ray cluster of three nodes instead of two workers")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kills-", ignore_cleanup_errors=True)))
        batch = _on_ray(folder, stack) if options.ray else _on_workers(folder)
        return _measured(batch, options.tasks, options.kills)


def _on_workers(folder: Path) -> Killed:
    victims = ("driver", lambda driver: driver), ("worker", lambda driver: workers_of(driver)[0])
    return Killed(BatchRig(folder / "batch"), ("--jobs", "2"), cycle(victims))


def _on_ray(folder: Path, stack: ExitStack) -> Killed:
    rig = RayRig(folder / "batch", stack.enter_context(running(folder)))
    again = ("driver", lambda driver: driver), ("worker", lambda _: rig.workers()[0])
    victims = chain(again, [("node", lambda _: rig.nodes()[-1])], cycle(again))  # the cluster has one node to spare
    return Killed(rig.batch, ("--ray", rig.address), victims)


def _measured(batch: Killed, count: int, kills: int) -> int:
    rig, log = batch.rig, batch.rig.root / "log"
    tasks = [rig.task(f"t{number}", setup=f"echo t{number} >> {log}", check="") for number in range(count)]
    began, states = time.monotonic(), list[tuple[set[str], int]]()
    process = _started(batch, tasks)
    for number, (name, victim) in enumerate(islice(batch.victims, kills), 1):
        wanted = count * number // (kills + 1)
        until(lambda: len(rig.finished()) >= wanted or process.poll() is not None, PATIENCE)  # noqa: B023 - at once
        os.kill(victim(process.pid), signal.SIGKILL)
        if name == "driver":
            process.wait()
        states.append((rig.finished(), len(log.read_text().split())))
        print(f"{time.monotonic() - began:6.1f} s: {len(states[-1][0])} finished, the {name} is killed", flush=True)
        if name == "driver":
            process = _started(batch, tasks)
    code, begun = process.wait(), log.read_text().split()
    again = sum(len(finished.intersection(begun[before:])) for finished, before in states)
    print(f"{time.monotonic() - began:6.1f} s: exit code {code}, tasks begun {len(begun)} times")
    return _told(rig, count, code, again)


def _started(batch: Killed, tasks: Sequence[dict[str, object]]) -> subprocess.Popen[str]:
    return batch.rig.start(tasks, *batch.options, "--resume", out=subprocess.DEVNULL)


def _told(rig: BatchRig, count: int, code: int, again: int) -> int:
    results = rig.results()
    solved = sum(result.solved for result in results.values())
    print(f"{len(results)} results of {count}, {solved} solved, {again} finished tasks begun again")
    return 0 if (code, len(results), solved, again) == (0, count, count, 0) else 1


if __name__ == "__main__":
    sys.exit(main())
