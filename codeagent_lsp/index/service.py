"""Updating of a workspace's index, without blocking the event loop.

`refresh` compares the whole workspace with the index; `changed` looks at single files. Few files are processed in a
thread, many in worker processes. Calls may overlap and are serialized. Not here: texts that are not on disk
(`answers.py`), queries (`view.py` and what is built on it).
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.index.intake import failure_entry, looked_at
from codeagent_lsp.index.scan import Folders, Scan, scan, scan_files
from codeagent_lsp.index.store import Known, Store, Work, open_index
from codeagent_lsp.index.view import View
from codeagent_lsp.index.worker import Job, do, dump
from codeagent_lsp.system import OWN_GROUP
from codeagent_lsp.workspace.process_group import reap

State = Literal["off", "new", "scanning", "building", "ready", "failed"]

POLL_SECONDS = 30.0
_MOST_PROCESSES = 4
_REST = 50  # polling pauses for this multiple of the duration of a scan
_WORTH = 10  # a scan counts as fresh for this multiple of its duration
_RULES = frozenset((".gitignore", ".codeagentignore"))

_T = TypeVar("_T")

logger = logging.getLogger(__name__)
JOB_FILES = 48  # as many as are lost at most when a worker is killed, and done again
JOB_BYTES = 512_000  # so that one job of large files does not keep the last process busy while the others wait


@dataclass(frozen=True, slots=True)
class Status:
    """The state and progress of the index: `state` is `off`, `new`, `scanning`, `building`, `ready` or `failed`; `done`
    of `total` files of this pass are processed; `files` are all, 0 before the first pass. `problem` is the reason for
    `failed`.
    """

    state: State
    done: int = 0
    total: int = 0
    files: int = 0
    problem: str = ""


@dataclass(slots=True)
class LastScan:
    """When all files were last scanned and processed (`ended`, a time of `time.monotonic`, None before the first time).
    `seconds` is how long the scan took: the longer, the longer its result counts as fresh.
    """

    ended: float | None = None
    seconds: float = 0.0

    def is_fresh(self, age: float) -> bool:
        """Return whether the last scan ended less than `age` seconds ago, or, in a large workspace, ten times its
        duration; never for 0.
        """
        passed = float("inf") if self.ended is None else time.monotonic() - self.ended
        return age > 0 and passed < max(age, _WORTH * self.seconds)

    def pause(self, seconds: float) -> float:
        """Return the seconds between two scans when polling: `seconds`, or a multiple of the last scan's duration if
        that is longer.
        """
        return max(seconds, _REST * self.seconds)


class IndexService:
    """Keeps the index of `folders` in the file `store_path`, until `close`. `tell` is called with every change of the
    status. Failures such as a full disk are the status `failed`, not raised.
    """

    def __init__(
        self,
        folders: Sequence[str],
        store_path: Path,
        settings: IndexSettings,
        *,
        processes: int | None = None,
        tell: Callable[[Status], None] = lambda status: None,
    ) -> None:
        self.folders = Folders(folders)
        self.store: Store = open_index(store_path)
        self.status = Status("new" if settings.enabled else "off")
        self.last_scan = LastScan()
        self._processes = processes or max(1, min(_MOST_PROCESSES, os.cpu_count() or 1))
        self._tell = tell
        self._lock = asyncio.Lock()
        self._stop = threading.Event()
        self._polling: asyncio.Task[None] | None = None

    def start(self, *, seconds: float = POLL_SECONDS) -> None:
        """Refresh now and then periodically until `close`, in the background, for clients that do not report changed
        files. The period is `seconds`, or longer if a scan of all files takes long.
        """
        if self.status.state != "off" and self._polling is None:
            self._polling = asyncio.create_task(self._poll(seconds))

    async def refresh(self, *, age: float = 0.0) -> Status:
        """Update the index to the present state of the disk, and return the status. If cancelled, the next call
        continues. Returns at once if the last one ended less than `age` seconds ago, in large workspaces longer.
        """
        return await self._pass(lambda: self._compare(self.store.known()), age=age, whole=True)

    async def complete(self, found: Scan) -> Status:
        """Process the given result of a scan of all files and return the status, as `refresh` does without a scan of
        its own; `failed` in it, not raised, if that was impossible.
        """
        return await self._pass(lambda: found, whole=True)

    async def rebuild(self) -> Status:
        """Delete the index, build it again, wait for the end, which may take minutes, and return the status. Until then
        searches find little.
        """

        def cleared() -> Scan:
            self.store.clear()
            return self._compare({})

        return await self._pass(cleared, whole=True)

    async def changed(self, paths: Iterable[str]) -> Status:
        """Process files that were saved, created or deleted, by absolute path, and return the status.

        A folder or an ignore file has everything scanned, unless it is in an ignored folder. The files of a folder that
        is gone are removed.
        """
        paths = list(paths)
        if await asyncio.to_thread(_concern_all, self.folders, paths):
            return await self.refresh()
        return await self._pass(lambda: scan_files(self.folders, paths, self.store, self.status.files))

    def view(self) -> View:
        """Return the index of the disk as it is now, without unsaved texts; the view's methods block on the disk."""
        return View(self.store)

    async def close(self) -> None:
        """Stop polling, wait for the pass in progress, without a time limit, and close the files."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.wait([self._polling])
            self._polling = None
        async with self._lock:
            self.store.close()

    async def _poll(self, seconds: float) -> None:
        while True:
            try:
                await self.refresh(age=seconds / 2)
            except Exception:  # nothing awaits a background task, and without it the index would stay as it is
                logger.exception("the index could not be refreshed")
            await asyncio.sleep(self.last_scan.pause(seconds))

    async def _pass(self, find: Callable[[], Scan], *, age: float = 0.0, whole: bool = False) -> Status:
        """Find the changed files and process them; one pass at a time.

        A full or read-only disk is reported as status only, as nothing else depends on the index.
        """
        async with self._lock:
            if self.status.state == "off" or self.last_scan.is_fresh(age):
                return self.status
            try:
                self._set(Status("scanning", files=self.status.files))
                found = await self._in_thread(find)
                self._set(Status("building", 0, len(found.changed), found.files))
                await self._build(found)
                self._set(replace(self.status, state="ready"))
                if whole:
                    self.last_scan.ended = time.monotonic()
            except (sqlite3.Error, OSError) as error:
                self._set(Status("failed", files=self.status.files, problem=str(error)))
            # Cancelled: what was written stays, and the next pass goes on from there.
            except BaseException:
                self._set(Status("new", files=self.status.files))
                raise
            return self.status

    async def _build(self, found: Scan) -> None:
        if found.removed:
            await self._in_thread(lambda: self.store.write((), found.removed))
        # To start processes takes longer than to parse a few files.
        if found.is_small:
            await self._in_thread(lambda: do(self.store, found.changed))
            self._done(len(found.changed))
        else:
            await work_off(self.store, tuple(jobs(found.changed)), self._processes, self._done)
            # Only a large pass, such as after a switch of branch, leaves many contents without a file.
            await self._in_thread(self.store.tidy)

    def _compare(self, known: Mapping[str, Known]) -> Scan:
        begun = time.monotonic()
        found = scan(self.folders, known, self._stop)
        self.last_scan.seconds = time.monotonic() - begun
        return found

    async def _in_thread(self, action: Callable[[], _T]) -> _T:
        """Run `action` in a thread and wait for it even when cancelled, so that nothing goes on unseen."""
        # A pass that was cancelled has left it set.
        self._stop.clear()
        running = asyncio.ensure_future(asyncio.to_thread(action))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._stop.set()
            await asyncio.gather(running, return_exceptions=True)
            raise

    def _done(self, files: int) -> None:
        self._set(replace(self.status, done=self.status.done + files))

    def _set(self, status: Status) -> None:
        if status != self.status:
            self.status = status
            self._tell(status)


def _concern_all(folders: Folders, paths: Iterable[str]) -> bool:
    """Return whether a change of these paths may concern files that are not among them."""
    return any((folder := _folder_of(path)) is not None and not folders.ignores(folder) for path in paths)


def _folder_of(path: str) -> str | None:
    """Return the folder whose files a change of `path` may concern: itself or that of an ignore file, else None."""
    place = Path(path)
    if place.name in _RULES:
        return str(place.parent)
    return path if place.is_dir() else None


# Parallel processing of many files in worker processes (`worker.py`): jobs, their distribution, and crashes.


def jobs(work: Iterable[Work]) -> Iterator[Job]:
    """Yield jobs, in the order of `work`, that take about as long as each other: at most 48 files and about 512 kB
    each; none for no work.
    """
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
    """Do all jobs in `processes` processes; `done` is called with each number of files done. If cancelled, the
    processes are killed. OSError if no process can be started, sqlite3.Error if the index cannot be written.
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
                # Its other files are done first and without the one that crashed.
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
            # It has written before it says so: what a killed worker did not report is done again, without harm.
            if line == b"done\n":
                return None
            # The file that the worker has begun: if it ends now, this one is to blame.
            number = int(line)
    except (ConnectionError, ValueError):
        pass  # the process ended, perhaps in the middle of a line
    # A half-written number may name a file that is not in the job.
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
        **OWN_GROUP,  # Ctrl-C must not reach the workers directly: a file would be blamed for it
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await asyncio.shield(reap(process))


def _environment() -> dict[str, str]:
    """Return our environment, with the folder of this package first in PYTHONPATH."""
    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _remember(store: Store, work: Work) -> None:
    entry = failure_entry(store, work)
    if entry is not None:
        store.write([entry])
