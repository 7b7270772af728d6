"""Kills a process in the middle of its work. Not here: what it worked on (`worker.py`, `plan_worker.py`)."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.server.warm import WarmProcess

REPOSITORY = Path(__file__).resolve().parents[2]


def lines_until_killed(work: str, folder: Path, wait: float, said: int = 1) -> list[str]:
    """What it said until it was killed, `wait` seconds after the lines `said`: whole lines and what came of the last.

    `work` is a function of the arguments, as `module:name`.
    """
    process = WarmProcess([str(folder)], cwd=REPOSITORY, env=os.environ, main=work)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    with process.stdin, process.stdout as output, process.stderr as complaints:
        first = b"".join(output.readline() for _ in range(said))
        time.sleep(wait)
        process.kill()
        process.wait(10)
        assert first, complaints.read().decode()
        return (first + output.read()).decode().split("\n")
