"""The commands about staged changes: `codeagent.review`, `apply`, `discard`, `undo`. See `reviews.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codeagent_lsp.server.commands.arguments import Arguments, Later, Table
from codeagent_lsp.server.commands.convert import chosen_files, chosen_hunks
from codeagent_lsp.server.commands.recorded_runs import recorded_run

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend


class ChangeCommands:
    """The handlers of these commands; `later` runs work after the answer."""

    def __init__(self, backend: Backend, later: Later) -> None:
        self._backend = backend
        self._later = later

    def table(self) -> Table:
        """Return the handlers by command name."""
        return {
            "codeagent.review": self._review,
            "codeagent.apply": self._apply,
            "codeagent.discard": self._discard,
            "codeagent.undo": self._undo,
        }

    async def _review(self, given: Arguments) -> dict[str, Any]:
        await recorded_run(self._backend, given["runId"])
        reviews = self._backend.reviews
        found = reviews.data(given["runId"])
        self._later(reviews.show(given["runId"]))
        return found

    async def _apply(self, given: Arguments) -> dict[str, str]:
        run, view = await recorded_run(self._backend, given["runId"]), self._backend.views.plain()
        reviews = self._backend.reviews
        files, hunks = chosen_files(given, view), chosen_hunks(given, view)
        seen = reviews.seen(run, given.get("digest"), hunks)
        self._later(reviews.apply(run, files, hunks, seen))
        return {"runId": given["runId"]}

    async def _discard(self, given: Arguments) -> dict[str, Any]:
        run, view = await recorded_run(self._backend, given["runId"]), self._backend.views.plain()
        reviews = self._backend.reviews
        files, hunks = chosen_files(given, view), chosen_hunks(given, view)
        dropped = run.proposal.discard(files, hunks, reviews.seen(run, given.get("digest"), hunks))
        reviews.renew(run.record.run_id)
        return {"runId": given["runId"], "files": list(dropped.paths)}

    async def _undo(self, given: Arguments) -> dict[str, str]:
        last = self._backend.manager.runs.last_applied
        run = await recorded_run(self._backend, given["runId"]) if "runId" in given else last()
        self._later(self._backend.reviews.undo(run, (given["stepId"],) if "stepId" in given else None))
        return {"runId": run.record.run_id}
