"""Batches on a real Ray cluster of several nodes: kills of a worker, a node and the driver.

Cluster and batches are in a network namespace of their own, whose loopback is all the network that they have: Ray takes
the address of a network interface where there is one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.batch.rig import SECONDS, BatchRig, until
from tests.children import command_lines

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install ray"),
]

NODES = 3
CLUSTER = """
import fcntl, json, socket, struct, sys
with socket.socket() as up:
    fcntl.ioctl(up, 0x8914, struct.pack("16sh", b"lo", 0x49))  # SIOCSIFFLAGS: up, loopback, running
from ray.cluster_utils import Cluster
node = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args=node)
for _ in range(int(sys.argv[1]) - 1):
    cluster.add_node(**{name: value for name, value in node.items() if name != "include_dashboard"})
cluster.wait_for_nodes()
print(json.dumps(cluster.address), flush=True)
sys.stdin.read()
cluster.shutdown()
"""


ISOLATED = () if os.geteuid() == 0 else ("--user", "--map-root-user")


@dataclass(frozen=True)
class Cluster:
    """The address of a cluster, and the process in whose network it is."""

    address: str
    pid: int

    @property
    def inside(self) -> tuple[str, ...]:
        """The words before a command that is run beside it."""
        user = ("--user", "--preserve-credentials") if ISOLATED else ()
        return ("nsenter", f"--target={self.pid}", *user, "--net")


class RayRig:
    """A cluster and batches on it."""

    def __init__(self, root: Path, cluster: Cluster) -> None:
        self.address = cluster.address
        self.batch = BatchRig(root, cluster.inside)

    def nodes(self) -> list[int]:
        """The process ids of the nodes, the head first."""
        return sorted(
            pid for pid, words in command_lines().items() if "/raylet/raylet" in words and self.address in words
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose nodes see the state folder and the temporary folder of these tests."""
    folder = tmp_path_factory.mktemp("cluster")
    environ = {
        **os.environ,
        "RAY_USAGE_STATS_ENABLED": "0",
        "CODEAGENT_STATE_DIR": str(folder / "state"),
        "TMPDIR": str(folder),
    }
    command = ["unshare", *ISOLATED, "--net", sys.executable, "-c", CLUSTER, str(NODES)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, start_new_session=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield Cluster(json.loads(process.stdout.readline()), process.pid)
        finally:
            process.stdin.close()
            try:
                process.wait(60)
            finally:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)


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


def test_kill_a_worker_and_a_node(rig: RayRig) -> None:
    batch = rig.batch
    tasks = [batch.task(f"t{number}") for number in range(9)]
    process = _started(batch, tasks, rig.address)
    until(lambda: len(batch.finished()) >= 1 or process.poll() is not None)
    workers = [pid for pid, words in command_lines().items() if words.startswith("ray::perform_on_node")]
    os.kill(workers[0], signal.SIGKILL)
    until(lambda: len(batch.finished()) >= 3 or process.poll() is not None)
    os.kill(rig.nodes()[-1], signal.SIGKILL)
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, out
    assert set(batch.results()) == {f"t{number}" for number in range(9)}


def test_kill_the_driver(rig: RayRig) -> None:
    batch, log = rig.batch, rig.batch.root / "log"
    tasks = [batch.task(f"t{number}", setup=f"echo t{number} >> {log}") for number in range(6)]
    process = _started(batch, tasks, rig.address)
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


def _started(batch: BatchRig, tasks: list[dict[str, object]], address: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        batch.command(tasks, "--ray", address),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=batch.environ(),
        encoding="utf-8",
    )
