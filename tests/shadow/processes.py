"""Starting commands for the tests of processes, and seeing what is left of them."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.shadow.process import run_process
from codeagent_lsp.shadow.shell import Finished, Launch, OnOutput, ProcessLimits, no_output

ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")
needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


class Runner:
    """Runs bash scripts in a folder of the test; `nap` is a sleep that nothing else on the machine sleeps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.nap = f"sleep {random.randint(300, 900)}.{random.randint(10**8, 10**9)}"

    def launch(self, script: str, *before: str, reports: str = "") -> Launch:
        return Launch((*before, "bash", "-c", script), str(self.folder), ENVIRONMENT, reports)

    async def __call__(
        self,
        script: str,
        *before: str,
        told: OnOutput = no_output,
        apart: bool = False,
        reports: str = "",
        stdin: bytes = b"",
        **limits: Any,
    ) -> Finished:
        launch = self.launch(script, *before, reports=reports)
        spool = self.folder / "spool"
        return await run_process(launch, ProcessLimits(**limits), told, spool_folder=spool, apart=apart, stdin=stdin)

    def naps(self) -> list[int]:
        """The processes that sleep our sleep."""
        return [pid for pid in pids() if self.nap.split()[1] in words(pid)]

    async def until_napping(self, count: int = 1) -> None:
        await until(lambda: len(self.naps()) >= count)


async def until(true: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.01)


def pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def words(pid: int) -> list[str]:
    """The command line; nothing for the dead."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []


def text_of(path: str | None) -> str:
    assert path is not None
    return Path(path).read_text()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
