"""The money of a batch: what is left of it, and how much the next task may use.

Each task gets an even share of what is neither spent nor promised to others, so that together they never go beyond.
Not here: how a run keeps its share (`agent/budget.py`).
"""

from __future__ import annotations

LEAST_USD = 0.001
"""No task begins with less."""


class BudgetShare:
    """The budget of one batch in USD; None for no limit. `spent` is what an earlier part of it has cost."""

    def __init__(self, usd: float | None, spent: float = 0.0) -> None:
        self._usd = usd
        self._spent = spent
        self._promised: dict[str, float] = {}
        self.unknown = False

    @property
    def spent(self) -> float:
        """Return what the finished tasks have cost, as far as prices are known."""
        return self._spent

    @property
    def is_over(self) -> bool:
        """Return whether no more tasks can begin, whatever those under way leave over."""
        return self._usd is not None and (self.unknown or self._usd - self._spent < LEAST_USD)

    def promise(self, task_id: str, free: int) -> float | None:
        """Promise a task its share, for one of `free` places, and return it; None for no limit.

        0.0 if too little is left at the moment.
        """
        if self._usd is None:
            return None
        left = self._usd - self._spent - sum(self._promised.values())
        if self.unknown or left < LEAST_USD:
            return 0.0
        share = self._promised[task_id] = max(left / max(free, 1), LEAST_USD)
        return share

    def settle(self, task_id: str, cost: float | None, tokens: int) -> None:
        """Count what a task has cost; a limit cannot be kept for a model without prices, so nothing more begins."""
        self._promised.pop(task_id, None)
        self._spent += cost or 0.0
        self.unknown = self.unknown or (self._usd is not None and cost is None and tokens > 0)
