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
from codeagent_lsp.messages import Message
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.tools.approvals import Approvals
from codeagent_lsp.tools.todos import TodoList
from codeagent_lsp.workspace.changeset import Changeset

logger = logging.getLogger(__name__)

Listener = Callable[[events.Event], None]


@dataclass(slots=True)
class RunRecord:
    """What is known of a run: `staged` waits for a decision, `applied` (oldest first) can be undone."""

    run_id: str
    kind: str = "run"
    title: str = ""
    status: str = "running"
    staged: Changeset = field(default_factory=Changeset)
    applied: list[Changeset] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)


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

    def begin(self, record: RunRecord) -> None:
        """A new run."""
        self.runs[record.run_id] = record

    def join(self, record: RunRecord) -> None:
        """A run's part of the conversation becomes the session's."""
        self.messages.extend(record.messages)

    def record(self, run_id: str) -> RunRecord | None:
        """The run of that id."""
        return self.runs.get(run_id)
