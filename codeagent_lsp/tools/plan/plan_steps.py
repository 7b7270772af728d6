"""The steps of a plan as immutable values: each with its state, all of them in order. Pure functions.

Not here: which change of a step may follow which (`plan.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from codeagent_lsp.errors import SessionError
from codeagent_lsp.tools.plan.planner_port import StepDraft

StepState = Literal["pending", "running", "completed", "failed", "skipped", "cancelled"]

ENDED: tuple[StepState, ...] = ("completed", "skipped")
MARKS: Mapping[StepState, str] = {
    "pending": "[ ]",
    "running": "[>]",
    "completed": "[x]",
    "failed": "[!]",
    "skipped": "[-]",
    "cancelled": "[/]",
}


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step. `error` is the reason why it failed, or was skipped."""

    step_id: str
    title: str
    description: str = ""
    expected_tools: tuple[str, ...] = ()
    state: StepState = "pending"
    error: str = ""

    def to_data(self) -> dict[str, Any]:
        """Return the step as in events; an empty error is left out."""
        data: dict[str, Any] = {
            "step_id": self.step_id,
            "title": self.title,
            "description": self.description,
            "expected_tools": list(self.expected_tools),
            "state": self.state,
        }
        return {**data, "error": self.error} if self.error else data

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> PlanStep:
        """Return the step from the result of `to_data`. KeyError or ValueError if it is malformed."""
        state = data.get("state", "pending")
        if state not in MARKS:
            raise ValueError(f"no state of a step: {state!r}")
        tools = tuple(map(str, data.get("expected_tools", ())))
        described = str(data.get("description", ""))
        return PlanStep(str(data["step_id"]), str(data["title"]), described, tools, state, str(data.get("error", "")))


class PlanSteps(tuple[PlanStep, ...]):
    """The steps of a plan in order; their ids differ."""

    __slots__ = ()

    @staticmethod
    def drafted(drafts: Iterable[StepDraft], first: int = 1) -> PlanSteps:
        """Return new steps, whose ids are numbers from `first` on."""
        return PlanSteps(
            PlanStep(str(number), draft.title, draft.description, draft.expected_tools)
            for number, draft in enumerate(drafts, first)
        )

    @staticmethod
    def from_data(data: Iterable[Mapping[str, Any]]) -> PlanSteps:
        """Return the steps from the result of `to_data`. KeyError or ValueError if one is malformed."""
        return PlanSteps(map(PlanStep.from_data, data))

    def to_data(self) -> tuple[dict[str, Any], ...]:
        """Return the steps as in events, each with its `index`, from 1."""
        return tuple({"index": number, **step.to_data()} for number, step in enumerate(self, 1))

    def by_id(self, step_id: str) -> PlanStep:
        """Return the step with that id. SessionError if there is none."""
        found = next((step for step in self if step.step_id == step_id), None)
        if found is None:
            known = ", ".join(step.step_id for step in self)
            raise SessionError("plan.no_step", step=step_id, known=known)
        return found

    def number(self, step_id: str) -> int:
        """Return the 1-based number of a step."""
        return self.index(self.by_id(step_id)) + 1

    def label(self, step_id: str) -> str:
        """Return the label of a step for people: "2/5 title"."""
        return f"{self.number(step_id)}/{len(self)} {self.by_id(step_id).title}"

    @property
    def next(self) -> PlanStep | None:
        """Return the first step that is neither completed nor skipped; None if there is none left."""
        return next((step for step in self if step.state not in ENDED), None)

    @property
    def unused(self) -> int:
        """Return a number from which on no step has it as its id."""
        return 1 + max((int(step.step_id) for step in self if step.step_id.isdecimal()), default=0)

    @property
    def running(self) -> PlanStep | None:
        """Return the running step; None if there is none."""
        return next((step for step in self if step.state == "running"), None)

    @property
    def progress(self) -> int:
        """Return the share of ended steps in percent, 0 to 100."""
        ended = sum(step.state in ENDED for step in self)
        return 100 * ended // len(self) if self else 100

    def changed(self, step_id: str, state: StepState, error: str = "") -> PlanSteps:
        """Return the steps with another state and error of one. SessionError if there is no such step."""
        self.by_id(step_id)
        return PlanSteps(replace(step, state=state, error=error) if step.step_id == step_id else step for step in self)
