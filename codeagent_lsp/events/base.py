"""The base class of all events, and the events of a plan and its steps, of a run's changes (staged, proposed, applied,
discarded), and of a session rather than of one run: words that wait, and going back.

Of a step, `plan` is the whole plan `{id, goal, status, steps, estimated_complexity}`, `message` a sentence for the
user, `step_number` the place of the step in the plan, from 1; all are added when the event is emitted
(`session/run_output.py`). Words that wait are what the user says to a run at work, and tasks that begin when the
session is free. Going back is a rewind to before a run, its undoing, and a session that begins from another. Not here:
all other events (`__init__.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

What = Literal["changes", "talk", "both"]
Outcome = Literal["full", "partial", "none", "unknown"]
Verdict = Literal["kept", "reverted"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """The fields of all events, set by the session when it accepts one: `session_id`, `run_id` ('' for an event of the
    session), `seq` (a number that grows within the session) and `ts` (seconds since the epoch). `type` is the name of a
    class.

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
class FileChanged(Event, name="file_change"):
    """The staged change of one file: `path` is absolute, `change` its new state as plain data, None if it was taken
    back.
    """

    path: str = ""
    change: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ChangesProposed(Event, name="changes_proposed"):
    """A changeset is ready for the user's decision: a `summary` in words, the absolute paths, and the numbers of lines
    `added` and `removed`. `proof` is what was tried on it: `tests`, `diagnostics`, `minimal`, each with the `digest` of
    the state it ran on, and whether it is `outdated`; `words` are sentences for the user.
    """

    summary: str = ""
    files_changed: tuple[str, ...] = ()
    added: int = 0
    removed: int = 0
    proof: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ChangesApplied(Event, name="changes_applied"):
    """Changes were applied to the editor's buffers, or with `undo` taken back: `files_changed` are absolute paths,
    `applied` the changes as plain data, `outcome` how much of them was done. `conflicts` name the hunks that were left
    out as `path:line`; `reason` is what the editor said to a change that it did not make.

    `step_id` is the step that made the changes, and `steps` those that an undo took back (none: all of the run).
    `refused` are the files that the editor did not change: an undo of these can be tried again. `only` are the files
    that an undo was restricted to (None: all). `stayed` is what it left where the user has changed the same lines, as
    lists of changes in plain data; one more undo takes that back if the user agrees, `over` these lines. `renamed` has
    the new paths of files that the user has renamed since, by the old ones. `since` (seconds since the epoch) is when
    the changes were applied first, if undoing a rewind brings them back.

    `verdict` is what was decided about changes of other programs, which were in the files already: they stay, or they
    are taken back. `unconfirmed` are the files of which it is not known whether the editor has made, or will yet make,
    their changes. `mode_waits` are those that become executable, or no longer, when the editor writes them.
    """

    outcome: Outcome = "full"
    files_changed: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    reason: str | None = None
    undo: bool = False
    applied: tuple[Mapping[str, Any], ...] = ()
    step_id: str | None = None
    steps: tuple[str, ...] = ()
    refused: tuple[str, ...] | None = None
    since: float | None = None
    renamed: Mapping[str, str] | None = None
    only: tuple[str, ...] | None = None
    stayed: tuple[tuple[Mapping[str, Any], ...], ...] | None = None
    over: bool | None = None
    verdict: Verdict | None = None
    unconfirmed: tuple[str, ...] | None = None
    mode_waits: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class ChangesExpected(Event, name="changes_expected", internal=True):
    """Changes that the editor may still make from now on, as plain data, all of them: `late` are those that it was
    asked for and has not confirmed, `denied` those that it refused.
    """

    late: tuple[Mapping[str, Any], ...] = ()
    denied: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModesSet(Event, name="modes_set", internal=True):
    """Files that the editor has saved became executable, or no longer, as a change wanted: their absolute paths, which
    `mode_waits` of `changes_applied` had.
    """

    files_changed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChangesDiscarded(Event, name="changes_discarded"):
    """The user rejected the staged changes of these files (absolute paths), which are no longer staged; `partly` are
    those of which other changes still are.
    """

    files_changed: tuple[str, ...] = ()
    partly: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class PlanCreated(Event, name="plan_created"):
    """A plan was made: its goal, its steps `{step_id, title, description, expected_tools, state, error?}`, and its
    `estimated_complexity` (`low`, `medium` or `high`). `message` is a sentence for the user, `plan` the whole plan.
    """

    goal: str = ""
    steps: tuple[Mapping[str, Any], ...] = ()
    estimated_complexity: str = ""
    message: str | None = None
    plan: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class PlanCompleted(Event, name="plan_completed"):
    """No step of the plan is left to do. `success` is True if each was completed, False if some were skipped or
    cancelled; `summary` is in words, `files_changed` are absolute paths.
    """

    summary: str = ""
    success: bool = True
    files_changed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlanApproved(Event, name="plan_approved"):
    """The user accepted the plan, so its execution may begin; `message` says so to the user."""

    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlanRejected(Event, name="plan_rejected"):
    """The user refused the plan; `reason` is what they answered, None without an answer, and `message` a sentence for
    the user.
    """

    reason: str | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class PlanModified(Event, name="plan_modified"):
    """The plan has changed: its `steps`, or the written plan (`document`, Markdown). `rolled_back_to` is the id of the
    step to which the user went back, None if they did not; `plan` is the whole plan.
    """

    steps: tuple[Mapping[str, Any], ...] = ()
    rolled_back_to: str | None = None
    document: str | None = None
    plan: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class AwaitingApproval(Event, name="awaiting_approval"):
    """The run waits for the user to decide about its plan or a failed step; `message` is the question, `plan` the whole
    plan.
    """

    message: str = ""
    plan: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ReplanWarning(Event, name="replan_warning"):
    """A step failed with `reason` and the model replaced the remaining steps, for the `count`-th time in this plan;
    `message` says so to the user.
    """

    reason: str = ""
    count: int = 1
    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionStarted(Event, name="execution_started"):
    """The steps of the plan are about to be worked on, for the first time or again after an interruption; `message`
    says so to the user, `plan` is the whole plan.
    """

    message: str | None = None
    plan: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionCompleted(Event, name="execution_completed"):
    """The work on the plan ended with no step left to do, skipped ones included. `files_changed` are absolute paths;
    `message` and `summary` are for the user, `plan` is the whole plan.
    """

    files_changed: tuple[str, ...] = ()
    message: str | None = None
    plan: Mapping[str, Any] | None = None
    summary: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionFailed(Event, name="execution_failed"):
    """The work on the plan stops because the step `step_id` failed and the user has said so or not answered; `error` is
    why, `message` a sentence for the user, `plan` the whole plan as the module describes it.
    """

    error: str = ""
    message: str | None = None
    plan: Mapping[str, Any] | None = None
    step_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutionCancelled(Event, name="execution_cancelled"):
    """The user cancelled the run while it worked on its plan; `message` says so to them."""

    message: str | None = None


@dataclass(frozen=True, kw_only=True)
class StepStarted(Event, name="step_started"):
    """A step of the plan begins: its id, its title as `description`, and its place in the plan from 1 (`step_number`).
    `progress` is the progress of the plan in percent, `progress_detail` the same as `{step, steps, ended, percent}`.
    """

    step_id: str = ""
    description: str = ""
    progress: int = 0
    progress_detail: Mapping[str, int] | None = None
    step_number: int | None = None


@dataclass(frozen=True, kw_only=True)
class StepCompleted(Event, name="step_completed"):
    """A step of the plan was completed: its id, the absolute paths that it changed, and the progress of the plan, with
    fields as in `step_started`.
    """

    step_id: str = ""
    files_changed: tuple[str, ...] = ()
    progress: int = 0
    progress_detail: Mapping[str, int] | None = None
    step_number: int | None = None


@dataclass(frozen=True, kw_only=True)
class StepOutput(Event, name="step_output", transient=True):
    """A piece of what a command prints, of the step with this id if there is a plan. It may end within a line, and a
    carriage return in it means that the line is written again from its start.
    """

    step_id: str | None = None
    content: str = ""
    step_number: int | None = None


@dataclass(frozen=True, kw_only=True)
class StepError(Event, name="step_error"):
    """An attempt at a step of the plan failed with `error`; it may be tried again, skipped or replaced. `step_number`
    is its place in the plan, from 1.
    """

    step_id: str = ""
    error: str = ""
    step_number: int | None = None


@dataclass(frozen=True, kw_only=True)
class Steered(Event, name="steered", internal=True):
    """The user wrote `text` to a running run; it waits as the item `item_id` until the run next calls its model."""

    item_id: str = ""
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class SteerDelivered(Event, name="steer_delivered"):
    """The `steered` item with this id was put into the conversation and is no longer waiting; `text` is what it
    says.
    """

    item_id: str = ""
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class TaskQueued(Event, name="task_queued", internal=True):
    """A task waits until its session is free; it then begins as the run `run_id`. `title` is its short form, `planning`
    the mode asked for (None: by the settings), `attempts` how many are to be made, `until_proven` as for
    `codeagent.run`.

    `place` is what the user had selected: `{path, start, end, selected}`, offsets in the text of that time; `images`
    are `{media_type, data}`.
    """

    task: str = ""
    title: str = ""
    planning: str | None = None
    attempts: int = 1
    until_proven: bool = False
    place: Mapping[str, Any] | None = None
    images: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ItemWithdrawn(Event, name="item_withdrawn", internal=True):
    """The user withdrew a waiting item: a `steered` text by its `item_id`, or a queued task by the id of its run."""

    item_id: str = ""


@dataclass(frozen=True, kw_only=True)
class SessionRewound(Event, name="session_rewound"):
    """The run of this event took back what the runs `gone` (ids) changed, said, or both (`what`). `staged` is what of
    their changes was still undecided, by run id, `attempts` what attempts at them had applied.

    `conflicts` name places as `path:line` that were changed since and stay; `refused` are files that the editor did not
    change, whose changes can be undone later.
    """

    what: What = "both"
    gone: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    staged: Mapping[str, Any] = field(default_factory=dict)
    attempts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SessionRestored(Event, name="session_restored"):
    """The user undid the rewind that the run of this event made; what it took back counts again."""


@dataclass(frozen=True, kw_only=True)
class SessionForked(Event, name="session_forked", internal=True):
    """The session began with the conversation of another one: `source` is that session's id, `title` its title,
    `messages` what was said in it.
    """

    source: str = ""
    title: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ChangesIntended(Event, name="changes_intended", internal=True):
    """The editor is about to be asked for these `changes` (plain data), or with `undo` to take them back;
    `files_changed` are absolute paths, `step_id` is the step that made them. If no `changes_applied` follows, it is not
    known which of the files were changed.
    """

    files_changed: tuple[str, ...] = ()
    undo: bool = False
    changes: tuple[Mapping[str, Any], ...] = ()
    step_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ChangesTakenOver(Event, name="changes_taken_over", internal=True):
    """The run goes on from what the cancelled `runs` (ids) of its session had staged; it is staged in this one now."""

    runs: tuple[str, ...] = ()
