"""The closed union of everything that can happen, once: what sessions store, what clients get, what progress
is made from. The only way back from the agent to the editor.

An event is a frozen value with a `type`; the session stamps `session_id`, `run_id`, `seq` and `ts` (seconds
since the epoch) when it accepts it. `None` is left out when an event is written as a mapping. Error text is
always `error`, changed files are always `files_changed`. Later work fills in events; none is added elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

Mode = Literal["direct", "plan"]
RunStatus = Literal["completed", "failed", "cancelled", "stopped", "rejected"]
Outcome = Literal["full", "partial", "none", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """Common fields; stamped by the session, empty before.

    `internal` ones are stored but never sent to a client; `transient` ones are sent but not stored.
    """

    type: ClassVar[str] = ""
    internal: ClassVar[bool] = False
    transient: ClassVar[bool] = False
    session_id: str = ""
    run_id: str = ""
    seq: int = 0
    ts: float = 0.0


# --- a run


@dataclass(frozen=True, kw_only=True)
class ResponseStart(Event):
    """The first event a client gets of a run."""

    type: ClassVar[str] = "response_start"
    mode: Mode = "direct"


@dataclass(frozen=True, kw_only=True)
class ResponseEnd(Event):
    """The model's last word of a run has been sent."""

    type: ClassVar[str] = "response_end"


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    """The user's request, as it was made; stored, so that a session can be replayed."""

    type: ClassVar[str] = "run_started"
    internal: ClassVar[bool] = True
    task: str = ""
    title: str = ""
    kind: str = "run"


@dataclass(frozen=True, kw_only=True)
class RunCompleted(Event):
    """The run is over. `outcome` is what became of its changes, None when it had none."""

    type: ClassVar[str] = "run_completed"
    status: RunStatus = "completed"
    summary: str = ""
    error: str | None = None
    outcome: Outcome | None = None
    files_changed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class IntentClassified(Event):
    """What kind of request this is, how sure that is (0 to 1), and why."""

    type: ClassVar[str] = "intent_classified"
    intent: str = ""
    confidence: float = 0.0
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class StatusChanged(Event):
    """A short line about what is going on."""

    type: ClassVar[str] = "status"
    transient: ClassVar[bool] = True
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Failure(Event):
    """Something went wrong; the run may go on."""

    type: ClassVar[str] = "error"
    error: str = ""
    code: str | None = None


@dataclass(frozen=True, kw_only=True)
class Token(Event):
    """A piece of the model's answer."""

    type: ClassVar[str] = "token"
    transient: ClassVar[bool] = True
    content: str = ""


@dataclass(frozen=True, kw_only=True)
class MessageAdded(Event):
    """A message that joined the conversation, as sent to the model; what a resumed session starts from."""

    type: ClassVar[str] = "message"
    internal: ClassVar[bool] = True
    message: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ConversationCompacted(Event):
    """What a compaction left of the run's messages and of the first `base` of the session at its `generation`."""

    type: ClassVar[str] = "conversation"
    internal: ClassVar[bool] = True
    messages: tuple[Mapping[str, Any], ...] = ()
    base: int = 0
    generation: int = 0


@dataclass(frozen=True, kw_only=True)
class RunInterrupted(Event):
    """The process that worked on the run was gone, which was found out when the session was used again."""

    type: ClassVar[str] = "run_interrupted"
    internal: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class StateChanged(Event):
    """What changed of a session: its todos, its focused files `{path, editing}` (as they are now, so without text)."""

    type: ClassVar[str] = "state"
    internal: ClassVar[bool] = True
    todos: tuple[Mapping[str, Any], ...] | None = None
    focused: tuple[Mapping[str, Any], ...] | None = None


@dataclass(frozen=True, kw_only=True)
class UsageReported(Event):
    """Tokens of one model call."""

    type: ClassVar[str] = "usage"
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None


@dataclass(frozen=True, kw_only=True)
class AnomalyDetected(Event):
    """A guard saw the model go in circles; `action` is what was done about it."""

    type: ClassVar[str] = "anomaly_detected"
    kind: str = ""
    detail: str = ""
    action: Literal["nudge", "stop"] = "nudge"


@dataclass(frozen=True, kw_only=True)
class ContextCompacted(Event):
    """Old turns were summarised; sizes in tokens."""

    type: ClassVar[str] = "context_compacted"
    before: int = 0
    after: int = 0


# --- plans


@dataclass(frozen=True, kw_only=True)
class PlanCreated(Event):
    """A plan: its goal and steps `{step_id, title, description, expected_tools, state, error?}`."""

    type: ClassVar[str] = "plan_created"
    goal: str = ""
    steps: tuple[Mapping[str, Any], ...] = ()
    estimated_complexity: str = ""


@dataclass(frozen=True, kw_only=True)
class PlanCompleted(Event):
    """All steps have ended."""

    type: ClassVar[str] = "plan_completed"
    summary: str = ""


@dataclass(frozen=True, kw_only=True)
class PlanApproved(Event):
    """The user agreed to the plan."""

    type: ClassVar[str] = "plan_approved"


@dataclass(frozen=True, kw_only=True)
class PlanRejected(Event):
    """The user did not agree to the plan."""

    type: ClassVar[str] = "plan_rejected"
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlanModified(Event):
    """The plan has changed: its steps, or the written plan (`document`, Markdown); `rolled_back_to` is a step's id."""

    type: ClassVar[str] = "plan_modified"
    steps: tuple[Mapping[str, Any], ...] = ()
    rolled_back_to: str | None = None
    document: str | None = None


@dataclass(frozen=True, kw_only=True)
class AwaitingApproval(Event):
    """The run waits for the user."""

    type: ClassVar[str] = "awaiting_approval"
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class ReplanWarning(Event):
    """A step failed and the model changed the plan."""

    type: ClassVar[str] = "replan_warning"
    reason: str = ""
    count: int = 1


@dataclass(frozen=True, kw_only=True)
class ExecutionStarted(Event):
    """The plan's execution begins."""

    type: ClassVar[str] = "execution_started"


@dataclass(frozen=True, kw_only=True)
class ExecutionCompleted(Event):
    """The plan's execution ended well."""

    type: ClassVar[str] = "execution_completed"
    files_changed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ExecutionFailed(Event):
    """The plan's execution ended with an error."""

    type: ClassVar[str] = "execution_failed"
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class ExecutionCancelled(Event):
    """The plan's execution was cancelled."""

    type: ClassVar[str] = "execution_cancelled"


@dataclass(frozen=True, kw_only=True)
class StepStarted(Event):
    """A step begins; `progress` is 0 to 100."""

    type: ClassVar[str] = "step_started"
    step_id: str = ""
    description: str = ""
    progress: int = 0


@dataclass(frozen=True, kw_only=True)
class StepCompleted(Event):
    """A step ended well."""

    type: ClassVar[str] = "step_completed"
    step_id: str = ""
    files_changed: tuple[str, ...] = ()
    progress: int = 0


@dataclass(frozen=True, kw_only=True)
class StepOutput(Event):
    """Output of a command that a step runs."""

    type: ClassVar[str] = "step_output"
    transient: ClassVar[bool] = True
    step_id: str | None = None
    content: str = ""


@dataclass(frozen=True, kw_only=True)
class StepError(Event):
    """A step failed."""

    type: ClassVar[str] = "step_error"
    step_id: str = ""
    error: str = ""


# --- tools


@dataclass(frozen=True, kw_only=True)
class ToolCalls(Event):
    """The model asks for tools: `{id, name, arguments}` each."""

    type: ClassVar[str] = "tool_calls"
    calls: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ToolFinished(Event):
    """What a tool call gave."""

    type: ClassVar[str] = "tool_result"
    tool: str = ""
    success: bool = True
    output: str = ""
    error: str | None = None
    call_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ToolDisabled(Event):
    """A tool rests after failures, or was switched off."""

    type: ClassVar[str] = "tool_disabled"
    tool: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ToolEnabled(Event):
    """A tool is back."""

    type: ClassVar[str] = "tool_enabled"
    tool: str = ""


@dataclass(frozen=True, kw_only=True)
class FileRunStarted(Event):
    """A file run begins."""

    type: ClassVar[str] = "started"
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class Stdout(Event):
    """Output of a file run."""

    type: ClassVar[str] = "stdout"
    content: str = ""


@dataclass(frozen=True, kw_only=True)
class Stderr(Event):
    """Error output of a file run."""

    type: ClassVar[str] = "stderr"
    content: str = ""


@dataclass(frozen=True, kw_only=True)
class FileRunExit(Event):
    """A file run is over; `duration` in seconds."""

    type: ClassVar[str] = "exit"
    exit_code: int = 0
    duration: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ApprovalRequested(Event):
    """Something needs the user's consent; `choices` are the titles offered, the safe one first."""

    type: ClassVar[str] = "approval_requested"
    request_id: str = ""
    title: str = ""
    detail: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ApprovalResolved(Event):
    """The user decided, or the time limit did."""

    type: ClassVar[str] = "approval_resolved"
    request_id: str = ""
    answer: str | None = None


@dataclass(frozen=True, kw_only=True)
class QuestionAsked(Event):
    """The agent asks; empty `choices` mean free text."""

    type: ClassVar[str] = "question_asked"
    request_id: str = ""
    title: str = ""
    detail: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class QuestionAnswered(Event):
    """The user's answer; None when nobody answered."""

    type: ClassVar[str] = "question_answered"
    request_id: str = ""
    answer: str | None = None


@dataclass(frozen=True, kw_only=True)
class FileChanged(Event):
    """A file of the run's changeset has changed; `change` is the staged state, None when it was taken back."""

    type: ClassVar[str] = "file_change"
    path: str = ""
    change: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ChangesProposed(Event):
    """A changeset is ready for the user's decision."""

    type: ClassVar[str] = "changes_proposed"
    summary: str = ""
    files_changed: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0


@dataclass(frozen=True, kw_only=True)
class ChangesApplied(Event):
    """What the buffers now hold; `conflicts` name the hunks that were left out as `name:line`.

    `reason` is what the editor said to a change that it did not make; `step_id` is the step that changed it, and
    `steps` those that an undo took back (none: all of the run).
    """

    type: ClassVar[str] = "changes_applied"
    outcome: Outcome = "full"
    files_changed: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    reason: str | None = None
    undo: bool = False
    applied: tuple[Mapping[str, Any], ...] = ()
    step_id: str | None = None
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChangesDiscarded(Event):
    """The user did not want these changes."""

    type: ClassVar[str] = "changes_discarded"
    files_changed: tuple[str, ...] = ()


EVENT_TYPES: dict[str, type[Event]] = {cls.type: cls for cls in Event.__subclasses__()}


def to_dict(event: Event) -> dict[str, Any]:
    """The event as plain JSON data, `type` first, `None` left out."""
    values = {item.name: getattr(event, item.name) for item in fields(event)}
    data: dict[str, Any] = {"type": event.type}
    data.update((name, _plain(value)) for name, value in values.items() if value is not None)
    return data


def from_dict(data: Mapping[str, Any]) -> Event:
    """The event that `to_dict` wrote; KeyError for an unknown type, unknown fields are left out."""
    cls = EVENT_TYPES[data["type"]]
    known = {item.name for item in fields(cls)}
    given = {name: value for name, value in data.items() if name in known}
    values: dict[str, Any] = {name: tuple(item) if isinstance(item, list) else item for name, item in given.items()}
    return cls(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value
