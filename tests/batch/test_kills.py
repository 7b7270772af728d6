"""Batches that are killed: the driver, a worker, again and again; going on does nothing twice and loses nothing."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.batch.rig import SECONDS, BatchRig, until, workers_of
from tests.children import command_lines

pytestmark = pytest.mark.slow

COUNT = 12
KILLS = 4


def test_kill_the_driver(tmp_path: Path) -> None:
    rig, log = BatchRig(tmp_path), tmp_path / "log"
    tasks = [rig.task(f"t{number}", setup=f"echo t{number} >> {log}") for number in range(COUNT)]
    draw = random.Random(7)
    finished: set[str] = set()
    for turn in range(KILLS):
        process = rig.start(tasks, "--jobs", "2", "--resume")
        wanted = len(finished) + draw.randint(1, 2)
        until(lambda: len(rig.finished()) >= wanted or process.poll() is not None)  # noqa: B023 - read at once
        time.sleep(draw.random() / 5)  # any moment of the tasks under way
        before = rig.finished()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert finished <= before
        finished = rig.finished()
        until(lambda: not _of(rig))
        runs = Counter(log.read_text().split())
        assert all(runs[name] <= turn + 1 for name in runs)
    done = rig.run(tasks, "--jobs", "2", "--resume")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(finished)} task{'s' * (len(finished) != 1)} finished already" in done.stdout
    assert set(rig.results()) == {f"t{number}" for number in range(COUNT)}
    last = Counter(log.read_text().split())
    runs_of_finished = {name: count for name, count in last.items() if name in finished}
    assert sum(last.values()) <= COUNT + 2 * KILLS  # at most what was under way is done again
    assert runs_of_finished == {name: runs[name] for name in finished}  # and never what was finished
    assert rig.left_over() == []


@pytest.mark.volume
def test_kill_the_workers(tmp_path: Path) -> None:
    rig = BatchRig(tmp_path)
    tasks = [rig.task(f"t{number}") for number in range(6)]
    process = rig.start(tasks, "--jobs", "2")
    for wanted in (1, 3):
        until(lambda: len(rig.finished()) >= wanted or process.poll() is not None)  # noqa: B023 - read at once
        for worker in workers_of(process.pid)[:1]:  # none when the batch has ended already
            os.kill(worker, signal.SIGKILL)
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, out
    assert len(rig.results()) == 6
    assert rig.left_over() == []


def test_a_task_that_kills_its_worker_is_given_up(tmp_path: Path) -> None:
    rig = BatchRig(tmp_path)
    murder = "kill -9 $(ps -o ppid= -p $(ps -o ppid= -p $$))"
    done = rig.run([rig.task("bad", setup=murder), rig.task("good")], "--jobs", "1")
    assert done.returncode == 1
    results = rig.results()
    assert (results["bad"].reason, results["good"].solved) == ("crash", True)


def test_interrupt(tmp_path: Path) -> None:
    rig = BatchRig(tmp_path)
    tasks = [rig.task(f"t{number}") for number in range(6)]
    process = rig.start(tasks, "--jobs", "2")
    until(lambda: len(rig.finished()) >= 1 or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=SECONDS)
    assert (process.returncode, "--resume" in out) == (130, True)
    assert rig.left_over() == []
    until(lambda: not _of(rig))  # a server ends when its client has gone, a moment later


def _of(rig: BatchRig) -> list[str]:
    """The processes that work in folders of this batch: servers, commands."""
    found = []
    for pid, words in command_lines().items():
        try:
            place = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if str(rig.state).encode() in place and pid != os.getpid():
            found.append(words)
    return found
