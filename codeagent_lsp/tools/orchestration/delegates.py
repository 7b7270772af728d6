"""The port behind `delegate`: agents that do a part of a task on their own and report. Not here: how they work."""

from __future__ import annotations

from typing import Protocol


class Delegates(Protocol):
    """The agents that can be called in a run."""

    async def delegate(self, agent: str, task: str) -> str:
        """The report of `agent` on `task`. ToolFailed: no such agent, or it failed; PermissionDenied."""
