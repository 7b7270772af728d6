"""The conversation of a session anew from its stored events: after a rewind, and up to a run for a fork.

Not here: what counts (`rewinds.py`), reading events (`../replay.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session

if TYPE_CHECKING:
    from codeagent_lsp.messages import Message


async def retell(session: Session, at_work: Callable[[], frozenset[str]]) -> None:
    """Make the conversation of a session as if the runs whose talk was taken back had never been. Those that are
    `at_work`, such as a question that began meanwhile, add theirs when they end.
    """
    context = session.context
    while True:
        working, known = at_work(), len(context.runs)
        told = (await asyncio.to_thread(_told, session, context.rewinds.silenced | working)).context
        if (working, known) == (at_work(), len(context.runs)):  # else one has begun or ended while it was read
            break
    context.conversation, context.generation = told.conversation, told.generation
    context.background, context.overviews = told.background, told.overviews
    context.todos.restore(told.todos.to_data())
    context.focused = told.focused


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
