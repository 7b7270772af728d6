"""The command `codeagent-lsp batch`: from the options to the exit code. 0 all checks passed, 1 not all, 2 usage,
130 interrupted.

Not here: the loop (`driver.py`), the report (`report.py`).
"""

from __future__ import annotations

import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path

from codeagent_lsp.batch.budget_share import BudgetShare
from codeagent_lsp.batch.driver import Batch
from codeagent_lsp.batch.local_workers import LocalWorkers, Workers
from codeagent_lsp.batch.options import BatchOptions
from codeagent_lsp.batch.ray_cluster import RayCluster
from codeagent_lsp.batch.report import write_report
from codeagent_lsp.batch.report_figures import Group, sum_of
from codeagent_lsp.batch.results import ResultFolder, TaskResult
from codeagent_lsp.batch.task_file import BatchTask, read_tasks
from codeagent_lsp.batch.task_place import sweep
from codeagent_lsp.errors import UsageError
from codeagent_lsp.session.spending import dollars
from codeagent_lsp.terminal.index_place import say
from codeagent_lsp.terminal.locales import user_locale
from codeagent_lsp.terminal.options import settings_of
from codeagent_lsp.terminal.safe import one_line
from codeagent_lsp.terminal.summary import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE
from codeagent_lsp.texts import choose_language, text

PASSED_ON = ("CODEAGENT_BASE_URL", "CODEAGENT_MODEL", "CODEAGENT_API_KEY")


def batch_command(namespace: Namespace) -> int:
    """Do the tasks and return the exit code."""
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


def _batch(namespace: Namespace, tasks: Sequence[BatchTask], options: BatchOptions, folder: ResultFolder) -> int:
    if folder.begun() and not namespace.resume:
        raise UsageError("batch.begun", path=folder.path)
    language = options.language
    earlier = folder.earlier(tasks)
    finished = {name: result for name, result in earlier.items() if result.finished}
    folder.list_results(finished.values())
    if finished:
        say(text("batch.resumed", language, count=len(finished)))
    budget = BudgetShare(namespace.budget_usd, sum(result.cost or 0.0 for result in earlier.values()))
    counted = _Counter(len(tasks), len(finished), language)
    batch = Batch((task for task in tasks if task.id not in finished), options, budget, folder, counted.tell)
    interrupted = False
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
