"""Looking into many files in processes of their own, at low priority, writing to the store as they go.

As a program it is one such process: `python -m codeagent_lsp.index.worker STORE`, a job per line on its input. It ends
with its input, and by itself when one file takes it too long; the file is remembered as failed, the others go on.
Not here: which files (`scan.py`) and what is done with one (`intake.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

from codeagent_lsp.index.intake import Same, failed, take
from codeagent_lsp.index.opening import open_index
from codeagent_lsp.index.scan import Work
from codeagent_lsp.index.store import Entry, Stamp, Store

JOB_FILES = 48
JOB_BYTES = 512_000
FILE_SECONDS = 20
MEMORY = 2 << 30
NICE = 10

Job = tuple[Work, ...]


def jobs(work: Iterable[Work]) -> Iterator[Job]:
    """Portions that take about as long as each other."""
    portion: list[Work] = []
    size = 0
    for each in work:
        portion.append(each)
        size += each.size
        if len(portion) >= JOB_FILES or size >= JOB_BYTES:
            yield tuple(portion)
            portion, size = [], 0
    if portion:
        yield tuple(portion)


def do(store: Store, work: Iterable[Work], begin: Callable[[int], None] = lambda number: None) -> None:
    """Look into files and write what was found, in one transaction. `begin` is told the number of each file."""
    entries: list[Entry] = []
    same: dict[str, Stamp] = {}
    gone: list[str] = []
    for number, each in enumerate(work):
        begin(number)
        taken = take(store, each)
        if isinstance(taken, Entry):
            entries.append(taken)
        elif isinstance(taken, Same):
            same[taken.path] = taken.stamp
        else:
            gone.append(each.path)
    if entries or gone:
        store.write(entries, gone)
    if same:
        store.touch(same)


async def work_off(store: Store, portions: Sequence[Job], processes: int, done: Callable[[int], None]) -> None:
    """Do all jobs in `processes` processes; `done` is told of each number of files. Cancelled: they are ended."""
    pending = deque(portions)
    async with asyncio.TaskGroup() as group:
        for _ in range(min(processes, len(pending))):
            group.create_task(_hand_out(store, pending, done))


async def _hand_out(store: Store, pending: deque[Job], done: Callable[[int], None]) -> None:
    """Give jobs to one process, and to another once that has ended."""
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
    """None when the job is done; else the number of the file that ended the process."""
    assert process.stdin is not None, "piped"
    assert process.stdout is not None, "piped"
    number = 0
    try:
        process.stdin.write(_dump(job))
        await process.stdin.drain()
        while line := await process.stdout.readline():
            if line == b"done\n":
                return None
            number = int(line)
    except (ConnectionError, ValueError):
        pass  # it ended, perhaps in the middle of a line
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
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await asyncio.shield(process.wait())


def _environment() -> dict[str, str]:
    """Ours, with the folder this package was loaded from in front, wherever that is."""
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _remember(store: Store, work: Work) -> None:
    entry = failed(store, work)
    if entry is not None:
        store.write([entry])


def _dump(job: Job) -> bytes:
    """Names may be any bytes but never hold one that is no Unicode (`scan.py`)."""
    return json.dumps([(each.path, each.absolute, each.digest.hex(), each.size) for each in job]).encode() + b"\n"


def _load(line: bytes) -> Job:
    return tuple(Work(path, name, bytes.fromhex(digest), size) for path, name, digest, size in json.loads(line))


def _main(path: str, lines: IO[bytes]) -> None:
    _modest()
    store = open_index(Path(path))

    def begin(number: int) -> None:
        # The alarm ends the process even inside a parser that does not come back.
        signal.alarm(FILE_SECONDS)
        os.write(1, b"%d\n" % number)

    for line in lines:
        do(store, _load(line), begin)
        signal.alarm(0)
        os.write(1, b"done\n")


def _modest() -> None:
    """Behind everything else on the machine, and within bounds."""
    os.nice(NICE)
    if sys.platform == "linux":
        import resource  # only here: not every platform has it, and only Linux keeps to this limit

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    try:
        _main(sys.argv[1], sys.stdin.buffer)
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # whoever asked is gone; what is written is whole
