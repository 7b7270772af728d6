"""A plan as an immutable value, a goal and ordered steps with their states; and the port by which tools change it.

The value is pure. Not here: the document that a user approves (`plan_document.py`), the tools (`plan_tools.py`),
carrying it out (`session/plan`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from codeagent_lsp.errors import SessionError

MOST_REPLANS = 2

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

UpdateAction = Literal["replace", "append", "section"]


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


@dataclass(frozen=True, slots=True)
class Plan:
    """The goal and its steps in order. `replans` counts the changes by the model after failures."""

    goal: str
    steps: PlanSteps
    complexity: str = ""
    replans: int = 0

    @staticmethod
    def create(goal: str, drafts: Iterable[StepDraft], complexity: str = "") -> Plan:
        """Return a new plan; its steps are named "1", "2" and so on."""
        return Plan(goal, PlanSteps.drafted(drafts), complexity)

    @property
    def status(self) -> StepState:
        """Return the state of the whole: that of the step that runs or stopped it, else whether steps are left."""
        for state in ("running", "failed", "cancelled"):
            if any(step.state == state for step in self.steps):
                return state
        return "completed" if self.steps.next is None else "pending"

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
        running = self.steps.running
        return self if running is None else self._with(running.step_id, "cancelled")

    def retried(self, step_id: str) -> Plan:
        """Return the plan with a step pending again. SessionError if it is completed or running, or
        not the next one.
        """
        self._must_be_open(step_id, "completed", "running")
        opened = self._with(step_id, "pending", self.steps.by_id(step_id).error)
        # asked of the opened plan, as only a step that is open can be the next one
        opened._must_be_next(step_id)
        return opened

    def skipped(self, step_id: str, reason: str = "") -> Plan:
        """Return the plan with a step skipped. SessionError if it is completed."""
        self._must_be_open(step_id, "completed")
        return self._with(step_id, "skipped", reason or self.steps.by_id(step_id).error)

    def replanned(self, drafts: Iterable[StepDraft]) -> Plan:
        """Return the plan with the pending steps replaced; steps already tried stay, failed and cancelled ones as
        skipped.
        """
        kept = tuple(
            replace(step, state="skipped") if step.state in ("failed", "cancelled", "running") else step
            for step in self.steps
            if step.state != "pending"
        )
        steps = PlanSteps((*kept, *PlanSteps.drafted(drafts, self.steps.unused)))
        return replace(self, steps=steps, replans=self.replans + 1)

    def arranged(self, wanted: Iterable[StepEdit]) -> Plan:
        """Return the plan with the steps that have not begun as wanted: in this order, with these words, without those
        that are not named. Steps that have begun stay. SessionError if a step is unknown, has begun, is named twice or
        has no title, or if no step is left.
        """
        kept = [step for step in self.steps if step.state != "pending"]
        arranged: list[PlanStep] = []
        unused = self.steps.unused
        for edit in wanted:
            title = edit.title.strip()
            if not title:
                raise SessionError("plan.no_title", number=len(arranged) + 1)
            if not edit.step_id:
                arranged.append(PlanStep(str(unused), title, edit.description or ""))
                unused += 1
                continue
            step = self.steps.by_id(edit.step_id)
            if step.state != "pending" or any(other.step_id == step.step_id for other in arranged):
                raise SessionError("plan.begun", step=self.steps.label(step.step_id))
            description = step.description if edit.description is None else edit.description
            arranged.append(replace(step, title=title, description=description))
        if not (kept or arranged):
            raise SessionError("plan.empty")
        return replace(self, steps=PlanSteps((*kept, *arranged)))

    def text(self) -> str:
        """Return the plan for the model: the goal and a line for each step."""
        lines = [f"{MARKS[step.state]} {step.step_id}. {step.title}{_why(step)}" for step in self.steps]
        return "\n".join([f"Goal: {self.goal}", *lines])

    def _must_be_open(self, step_id: str, *closed: StepState) -> None:
        state = self.steps.by_id(step_id).state
        if state in closed:
            raise SessionError("plan.not_open", step=self.steps.label(step_id), state=state)

    def _must_be_next(self, step_id: str) -> None:
        following = self.steps.next
        if following is None or following.step_id != step_id or following.state == "running":
            awaited = self.steps.label(following.step_id) if following else "-"
            raise SessionError("plan.order", step=self.steps.label(step_id), next=awaited)

    def _with(self, step_id: str, state: StepState, error: str = "") -> Plan:
        return replace(self, steps=self.steps.changed(step_id, state, error))


def _why(step: PlanStep) -> str:
    return f" ({step.state}: {step.error})" if step.error else ""


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
