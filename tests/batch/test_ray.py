"""Batches on a real Ray cluster of several nodes: kills of a worker, a node and the driver."""

from __future__ import annotations

import importlib.util
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.batch.ray_rig import Cluster, RayRig, running
from tests.batch.rig import SECONDS, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install ray"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with (
        # a folder of pytest's has too long a name for the sockets of the nodes
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        running(Path(folder)) as made,
    ):
        yield made


@pytest.fixture
def rig(tmp_path: Path, cluster: Cluster) -> RayRig:
    return RayRig(tmp_path, cluster)


def test_tasks_on_several_nodes(rig: RayRig) -> None:
    batch = rig.batch
    done = batch.run(
        [*(batch.task(f"t{number}") for number in range(4)), batch.task("bad", check="false")], "--ray", rig.address
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert {name: result.solved for name, result in batch.results().items()} == {
        **{f"t{n}": True for n in range(4)},
        "bad": False,
    }
    assert (batch.out / "t0" / "session.jsonl").exists()


@pytest.mark.volume
def test_kill_a_worker_and_a_node(rig: RayRig) -> None:
    batch = rig.batch
    tasks = [batch.task(f"t{number}") for number in range(9)]
    process = batch.start(tasks, "--ray", rig.address)
    until(lambda: len(batch.finished()) >= 1 or process.poll() is not None)
    os.kill(rig.workers()[0], signal.SIGKILL)
    until(lambda: len(batch.finished()) >= 3 or process.poll() is not None)
    os.kill(rig.nodes()[-1], signal.SIGKILL)
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, out
    assert set(batch.results()) == {f"t{number}" for number in range(9)}


@pytest.mark.volume
def test_kill_the_driver(rig: RayRig) -> None:
    batch, log = rig.batch, rig.batch.root / "log"
    tasks = [batch.task(f"t{number}", setup=f"echo t{number} >> {log}") for number in range(6)]
    process = batch.start(tasks, "--ray", rig.address)
    until(lambda: len(batch.finished()) >= 2 or process.poll() is not None)
    process.kill()
    process.communicate()
    finished, before = batch.finished(), log.read_text().split()
    done = batch.run(tasks, "--resume", "--ray", rig.address)
    assert done.returncode == 0, done.stdout + done.stderr
    after = log.read_text().split()
    assert set(batch.results()) == {f"t{number}" for number in range(6)}
    assert not finished & set(after[len(before) :])


def test_no_cluster_there(rig: RayRig) -> None:
    done = rig.batch.run([rig.batch.task()], "--ray", "127.0.0.1:1")
    assert (done.returncode, "no Ray cluster at 127.0.0.1:1" in done.stderr) == (2, True), done.stderr
