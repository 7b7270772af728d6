"""A session: one conversation with its runs. Stamps every event, stores it, then tells the listeners.

Each run works on its own branch of the conversation and joins it when it ends, so that runs side by side never
mix. Not here: what a run does (`run.py`), the files (`store.py`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from codeagent_lsp import events
from codeagent_lsp.agent.focus import FocusedFile, FocusedFiles
from codeagent_lsp.agent.plan import Plan
from codeagent_lsp.agent.plan_document import PlanDocument
from codeagent_lsp.messages import Message
from codeagent_lsp.session.background import Background
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.tools.approvals import Approvals
from codeagent_lsp.tools.todos import TodoList
from codeagent_lsp.workspace.changeset import Changeset

logger = logging.getLogger(__name__)

Listener = Callable[[events.Event], None]


@dataclass(frozen=True, slots=True)
class AppliedPart:
    """Changes that are in the user's buffers, and the plan's step in which they got there ('' without a plan)."""

    changeset: Changeset
    step_id: str = ""


@dataclass(frozen=True, slots=True)
class StepMark:
    """How things stood before a step: what a roll back brings back."""

    plan: Plan
    staged: Changeset


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction in a run left: `messages` stand for the run's own first `own` messages and for the first
    `base` of the session, as long as that is of the same `generation`.
    """

    messages: tuple[Message, ...]
    own: int
    base: int
    generation: int


@dataclass(slots=True)
class RunRecord:
    """What is known of a run: `staged` waits for a decision, `applied` (oldest first) can be undone.

    `step_id` is the step that was started last, `marks` tell how it was before each step, `document` is the
    written plan. The first `joined` messages are part of the session's conversation already; `messages`
    are always all of the run's own, `compacted` is what the next run gets in the place of some. `torn` is a run whose
    process is gone while the file does not say so yet; `unanswered` are the questions that were open then.
    """

    run_id: str
    kind: str = "run"
    title: str = ""
    status: str = "running"
    staged: Changeset = field(default_factory=Changeset)
    applied: list[AppliedPart] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    joined: int = 0
    torn: bool = False
    compacted: Compacted | None = None
    unanswered: dict[str, events.ApprovalRequested | events.QuestionAsked] = field(default_factory=dict)
    plan: Plan | None = None
    step_id: str = ""
    marks: dict[str, StepMark] = field(default_factory=dict)
    document: PlanDocument | None = None

    def roll_marks_back(self, step_id: str) -> tuple[str, ...]:
        """Forget how it was before that step and all that began after it; returns these steps."""
        begun = list(self.marks)
        gone = tuple(begun[begun.index(step_id) :])
        for name in gone:
            del self.marks[name]
        self.step_id = next(reversed(self.marks), "")
        return gone


class Session:
    """One conversation. `generation` counts how often its beginning was replaced by a compaction."""

    def __init__(
        self,
        session_id: str,
        store: SessionStore,
        listeners: Iterable[Listener] = (),
        clock: Callable[[], float] = time.time,
        approvals: Approvals | None = None,
    ) -> None:
        self.session_id = session_id
        self.runs: dict[str, RunRecord] = {}
        self.messages: list[Message] = []
        self.generation = 0
        self.todos = TodoList(on_change=self._todos_changed)
        self.focused = FocusedFiles()
        self.background = Background()
        self.approvals = approvals or Approvals()
        self.next_seq = 1
        self._store = store
        self._listeners = tuple(listeners)
        self._clock = clock

    @property
    def title(self) -> str:
        """The first task's title."""
        return next((run.title for run in self.runs.values() if run.title), "")

    def emit(self, run_id: str, event: events.Event) -> None:
        """Stamp the event, store it, tell the listeners; in this order."""
        stamped = replace(
            event, session_id=self.session_id, run_id=run_id, seq=self.next_seq, ts=round(self._clock(), 3)
        )
        self.next_seq += 1
        if not event.transient:
            self._store.append(self.session_id, events.to_dict(stamped))
        for listener in self._listeners:
            try:
                listener(stamped)
            except Exception:  # whoever shows events is no reason to stop a run
                logger.exception("a listener failed at %s", event.type)

    def claim(self) -> None:
        """Make the session ours to write. SessionError when another process has it.

        What another process left open is closed then, in the file as it is here.
        """
        self._store.claim(self.session_id)
        for record in self.runs.values():
            if record.torn:
                self._close(record)

    def begin(self, record: RunRecord) -> None:
        """A new run."""
        self.runs[record.run_id] = record

    def join(self, record: RunRecord) -> None:
        """A run's part of the conversation becomes the session's; a run that went on later adds what is new.

        What it made shorter stays so, unless another run has replaced the same messages meanwhile.
        """
        compacted, record.compacted = record.compacted, None
        if compacted is not None and compacted.generation == self.generation:
            later = self.messages[compacted.base :]
            self.messages = [*compacted.messages, *record.messages[compacted.own :], *later]
            self.generation += 1
        else:
            self.messages.extend(record.messages[record.joined :])
        record.joined = len(record.messages)

    def focus(self, run_id: str, focused: FocusedFiles) -> None:
        """Other files are in front of the model; stored when their names have changed."""
        before, self.focused = _names(self.focused), focused
        if _names(focused) != before:
            files = tuple({"path": path, "editing": editing} for path, editing in _names(focused))
            self.emit(run_id, events.StateChanged(focused=files))

    def restore(self, event: events.StateChanged) -> None:
        """What an event stored; the texts of files come when they are needed."""
        if event.todos is not None:
            self.todos.restore(event.todos)
        if event.focused is not None:
            files = tuple(FocusedFile(str(file["path"]), "", bool(file["editing"])) for file in event.focused)
            self.focused = replace(self.focused, files=files)

    def record(self, run_id: str) -> RunRecord | None:
        """The run of that id."""
        return self.runs.get(run_id)

    def _todos_changed(self) -> None:
        self.emit("", events.StateChanged(todos=tuple(self.todos.to_data())))

    def _close(self, record: RunRecord) -> None:
        """Tell what became of an interrupted run: its open questions, and that it is over. Once."""
        for request_id, asked in record.unanswered.items():
            approval = isinstance(asked, events.ApprovalRequested)
            closed = events.ApprovalResolved if approval else events.QuestionAnswered
            self.emit(record.run_id, closed(request_id=request_id))
        record.unanswered.clear()
        record.torn = False
        self.emit(record.run_id, events.RunInterrupted())


def _names(focused: FocusedFiles) -> tuple[tuple[str, bool], ...]:
    return tuple((file.path, file.editing) for file in focused.files)
