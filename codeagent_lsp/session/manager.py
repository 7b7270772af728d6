"""Manages all sessions and runs of one server: start, cancel, find, resume, delete.

Every run is a task; cancelling the task is the one way to stop a run. Not here: the protocol (`server/`).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.deletion import SessionDeletion
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import Listener, Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.tools.permissions.approvals import Approvals

if TYPE_CHECKING:
    from codeagent_lsp.session.run import Run

LEAVE_SECONDS = 1.0


class SessionManager:
    """The sessions and runs of one server, by id. The current session takes requests that name none."""

    def __init__(self, store: SessionStore, services: Services, listeners: Iterable[Listener] = ()) -> None:
        self._store = store
        self._services = services
        self._listeners = tuple(listeners)
        self._sessions: dict[str, Session] = {}
        self._runs: dict[str, Run] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._deletion = SessionDeletion(services)
        self._current: Session | None = None

    def new(self) -> Session:
        """Create a session and make it the current one."""
        session = self._opened(uuid.uuid4().hex[:16])
        self._sessions[session.session_id] = session
        self._current = session
        return session

    def current(self) -> Session:
        """Return the current session; create one if there is none."""
        return self._current or self.new()

    def session(self, session_id: str | None) -> Session:
        """Return the session with that id, loaded if necessary; the current one for None. SessionError as `resume`."""
        if session_id is None:
            return self.current()
        return self._sessions.get(session_id) or self.resume(session_id)

    def resume(self, session_id: str) -> Session:
        """Load a stored session and make it the current one. SessionError if it is unknown or in use elsewhere."""
        known = self._sessions.get(session_id)
        if known is None:
            known = self._opened(session_id)
            replay(known, self._store.reopen(session_id))
            self._sessions[session_id] = known
            for record in known.context.runs.values():
                self._runs[record.run_id] = _run(known, record, self._services)
        self._current = known
        return known

    def list(self) -> list[dict[str, Any]]:
        """Return id, title and time of the last change (seconds since the epoch) of every session, the newest first."""
        stored = {item.session_id: item for item in self._store.list()}
        rows = []
        for session_id, item in stored.items():
            session = self._sessions.get(session_id)
            title = session.context.title if session else self._stored_title(session_id)
            rows.append({"sessionId": session_id, "title": title, "modified": item.modified})
        return rows

    def delete(self, session_id: str) -> asyncio.Task[None]:
        """Cancel a session's runs and delete it; the returned task ends when its shadow and its outputs are deleted,
        too. SessionError if it is unknown, or another process works with it.
        """
        self._store.delete(session_id)
        session = self._sessions.pop(session_id, None)
        run_ids = tuple(session.context.runs) if session else ()
        working = [self._tasks[run_id] for run_id in run_ids if run_id in self._tasks]
        for run_id in run_ids:
            self._cancel(run_id)
            self._runs.pop(run_id, None)
        if session is not None and session is self._current:
            self._current = None
        return self._deletion.start(session_id, working)

    def start(self, request: RunRequest, session_id: str | None = None) -> str:
        """Start a run and return its id once it is stored. SessionError if another process works with the session."""
        session = self.session(session_id)
        session.claim()
        record = RunRecord(uuid.uuid4().hex[:16], request.kind, request.title)
        session.context.begin(record)
        run = _run(session, record, self._services)
        self._runs[record.run_id] = run
        run.begin(request)
        self._work(run, run.execute(request))
        return record.run_id

    def go_on(self, run: Run) -> None:
        """Resume the plan of a run that had ended."""
        run.resume()
        self._work(run, run.work_on())

    def task(self, run_id: str) -> asyncio.Task[None] | None:
        """Return the task of a run; None if it is not running."""
        return self._tasks.get(run_id)

    def run(self, run_id: str) -> Run:
        """Return the run with that id. SessionError if there is none."""
        run = self._runs.get(run_id)
        if run is None:
            raise SessionError("run.unknown", run=run_id)
        return run

    def last_applied(self) -> Run:
        """Return the latest run that has changes to undo. SessionError if there is none."""
        for run in reversed(self._runs.values()):
            if run.record.applied:
                return run
        raise SessionError("undo.nothing")

    def runs(self) -> tuple[Run, ...]:
        """Return all runs known here, the oldest first."""
        return tuple(self._runs.values())

    def active(self) -> tuple[str, ...]:
        """Return the ids of the running runs."""
        return tuple(self._tasks)

    def cancel(self, run_id: str | None = None) -> tuple[str, ...]:
        """Cancel a run, or all for None; return the ids of those that were running. SessionError for an unknown run."""
        if run_id is not None:
            self.run(run_id)
        chosen = self.active() if run_id is None else tuple(name for name in self.active() if name == run_id)
        for name in chosen:
            self._cancel(name)
        return chosen

    async def close(self) -> None:
        """Cancel all runs, close the shells, and close the files; runs and deletions get a second each to end."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LEAVE_SECONDS)
        await self._deletion.close()
        if self._services.shells.screens is not None:
            await self._services.shells.screens.close()
        await self._services.shells.shadows.close()
        self._store.close()

    def _opened(self, session_id: str) -> Session:
        approvals = Approvals(self._services.standing)
        return Session(session_id, self._store, self._listeners, approvals=approvals)

    def _work(self, run: Run, work: Coroutine[Any, Any, None]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.pop(run.record.run_id, None)
            run.abandon()

        task = asyncio.get_running_loop().create_task(work, name=f"run {run.record.run_id}")
        self._tasks[run.record.run_id] = task
        task.add_done_callback(ended)

    def _cancel(self, run_id: str) -> None:
        task = self._tasks.get(run_id)
        if task is not None:
            task.cancel()

    def _stored_title(self, session_id: str) -> str:
        records = self._store.load(session_id)
        titles = (record.get("title", "") for record in records if record.get("type") == "run_started")
        return next(filter(None, titles), "")


def _run(session: Session, record: RunRecord, services: Services) -> Run:
    from codeagent_lsp.session.run import Run  # late: it needs all tools, and an idle server does without them

    return Run(session, record, services)
