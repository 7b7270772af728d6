"""Lists the questions that were open when the server's process died, and whose answers no run waits for any more.

They are listed, shown once, and closed when the session is used again. Their subjects can be decided in other ways:
staged changes can be applied, a plan's step retried or skipped, and the user may ask anew.
"""

from __future__ import annotations

from typing import Any

from codeagent_lsp import events
from codeagent_lsp.session.session import Session
from codeagent_lsp.texts import text

MOST_TOLD = 3


def lapsed(session: Session) -> list[dict[str, Any]]:
    """Return the open questions of interrupted runs, in the form of `codeagent.pending`."""
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


def lapsed_line(session: Session, language: str) -> str:
    """Return a sentence for the user that names these questions, at most 3 of them; '' if there are none."""
    titles = [question["title"] for question in lapsed(session)]
    if not titles:
        return ""
    more = f", … ({len(titles)})" if len(titles) > MOST_TOLD else ""
    return text("session.lapsed", language, titles="; ".join(titles[:MOST_TOLD]) + more)
