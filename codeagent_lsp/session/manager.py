"""Manages all sessions of one server: start a run in one, find, resume, delete.

Not here: the runs by their ids (`runs.py`), the protocol (`server/`).
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from codeagent_lsp import events
from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import SessionError, UsageError
from codeagent_lsp.messages import Message, Usage
from codeagent_lsp.session.replay import conversation_before, message_to_dict, replay
from codeagent_lsp.session.request import CHANGES, RunRequest
from codeagent_lsp.session.runs import Runs
from codeagent_lsp.session.services import Services
from codeagent_lsp.session.session import Listener, Session
from codeagent_lsp.session.spending import cached_percent, usage_data, used_in
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.session.task_queue import TaskQueue
from codeagent_lsp.tools.permissions.approvals import Approvals

if TYPE_CHECKING:
    from codeagent_lsp.session.own_runs import OwnWork
    from codeagent_lsp.session.run import Run

# A run may have to stop a command first, and a shadow of a large workspace takes a while to delete.
CLEAR_SECONDS = 30.0
LEAVE_SECONDS = 1.0

logger = logging.getLogger(__name__)


class SessionManager:
    """The sessions of one server by id, its `runs`, and the `queue` of tasks that wait for them. The current session
    takes requests that name none. Belongs to one event loop; call `close` in the end.
    """

    def __init__(self, store: SessionStore, services: Services, listeners: Iterable[Listener] = ()) -> None:
        # A lambda, as the queue is made of the runs and does not exist yet.
        self.runs = Runs(lambda run: self.queue.ended(run))
        self.queue = TaskQueue(self.runs, services, self._begin)
        self._store = store
        self._services = services
        self._listeners = tuple(listeners)
        self._sessions: dict[str, Session] = {}
        self._deletion = SessionDeletion(services)
        self._current: Session | None = None

    def new(self) -> Session:
        """Create a session without any run and make it the current one; all tools that the circuit breaker suspended
        may be called again. Its file is made with its first event.
        """
        self._services.registry.circuits.close_all()  # what failed in another session may work in this one
        session = self._open_session(uuid.uuid4().hex[:16])
        self._sessions[session.session_id] = session
        self._current = session
        return session

    def current(self) -> Session:
        """Return the current session; create one, as `new` does, if there is none."""
        return self._current or self.new()

    def session(self, session_id: str | None) -> Session:
        """Return the session with that id, loaded if necessary; the current one for None. SessionError if it is unknown
        or in use by another process. Blocks for reading one that is not loaded.
        """
        if session_id is None:
            return self.current()
        return self._sessions.get(session_id) or self.resume(session_id)

    async def fork(self, session_id: str | None, run_id: str | None) -> Session:
        """Create a session that begins with the conversation of another, as it was before a run (None: as it is now),
        and make it the current one; None for the session is the current one. SessionError for an unknown run or
        session. Nothing of the other changes.
        """
        source = self.current() if session_id is None else self.viewed(session_id)
        if run_id is not None and run_id not in source.context.runs:
            raise SessionError("run.unknown", run=run_id)
        said = await asyncio.to_thread(conversation_before, source, run_id)
        return _fork_into(self.new(), source, said, source.context.title)

    def viewed(self, session_id: str) -> Session:
        """Return the session with that id to read its state; one that is not in use is loaded, without locking it, and
        not kept. SessionError if it is unknown. Blocks for reading one.
        """
        known = self._sessions.get(session_id)
        if known is None:
            known = self._open_session(session_id)
            # `load` takes no lock and repairs nothing, so a session of another process can be looked at.
            replay(known, self._store.load(session_id))
        return known

    def resume(self, session_id: str, *, enter: bool = True) -> Session:
        """Load a stored session and make it the current one; without `enter` it is only loaded. One that is loaded is
        not read again. SessionError if it is unknown or in use by another process. Blocks.
        """
        known = self._sessions.get(session_id)
        if known is None:
            known = self._open_session(session_id)
            replay(known, self._store.reopen(session_id))
            self._sessions[session_id] = known
            runs = [_run(known, record, self._services) for record in known.context.runs.values()]
            self.runs.add_all(runs, newest=enter)
            # After its runs are known: a waiting task must not start beside one that is still open.
            self.queue.resumed(known)
        if enter and known is not self._current:
            self._services.registry.circuits.close_all()  # as for a new one
        self._current = known if enter else self._current
        return known

    async def recall(self) -> tuple[Session, ...]:
        """Load the stored sessions in which something waits for the user, and return them; the current one stays. Those
        that another process works with are left out.
        """
        from codeagent_lsp.session.left_waiting import sessions_that_wait  # late: only a start looks

        found = []
        for session_id in await asyncio.to_thread(sessions_that_wait, self._store):
            if session_id not in self._sessions:
                # In use by another process, or deleted between the two steps: neither is worth a word at the start.
                with suppress(SessionError):
                    found.append(self.resume(session_id, enter=False))
        return tuple(found)

    async def list(self) -> list[dict[str, Any]]:
        """Return a row of plain data for each stored session, the newest first: `sessionId`, `title`, `modified`
        (seconds since the epoch), and, if anything was used, `usage` and `cachedPercent`. Reads files in a thread.
        """
        live = {name: (each.context.title, each.context.usage) for name, each in self._sessions.items()}
        return await asyncio.to_thread(_rows, self._store, live)

    def delete(self, session_id: str) -> asyncio.Task[None]:
        """Cancel a session's runs and delete it; the returned task ends when its shadow and its outputs are deleted,
        too. SessionError if it is unknown, or another process works with it.
        """
        # First, as it is what can fail: nothing of a session is stopped that another process holds.
        self._store.delete(session_id)
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.context.waiting.clear()
            self.queue.settle(session)
        # The waiting words go before this: ending a run would start the next task of the queue.
        working = self.runs.remove(tuple(session.context.runs) if session else ())
        if session is not None and session is self._current:
            self._current = None
        return self._deletion.start(session_id, working)

    def start(self, request: RunRequest, session_id: str | None = None, work: OwnWork | None = None) -> str:
        """Start a run in a session (None: the current one) and return its id once it is stored, without waiting for its
        work; a task for a session that is busy waits in the queue. SessionError if the session is unknown or another
        process works with it, UsageError for a change in the mode `readOnly`. `work` does the work of a run that needs
        no model.
        """
        if request.kind in CHANGES and self._services.user.mode() == "readOnly":
            raise UsageError("mode.no_changes")
        session = _whole(self.session(session_id), self.runs)
        if self.queue.takes(session, request):
            return self.queue.add(session, request)
        return self._begin(session, request, uuid.uuid4().hex[:16], work)

    def start_beside(self, request: RunRequest, work: OwnWork, session_id: str | None = None) -> str:
        """Start a run in a session other than the user's, a new one unless `session_id` is in use here, and return the
        run's id; the current session stays the current one.
        """
        session = self._sessions.get(session_id or "") or self._open_session(uuid.uuid4().hex[:16])
        self._sessions[session.session_id] = session
        return self._begin(session, request, uuid.uuid4().hex[:16], work)

    def sessions(self) -> tuple[Session, ...]:
        """Return the sessions that this server has begun or loaded; all others are in the store alone. () before the
        first one.
        """
        return tuple(self._sessions.values())

    async def close(self) -> None:
        """Stop the queue, cancel all runs, and close the shells, the language servers and the store. Waits at most a
        second for the runs to end, and another for deletions, which are then cancelled.
        """
        self.queue.close()
        await self.runs.close()
        await self._deletion.close()
        if self._services.shells.screens is not None:
            await self._services.shells.screens.close()
        if self._services.workspace.servers is not None:
            await self._services.workspace.servers.close()
        await self._services.shells.environments.close()
        self._store.close()

    def _begin(
        self,
        session: Session,
        request: RunRequest,
        run_id: str,
        work: OwnWork | None = None,
        # An attempt has its own: frozen buffers, a warmer model.
        services: Services | None = None,
        attempt_of: str = "",
    ) -> str:
        # Before anything is emitted: two processes must not append to one file.
        session.claim()
        if request.attempts > 1:
            from codeagent_lsp.session.attempting import attempting  # late: with the parts of a run

            work = attempting(self._attempt, self.runs)
        record = RunRecord(run_id, request.kind, request.title, attempt_of=attempt_of, attempt=request.attempt)
        session.context.begin(record)
        run = _run(session, record, services or self._services)
        self.runs.add(run)
        # Stored before its task starts, so that a crash in between leaves a run that is told as torn.
        run.begin(request, [each.proposal for each in self.runs.all() if each.session is session and each is not run])
        self.runs.start(run, run.execute(request, work))
        return record.run_id

    def _attempt(
        self, source: Session, said: Sequence[Message], request: RunRequest, services: Services, run_id: str
    ) -> str:
        """Start an attempt for a run in a session of its own, and return its run id."""
        session = self._open_session(uuid.uuid4().hex[:16])
        self._sessions[session.session_id] = session
        _fork_into(session, source, said, request.title)
        return self._begin(session, request, uuid.uuid4().hex[:16], None, services, run_id)

    def _open_session(self, session_id: str) -> Session:
        approvals = Approvals(self._services.standing)
        return Session(session_id, self._store, self._listeners, approvals=approvals)


def _whole(session: Session, runs: Runs) -> Session:
    """Return the session that an attempt's session works for, if that is in use; any other as it is."""
    # What the user says in an attempt's session is meant for the task, which belongs to the session that began it.
    of = {record.attempt_of for record in session.context.runs.values() if record.attempt_of}
    return next((run.session for run in runs.all() if run.record.run_id in of), session)


def _fork_into(made: Session, source: Session, messages: Sequence[Message], title: str) -> Session:
    """Return a new session, to which these messages of another are given."""
    told = tuple(map(message_to_dict, messages))
    made.emit("", events.SessionForked(source=source.session_id, title=title, messages=told))
    made.context.conversation.extend(messages)
    made.context.origin = title
    return made


def _rows(store: SessionStore, live: Mapping[str, tuple[str, Usage]]) -> list[dict[str, Any]]:
    """Return a row for each session; those that are not `live` are read, which blocks."""
    rows: list[dict[str, Any]] = []
    for item in store.list():
        title, usage = live.get(item.session_id) or _stored_summary(store, item.session_id)
        used = usage_data(usage)
        row: dict[str, Any] = {"sessionId": item.session_id, "title": title, "modified": item.modified}
        if used:
            row |= {"usage": used} | ({"cachedPercent": share} if (share := cached_percent(used)) else {})
        rows.append(row)
    return rows


def _stored_summary(store: SessionStore, session_id: str) -> tuple[str, Usage]:
    """Return the title of a stored session and what it used."""
    records = list(store.load(session_id))
    titles = (record.get("title", "") for record in records if record.get("type") in ("run_started", "session_forked"))
    return next(filter(None, titles), ""), used_in(records)


def _run(session: Session, record: RunRecord, services: Services) -> Run:
    from codeagent_lsp.session.run import Run  # late: it needs all tools, and an idle server does without them

    return Run(session, record, services)


# Deletes in the background what a deleted session leaves: its screens, its shadow, its long outputs, its artifacts.


class SessionDeletion:
    """Deletes the shadows and outputs of deleted sessions in the background; one for a server."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._tasks = BackgroundTasks()

    def start(self, session_id: str, working: Sequence[asyncio.Task[None]]) -> asyncio.Task[None]:
        """Start to delete what a session leaves, and return the task. It waits for `working`, the session's runs, and
        gives up after 30 seconds; what is left then is logged.
        """
        return self._tasks.start(self._clear(session_id, working))

    async def close(self) -> None:
        """Wait for the running deletions, a second at most, then cancel them."""
        await self._tasks.close(LEAVE_SECONDS)

    async def _clear(self, session_id: str, working: Sequence[asyncio.Task[None]]) -> None:
        try:
            async with asyncio.timeout(CLEAR_SECONDS):
                # `asyncio.wait` raises for an empty set.
                if working:
                    await asyncio.wait(working)
                if self._services.shells.screens is not None:
                    await self._services.shells.screens.close(session_id)
                await self._services.shells.environments.close(session_id)
                if self._services.workspace.servers is not None:
                    await self._services.workspace.servers.close(session_id)
                await asyncio.to_thread(self._services.kept.outputs(session_id).remove)
                await asyncio.to_thread(self._services.kept.artifacts(session_id).remove)
        except (TimeoutError, OSError):
            logger.warning("something of the deleted session %s is left", session_id, exc_info=True)
