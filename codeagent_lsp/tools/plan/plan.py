"""A plan: a goal and ordered steps with their states, as an immutable value. Pure functions.

Every change returns a new plan; an invalid change raises SessionError with a sentence for the user. Not here: running
the steps (`session/plan/execution.py`), telling of a change (`session/plan/plan_state.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from codeagent_lsp.errors import SessionError
from codeagent_lsp.tools.plan.planner_port import StepDraft

StepState = Literal["pending", "running", "completed", "failed", "skipped", "cancelled"]

MOST_REPLANS = 2
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


@dataclass(frozen=True, slots=True)
class Plan:
    """The goal and its steps in order. `replans` counts the changes by the model after failures."""

    goal: str
    steps: tuple[PlanStep, ...]
    complexity: str = ""
    replans: int = 0

    @staticmethod
    def create(goal: str, drafts: Iterable[StepDraft], complexity: str = "") -> Plan:
        """Return a new plan; its steps are named "1", "2" and so on."""
        return Plan(goal, _numbered(drafts, 1), complexity)

    def step(self, step_id: str) -> PlanStep:
        """Return the step with that id. SessionError if there is none."""
        found = next((step for step in self.steps if step.step_id == step_id), None)
        if found is None:
            known = ", ".join(step.step_id for step in self.steps)
            raise SessionError("plan.no_step", step=step_id, known=known)
        return found

    def number(self, step_id: str) -> int:
        """Return the 1-based number of a step."""
        return self.steps.index(self.step(step_id)) + 1

    def label(self, step_id: str) -> str:
        """Return the label of a step for people: "2/5 title"."""
        return f"{self.number(step_id)}/{len(self.steps)} {self.step(step_id).title}"

    @property
    def next(self) -> PlanStep | None:
        """Return the first step that is neither completed nor skipped; None if there is none left."""
        return next((step for step in self.steps if step.state not in ENDED), None)

    @property
    def running(self) -> PlanStep | None:
        """Return the running step; None if there is none."""
        return next((step for step in self.steps if step.state == "running"), None)

    @property
    def progress(self) -> int:
        """Return the share of ended steps in percent, 0 to 100."""
        ended = sum(step.state in ENDED for step in self.steps)
        return 100 * ended // len(self.steps) if self.steps else 100

    @property
    def may_replan(self) -> bool:
        """Return whether the model may change the plan once more."""
        return self.replans < MOST_REPLANS

    def started(self, step_id: str) -> Plan:
        """Return the plan with a step running. SessionError if it is not the next one, or one is running already."""
        self._must_be_next(step_id)
        return self._with(step_id, "running")

    def completed(self, step_id: str) -> Plan:
        """Return the plan with a step completed."""
        return self._with(step_id, "completed")

    def failed(self, step_id: str, error: str) -> Plan:
        """Return the plan with a step failed."""
        return self._with(step_id, "failed", error)

    def cancelled(self) -> Plan:
        """Return the plan with the running step cancelled; unchanged if none is running."""
        running = self.running
        return self if running is None else self._with(running.step_id, "cancelled")

    def retried(self, step_id: str) -> Plan:
        """Return the plan with a step pending again. SessionError if it is completed or running, or
        not the next one.
        """
        self._must_be_open(step_id, "completed", "running")
        opened = self._with(step_id, "pending", self.step(step_id).error)
        opened._must_be_next(step_id)
        return opened

    def skipped(self, step_id: str, reason: str = "") -> Plan:
        """Return the plan with a step skipped. SessionError if it is completed."""
        self._must_be_open(step_id, "completed")
        return self._with(step_id, "skipped", reason or self.step(step_id).error)

    def replanned(self, drafts: Iterable[StepDraft]) -> Plan:
        """Return the plan with the pending steps replaced; steps already tried stay, failed and cancelled ones as
        skipped.
        """
        kept = tuple(
            replace(step, state="skipped") if step.state in ("failed", "cancelled", "running") else step
            for step in self.steps
            if step.state != "pending"
        )
        first = 1 + max((int(step.step_id) for step in self.steps), default=0)
        return replace(self, steps=(*kept, *_numbered(drafts, first)), replans=self.replans + 1)

    def steps_data(self) -> tuple[dict[str, Any], ...]:
        """Return the steps as in events."""
        return tuple(step.to_data() for step in self.steps)

    def text(self) -> str:
        """Return the plan for the model: the goal and a line for each step."""
        lines = [f"{MARKS[step.state]} {step.step_id}. {step.title}{_why(step)}" for step in self.steps]
        return "\n".join([f"Goal: {self.goal}", *lines])

    def _must_be_open(self, step_id: str, *closed: StepState) -> None:
        state = self.step(step_id).state
        if state in closed:
            raise SessionError("plan.not_open", step=self.label(step_id), state=state)

    def _must_be_next(self, step_id: str) -> None:
        following = self.next
        if following is None or following.step_id != step_id or following.state == "running":
            awaited = self.label(following.step_id) if following else "-"
            raise SessionError("plan.order", step=self.label(step_id), next=awaited)

    def _with(self, step_id: str, state: StepState, error: str = "") -> Plan:
        self.step(step_id)
        changed = (replace(step, state=state, error=error) if step.step_id == step_id else step for step in self.steps)
        return replace(self, steps=tuple(changed))


def _numbered(drafts: Iterable[StepDraft], first: int) -> tuple[PlanStep, ...]:
    return tuple(
        PlanStep(str(number), draft.title, draft.description, draft.expected_tools)
        for number, draft in enumerate(drafts, first)
    )


def _why(step: PlanStep) -> str:
    return f" ({step.state}: {step.error})" if step.error else ""
