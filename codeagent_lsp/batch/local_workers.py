"""Tasks in worker processes on this machine: one task at a time each, all ended with this process, however it ends.

A worker that dies costs its task one more try, three at most. Not here: what a worker does (`perform.py`).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from typing import Protocol

from codeagent_lsp.batch.perform import perform
from codeagent_lsp.batch.results import Outcome, TaskResult
from codeagent_lsp.batch.task_file import Job

if sys.platform == "win32":
    from multiprocessing.connection import PipeConnection as Connection
else:
    from multiprocessing.connection import Connection

MOST_TRIES = 3
_LEAVE_SECONDS = 20.0  # a server that still writes is waited for: what it writes afterwards would stay

Take = Callable[[int], Job | None]
"""Returns the next job for one of so many free workers; None if there is none at the moment."""


class Workers(Protocol):
    """Port: does several jobs at once, on this machine or on others."""

    def work(self, take: Take, done: Callable[[Outcome], None]) -> None:
        """Do the jobs that `take` returns for a number of free places; each outcome goes to `done` at once. Blocks
        until `take` returns None while no job is in progress.
        """


class LocalWorkers:
    """The `Workers` in `count` processes on this machine, which do one job at a time each; each task has its folder
    below `folder`. The processes end with `work`.
    """

    def __init__(self, count: int, folder: Path) -> None:
        self._count = count
        self._folder = folder

    def work(self, take: Take, done: Callable[[Outcome], None]) -> None:
        """Do the jobs as `Workers.work`, in processes of this machine, which have ended when it returns. A job whose
        process dies is tried again, then given up as an outcome of its own.
        """
        busy: dict[_Worker, tuple[Job, int]] = {}
        free: list[_Worker] = []
        again: list[tuple[Job, int]] = []
        try:
            while self._fill(busy, free, again, take) or busy:
                for worker in _ready(busy):
                    job, tries = busy.pop(worker)
                    outcome = worker.outcome()
                    if outcome is not None:
                        free.append(worker)
                        done(outcome)
                    elif tries < MOST_TRIES:
                        again.append((job, tries + 1))
                    else:
                        done(died(job))
        finally:
            for worker in (*busy, *free):
                worker.end()

    def _fill(
        self, busy: dict[_Worker, tuple[Job, int]], free: list[_Worker], again: list[tuple[Job, int]], take: Take
    ) -> bool:
        """Give jobs to the workers without one; return whether there was one."""
        began = False
        while len(busy) < self._count:
            # First what was begun: its money is promised.
            job, tries = again.pop() if again else (take(self._count - len(busy)), 1)
            if job is None:
                return began
            worker = free.pop() if free else _Worker(self._folder)
            worker.begin(job)
            busy[worker] = (job, tries)
            began = True
        return began


def died(job: Job) -> Outcome:
    """Return the outcome of a task whose process died three times: not solved, with the reason `crash`."""
    words = f"The process that did this task was ended {MOST_TRIES} times."
    result = TaskResult(
        job.task.id, job.task.digest, solved=False, checked=False, reason="crash", error=words, task=job.task.task
    )
    return Outcome(result)


class _Worker:
    """One process and our end of its pipe."""

    def __init__(self, folder: Path) -> None:
        # Not fork, which would copy our ends of the other workers' pipes, and they would never see the end of us.
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, str(folder)), daemon=True)
        self._process.start()
        # As long as we hold it, too, the end of the process would not end the pipe.
        theirs.close()

    @property
    def connection(self) -> Connection:
        """Return our end, which is ready when there is an outcome or the process has ended."""
        return self._ours

    def begin(self, job: Job) -> None:
        try:
            self._ours.send(job)
        except OSError:  # it has just died, which reading tells
            pass

    def outcome(self) -> Outcome | None:
        """Return the outcome of its job; None if the process died."""
        try:
            found: Outcome = self._ours.recv()
        except (EOFError, OSError):
            self.end()
            return None
        return found

    def end(self) -> None:
        """End the process; its server and their commands end with it."""
        self._ours.close()
        self._process.terminate()
        self._process.join(_LEAVE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _ready(busy: dict[_Worker, tuple[Job, int]]) -> list[_Worker]:
    ready = wait([worker.connection for worker in busy])
    return [worker for worker in busy if worker.connection in ready]


def _serve(connection: Connection, folder: str) -> None:
    """Do the jobs that come, in the worker process, until the other side is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the process that started us
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server is closed on the way
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job: Job = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(perform(job, Path(folder)))


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, also in the middle of a task."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # it is a child
    wait([parent.sentinel])
    os._exit(1)
