"""The conversation of a session anew from its stored events: after a rewind, and up to a run for a fork.

Not here: what counts (`rewinds.py`), reading events (`../replay.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session

if TYPE_CHECKING:
    from codeagent_lsp.messages import Message


def retell(session: Session) -> None:
    """Make the conversation of a session that is at rest as if the runs whose talk was taken back had never been."""
    told = _told(session)
    context = session.context
    context.conversation, context.generation = told.context.conversation, told.context.generation
    context.background, context.overviews = told.context.background, told.context.overviews


def conversation_before(session: Session, run_id: str | None) -> tuple[Message, ...]:
    """Return the conversation as it was before a run; the whole one for None."""
    if run_id is None:
        return tuple(session.context.conversation)
    names = list(session.context.runs)
    later = frozenset(names[names.index(run_id) :])
    return tuple(_told(session, session.context.rewinds.silenced | later).context.conversation)


def _told(session: Session, silenced: frozenset[str] | None = None) -> Session:
    store = session.store
    told = Session(session.session_id, store)
    replay(told, store.load(session.session_id), silenced)
    return told
