"""The command `codeagent-lsp batch`: from the options to the exit code. 0 all checks passed, 1 not all, 2 usage,
130 interrupted.

Not here: what the reports say (`report.py`, `report_page.py`).
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from codeagent_lsp.batch.local_workers import MOST_TRIES, LocalWorkers, Take, Workers, died
from codeagent_lsp.batch.report import Group, report_summary, sum_of
from codeagent_lsp.batch.report_page import report_page
from codeagent_lsp.batch.results import Outcome, ResultFolder, TaskResult
from codeagent_lsp.batch.task_file import BatchOptions, BatchTask, Job, read_tasks
from codeagent_lsp.batch.task_place import sweep
from codeagent_lsp.errors import UsageError
from codeagent_lsp.session.spending import dollars
from codeagent_lsp.system import user_id
from codeagent_lsp.terminal.display import one_line, say, user_locale
from codeagent_lsp.terminal.options import settings_of
from codeagent_lsp.terminal.summary import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE
from codeagent_lsp.texts import choose_language, text

PASSED_ON = ("CODEAGENT_BASE_URL", "CODEAGENT_MODEL", "CODEAGENT_API_KEY")
_LOOK_SECONDS = 5.0
_REACH_SECONDS = 10.0
LEAST_USD = 0.001
"""No task begins with less."""
PAGE, SUMMARY = "report.html", "report.md"


def batch_command(namespace: Namespace) -> int:
    """Run the batch with its parsed options; return 0 if all checks passed, 1 if not, 2 for a usage error, which is
    printed to stderr, 130 if interrupted.
    """
    language = choose_language("auto", user_locale())
    try:
        if shutil.which("git") is None:
            raise UsageError("batch.no_git")
        options = _options(namespace, language)
        tasks = read_tasks(Path(namespace.tasks))
        with ResultFolder(Path(namespace.out).absolute()) as folder:
            return _batch(namespace, tasks, options, folder)
    except UsageError as error:
        sys.stderr.write(f"codeagent-lsp batch: {error.localized(language)}\n")
        return EXIT_USAGE


def write_report(folder: Path, results: Sequence[TaskResult], language: str) -> list[Path]:
    """Write `report.html` and `report.md` into the folder of a batch, in place of earlier ones, and return their paths
    in this order. UsageError if they cannot be written.
    """
    written = []
    for name, content in ((PAGE, report_page(folder, results, language)), (SUMMARY, report_summary(results, language))):
        path = folder / name
        try:
            path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise UsageError("batch.unwritable", path=path, reason=error.strerror or error) from error
        written.append(path)
    return written


def _batch(namespace: Namespace, tasks: Sequence[BatchTask], options: BatchOptions, folder: ResultFolder) -> int:
    if folder.begun() and not namespace.resume:
        raise UsageError("batch.begun", path=folder.path)
    language = options.language
    earlier = folder.earlier(tasks)
    finished = {name: result for name, result in earlier.items() if result.finished}
    folder.list_results(finished.values())
    if finished:
        say(text("batch.resumed", language, count=len(finished)))
    # Also with what tries have cost that are done again.
    budget = BudgetShare(namespace.budget_usd, sum(result.cost or 0.0 for result in earlier.values()))
    counted = _Counter(len(tasks), len(finished), language)
    batch = Batch((task for task in tasks if task.id not in finished), options, budget, folder, counted.tell)
    interrupted = False
    # A batch that was killed cleans up nothing; the lock of the folder says that no other runs.
    sweep(folder.work, whole=True)
    try:
        batch.run(_workers(namespace, folder))
    except KeyboardInterrupt:
        interrupted = True
    finally:
        sweep(folder.work, whole=True)
    results = list(folder.earlier(tasks).values())
    folder.list_results(results)
    _close(results, batch.left, budget, language)
    if namespace.report:
        for path in write_report(folder.path, results, language):
            say(str(path))
    if interrupted:
        say(text("batch.interrupted", language))
        return EXIT_INTERRUPTED
    return EXIT_DONE if len(results) == len(tasks) and all(result.solved for result in results) else EXIT_FAILED


def _options(namespace: Namespace, language: str) -> BatchOptions:
    # Local processes inherit all of it; nodes of a cluster have their own.
    environment = {name: value for name in PASSED_ON if (value := os.environ.get(name))} if namespace.ray else {}
    return BatchOptions(
        settings=tuple(settings_of(namespace.set)),
        environment=environment,
        attempts=namespace.attempts,
        accept_all=namespace.yes,
        language=language,
    )


def _workers(namespace: Namespace, folder: ResultFolder) -> Workers:
    if namespace.ray:
        return RayCluster(namespace.ray)
    return LocalWorkers(namespace.jobs or max(1, (os.cpu_count() or 2) // 2), folder.work)


class _Counter:
    """Prints a line for each task that is done."""

    def __init__(self, count: int, done: int, language: str) -> None:
        self._count = count
        self._done = done
        self._language = language

    def tell(self, result: TaskResult) -> None:
        self._done += 1
        mark = "✓" if result.solved else "✗"
        parts = [f"{result.seconds:.1f} s", text("batch.tokens", self._language, count=f"{result.tokens:,}")]
        if result.cost is not None:
            parts.append(dollars(result.cost))
        say(f"{mark} {self._done}/{self._count} {result.id}  {' · '.join(parts)}{self._why(result)}")

    def _why(self, result: TaskResult) -> str:
        if result.solved:
            return ""
        reason = text(f"batch.reason.{result.reason}", self._language)
        return f"\n    {one_line(f'{reason} {result.error}'.strip(), 300)}"


def _close(results: Iterable[TaskResult], left: int, budget: BudgetShare, language: str) -> None:
    """Print the sums, and why tasks were left out."""
    results = list(results)
    solved = sum(result.solved for result in results)
    cost = sum_of(Group(tuple(results)), language)
    say(text("batch.sum", language, solved=solved, count=len(results), cost=cost))
    if left and budget.unknown:
        say(text("batch.no_prices", language, count=left))
    elif left and budget.is_over:
        say(text("batch.spent", language, count=left))


# The loop over the tasks of a batch: which is next, within the budget; each outcome is recorded and told at once.


class Batch:
    """The tasks of one batch that are not finished yet, done by workers within a budget, with their results recorded in
    a folder.
    """

    def __init__(
        self,
        tasks: Iterable[BatchTask],
        options: BatchOptions,
        budget: BudgetShare,
        folder: ResultFolder,
        tell: Callable[[TaskResult], None],
    ) -> None:
        self._waiting = deque(tasks)
        self._options = options
        self._budget = budget
        self._folder = folder
        self._tell = tell

    @property
    def left(self) -> int:
        """The number of tasks that were not begun, as the budget was spent."""
        return len(self._waiting)

    def run(self, workers: Workers) -> None:
        """Do all tasks, or as many as the budget allows, by these workers; blocks until the last one is recorded."""
        workers.work(self._take, self._done)

    def _take(self, free: int) -> Job | None:
        """Return the next job, for one of so many free places; None if there is none or no money for it now."""
        if not self._waiting or self._budget.is_over:
            return None
        task = self._waiting[0]
        share = self._budget.promise(task.id, min(free, len(self._waiting)))
        if share == 0.0:
            return None
        self._waiting.popleft()
        return Job(task, self._options if share is None else self._options.limited(share))

    def _done(self, outcome: Outcome) -> None:
        result = outcome.result
        self._budget.settle(result.id, result.cost, result.tokens)
        self._folder.record(outcome)
        self._tell(result)


# Tasks on a Ray cluster: each is a Ray task, with Ray's resources, and tried again by Ray where a node or worker dies.


class RayCluster:
    """The `Workers` of the Ray cluster at `address`; `auto` is the one on this machine."""

    def __init__(self, address: str) -> None:
        self._address = address

    def work(self, take: Take, done: Callable[[Outcome], None]) -> None:
        """See `Workers`. Connects first and disconnects afterwards; UsageError if Ray is not installed or no cluster
        answers.
        """
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
    """Do a task below the temporary folder of the node that this runs on, and return its outcome; blocks, and never
    raises for a failing task.
    """
    from codeagent_lsp.batch.perform import perform  # late: only nodes need it

    return perform(job, Path(tempfile.gettempdir()) / f"codeagent-batch-{user_id()}")


def _ray() -> Any:
    try:
        import ray  # late: an extra, and heavy
    except ImportError as error:
        raise UsageError("batch.no_ray") from error
    return ray


# The money of a batch: what is left of it, and how much the next task may use.


class BudgetShare:
    """The budget of one batch in USD; None for no limit. `spent` is what an earlier part of the batch has cost."""

    def __init__(self, usd: float | None, spent: float = 0.0) -> None:
        self._usd = usd
        self._spent = spent
        self._promised: dict[str, float] = {}
        self.unknown = False

    @property
    def spent(self) -> float:
        """What the finished tasks have cost in US dollars, earlier parts of the batch included, as far as prices are
        known.
        """
        return self._spent

    @property
    def is_over(self) -> bool:
        """Whether no more tasks can begin, even if those in progress cost nothing."""
        return self._usd is not None and (self.unknown or self._usd - self._spent < LEAST_USD)

    def promise(self, task_id: str, free: int) -> float | None:
        """Reserve a task's share in USD, for one of `free` places, and return it; None for no limit, 0.0 if too little
        is left at the moment, for which nothing is reserved.
        """
        if self._usd is None:
            return None
        left = self._usd - self._spent - sum(self._promised.values())
        if self.unknown or left < LEAST_USD:
            return 0.0
        # An equal part for each free place, so that the first tasks do not take all.
        share = self._promised[task_id] = max(left / max(free, 1), LEAST_USD)
        return share

    def settle(self, task_id: str, cost: float | None, tokens: int) -> None:
        """Replace a task's share by what it has cost, in USD. If the model has no prices (None with tokens) a limit
        cannot be kept, so no more tasks begin.
        """
        self._promised.pop(task_id, None)
        self._spent += cost or 0.0
        self.unknown = self.unknown or (self._usd is not None and cost is None and tokens > 0)
