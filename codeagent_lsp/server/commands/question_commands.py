"""The commands `codeagent.cancel`, `codeagent.pending` and `codeagent.respond`. Not here: asking (`prompts.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codeagent_lsp.server.commands.arguments import Arguments, Table
from codeagent_lsp.server.commands.queue_commands import waiting_words

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend


def question_commands(backend: Backend) -> Table:
    """Return the handlers by command name."""

    def respond(given: Arguments) -> dict[str, bool]:
        answer = given.get("answer")
        if given.get("dismiss"):
            backend.inbox.respond(given["requestId"], None)
            return {"ok": True}
        if answer is None:
            backend.prompts.show_now(backend.inbox.find(given["requestId"]))
            return {"ok": True}
        # Several choices, or one.
        titles = tuple(map(str, answer)) if isinstance(answer, list) else (str(answer),)
        backend.inbox.respond(given["requestId"], titles)
        return {"ok": True}

    return {
        "codeagent.cancel": lambda given: {"cancelled": list(backend.manager.runs.cancel(given.get("runId")))},
        "codeagent.pending": lambda given: [
            *_questions(backend),
            *_changes(backend),
            *_plans(backend),
            *waiting_words(backend.manager.sessions()),
        ],
        "codeagent.respond": respond,
    }


def _questions(backend: Backend) -> list[dict[str, Any]]:
    return [item.to_dict() for item in backend.inbox.open()]


def _changes(backend: Backend) -> list[dict[str, Any]]:
    """Return the runs with staged changes that are not active; of several attempts the best, which is the run's."""
    return [
        {
            "kind": "changes",
            "runId": run.record.run_id,
            "title": run.record.title,
            "files": list(run.proposal.changeset.paths),
        }
        for run in backend.manager.runs.all()
        if run.proposal.changeset
        and not run.record.attempt_of
        and run.record.run_id not in backend.manager.runs.active()
    ]


def _plans(backend: Backend) -> list[dict[str, Any]]:
    """Return the paused plans with their next step."""
    return [
        {
            "kind": "plan",
            "runId": run.record.run_id,
            "stepId": step.step_id,
            "title": step.title,
            "state": step.state,
        }
        for run in backend.manager.runs.all()
        if (step := run.steering.open_step) is not None
    ]
