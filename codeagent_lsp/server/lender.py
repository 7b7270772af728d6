"""Lends the editor to other agents on this machine that the user has allowed: asks once for each, remembers, and lets
them in.

Until one is allowed nothing listens: a request is a small file in a folder that is looked at every second. Not here:
the files (`lend.py`), the socket (`door.py`), what an agent may do (`session/lending`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import SessionError, UsageError
from codeagent_lsp.lend import LendAnswer, LendRequest, MeetingPlace, holding
from codeagent_lsp.session.request import LENT, RunRequest
from codeagent_lsp.state import changing, read_json, replace_json
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question

if TYPE_CHECKING:
    from codeagent_lsp.index.host import IndexHost
    from codeagent_lsp.server.announcer import Announcer
    from codeagent_lsp.server.door import Door, LentConnection
    from codeagent_lsp.server.front import Front
    from codeagent_lsp.session.inbox import Inbox
    from codeagent_lsp.session.manager import SessionManager
    from codeagent_lsp.session.redaction.redactor import Redactor

LOOK_SECONDS = 1.0
DECLINED_SECONDS = 300.0
"""How long an agent is not asked about again after "not now", and after the user has ended its run."""
MOST_QUESTIONS = 3
"""Most agents that the user is asked about at a time."""
MOST_NOTED = 200
"""Most refused connections that are written to the audit log while the socket is open."""

DECISIONS = ("always", "never")
MOST_DECISIONS = 200

logger = logging.getLogger(__name__)


class LendingServer(Protocol):
    """Port: the parts of a server that lending its editor uses."""

    front: Front
    state: Path
    inbox: Inbox
    announcer: Announcer
    redactor: Redactor
    index: IndexHost
    manager: SessionManager

    async def ready(self) -> None:
        """Load the modules and the redactor that runs need."""


class Lender:
    """Lends the editor of one server to other agents. `start` begins to look for requests; before that, and with the
    setting `lend.editor` off, it does nothing.
    """

    def __init__(self, backend: LendingServer) -> None:
        self._backend = backend
        self._allowed = AllowedClients(backend.state / "lend.json")
        self._place: MeetingPlace | None = None
        self._door: Door | None = None
        self._watching: asyncio.Task[None] | None = None
        self._tasks = BackgroundTasks()
        self._asked: dict[str, asyncio.Task[None]] = {}  # by the id of the request
        self._questions: dict[str, asyncio.Task[str]] = {}  # by the client's name
        self._declined: dict[str, float] = {}
        self._attached: dict[LentConnection, str] = {}  # to the ids of their runs
        self._folders: list[str] = []
        self._free: dict[str, list[str]] = {}  # ids of sessions by the names of the agents that had them
        self._noted = 0

    def start(self) -> None:
        """Look for requests every second, in the background, until `close`; a second call does nothing."""
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch())

    def clients(self) -> list[dict[str, Any]]:
        """Return a row for each agent that was decided about or is connected, by name: `client`, `allow` (`always`,
        `never`, or `ask` if undecided) and `attached` (whether it is connected). Blocks for reading a small file.
        """
        decided = self._allowed.all()
        attached = {connection.name for connection in self._attached}
        return [
            {"client": name, "allow": decided.get(name, "ask"), "attached": name in attached}
            for name in sorted({*decided, *attached})
        ]

    def revoke(self, client: str | None) -> list[str]:
        """Forget what was decided about an agent, or all, and end their runs; return their names. UsageError for an
        agent of which nothing is known.
        """
        known = [row["client"] for row in self.clients()] + list(self._declined)
        names = list(dict.fromkeys(name for name in known if client in (None, name)))
        if client is not None and not names:
            raise UsageError("lend.unknown", client=client[:100])
        self._allowed.forget(names)
        for name in names:
            self._declined.pop(name, None)
        for connection, run_id in tuple(self._attached.items()):
            if connection.name in names:
                self._backend.manager.runs.cancel(run_id)
        return names

    async def close(self) -> None:
        """End all connections of other agents, close the socket and remove its announcement; waits about 1 s at most
        for the other agents.
        """
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        await self._shut("ended")
        self._tasks.cancel()

    # What is looked for.

    async def _watch(self) -> None:
        while True:
            try:
                await self._look()
            except Exception:  # such as a full or a read-only disk: then nobody can ask, and all else goes on
                logger.warning("the folder for other agents cannot be used", exc_info=True)
                await self._shut("ended")
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        """Look once: at the setting, at requests, and whether the socket is still needed."""
        if self._backend.front.settings().lend.editor == "off" or self._backend.front.settings_link.refusal is not None:
            await self._shut("off")
            return
        if self._place is None:
            place = MeetingPlace(self._backend.state)
            self._folders = self._backend.front.folders()
            await asyncio.to_thread(place.open, self._folders, self._backend.front.client.policy.name)
            self._place = place
        if self._folders != self._backend.front.folders():
            self._folders = self._backend.front.folders()
            self._place.announce(self._folders, self._backend.front.client.policy.name)
        requests = {request.nonce: request for request in self._place.requests()}
        for nonce in self._asked.keys() - requests.keys():  # it has gone, or takes no interest any more
            self._asked.pop(nonce).cancel()
        for nonce, request in requests.items():
            if nonce not in self._asked:
                self._asked[nonce] = self._tasks.start(self._answer(request, self._place))
        for name in [name for name, asking in self._questions.items() if asking.done()]:
            del self._questions[name]
        if self._door is not None:
            await self._door.close_unused()

    async def _shut(self, reason: str) -> None:
        """Withdraw the announcement and end everything that came of it."""
        for task in (*self._asked.values(), *self._questions.values()):
            task.cancel()
        self._asked.clear()
        self._questions.clear()
        place, self._place = self._place, None
        door, self._door = self._door, None
        if door is not None:
            await door.close(reason)
        if place is not None:
            place.close()

    # What becomes of a request.

    async def _answer(self, request: LendRequest, place: MeetingPlace) -> None:
        """Have the user decide about a request, and write the answer."""
        try:
            if self._holds(os.path.realpath(request.workspace)):  # noqa: ASYNC240 (a link or two, once for a request)
                answer = await self._grant(request, place)
            else:
                answer = LendAnswer("refused", "workspace")
            place.answer(request.nonce, answer)
        except OSError as problem:
            logger.warning("a request of %s cannot be answered", request.client, exc_info=True)
            words = {"client": request.client, "reason": problem.strerror or problem, "place": place.path}
            self._backend.announcer.tell(text("lend.no_socket", self._language, **words))

    async def _grant(self, request: LendRequest, place: MeetingPlace) -> LendAnswer:
        name = request.client
        # Also one that is always allowed: the user has just ended what it did.
        declined = self._declined.get(name, 0.0) > time.monotonic()
        decision = "not_now" if declined else self._allowed.of(name)
        if decision is None:
            open_ones = [other for other, asking in self._questions.items() if not asking.done()]
            if name not in open_ones and len(open_ones) >= MOST_QUESTIONS:
                return LendAnswer("refused", "not_now")
            place.answer(request.nonce, LendAnswer("asking"))
            if name not in open_ones:  # one question for all its processes
                self._questions[name] = self._tasks.start(self._ask(name))
            decision = await asyncio.shield(self._questions[name])
        if decision != "always":
            return LendAnswer("refused", decision)
        await self._backend.ready()
        address, token = await self._open_door(place).expect(request)
        return LendAnswer("granted", address=address, token=token)

    async def _ask(self, name: str) -> str:
        """Ask the user about an agent, and return and remember what they say: `always`, `never` or `not_now`."""
        words = {key: text(f"lend.{key}", self._language) for key in ("not_now", "allow", "never")}
        title = text("lend.ask", self._language, client=name)
        question = Question("approval", title, tuple(words.values()), danger=True)
        await self._backend.redactor.ready()
        answer = await self._backend.inbox.ask("", question, self._backend.redactor.observe)
        decision = {words["allow"]: "always", words["never"]: "never"}.get((answer or ("",))[0], "not_now")
        await self._backend.redactor.note("lend", client=name, decision=decision)
        if decision == "not_now":
            self._declined[name] = time.monotonic() + DECLINED_SECONDS
            return decision
        try:
            self._allowed.set(name, decision)
        except OSError as problem:
            reason = problem.strerror or problem
            self._backend.announcer.tell(text("lend.not_kept", self._language, client=name, reason=reason))
        return decision

    def _open_door(self, place: MeetingPlace) -> Door:
        if self._door is None:
            from codeagent_lsp.server.door import Door  # late: nothing listens in an idle server

            self._noted = 0
            self._door = Door(place.path, self._holds, self._admit, self._note_refusal)
        return self._door

    def _holds(self, folder: str) -> bool:
        return holding(self._backend.front.folders(), folder) is not None

    # Who is let in.

    def _admit(self, connection: LentConnection) -> None:
        """Begin the run of an agent that has connected."""
        from codeagent_lsp.session.lending.lent_run import lent  # late: with the parts of a run

        backend, request = self._backend, connection.request
        if self._place is not None:
            self._place.forget(request.nonce)
        backend.index.wanted()
        title = text("lend.title", self._language, client=connection.name)
        # One that it had before: each open session has a file, and a place for commands.
        free = self._free.get(connection.name)
        work = lent(connection)
        run_id = backend.manager.start_beside(RunRequest(LENT, "", title), work, free.pop() if free else None)
        self._attached[connection] = run_id
        self._tasks.start(backend.redactor.note("lend_attached", client=connection.name, run=run_id, pid=request.pid))
        task = backend.manager.runs.task(run_id)
        assert task is not None
        task.add_done_callback(lambda done: self._on_leave(connection, cancelled=done.cancelled()))

    def _on_leave(self, connection: LentConnection, *, cancelled: bool) -> None:
        # Also where the run was cancelled before its first step.
        run_id = self._attached.pop(connection)
        with suppress(SessionError):  # the user has deleted it
            session = self._backend.manager.runs.get(run_id).session
            self._free.setdefault(connection.name, []).append(session.session_id)
        connection.abort()
        if cancelled:
            self._declined[connection.name] = time.monotonic() + DECLINED_SECONDS

    def _note_refusal(self, reason: str, client: str, user: int | None) -> None:
        """Write to the audit log that somebody was turned away."""
        self._noted += 1
        if self._noted <= MOST_NOTED:
            self._tasks.start(self._backend.redactor.note("lend_refused", reason=reason, client=client, user=user))

    @property
    def _language(self) -> str:
        return self._backend.front.language()


# What the user has decided about other agents, by name, in a file of the workspace's state.


class AllowedClients:
    """The user's decisions about agents in one workspace; read from the disk each time, as several editors share
    them.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def all(self) -> dict[str, str]:
        """Return the user's decisions, `always` or `never`, by the names of clients; {} if the file cannot be read."""
        return {name: decision for name, decision in read_json(self._file).items() if decision in DECISIONS}

    def of(self, name: str) -> str | None:
        """Return the decision about a client, `always` or `never`; None if there is none."""
        return self.all().get(name)

    def set(self, name: str, decision: str) -> None:
        """Store a decision, `always` or `never`; of more than 200 the oldest are dropped. Blocks. OSError if it cannot
        be written.
        """
        with changing(self._file):
            others = {other: kept for other, kept in self.all().items() if other != name}
            kept = [*others.items(), (name, decision)][-MOST_DECISIONS:]
            replace_json(self._file, dict(kept))

    def forget(self, names: Iterable[str]) -> None:
        """Drop the decisions about these clients; unknown names are ignored. Blocks. OSError if that cannot be
        written.
        """
        with changing(self._file):
            known, gone = self.all(), set(names)
            if gone & known.keys():
                replace_json(self._file, {name: kept for name, kept in known.items() if name not in gone})
