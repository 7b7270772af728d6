"""The port between the planning tools and the plan of a run.

Not here: what a plan is (`tools/plan/plan.py`), running its steps (`session/plan/execution.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

UpdateAction = Literal["replace", "append", "section"]


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step as the model proposes it; `expected_tools` are the names of tools it expects to need."""

    title: str
    description: str = ""
    expected_tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepEdit:
    """A step that has not begun, as the user wants it; '' as `step_id` is a new one, and a description of None stays as
    it is.
    """

    step_id: str
    title: str
    description: str | None = None


class Planner(Protocol):
    """Port: the plans of one run. Every method returns a sentence for the model; ToolRetry says what to correct."""

    @property
    def plan_id(self) -> str:
        """Return the id of the run's plan."""

    def create(self, goal: str, steps: tuple[StepDraft, ...], complexity: str) -> str:
        """Work in these steps from now on."""

    def enter(self, title: str) -> str:
        """Begin a plan document; only reading is allowed until it is approved."""

    def update(self, action: UpdateAction, content: str, section: str) -> str:
        """Change the plan document."""

    async def exit(self) -> str:
        """Ask the user to approve the plan document."""
