"""Questions that were open when the process died: nobody waits for their answers any more.

They are listed, told once, and closed when the session is used again. What they were about comes back another way:
staged changes can be applied, a plan's step can be tried again or left out, and the user may ask anew.
"""

from __future__ import annotations

from typing import Any

from codeagent_lsp import events
from codeagent_lsp.session.session import Session
from codeagent_lsp.texts import text

MOST_TOLD = 3


def lapsed(session: Session) -> list[dict[str, Any]]:
    """The open questions of interrupted runs, like `codeagent.pending` lists open ones."""
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
    """What the user is told about them; '' when there are none."""
    titles = [question["title"] for question in lapsed(session)]
    if not titles:
        return ""
    more = f", … ({len(titles)})" if len(titles) > MOST_TOLD else ""
    return text("session.lapsed", language, titles="; ".join(titles[:MOST_TOLD]) + more)
