"""Parallel processing of many files in worker processes (`worker.py`): jobs, their distribution, and crashes.

A file that hangs or crashes its process is recorded as failed; the others go on.
Not here: the choice of files (`scan.py`) and their processing (`intake.py`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from codeagent_lsp.index.intake import failed, looked_at
from codeagent_lsp.index.store import Store
from codeagent_lsp.index.work import Work
from codeagent_lsp.index.worker import Job, dump

JOB_FILES = 48
JOB_BYTES = 512_000


def jobs(work: Iterable[Work]) -> Iterator[Job]:
    """Yield jobs of similar duration."""
    portion: list[Work] = []
    size = 0
    for each in work:
        portion.append(each)
        size += looked_at(each.path, each.size)
        if len(portion) >= JOB_FILES or size >= JOB_BYTES:
            yield tuple(portion)
            portion, size = [], 0
    if portion:
        yield tuple(portion)


async def work_off(store: Store, portions: Sequence[Job], processes: int, done: Callable[[int], None]) -> None:
    """Do all jobs in `processes` processes; `done` is called with each number of files done.

    If this is cancelled, the processes are killed. OSError if no process can be started, sqlite3.Error if the index
    cannot be written.
    """
    pending = deque(portions)
    work = [asyncio.create_task(_hand_out(store, pending, done)) for _ in range(min(processes, len(pending)))]
    try:
        await asyncio.gather(*work)  # not a TaskGroup: callers handle a failure, not a group of them
    finally:
        for task in work:
            if not task.cancelling():  # cancelled twice, it would not wait for the end of its process
                task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def _hand_out(store: Store, pending: deque[Job], done: Callable[[int], None]) -> None:
    """Give jobs to one process, and to a new one after a crash."""
    while pending:
        async with _process(store.path) as process:
            while pending:
                job = pending.popleft()
                culprit = await _run(process, job)
                if culprit is None:
                    done(len(job))
                    continue
                rest = job[:culprit] + job[culprit + 1 :]
                pending.extendleft([rest] if rest else [])
                await asyncio.to_thread(_remember, store, job[culprit])
                done(1)
                break


async def _run(process: asyncio.subprocess.Process, job: Job) -> int | None:
    """Run a job in a process; return None when it is done, else the number of the file that crashed the process."""
    assert process.stdin is not None, "piped"
    assert process.stdout is not None, "piped"
    number = 0
    try:
        process.stdin.write(dump(job))
        await process.stdin.drain()
        while line := await process.stdout.readline():
            if line == b"done\n":
                return None
            number = int(line)
    except (ConnectionError, ValueError):
        pass  # the process ended, perhaps in the middle of a line
    return min(number, len(job) - 1)


@asynccontextmanager
async def _process(path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    arguments = ("-P", "-m", "codeagent_lsp.index.worker", str(path))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_environment(),
        start_new_session=True,  # Ctrl-C must not reach the workers directly: a file would be blamed for it
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await asyncio.shield(process.wait())


def _environment() -> dict[str, str]:
    """Return our environment, with the folder of this package first in PYTHONPATH."""
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _remember(store: Store, work: Work) -> None:
    entry = failed(store, work)
    if entry is not None:
        store.write([entry])
