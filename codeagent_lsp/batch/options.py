"""The options of a batch, as one value that also travels to workers. Not here: the command line (`command.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from codeagent_lsp.batch.task_file import BatchTask


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How tasks are done. `settings` has flat keys, `environment` the variables of ours that workers elsewhere lack;
    `accept_all` also allows what would need an approval.
    """

    settings: tuple[tuple[str, Any], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    attempts: int = 1
    accept_all: bool = False
    language: str = "en"

    def limited(self, usd: float) -> BatchOptions:
        """Return the options of one task that may cost at most `usd`, all attempts together."""
        share = usd / self.attempts
        own = dict(self.settings).get("budget.usd")
        least = share if own is None else min(share, float(own))
        return replace(self, settings=(*self.settings, ("budget.usd", least)))


@dataclass(frozen=True, slots=True)
class Job:
    """One task and how it is done."""

    task: BatchTask
    options: BatchOptions
