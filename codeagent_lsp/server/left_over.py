"""Tells the user, when the server starts, what waits from before: it is listed and offered as what waits from now on.

Not here: which sessions these are (`session/left_waiting.py`), lenses and actions (`backend.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codeagent_lsp.session.left_waiting import asked_again, lapsed_line, waiting
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.text.visible import some_of

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend

MOST_NAMED = 3
MOST_TITLE = 60


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


def _staged_line(runs: Iterable[RunRecord], language: str) -> str:
    """Return a sentence that names the runs whose changes wait; '' for none."""
    titles = [f"{run.title[:MOST_TITLE]} ({len(run.staged.paths)})" for run in runs if run.staged]
    return text("session.left", language, titles=some_of(titles, MOST_NAMED, counted=False)) if titles else ""


def _unsettled_line(runs: Iterable[RunRecord], name: Callable[[str], str], language: str) -> str:
    """Return a sentence that names the files of which it is not known whether they hold accepted changes."""
    names = [name(path) for run in runs for path in run.unsettled]
    return text("session.unsettled", language, files=some_of(names, MOST_NAMED, counted=False)) if names else ""
