"""Defines the state of a session: its conversation, files in focus, runs with plans and changes, what was sent,
approvals. No effects.

The stored form is the session's events, from which `replay.py` restores an equal state. Not here: stamping and storing
events (`session.py`), what a run does (`run.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.agent.context.compaction import KeptFacts
from codeagent_lsp.agent.context.history import FocusedFile, FocusedFiles
from codeagent_lsp.agent.prompt import Environment
from codeagent_lsp.messages import Message, ToolSpec, Usage
from codeagent_lsp.session.conversation.repo_maps import Overviews
from codeagent_lsp.session.memory.knowledge import Background
from codeagent_lsp.session.proving.proof import ProposalProof
from codeagent_lsp.session.request import FOREIGN, LENT
from codeagent_lsp.session.rewind.rewinds import AppliedPart, Rewinds, Undone, after_undo
from codeagent_lsp.session.spending import total, usage_data
from codeagent_lsp.tools.permissions.approvals import Approvals
from codeagent_lsp.tools.plan.plan import Plan, PlanDocument
from codeagent_lsp.tools.todos.todo_list import TodoList, render
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.edits import merge


@dataclass(slots=True)
class WaitingWords:
    """The words that wait in a session, the oldest first: `said` to runs, by item id, and `tasks`, by the id of the run
    that each will be. `heard` are the ids of items that were given to the model.
    """

    said: dict[str, events.Steered] = field(default_factory=dict)
    tasks: dict[str, events.TaskQueued] = field(default_factory=dict)
    heard: set[str] = field(default_factory=set)

    def absorb(self, event: events.Event) -> None:
        """Update by an event of the session; unrelated ones change nothing."""
        match event:
            case events.Steered():
                self.said[event.item_id] = event
            case events.TaskQueued():
                # Words that a run did not hear before its end become a task with the same id.
                self.said.pop(event.run_id, None)
                self.tasks[event.run_id] = event
            case events.RunStarted():
                self.tasks.pop(event.run_id, None)
            case events.MessageAdded(item_id=str(item_id)) | events.ItemWithdrawn(item_id=item_id):
                self.said.pop(item_id, None)
                self.tasks.pop(item_id, None)
                if isinstance(event, events.MessageAdded):
                    # Kept after the words have left `said`: a withdrawal that comes too late has to be refused.
                    self.heard.add(item_id)

    def said_to(self, run_id: str) -> tuple[events.Steered, ...]:
        """Return what was said to a run and has not been given to the model, the oldest first; () for none."""
        return tuple(each for each in self.said.values() if each.run_id == run_id)

    def clear(self) -> None:
        """Drop everything, as when the session is deleted; emits nothing."""
        self.said.clear()
        self.heard.clear()
        self.tasks.clear()

    def was_heard(self, item_id: str) -> bool:
        """Return whether the model was given an item, by its id; False for an unknown one."""
        return item_id in self.heard

    def has(self, item_id: str) -> bool:
        """Return whether an item waits."""
        return item_id in self.said or item_id in self.tasks


@dataclass(frozen=True, slots=True)
class StepMark:
    """The plan and the staged changes as they were before a step began, which a rollback restores."""

    plan: Plan
    staged: Changeset


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of a compaction in a run: `messages` replace the run's own first `own` messages and the first `base`
    of the session's conversation, as long as that is of the same `generation`.
    """

    messages: tuple[Message, ...]
    own: int
    base: int
    generation: int


@dataclass(slots=True)
class RunRecord:
    """The state of a run, restored from its events. `staged` waits for a decision, `applied` (oldest first) can be
    undone; `stayed` is what the last undo has left on the user's lines; `proposed` is all that the user was ever shown,
    `accepted` all that was ever applied; `proof` is what was tried on its changes. `step_id` is the step started last,
    `marks` have the state before each step, `document` is the written plan. `messages` are all of the run's own, of
    which the first `joined` are in the session's conversation already; `compacted` replaces some of them in the next
    run. `heard` is what the user said to it while it ran; `usage` is what its model calls used.

    `torn` is set if the run's process died and its file does not say so yet; `unanswered` are the questions that were
    open then. `attempt_of` is the id of the run for which this is an attempt, which asks and applies nothing, `attempt`
    its number; `attempts` are the sessions of the attempts at this one. `took_over` are the ids of the cancelled runs
    from whose staged changes it went on.

    `unsettled` are the files of a request to the editor whose outcome is not known; its changes are in `applied`
    already. `late` are changes that the editor was asked for and did not confirm, `late_since` the time of that; it may
    still make them, as those that it has `denied`. `mode_waits` are files that the editor had not written yet when
    their permission to be executed was to change.
    """

    run_id: str
    kind: str = "run"
    title: str = ""
    status: str = "running"
    staged: Changeset = field(default_factory=Changeset)
    proposed: Changeset = field(default_factory=Changeset)
    accepted: Changeset = field(default_factory=Changeset)
    applied: list[AppliedPart] = field(default_factory=list)
    stayed: list[AppliedPart] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    joined: int = 0
    torn: bool = False
    compacted: Compacted | None = None
    unanswered: dict[str, events.ApprovalRequested | events.QuestionAsked] = field(default_factory=dict)
    plan: Plan | None = None
    step_id: str = ""
    marks: dict[str, StepMark] = field(default_factory=dict)
    document: PlanDocument | None = None
    usage: Usage = field(default_factory=Usage)
    proof: ProposalProof = field(default_factory=ProposalProof)
    attempt_of: str = ""
    attempt: int = 0
    heard: list[str] = field(default_factory=list)
    attempts: tuple[str, ...] = ()
    took_over: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    late: Changeset = field(default_factory=Changeset)
    denied: Changeset = field(default_factory=Changeset)
    late_since: float = 0.0
    mode_waits: frozenset[str] = frozenset()
    _intended: AppliedPart | None = None

    @property
    def foreign(self) -> bool:
        """Whether its changes are those of other programs: in the files already, to be kept or taken back."""
        return self.kind == FOREIGN

    @property
    def lent(self) -> bool:
        """Whether it is the run of another agent to which the editor is lent."""
        return self.kind == LENT

    @property
    def changed_paths(self) -> tuple[str, ...]:
        """The absolute paths of the files that the run has changed, applied or still staged."""
        applied = (path for part in self.applied for path in part.changeset.paths)
        return tuple(dict.fromkeys((*applied, *self.staged.paths)))

    @property
    def intended(self) -> Changeset:
        """The changes that the editor is being asked for, or was when the process died; empty for an undo."""
        return Changeset() if self._intended is None else self._intended.changeset

    @property
    def modes_due(self) -> dict[str, bool]:
        """The files, by absolute path, that are to become executable (False: no longer) once they are written; none of
        an undone change.
        """
        changes = (change for part in self.applied for change in part.changeset)
        return {each.path: each.runs for each in changes if each.path in self.mode_waits and each.runs is not None}

    def applied_in(self, steps: Collection[str] | None) -> list[AppliedPart]:
        """Return what was applied in some steps of the plan, by id; None for all."""
        return [part for part in self.applied if steps is None or part.step_id in steps]

    def propose(self, changes: Changeset) -> None:
        """Note changes that the user was shown: of each file the first base and the latest text."""
        self.proposed = _join_changes(self.proposed, changes)

    def accept(self, changes: Changeset) -> None:
        """Add changes that were applied to those that the user accepted, whatever becomes of them later."""
        self.accepted = _join_changes(self.accepted, changes)
        for change in changes:  # those that the user was not shown, as where each edit is applied at once
            known = self.proposed.get(change.path)
            # Nothing shown, or just what this change starts from: then the applied text is the next one in the row.
            if known is None or known.text == change.base:
                self.proposed = _join_changes(self.proposed, Changeset((change,)))

    def intend(self, changes: Changeset, part: AppliedPart | None) -> None:
        """Note what the editor is about to be asked for, until `settle` notes the outcome. A `part` can be undone from
        now on, as far as it is in the files by then.
        """
        self.unsettled, self._intended = changes.paths, part
        self.applied.extend([part] if part is not None else [])

    def settle(self, late: Changeset, now: float, denied: Changeset = Changeset()) -> None:  # noqa: B008 (immutable)
        """Note that the outcome of the last request to the editor is known, except for changes that may still come
        `late` or though they were `denied`, as those of earlier requests may; `now` is in seconds since the epoch.
        """
        if self._intended is not None:
            asked = self._intended.changeset
            self.late, self.late_since = _with_not_asked(late, self.late, asked), now
            self.denied = _with_not_asked(denied, self.denied, asked)
            # By identity: an equal part may have been applied before, and what really landed is added by the caller.
            self.applied[:] = [part for part in self.applied if part is not self._intended]
        self.unsettled, self._intended = (), None

    def take_back(self, undone: Undone, outcome: events.Outcome, refused: Collection[str], now: float) -> None:
        """Note an undo with its outcome (only after `full` and `partial` something is taken from `applied`), and the
        files that the editor refused; `now` is in seconds since the epoch.
        """
        # Parts that were accepted after the undo whose lines are gone over are not undone.
        until = min((part.ts for part in self.stayed), default=now) if undone.over else now

        def is_undone(part: AppliedPart) -> bool:
            return part.ts <= until and (not undone.steps or part.step_id in undone.steps)

        if outcome in ("full", "partial"):
            self.applied[:] = after_undo(self.applied, is_undone, refused, undone.only)
        if not undone.over:
            self.stayed[:] = [AppliedPart(each, ts=now) for each in undone.stayed]
        elif outcome in ("full", "partial"):
            self.stayed[:] = after_undo(self.stayed, lambda part: True, refused, undone.only)

    def roll_marks_back(self, step_id: str) -> tuple[str, ...]:
        """Remove the marks of a step and of all that began after it; return the ids of these steps. ValueError if it
        has not begun.
        """
        begun = list(self.marks)
        gone = tuple(begun[begun.index(step_id) :])
        for name in gone:
            del self.marks[name]
        # Marks are in the order in which steps began, so the last one left is the step that was at work before.
        self.step_id = next(reversed(self.marks), "")
        return gone


def _join_changes(known: Changeset, changes: Changeset) -> Changeset:
    """Return the changes of files one after the other as one: the first base, the latest text. A change that was taken
    back stays.
    """
    files = {change.path: change for change in known}
    for change in changes:
        before = files.get(change.path)
        files[change.path] = (
            change if before is None else replace(change, base=before.base, moved_from=before.moved_from)
        )
    return Changeset(tuple(files.values()))


@dataclass(slots=True)
class CodeAgentContext:
    """The state of one session, as long as it is in use. `conversation` has the messages of ended runs, `generation`
    counts how often a compaction replaced its beginning; `runs` are by id; `background` and `overviews` hold what was
    sent about the project's instructions, memory and code, `tool_heads` the tools in its prompts, `decisions_told` what
    the model was told of its changes, by run; `environment` is that of the latest run; `approvals` are the user's;
    `windows_told` names the models whose assumed window the user was told; `waiting` are words and tasks that wait;
    `rewinds` are those that stand; `origin` is the title of the session that this one began from.
    """

    conversation: list[Message] = field(default_factory=list)
    generation: int = 0
    runs: dict[str, RunRecord] = field(default_factory=dict)
    todos: TodoList = field(default_factory=TodoList)
    focused: FocusedFiles = field(default_factory=FocusedFiles)
    background: Background = field(default_factory=Background)
    overviews: Overviews = field(default_factory=Overviews)
    decisions_told: dict[str, str] = field(default_factory=dict)
    tool_heads: dict[str, tuple[ToolSpec, ...]] = field(default_factory=dict)
    environment: Environment = Environment(())
    approvals: Approvals = field(default_factory=Approvals)
    windows_told: set[str] = field(default_factory=set)
    waiting: WaitingWords = field(default_factory=WaitingWords)
    rewinds: Rewinds = field(default_factory=Rewinds)
    origin: str = ""

    @property
    def title(self) -> str:
        """The title of the first run that has one, else of the session that this one began from; '' for neither."""
        return next((run.title for run in self.runs.values() if run.title), self.origin)

    @property
    def usage(self) -> Usage:
        """The tokens and the cost of the model calls of all runs together."""
        return total(run.usage for run in self.runs.values())

    def used(self, record: RunRecord) -> dict[str, Any]:
        """Return the sums of a run and of the session, as the fields `usage` and `session_usage` of `run_completed`,
        None where nothing was used.
        """
        return {"usage": usage_data(record.usage), "session_usage": usage_data(self.usage)}

    def begin(self, record: RunRecord) -> None:
        """Add a new run to `runs`, by its id, in place of one with the same id."""
        self.runs[record.run_id] = record

    def join(self, record: RunRecord) -> None:
        """Append a run's messages to the session's conversation; of a run that was resumed, the new ones.

        Its compaction is kept, unless another run has replaced the same messages meanwhile.
        """
        compacted, record.compacted = record.compacted, None
        # Taken back while it was at work: its messages are about changes that are gone.
        if record.run_id in self.rewinds.silenced:
            return
        if compacted is not None and compacted.generation == self.generation:
            # Messages that other runs have added since this one took its copy of the conversation.
            later = self.conversation[compacted.base :]
            self.conversation = [*compacted.messages, *record.messages[compacted.own :], *later]
            self.generation += 1
        else:
            self.conversation.extend(record.messages[record.joined :])
        # A resumed run joins again at its next end; what has joined must not be there twice.
        record.joined = len(record.messages)

    def kept(self, record: RunRecord, name: Callable[[str], str]) -> KeptFacts:
        """Return the facts that every compaction in that run repeats; `name` returns a path as it is shown."""
        items, plan = self.todos.items, record.plan
        changed = tuple(map(name, record.changed_paths))
        return KeptFacts(render(items) if items else "", plan.text() if plan else "", changed, self.focused)

    def stored_focus(self) -> list[dict[str, object]]:
        """Return the files in focus as events store them: `{path, editing}` each, without texts, from the least to the
        most recently used.
        """
        return [{"path": file.path, "editing": file.editing} for file in self.focused.files]

    def restore(self, event: events.StateChanged) -> None:
        """Restore to-do list and files in focus from an event; the texts of the files are read when they are needed. A
        part that the event lacks stays as it is.
        """
        if event.todos is not None:
            self.todos.restore(event.todos)
        if event.focused is not None:
            files = tuple(FocusedFile(str(file["path"]), "", bool(file["editing"])) for file in event.focused)
            self.focused = replace(self.focused, files=files)


def _with_not_asked(new: Changeset, before: Changeset, asked: Changeset) -> Changeset:
    """Return the changes that are expected after a request: `new`, and of those `before` the hunks that were not
    `asked` for again.
    """
    found = new
    for change in before:
        again = asked.get(change.path)
        if again is not None:
            if again.kind != "edit" or again.base != change.base:
                continue
            known = frozenset(again.hunk_ids())
            others = frozenset(number for number, each in enumerate(change.hunk_ids()) if each not in known)
            left = Changeset((change,)).split(None, {change.path: others})[0].get(change.path) if others else None
            if left is None:
                continue
            beside = new.get(change.path)
            texts = (change.base or "", left.text or "", (beside or left).text or "")
            change = replace(left, text=merge.merge(*texts, beside=True).text)
        found = Changeset((*found.without((change.path,)), change))
    return found
