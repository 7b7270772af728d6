"""The conversation of a session anew from its stored events: after a rewind, and up to a run for a fork.

Not here: what counts (`rewinds.py`), reading events (`../replay.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from codeagent_lsp import events
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.rewind.rewinds import silenced_in
from codeagent_lsp.session.session import Session

if TYPE_CHECKING:
    from codeagent_lsp.messages import Message


async def retell(session: Session, at_work: Callable[[], frozenset[str]]) -> None:
    """Make the conversation of a session as if the runs whose talk was taken back had never been. Those that are
    `at_work`, such as a question that began meanwhile, add theirs when they end.
    """
    context = session.context
    while True:
        # The file is read in a thread, while runs may begin or end on the loop; then it is read once more.
        working, known = at_work(), len(context.runs)
        silenced = context.rewinds.silenced | working
        told = (await asyncio.to_thread(_loaded, session, silenced)).context
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
    records = _records(session)
    # Only rewinds that stood then: one that came later took nothing from the conversation of that time.
    before = silenced_in(takewhile(lambda record: not _begins(record, run_id), records or ()))
    return tuple(_told(session, records, before | later).context.conversation)


def _loaded(session: Session, silenced: frozenset[str]) -> Session:
    return _told(session, _records(session), silenced)


def _told(session: Session, records: list[dict[str, Any]] | None, silenced: frozenset[str]) -> Session:
    """Return a session with the talk of all runs but those `silenced`, from its records, or from memory for None."""
    told = Session(session.session_id, session.store)
    if records is not None:
        replay(told, records, silenced)
    else:
        counted = (run for run in session.context.runs.values() if run.run_id not in silenced)
        told.context.conversation.extend(message for run in counted for message in run.messages)
        told.context.todos.restore(session.context.todos.to_data())
        told.context.focused = session.context.focused
    return told


def _records(session: Session) -> list[dict[str, Any]] | None:
    """Return the stored events of a session; None where something of it could not be stored."""
    return session.store.load(session.session_id) if session.store.keeps(session.session_id) else None


def _begins(record: Mapping[str, Any], run_id: str) -> bool:
    return record.get("type") == events.RunStarted.type and record.get("run_id") == run_id
