"""Tasks on a Ray cluster: each is a Ray task, with Ray's resources, and tried again by Ray where a node or worker dies.

codeagent-lsp has to be installed on every node. Keys travel as arguments, which Ray shows nowhere. Not here: what is
done for a task (`perform.py`).
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codeagent_lsp.batch.local_workers import MOST_TRIES, Take, died
from codeagent_lsp.batch.options import Job
from codeagent_lsp.batch.results import Outcome
from codeagent_lsp.errors import UsageError

_LOOK_SECONDS = 5.0
_REACH_SECONDS = 10.0


class RayCluster:
    """The cluster at `address`; `auto` is the one on this machine."""

    def __init__(self, address: str) -> None:
        self._address = address

    def work(self, take: Take, done: Callable[[Outcome], None]) -> None:
        """See `Workers`."""
        ray = _ray()
        try:
            _reach(self._address)
            ray.init(address=self._address, log_to_driver=False, configure_logging=False)
        except (OSError, RuntimeError, ValueError) as error:
            raise UsageError(
                "batch.no_cluster", address=self._address, reason=str(error).strip().split("\n")[0]
            ) from error
        try:
            _work(ray, take, done)
        finally:
            ray.shutdown()


def _reach(address: str) -> None:
    """Raise OSError if nothing answers at an address with a port; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS).close()


def _work(ray: Any, take: Take, done: Callable[[Outcome], None]) -> None:
    remote = ray.remote(num_cpus=1, max_retries=MOST_TRIES - 1)(perform_on_node)
    waiting: dict[Any, Job] = {}
    while True:
        room = max(1, int(ray.cluster_resources().get("CPU", 1)))
        while len(waiting) < room and (job := take(room - len(waiting))) is not None:
            waiting[remote.remote(job)] = job
        if not waiting:
            return
        ready, _ = ray.wait(list(waiting), timeout=_LOOK_SECONDS)  # nodes come and go meanwhile
        for reference in ready:
            job = waiting.pop(reference)
            try:
                done(ray.get(reference))
            except ray.exceptions.RayError:
                done(died(job))


def perform_on_node(job: Job) -> Outcome:
    """Do a task in the temporary folder of a node."""
    from codeagent_lsp.batch.perform import perform  # late: only nodes need it

    return perform(job, Path(tempfile.gettempdir()) / f"codeagent-batch-{os.getuid()}")


def _ray() -> Any:
    try:
        import ray  # late: an extra, and heavy
    except ImportError as error:
        raise UsageError("batch.no_ray") from error
    return ray
