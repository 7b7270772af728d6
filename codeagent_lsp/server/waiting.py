"""Lists what waits for the user: open questions, staged changes, runs at work, paused plans. From memory only.

Not here: how it is offered (`lenses.py`, `actions.py`).
"""

from __future__ import annotations

from codeagent_lsp.server.lenses import (
    QUESTION_LENGTH,
    Waiting,
    at_work,
    other_attempt,
    pending_changes,
    pending_plan,
    pending_question,
    pending_rollback,
)
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.session.manager import SessionManager
from codeagent_lsp.workspace.files import uris


def waiting_items(inbox: Inbox, manager: SessionManager, language: str) -> tuple[Waiting, ...]:
    """Return everything that waits for the user, questions first."""
    items: list[Waiting] = []
    for item in inbox.open():
        question = item.question
        uri = None if question.path is None else uris.from_path(question.path)
        unseen = question.kind == "approval" and len(question.title) > QUESTION_LENGTH
        choices = question.choices[:1] if unseen else question.choices  # nothing is allowed that is not shown here
        by_agent = question.by_agent
        items.append(pending_question(item.request_id, question.title, choices, uri, language, by_agent=by_agent))
    for run in manager.runs.all():
        if run.proposal.changeset and run.record.attempt_of:
            items.append(other_attempt(run.record.run_id, run.record.title, language))
        elif run.proposal.changeset:
            items.extend(pending_changes(run.record.run_id, run.proposal.changeset.paths, language))
    for record in (manager.runs.get(run_id).record for run_id in manager.runs.active()):
        if not record.attempt_of:
            items.append(at_work(record.run_id, record.title, language))
    return (*items, *_waiting_plan(manager, language))


def _waiting_plan(manager: SessionManager, language: str) -> tuple[Waiting, ...]:
    """Return the offers for the plan of the latest run, when it is paused; older ones are reached by command."""
    run = next(iter(reversed(manager.runs.all())), None)
    step = run.steering.open_step if run is not None else None
    if run is None or step is None or run.record.plan is None:
        return ()
    run_id, begun = run.record.run_id, next(reversed(run.record.marks), None)
    offered = pending_plan(run_id, step.step_id, run.record.plan.steps.label(step.step_id), language)
    return (offered,) if begun is None else (offered, pending_rollback(run_id, begun, language))
