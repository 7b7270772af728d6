"""What waits for the user from before this process: changes, a request to the editor, questions of interrupted runs.

Changes are those that nobody has decided about; of a request, the outcome may not be known. Of the open questions,
approvals are listed, told once, and closed when the session is used again: their subjects can be decided in other ways,
as staged changes can be applied and a plan's step retried. What the agent wanted to know is asked again, and the answer
begins a new run of the session; until then it survives every further end of the process. Not here: opening a session
(`manager.py`), telling the user (`server/commands/session_commands.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.texts import clauses, text
from codeagent_lsp.tools.asking import Question

# Every start of a server reads them, so the bounds keep it quick, at the cost of what is old or huge.
MOST_LOOKED = 8
OLDEST_SECONDS = 30 * 86400
MOST_BYTES = 16 << 20

MOST_TOLD = 3


def sessions_that_wait(store: SessionStore) -> tuple[str, ...]:
    """Return the ids of the stored sessions in which something waits, the newest first. Only the last 8 are read, and
    none older than 30 days or larger than 16 MiB. Blocks.
    """
    since = time.time() - OLDEST_SECONDS
    recent = [
        stored.session_id
        for stored in store.list()[:MOST_LOOKED]
        if stored.modified >= since and stored.size <= MOST_BYTES
    ]
    return tuple(session_id for session_id in recent if _waiting_in(store, session_id))


def undecided(store: SessionStore, session_ids: Iterable[str]) -> dict[str, int]:
    """Return how many files the runs of these sessions have staged that nobody has decided about, by run id. Blocks."""
    runs = (run for session_id in session_ids for run in _waiting_in(store, session_id))
    return {run.run_id: len(run.staged.paths) for run in runs if run.staged}


def _waiting_in(store: SessionStore, session_id: str) -> tuple[RunRecord, ...]:
    try:
        records = store.load(session_id)
    except SessionError:  # deleted meanwhile
        return ()
    # Without an id or listeners: a state to look at, which nothing may write.
    session = Session("", store)
    replay(session, records)
    return waiting(session)


def waiting(session: Session) -> tuple[RunRecord, ...]:
    """Return the runs of a session that have changes nobody has decided about, an edit whose outcome is not known, or
    unanswered questions; attempts are left out. () for none.
    """
    return tuple(
        run
        for run in session.context.runs.values()
        if not run.attempt_of and (run.staged or run.unsettled or run.modes_due or (run.torn and run.unanswered))
    )


def lapsed_questions(session: Session) -> list[dict[str, Any]]:
    """Return the open questions of interrupted runs, in the form of the command `codeagent.pending`; [] for none."""
    return [
        {
            "requestId": asked.request_id,
            "runId": run.run_id,
            "kind": "approval" if isinstance(asked, events.ApprovalRequested) else "question",
            "title": asked.title,
            "choices": list(asked.choices),
        }
        for run in session.context.runs.values()
        if run.torn
        for asked in run.unanswered.values()
    ]


async def asked_again(session: Session, inbox: Inbox, start: Callable[[RunRequest, str], str]) -> None:
    """Ask the agent's questions of interrupted runs again and wait for all; `start(request, session_id)` begins a run
    of this session with each answer. Those that are being shown already are left out.
    """
    open_now = [
        (run.run_id, asked)
        for run in session.context.runs.values()
        if run.torn
        for asked in run.unanswered.values()
        if isinstance(asked, events.QuestionAsked) and asked.by_agent
    ]
    # A session may be resumed twice, as by the start and by the user.
    shown = {(item.run_id, item.question.title) for item in inbox.open()}
    for run_id, asked in open_now:
        if (run_id, asked.title) in shown:
            continue
        question = Question("question", asked.title, asked.choices, asked.detail, by_agent=True)
        answer = await inbox.ask(run_id, question, lambda event: None)  # the log has the question already
        if answer:
            words = f"{asked.title}\n\n{', '.join(answer)}"
            start(RunRequest("run", words, asked.title), session.session_id)


def lapsed_line(session: Session, language: str) -> str:
    """Return a sentence in the language `en` or `zh-cn` that names the questions of interrupted runs that are not asked
    again, at most 3 of them; '' if there are none.
    """
    titles = [asked.title for run in session.context.runs.values() if run.torn for asked in _lapsed_of(run)]
    if not titles:
        return ""
    more = f", … ({len(titles)})" if len(titles) > MOST_TOLD else ""
    return text("session.lapsed", language, titles=clauses(titles[:MOST_TOLD], language) + more)


def _lapsed_of(run: RunRecord) -> list[events.ApprovalRequested | events.QuestionAsked]:
    """Return the open questions of a run that are not asked again."""
    asked = run.unanswered.values()
    return [each for each in asked if not (isinstance(each, events.QuestionAsked) and each.by_agent)]
