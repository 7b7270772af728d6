"""The closed union of all events: what sessions store, what clients get, and what progress is made from.

An event is a frozen value with a `type`; the session sets `session_id`, `run_id`, `seq` and `ts` (seconds since the
epoch) when it accepts it. In mappings, fields that are None are left out. An error is always in the field `error`, the
absolute paths of changed files in `files_changed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from codeagent_lsp.events.base import (
    AwaitingApproval,
    ChangesApplied,
    ChangesDiscarded,
    ChangesExpected,
    ChangesIntended,
    ChangesProposed,
    ChangesTakenOver,
    Event,
    ExecutionCancelled,
    ExecutionCompleted,
    ExecutionFailed,
    ExecutionStarted,
    FileChanged,
    ItemWithdrawn,
    ModesSet,
    Outcome,
    PlanApproved,
    PlanCompleted,
    PlanCreated,
    PlanModified,
    PlanRejected,
    ReplanWarning,
    SessionForked,
    SessionRestored,
    SessionRewound,
    SteerDelivered,
    Steered,
    StepCompleted,
    StepError,
    StepOutput,
    StepStarted,
    TaskQueued,
    Verdict,
)

Mode = Literal["direct", "plan"]
RunStatus = Literal["completed", "failed", "cancelled", "stopped", "rejected", "waiting"]
WITHOUT_TOOLS = (
    *("runFile", "trust", "prove", "minimize", "nextEdit.apply", "finishChange", "session.rewind", "lent", "foreign"),
)
"""The kinds of runs that need no servers with further tools: they call no tool, or only built-in ones."""

__all__ = [
    "AwaitingApproval",
    "ChangesApplied",
    "ChangesDiscarded",
    "ChangesExpected",
    "ChangesIntended",
    "ChangesProposed",
    "ChangesTakenOver",
    "Event",
    "ExecutionCancelled",
    "ExecutionCompleted",
    "ExecutionFailed",
    "ExecutionStarted",
    "FileChanged",
    "ItemWithdrawn",
    "ModesSet",
    "Outcome",
    "PlanApproved",
    "PlanCompleted",
    "PlanCreated",
    "PlanModified",
    "PlanRejected",
    "ReplanWarning",
    "SessionForked",
    "SessionRestored",
    "SessionRewound",
    "SteerDelivered",
    "Steered",
    "StepCompleted",
    "StepError",
    "StepOutput",
    "StepStarted",
    "TaskQueued",
    "Verdict",
]


# --- a run


@dataclass(frozen=True, kw_only=True)
class ResponseStart(Event, name="response_start"):
    """The first event of a run that a client gets; `mode` is how the run works. `attempt_of` is the id of the run for
    which it makes one of several attempts, and `attempt` the number of this one, from 1.

    `beside` is the title of a run that the user did not begin and cannot write to, such as that of another agent;
    clients show it beside the session. With `foreign` its changes are those of other programs and in the files already:
    they are kept or reverted.
    """

    mode: Mode = "direct"
    attempt_of: str | None = None
    attempt: int | None = None
    beside: str | None = None
    foreign: bool | None = None


@dataclass(frozen=True, kw_only=True)
class AttemptsBegun(Event, name="attempts_begun", internal=True):
    """The run's task is being done several times over: `sessions` are the ids of the sessions of these attempts, one
    each.
    """

    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ResponseEnd(Event, name="response_end"):
    """The last text of the model in this run has been sent; `run_completed` follows."""


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event, name="run_started", internal=True):
    """The user's request: its `task` in words, a short `title`, and its `kind`, such as `run` or `ask`; stored, so that
    a session can be replayed. With `earlier` it was made in the session of which this one is a fork, and only what was
    said in its run is known.
    """

    task: str = ""
    title: str = ""
    kind: str = "run"
    earlier: bool | None = None


@dataclass(frozen=True, kw_only=True)
class RunCompleted(Event, name="run_completed"):
    """The run is over; always its last event. `status` is how it ended: `completed`, `failed`, `cancelled`, `stopped`,
    `rejected` or `waiting`; `summary` is for the user, `error` the message of a run that failed. `outcome` is what
    became of its changes, None if it had none; `files_changed` are absolute paths. `tool_used` says whether the model
    called a tool, `trace_id` names the run in the records; `stopped_by` is `budget` if that ended it.

    `usage` sums what its model calls used (fields as in `usage`), `session_usage` what those of all runs of the session
    did. `unconfirmed` are the files of which it is not known whether their changes are there, which the first paragraph
    of the summary says as well: such a run is not `completed`, but `stopped`.
    """

    status: RunStatus = "completed"
    summary: str = ""
    error: str | None = None
    outcome: Outcome | None = None
    files_changed: tuple[str, ...] = ()
    usage: Mapping[str, Any] | None = None
    session_usage: Mapping[str, Any] | None = None
    tool_used: bool | None = None
    trace_id: str | None = None
    stopped_by: Literal["budget"] | None = None
    unconfirmed: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class IntentClassified(Event, name="intent_classified"):
    """The request was classified as `intent`, the name of a kind of task; `confidence` is 0 to 1, `reason` is for
    people.
    """

    intent: str = ""
    confidence: float = 0.0
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class StatusChanged(Event, name="status", transient=True):
    """A short sentence for the user on what the run is doing now or has just noticed; each replaces the one before."""

    message: str = ""


@dataclass(frozen=True, kw_only=True)
class Failure(Event, name="error"):
    """An error that the user is shown: `error` is the message, `code` one of `ErrorCode`. The run may go on or end with
    it.
    """

    error: str = ""
    code: str | None = None


@dataclass(frozen=True, kw_only=True)
class Token(Event, name="token", transient=True):
    """A piece of the model's answer as it streams; the pieces of a run are concatenated."""

    content: str = ""


@dataclass(frozen=True, kw_only=True)
class Thought(Event, name="thought", transient=True):
    """A piece of the model's reasoning as it streams, from servers that send it; the pieces are concatenated."""

    content: str = ""


@dataclass(frozen=True, kw_only=True)
class MessageAdded(Event, name="message", internal=True):
    """A message joined the conversation, as plain data in the form that is sent to the model; a resumed session starts
    from these. `item_id` is that of the `steered` words that it holds, None for others.
    """

    message: Mapping[str, Any] = field(default_factory=dict)
    item_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ConversationCompacted(Event, name="conversation", internal=True):
    """The messages that a compaction left of the run, as plain data, in place of its own and of the first `base` of the
    session; `generation` counts the session's compactions.
    """

    messages: tuple[Mapping[str, Any], ...] = ()
    base: int = 0
    generation: int = 0


@dataclass(frozen=True, kw_only=True)
class RunInterrupted(Event, name="run_interrupted", internal=True):
    """The process that worked on the run ended without completing it; emitted when the session is next used."""


@dataclass(frozen=True, kw_only=True)
class StateChanged(Event, name="state", internal=True):
    """The state of a session changed: all its `todos`, or all its `focused` files as `{path, editing}`; None for what
    did not change.
    """

    todos: tuple[Mapping[str, Any], ...] | None = None
    focused: tuple[Mapping[str, Any], ...] | None = None


@dataclass(frozen=True, kw_only=True)
class UsageReported(Event, name="usage"):
    """Tokens of one model call, and its cost in USD if the prices are known. `cached_tokens` and `written_tokens` are
    the parts of the prompt that were read from and written to the provider's cache, `reasoning_tokens` the part of the
    completion that was reasoning.

    `context` is what its prompt consisted of, in tokens: `system`, `tools` (their descriptions), `notes` (maps, files
    and rules that came with a task), `summary` (of older turns), `talk` (what the user and the model said, and calls of
    tools), `files` (that tools have shown), `output` (of commands), `results` (of other tools), `pictures`. The parts
    are estimated, only their sum is counted; None for questions beside the conversation.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    written_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None
    context: Mapping[str, int] | None = None


@dataclass(frozen=True, kw_only=True)
class AnomalyDetected(Event, name="anomaly_detected"):
    """The model repeats itself without progress: `kind` and `detail` describe how, `anomaly` is both in one line.
    `action` is `nudge` the first time, when the model is asked to do something else, and `stop` the second, which ends
    the loop. `step_id` and `step_number` are the plan's step, if there is one.
    """

    kind: str = ""
    detail: str = ""
    action: Literal["nudge", "stop"] = "nudge"
    anomaly: str | None = None
    step_id: str | None = None
    step_number: int | None = None


@dataclass(frozen=True, kw_only=True)
class ContextCompacted(Event, name="context_compacted"):
    """Old turns of the conversation were replaced by a summary; its size in tokens `before` and `after`."""

    before: int = 0
    after: int = 0


# --- tools


@dataclass(frozen=True, kw_only=True)
class ToolCalls(Event, name="tool_calls"):
    """The model asks for tools: `{id, name, arguments, subject}` each, `subject` being what the call is about."""

    calls: tuple[Mapping[str, Any], ...] = ()
    step_id: str | None = None
    step_number: int | None = None


@dataclass(frozen=True, kw_only=True)
class ToolFinished(Event, name="tool_result"):
    """The result of the call `call_id` of a tool. `success` is False if the call failed, or the program that it ran;
    `status` is that of the call alone. `output` is the text for the model; `error` is set in both cases, `error_code`
    and `error_type` only if the call itself failed. `summary` is a few words in the user's language, for clients to
    show in place of a long output.

    `time_ms` is its duration in milliseconds; `artifacts` are the files that it exported, `{name, size, path, sha256}`
    each; `step_id` and `step_number` are the plan's step, if there is one. `todos` is the session's whole todo list
    after a call that has changed it, `{id, content, status, priority}` each: what the call asks for may be refused.
    """

    tool: str = ""
    success: bool = True
    output: str = ""
    error: str | None = None
    call_id: str | None = None
    step_id: str | None = None
    step_number: int | None = None
    status: str | None = None
    error_code: str | None = None
    error_type: str | None = None
    time_ms: float | None = None
    artifacts: tuple[Mapping[str, Any], ...] | None = None
    summary: str | None = None
    todos: tuple[Mapping[str, Any], ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ToolDisabled(Event, name="tool_disabled"):
    """The model is no longer offered `tool`, because it failed repeatedly or the user switched it off; `reason` says
    which.
    """

    tool: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ToolEnabled(Event, name="tool_enabled"):
    """The model is offered `tool` again after a `tool_disabled`."""

    tool: str = ""


@dataclass(frozen=True, kw_only=True)
class FileRunStarted(Event, name="started"):
    """A program of the user's was started by `codeagent.runFile`: its command line, quoted for a shell, and its
    `file`.
    """

    command: str = ""
    file: str | None = None


@dataclass(frozen=True, kw_only=True)
class Stdout(Event, name="stdout"):
    """A piece of what a program of the user's, started by `codeagent.runFile`, wrote to its standard output."""

    content: str = ""


@dataclass(frozen=True, kw_only=True)
class Stderr(Event, name="stderr"):
    """A piece of what a program of the user's, started by `codeagent.runFile`, wrote to its standard error."""

    content: str = ""


@dataclass(frozen=True, kw_only=True)
class FileRunExit(Event, name="exit"):
    """A program started by `codeagent.runFile` ended, with this exit code, after `duration` seconds."""

    exit_code: int = 0
    duration: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ApprovalRequested(Event, name="approval_requested"):
    """The run needs the user's consent: `title` is the question, `detail` what it is about, such as a diff; `choices`
    are the titles offered, the safe one first. `call_id` is the tool call that waits for it; an `approval_resolved`
    with the same `request_id` follows.

    With `beside`, clients only list it and open no prompt, because the user is busy with something else.
    """

    request_id: str = ""
    title: str = ""
    detail: str = ""
    choices: tuple[str, ...] = ()
    call_id: str | None = None
    beside: bool | None = None


@dataclass(frozen=True, kw_only=True)
class ApprovalResolved(Event, name="approval_resolved"):
    """The `approval_requested` with this `request_id` is over: `answer` is the chosen title, None when nobody answered
    in time, which counts as a denial.
    """

    request_id: str = ""
    answer: str | None = None


@dataclass(frozen=True, kw_only=True)
class QuestionAsked(Event, name="question_asked"):
    """The user is asked something, by the model itself if `by_agent`: `title` is the question, `detail` more about it.
    Empty `choices` mean free text; with `multiple` several may be taken. A `question_answered` with the same
    `request_id` follows; `beside` is as for `approval_requested`.
    """

    request_id: str = ""
    title: str = ""
    detail: str = ""
    choices: tuple[str, ...] = ()
    by_agent: bool = False
    multiple: bool | None = None
    beside: bool | None = None


@dataclass(frozen=True, kw_only=True)
class QuestionAnswered(Event, name="question_answered"):
    """The user's answer to the `question_asked` with this `request_id`. Several choices are joined by `, `; a secret is
    replaced by a placeholder; None when nobody answered.
    """

    request_id: str = ""
    answer: str | None = None


# Each is a direct subclass; those of the other modules are imported above.
EVENT_TYPES: dict[str, type[Event]] = {cls.type: cls for cls in Event.__subclasses__()}


def to_dict(event: Event) -> dict[str, Any]:
    """Return the event as plain JSON data: `type` first, then the fields by name; those that are None are left out, and
    tuples become lists.
    """
    values = {item.name: getattr(event, item.name) for item in fields(event)}
    data: dict[str, Any] = {"type": event.type}
    data.update((name, _plain(value)) for name, value in values.items() if value is not None)
    return data


def from_dict(data: Mapping[str, Any]) -> Event:
    """Return the event that `to_dict` wrote; unknown fields are ignored, and lists become tuples. KeyError for an
    unknown type or none.
    """
    cls = EVENT_TYPES[data["type"]]
    known = {item.name for item in fields(cls)}
    given = {name: value for name, value in data.items() if name in known}
    # JSON knows lists only, and the fields are tuples.
    values: dict[str, Any] = {name: tuple(item) if isinstance(item, list) else item for name, item in given.items()}
    return cls(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value
