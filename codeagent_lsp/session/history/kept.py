"""What is kept of the sessions of a workspace: their files, and the list of runs made from these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from codeagent_lsp.session.history.run_history import RunHistory
from codeagent_lsp.session.store import SessionStore

FOLDER, DATABASE = "sessions", "runs.sqlite"


class Kept(NamedTuple):
    """The session files, and the history of their runs."""

    store: SessionStore
    history: RunHistory


def kept_in(
    state: Path, on_problem: Callable[[OSError], None], clean: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Kept:
    """Return what is kept in a workspace's state folder; for the parameters see `SessionStore`."""
    return Kept(SessionStore(state / FOLDER, on_problem, clean), history_in(state))


def history_in(state: Path) -> RunHistory:
    """Return the history of the runs in a workspace's state folder."""
    return RunHistory(state / FOLDER, state / DATABASE)
