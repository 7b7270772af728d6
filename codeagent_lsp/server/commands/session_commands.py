"""The commands of `codeagent.session.*`; and what tells the user, when the server starts, what waits from before, which
is listed and offered as what waits from now on.

Not here: sessions (`session/manager.py`), which of them have something waiting (`session/left_waiting.py`), lenses and
actions (`backend.py`), going back (`session/rewind`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.server.announcer import transcript_name
from codeagent_lsp.server.commands.convert import Arguments, Later, Table, recorded_run
from codeagent_lsp.server.plans import plan_name
from codeagent_lsp.server.reviews import review_name
from codeagent_lsp.session.history.listing import found_rows
from codeagent_lsp.session.left_waiting import asked_again, lapsed_line, lapsed_questions, waiting
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.session.transcript import render, replay_events
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.text.visible import some_of

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.session.rewind.earlier_texts import EarlierTexts


FOUND, MOST_FOUND = 20, 200
MOST_NAMED = 3
MOST_TITLE = 60


class SessionCommands:
    """The handlers of `codeagent.session.*`, without rewind and fork; `later` runs work after the answer."""

    def __init__(self, backend: Backend, later: Later) -> None:
        self._backend = backend
        self._manager = backend.manager
        self._later = later

    def table(self) -> Table:
        """Return the handlers by the names of their commands."""
        return {
            "codeagent.session.new": self._new,
            "codeagent.session.list": lambda given: self._manager.list(),
            "codeagent.session.resume": self._resume,
            "codeagent.session.search": self._search,
            "codeagent.session.delete": self._delete,
            "codeagent.session.export": self._export,
            "codeagent.session.events": self._events,
        }

    def _new(self, given: Arguments) -> dict[str, str]:
        self._backend.remembering.session_ended()
        return {"sessionId": self._manager.new().session_id}

    async def _resume(self, given: Arguments) -> dict[str, Any]:
        await self._backend.ready()  # answers to questions of before are stored: their secrets are masked then
        session = self._manager.resume(given["sessionId"])
        self._later(asked_about(self._backend, session))
        answer = {"sessionId": session.session_id, "title": session.context.title, "runs": len(session.context.runs)}
        return {**answer, "lapsed": lapsed_questions(session)}

    async def _search(self, given: Arguments) -> list[dict[str, Any]]:
        limit = max(1, min(given.get("limit", FOUND), MOST_FOUND))
        return found_rows(await asyncio.to_thread(self._backend.kept.history.search, given["query"], limit))

    def _delete(self, given: Arguments) -> dict[str, bool]:
        # Read before it is deleted: the events name the attempts and runs that go with it.
        stored = list(self._stored_events(given["sessionId"]))
        self._delete_one(given["sessionId"], stored)
        attempts = [name for event in stored if isinstance(event, events.AttemptsBegun) for name in event.sessions]
        for name in attempts:  # they began with the talk of this session
            try:
                stored = list(self._stored_events(name))
                if sum(isinstance(event, events.RunStarted) for event in stored) <= 1:  # else it was gone on with
                    self._delete_one(name, stored)
            except SessionError as error:
                if error.key != "session.unknown":
                    words = text("session.attempt_stays", self._backend.front.language())
                    self._backend.announcer.tell(words, types.MessageType.Warning)
        return {"ok": True}

    def _delete_one(self, session_id: str, stored: Iterable[events.Event]) -> None:
        run_ids = {event.run_id for event in stored}
        self._later(self._forget_documents(session_id, run_ids, self._manager.delete(session_id)))

    async def _export(self, given: Arguments) -> dict[str, Any]:
        session_id = given.get("sessionId") or self._manager.current().session_id
        markdown = render(self._stored_events(session_id), self._backend.front.language())
        self._backend.own_documents.put(_export_name(session_id), markdown)
        answer = {"sessionId": session_id, "markdown": markdown}
        return {**answer, "context": await self._context(session_id)} if given.get("context") else answer

    async def _events(self, given: Arguments) -> dict[str, Any]:
        await self._backend.ready()
        session_id = given.get("sessionId") or self._manager.current().session_id
        told, more = await asyncio.to_thread(lambda: replay_events(list(self._stored_events(session_id))))
        title = self._manager.viewed(session_id).context.title
        return {"sessionId": session_id, "title": title, "events": told, "more": more}

    async def _context(self, session_id: str) -> Mapping[str, Any]:
        """Return a session's state as JSON values, with its secrets masked."""
        from codeagent_lsp.session.context_export import SessionSurroundings, to_dict  # late: with its parts

        backend, settings = self._backend, self._backend.front.settings()
        await backend.redactor.ready()
        memory = await asyncio.to_thread(backend.knowledge.memory.offered)
        around = SessionSurroundings(session_id, backend.state.name, settings, backend.views.plain(), memory)
        context = self._manager.viewed(session_id).context
        return backend.redactor.clean(
            await asyncio.to_thread(to_dict, context, self._stored_events(session_id), around)
        )

    def _stored_events(self, session_id: str) -> Iterable[events.Event]:
        """Yield the recorded events of a session; unreadable ones are left out."""
        for record in self._backend.store.load(session_id):
            try:
                yield events.from_dict(record)
            except (KeyError, TypeError):
                continue

    async def _forget_documents(self, session_id: str, run_ids: Iterable[str], deleted: asyncio.Task[None]) -> None:
        """Remove the virtual documents of a deleted session, once nothing is added to them any more."""
        # `wait` does not raise: the documents go even if deleting failed.
        await asyncio.wait((deleted,))
        await asyncio.to_thread(self._backend.kept.history.refresh)  # it forgets them, too
        documents = self._backend.own_documents
        documents.remove(transcript_name(session_id), _export_name(session_id))
        for run_id in run_ids:
            documents.remove(review_name(run_id), plan_name(run_id))


class RewindCommands:
    """The handlers of `codeagent.session.rewind` and `codeagent.session.fork`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._manager = backend.manager

    def table(self) -> Table:
        """Return the handlers by the names of their commands."""
        return {"codeagent.session.rewind": self._rewind, "codeagent.session.fork": self._fork}

    async def _rewind(self, given: Arguments) -> dict[str, Any]:
        """Start the rewind as a run, or tell what it would do."""
        await self._backend.ready()
        from codeagent_lsp.session.own_runs import going_back  # late: with the parts of a run
        from codeagent_lsp.session.rewind.rewinding import check, load_attempts  # late: likewise

        session, run_id = await self._before(given.get("runId"))
        what = given.get("what", "both")
        gone = check(session, run_id, self._manager.runs)
        load_attempts(session, gone, self._manager.resume)  # what was taken from them goes with the rest
        if given.get("preview"):
            return await self._preview(session, gone, what)
        subject = session.context.runs[run_id].title
        title = text("title.session_rewind", self._backend.front.language(), title=subject)
        work = going_back(gone, what, self._manager.runs)
        started = self._manager.start(RunRequest("session.rewind", subject, title), session.session_id, work)
        return {"runId": started, "sessionId": session.session_id, "runs": list(gone)}

    async def _before(self, run_id: str | None) -> tuple[Session, str]:
        """Return a run and its session; for None the last run of the current session that is not taken back."""
        if run_id is not None:
            run = await recorded_run(self._backend, run_id)
            whole = run.record.attempt_of  # what an attempt changed is what its run proposed
            return ((await recorded_run(self._backend, whole)).session, whole) if whole else (run.session, run_id)
        session = self._manager.current()
        for name in reversed(session.context.runs):
            if session.context.rewinds.leaves(name):
                return session, name
        raise SessionError("rewind.nothing")

    async def _preview(self, session: Session, gone: tuple[str, ...], what: str) -> dict[str, Any]:
        from codeagent_lsp.session.rewind.earlier_texts import FirstRead  # late, as above
        from codeagent_lsp.session.rewind.rewinding import plan_rewind  # late: with the parts of a run

        runs = [{"runId": name, "title": session.context.runs[name].title} for name in gone]
        answer: dict[str, Any] = {"runs": runs, "files": [], "diff": "", "conflicts": []}
        if what == "talk":
            return answer
        view = self._backend.views.plain()
        earlier = await asyncio.to_thread(plan_rewind, session, gone, self._manager.runs, FirstRead(view))
        relative = view.roots.relative
        conflicts = [f"{relative(each.path)}:{each.line}" for each in earlier.conflicts]
        changes = _changes(earlier)
        files = [*map(relative, changes.paths)]
        diff = await asyncio.to_thread(changes.diff, relative)
        return {**answer, "files": files, "diff": diff, "conflicts": conflicts}

    async def _fork(self, given: Arguments) -> dict[str, str]:
        run_id, source = given.get("runId"), given.get("sessionId")
        if run_id is not None and source is None:
            source = await asyncio.to_thread(self._backend.kept.history.session_of, run_id)
            if source is None:
                raise SessionError("run.unknown", run=run_id)
        made = await self._manager.fork(source, run_id)
        return {"sessionId": made.session_id, "title": made.context.title}


async def tell_what_waits(backend: Backend) -> None:
    """Load the sessions other than the current one in which something waits; show that to the user, and ask open
    questions again.
    """
    sessions = await backend.manager.recall()
    if not sessions:
        return
    backend.announcer.refresh_lenses()
    language = backend.front.language()
    runs = [run for session in sessions for run in waiting(session)]
    for words in (_staged_line(runs, language), _unsettled_line(runs, backend.views.plain().roots.relative, language)):
        if words:
            backend.announcer.tell(words)
    for session in sessions:
        if any(run.torn and run.unanswered for run in session.context.runs.values()):
            await backend.ready()  # answers are stored: their secrets are masked then
            await asked_about(backend, session)


def asked_about(backend: Backend, session: Session) -> Coroutine[Any, Any, None]:
    """Show the open questions of interrupted runs to the user; return a coroutine that asks those of the agent again
    and waits for the answers.
    """
    if words := lapsed_line(session, backend.front.language()):
        backend.announcer.tell(words, types.MessageType.Warning)
    return asked_again(session, backend.inbox, backend.manager.start)


def _export_name(session_id: str) -> str:
    return f"export/{session_id}.md"


def _changes(earlier: EarlierTexts) -> Changeset:
    """Return what would be changed, for showing it."""
    moves, changed = earlier.moves(), earlier.changed()
    return Changeset(
        tuple(
            FileChange(path, earlier.read(moves.get(path, path)), earlier.text(path), None, moves.get(path))
            for path in dict.fromkeys((*moves, *changed))
        )
    )


def _staged_line(runs: Iterable[RunRecord], language: str) -> str:
    """Return a sentence that names the runs whose changes wait; '' for none."""
    titles = [f"{run.title[:MOST_TITLE]} ({len(run.staged.paths)})" for run in runs if run.staged]
    return text("session.left", language, titles=some_of(titles, MOST_NAMED, counted=False)) if titles else ""


def _unsettled_line(runs: Iterable[RunRecord], name: Callable[[str], str], language: str) -> str:
    """Return a sentence that names the files of which it is not known whether they hold accepted changes."""
    names = [name(path) for run in runs for path in run.unsettled]
    return text("session.unsettled", language, files=some_of(names, MOST_NAMED, counted=False)) if names else ""
