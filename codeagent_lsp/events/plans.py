"""The base class of all events, and the events of a plan and its steps.

`plan` is the whole plan `{id, goal, status, steps, estimated_complexity}`, `message` a sentence for the user,
`step_number` the place of the step in the plan, from 1; all are added when the event is emitted
(`session/run_output.py`). Not here: all other events (`__init__.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, kw_only=True)
class Event:
    """The fields of all events, set by the session, empty before. `type` is the name of a class.

    `internal` events are stored but never sent to a client; `transient` ones are sent but not stored.
    """

    type: ClassVar[str] = ""
    internal: ClassVar[bool] = False
    transient: ClassVar[bool] = False
    session_id: str = ""
    run_id: str = ""
    seq: int = 0
    ts: float = 0.0

    def __init_subclass__(cls, *, name: str, internal: bool = False, transient: bool = False) -> None:
        cls.type, cls.internal, cls.transient = name, internal, transient


@dataclass(frozen=True, kw_only=True)
class PlanCreated(Event, name="plan_created"):
    """A plan: its goal and steps `{step_id, title, description, expected_tools, state, error?}`."""

    goal: str = ""
    steps: tuple[Mapping[str, Any], ...] = ()
    estimated_complexity: str = ""
    message: str | None = None
    plan: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class PlanCompleted(Event, name="plan_completed"):
    """All steps have ended."""

    summary: str = ""
    success: bool = True
    files_changed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlanApproved(Event, name="plan_approved"):
    """The user agreed to the plan."""

    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlanRejected(Event, name="plan_rejected"):
    """The user did not agree to the plan."""

    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlanModified(Event, name="plan_modified"):
    """The plan has changed: its steps, or the written plan (`document`, Markdown); `rolled_back_to` is a step's id."""

    steps: tuple[Mapping[str, Any], ...] = ()
    rolled_back_to: str | None = None
    document: str | None = None
    plan: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class AwaitingApproval(Event, name="awaiting_approval"):
    """The run waits for the user."""

    message: str = ""
    plan: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ReplanWarning(Event, name="replan_warning"):
    """A step failed and the model changed the plan."""

    reason: str = ""
    count: int = 1
    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionStarted(Event, name="execution_started"):
    """The plan's execution begins."""

    message: str | None = None
    plan: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionCompleted(Event, name="execution_completed"):
    """The plan's execution ended well."""

    files_changed: tuple[str, ...] = ()
    message: str | None = None
    plan: Mapping[str, Any] | None = None
    summary: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionFailed(Event, name="execution_failed"):
    """The plan's execution ended with an error."""

    error: str = ""
    message: str | None = None
    plan: Mapping[str, Any] | None = None
    step_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionCancelled(Event, name="execution_cancelled"):
    """The plan's execution was cancelled."""

    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class StepStarted(Event, name="step_started"):
    """A step begins; `progress` is 0 to 100, `progress_detail` the same as `{step, steps, ended, percent}`."""

    step_id: str = ""
    description: str = ""
    progress: int = 0
    progress_detail: Mapping[str, int] | None = None
    step_number: int | None = None


@dataclass(frozen=True, kw_only=True)
class StepCompleted(Event, name="step_completed"):
    """A step ended well."""

    step_id: str = ""
    files_changed: tuple[str, ...] = ()
    progress: int = 0
    progress_detail: Mapping[str, int] | None = None
    step_number: int | None = None


@dataclass(frozen=True, kw_only=True)
class StepOutput(Event, name="step_output", transient=True):
    """A piece of what a command prints. It may end within a line, and a carriage return begins its line anew."""

    step_id: str | None = None
    content: str = ""
    step_number: int | None = None


@dataclass(frozen=True, kw_only=True)
class StepError(Event, name="step_error"):
    """A step failed."""

    step_id: str = ""
    error: str = ""
    step_number: int | None = None
