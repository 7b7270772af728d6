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


@dataclass(slots=True)
class RunRecord:
    """What is known of a run: `staged` waits for a decision, `applied` (oldest first) can be undone.

    `step_id` is the step that was started last, `marks` tell how it was before each step, `document` is the
    written plan. The first `joined` messages are part of the session's conversation already; `closing` are the
    last ones of a turn that was torn, which are stored only when something follows them.
    """

    run_id: str
    kind: str = "run"
    title: str = ""
    status: str = "running"
    staged: Changeset = field(default_factory=Changeset)
    applied: list[AppliedPart] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    joined: int = 0
    closing: tuple[Message, ...] = ()
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
    """One conversation."""

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
        self.todos = TodoList()
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
        """Make the session ours to write. SessionError when another process has it."""
        self._store.claim(self.session_id)

    def begin(self, record: RunRecord) -> None:
        """A new run."""
        self.runs[record.run_id] = record

    def join(self, record: RunRecord) -> None:
        """A run's part of the conversation becomes the session's; a run that went on later adds what is new."""
        self.messages.extend(record.messages[record.joined :])
        record.joined = len(record.messages)

    def record(self, run_id: str) -> RunRecord | None:
        """The run of that id."""
        return self.runs.get(run_id)
