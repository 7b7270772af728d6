"""The port of planning: what the planning tools ask for, without knowing what becomes of it.

Not here: what a plan is (`tools/plan/plan.py`), running its steps (`session/plan/execution.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

UpdateAction = Literal["replace", "append", "section"]


@dataclass(frozen=True, slots=True)
class StepDraft:
    """A step as the model proposes it; `expected_tools` are names of tools it thinks it will need."""

    title: str
    description: str = ""
    expected_tools: tuple[str, ...] = ()


class Planner(Protocol):
    """Takes the plans of one run. Every answer is a sentence for the model; ToolRetry says what to correct."""

    def create(self, goal: str, steps: tuple[StepDraft, ...], complexity: str) -> str:
        """The work shall go on in these steps."""

    def enter(self, title: str) -> str:
        """Begin a plan document; until it is approved only reading is allowed."""

    def update(self, action: UpdateAction, content: str, section: str) -> str:
        """Change the plan document."""

    async def exit(self) -> str:
        """Ask the user to approve the plan document."""
