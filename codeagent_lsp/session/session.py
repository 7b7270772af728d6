"""Holds a session's state, and stamps, stores and sends every event about it, in this order.

Each run works on its own branch of the conversation and joins it when it ends, so that concurrent runs never mix. Not
here: the state itself (`state.py`), what a run does (`run.py`), the files (`store.py`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import FocusedFiles
from codeagent_lsp.session.state import CodeAgentContext, RunRecord
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.tools.permissions.approvals import Approvals
from codeagent_lsp.tools.todos.todo_list import TodoList

logger = logging.getLogger(__name__)

Listener = Callable[[events.Event], None]


class Session:
    """One session of a server: a conversation with its runs. `context` is its state; every event about it goes through
    `emit`.
    """

    def __init__(
        self,
        session_id: str,
        store: SessionStore,
        listeners: Iterable[Listener] = (),
        approvals: Approvals | None = None,
    ) -> None:
        self.session_id = session_id
        todos = TodoList(on_change=self._todos_changed)
        self.context = CodeAgentContext(todos=todos, approvals=approvals or Approvals())
        self.next_seq = 1
        self._latest = ""
        self.store = store
        self._listeners = tuple(listeners)

    def emit(self, run_id: str, event: events.Event) -> None:
        """Stamp an event with session, run, sequence number and time, store it unless it is transient, and send it to
        the listeners. Blocks while it is written. An error in a listener is logged; SessionError if another process has
        the session.
        """
        self._latest = run_id or self._latest  # who changes the to-do list has just been told of as calling a tool
        stamped = replace(event, session_id=self.session_id, run_id=run_id, seq=self.next_seq, ts=round(time.time(), 3))
        # Also for transient events, so that clients can order all that they get.
        self.next_seq += 1
        if not event.transient:
            self.store.append(self.session_id, events.to_dict(stamped))
        self.context.waiting.absorb(stamped)
        # After it is stored: what a client was shown is in the file, whatever ends the process.
        for listener in self._listeners:
            try:
                listener(stamped)
            except Exception:  # a failing listener does not stop a run
                logger.exception("a listener failed at %s", event.type)

    def claim(self) -> None:
        """Lock the session for writing by this process. SessionError if another process has it.

        Runs that another process left open are closed then, in the file as in the state.
        """
        self.store.claim(self.session_id)
        for record in self.context.runs.values():
            if record.torn:
                self._close(record)

    def focus(self, run_id: str, focused: FocusedFiles) -> None:
        """Set the files in focus; an event is emitted and stored if their paths or editing marks have changed."""
        before = self.context.stored_focus()
        self.context.focused = focused
        if (now := self.context.stored_focus()) != before:
            self.emit(run_id, events.StateChanged(focused=tuple(now)))

    def _todos_changed(self) -> None:
        self.emit(self._latest, events.StateChanged(todos=tuple(self.context.todos.to_data())))

    def _close(self, record: RunRecord) -> None:
        """Emit the end of an interrupted run: its open questions are closed without an answer."""
        for request_id, asked in record.unanswered.items():
            approval = isinstance(asked, events.ApprovalRequested)
            closed = events.ApprovalResolved if approval else events.QuestionAnswered
            self.emit(record.run_id, closed(request_id=request_id))
        record.unanswered.clear()
        record.torn = False
        self.emit(record.run_id, events.RunInterrupted())
