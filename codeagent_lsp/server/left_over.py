"""Tells the user, when the server starts, what waits from before: it is listed and offered as what waits from now on.

Not here: which sessions these are (`session/left_waiting.py`), lenses and actions (`waiting.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.session.interrupted_questions import asked_again, lapsed_line
from codeagent_lsp.session.left_waiting import waiting
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.texts import text

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend

MOST_NAMED = 3
MOST_TITLE = 60


async def tell_what_waits(backend: Backend) -> None:
    """Open the sessions in which something waits, beside the current one; say what, and ask open questions again."""
    sessions = await backend.manager.recall()
    if not sessions:
        return
    backend.announcer.refresh_lenses()
    language = backend.front.language()
    runs = [run for session in sessions for run in waiting(session)]
    for words in (_staged(runs, language), _unsettled(runs, backend.views.plain().roots.relative, language)):
        if words:
            backend.announcer.tell(words)
    for session in sessions:
        await _asked(backend, session, language)


async def _asked(backend: Backend, session: Session, language: str) -> None:
    if not any(run.torn and run.unanswered for run in session.context.runs.values()):
        return
    await backend.ready()  # answers are stored: their secrets are masked then
    if words := lapsed_line(session, language):
        backend.announcer.tell(words, types.MessageType.Warning)
    await asked_again(session, backend.inbox, backend.manager.start)


def _staged(runs: Iterable[RunRecord], language: str) -> str:
    """Return a sentence that names the runs whose changes wait; '' for none."""
    waits = [run for run in runs if run.staged]
    named = [f"{run.title[:MOST_TITLE]} ({len(run.staged.paths)})" for run in waits[:MOST_NAMED]]
    more = ["…"] if len(waits) > MOST_NAMED else []
    return text("session.left", language, titles=", ".join((*named, *more))) if waits else ""


def _unsettled(runs: Iterable[RunRecord], name: Callable[[str], str], language: str) -> str:
    """Return a sentence that names the files of which it is not known whether they hold accepted changes."""
    names = [name(path) for run in runs for path in run.unsettled]
    more = ["…"] if len(names) > MOST_NAMED else []
    return text("session.unsettled", language, files=", ".join((*names[:MOST_NAMED], *more))) if names else ""
