"""A real Ray cluster of several nodes in processes here, and batches on it.

Cluster and batches are in a network namespace of their own, whose loopback is all the network that they have: Ray takes
the address of a network interface where there is one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.batch.rig import BatchRig
from tests.children import command_lines

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

    def workers(self) -> list[int]:
        """The process ids of what works on tasks, on all nodes."""
        return [pid for pid, words in command_lines().items() if words.startswith("ray::perform_on_node")]


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster whose nodes have their state and temporary files below `folder`."""
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
