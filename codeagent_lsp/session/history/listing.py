"""Recorded runs as plain data, for commands and the command line. Not here: the database (`run_history.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeagent_lsp.session.spending import cached_percent
from codeagent_lsp.session.store import SessionStore

if TYPE_CHECKING:
    from codeagent_lsp.session.history.run_history import Found, RecordedRun, RunHistory

FOLDER, DATABASE = "sessions", "runs.sqlite"


def listed(run: RecordedRun, state: str = "") -> dict[str, Any]:
    """Return a run as plain data for JSON without empty fields: `runId`, `sessionId`, `kind`, `title`, `state`, `step`,
    `started` and `modified` (seconds since the epoch), `tokens`, `cost` in USD, `cachedPercent`. `state` replaces the
    recorded one, '' keeps it.
    """
    row = {
        "runId": run.run_id,
        "sessionId": run.session_id,
        "kind": run.kind,
        "title": run.title,
        "state": state or run.status,
        "step": run.step,
        "started": run.started,
        "modified": run.changed,
        "tokens": run.tokens,
        "cost": run.cost,
        "cachedPercent": cached_percent({"prompt_tokens": run.prompt, "cached_tokens": run.cached}),
    }
    return {name: value for name, value in row.items() if value not in ("", None, 0.0)}


def found_rows(found: list[Found]) -> list[dict[str, Any]]:
    """Return the runs that a search found, in their order, each as `listed` does, with its `excerpt`."""
    return [{**listed(each.run), "excerpt": each.excerpt} for each in found]


# What is kept of the sessions of a workspace: their files, and the list of runs made from these when it is needed.


class KeptSessions:
    """The session files in a workspace's state folder, and the history of their runs, which `close` closes. For the
    other parameters see `SessionStore`.
    """

    def __init__(
        self,
        state: Path,
        on_problem: Callable[[OSError], None],
        clean: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        on_restored: Callable[[], None],
    ) -> None:
        self.store = SessionStore(state / FOLDER, on_problem, clean, on_restored)
        self._state = state

    @cached_property
    def history(self) -> RunHistory:
        """The history; its database is opened by the first question."""
        return history_in(self._state)

    def close(self) -> None:
        """Close the history; the files are closed with the sessions."""
        # Not by the property, which would make it.
        if "history" in self.__dict__:
            self.history.close()


def history_in(state: Path) -> RunHistory:
    """Return the history of the runs in a workspace's state folder; its database is opened by the first question, and
    the caller closes it.
    """
    from codeagent_lsp.session.history.run_history import RunHistory  # late: an idle server does without SQLite

    return RunHistory(state / FOLDER, state / DATABASE)
