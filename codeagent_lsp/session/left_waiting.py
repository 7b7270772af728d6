"""What waits for the user from before this process: sessions with changes that nobody has decided about, a request to
the editor whose outcome is not known, or a question of a run that was interrupted.

Reads the newest files of sessions, without locking them. Not here: opening a session (`manager.py`), the words for the
user (`server/left_over.py`).
"""

from __future__ import annotations

import time

from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.session.store import SessionStore

# Every start of a server reads them, so the bounds keep it quick, at the cost of what is old or huge.
MOST_LOOKED = 8
OLDEST_SECONDS = 30 * 86400
MOST_BYTES = 16 << 20


def sessions_that_wait(store: SessionStore) -> tuple[str, ...]:
    """Return the ids of the stored sessions in which something waits, the newest first. Blocks."""
    since = time.time() - OLDEST_SECONDS
    found = []
    for stored in store.list()[:MOST_LOOKED]:
        if stored.modified < since or stored.size > MOST_BYTES:
            continue
        try:
            records = store.load(stored.session_id)
        except SessionError:  # deleted meanwhile
            continue
        # Without an id or listeners: a state to look at, which nothing may write.
        session = Session("", store)
        replay(session, records)
        if waiting(session):
            found.append(stored.session_id)
    return tuple(found)


def waiting(session: Session) -> tuple[RunRecord, ...]:
    """Return the runs of a session that is not at work in which something waits for the user."""
    return tuple(
        run
        for run in session.context.runs.values()
        if not run.attempt_of and (run.staged or run.unsettled or (run.torn and run.unanswered))
    )
