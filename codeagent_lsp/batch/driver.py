"""The loop over the tasks of a batch: which is next, within the budget; each outcome is recorded and told at once.

Not here: where they are done (`local_workers.py`, `ray_cluster.py`), the command line (`command.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from codeagent_lsp.batch.budget_share import BudgetShare
from codeagent_lsp.batch.local_workers import Workers
from codeagent_lsp.batch.options import BatchOptions, Job
from codeagent_lsp.batch.results import Outcome, ResultFolder, TaskResult
from codeagent_lsp.batch.task_file import BatchTask


class Batch:
    """The tasks of one batch that are not finished yet."""

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
        """Return how many tasks were not begun."""
        return len(self._waiting)

    def run(self, workers: Workers) -> None:
        """Do all tasks, or as many as the budget allows."""
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
