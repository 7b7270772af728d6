"""The commands `codeagent.session.rewind` and `codeagent.session.fork`. Not here: going back (`session/rewind`)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import SessionError
from codeagent_lsp.server.commands.arguments import Arguments, Table, recorded_run
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.session.rewind.earlier_texts import EarlierTexts
    from codeagent_lsp.session.session import Session


class RewindCommands:
    """The handlers of these commands."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._manager = backend.manager

    def table(self) -> Table:
        """Return the handlers by command name."""
        return {"codeagent.session.rewind": self._rewind, "codeagent.session.fork": self._fork}

    async def _rewind(self, given: Arguments) -> dict[str, Any]:
        """Start the rewind as a run, or tell what it would do."""
        await self._backend.ready()
        from codeagent_lsp.session.own_runs import going_back  # late: with the parts of a run
        from codeagent_lsp.session.rewind.other_attempts import load_attempts  # late, as above
        from codeagent_lsp.session.rewind.rewinding import check  # late, as above

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
        from codeagent_lsp.session.rewind.rewinding import planned  # late: with the parts of a run
        from codeagent_lsp.session.rewind.taking_back import FirstRead  # late, as above

        runs = [{"runId": name, "title": session.context.runs[name].title} for name in gone]
        answer: dict[str, Any] = {"runs": runs, "files": [], "diff": "", "conflicts": []}
        if what == "talk":
            return answer
        view = self._backend.views.plain()
        earlier = await asyncio.to_thread(planned, session, gone, self._manager.runs, FirstRead(view))
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


def _changes(earlier: EarlierTexts) -> Changeset:
    """Return what would be changed, for showing it."""
    moves, changed = earlier.moves(), earlier.changed()
    return Changeset(
        tuple(
            FileChange(path, earlier.read(moves.get(path, path)), earlier.text(path), None, moves.get(path))
            for path in dict.fromkeys((*moves, *changed))
        )
    )
