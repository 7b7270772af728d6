"""The port behind `delegate`: agents that do a part of a task by themselves and report. Not here: how they work."""

from __future__ import annotations

from typing import Protocol


class Delegates(Protocol):
    """Port: the agents that can be called in a run."""

    async def delegate(self, agent: str, task: str) -> str:
        """Return the report of `agent` on `task`. ToolFailed if it is unknown or fails; PermissionDenied."""
