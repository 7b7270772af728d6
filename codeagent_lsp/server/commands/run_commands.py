"""The commands by which the user talks to runs: a prompt document opened and sent, and, for runs at work,
`codeagent.cancel`, `pending`, `respond`, `enqueue`, `steer`, `withdraw` and `runs`.

Not here: the documents (`server/prompt_documents.py`), asking the user (`prompts.py`), the queue
(`session/task_queue.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from codeagent_lsp.errors import SessionError
from codeagent_lsp.server.commands.convert import (
    Arguments,
    Later,
    Table,
    attachment_mentions,
    load_session_of,
    recorded_run,
)
from codeagent_lsp.session.history.listing import listed
from codeagent_lsp.session.request import RunRequest, short_title
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question

if TYPE_CHECKING:
    from codeagent_lsp.server.backend import Backend
    from codeagent_lsp.server.prompt_documents import Prompting
    from codeagent_lsp.session.history.run_history import RecordedRun
    from codeagent_lsp.session.manager import SessionManager
    from codeagent_lsp.session.run import Run
    from codeagent_lsp.session.session import Session


TWICE_SECONDS = 2.0
"""A document that is sent again with the same words within this time was clicked twice."""


def prompt_commands(
    backend: Backend,
    prompting: Prompting,
    start: Callable[[Arguments], Awaitable[dict[str, Any]]],
    later: Later,
) -> Table:
    """Return the handlers of `codeagent.prompt`, `prompt.send` and `prompt.complete` by name; `start` starts a run from
    a command's arguments, `later` runs work after the answer.
    """

    sending = asyncio.Lock()
    just_sent: dict[tuple[str, str, str], tuple[float, dict[str, Any]]] = {}

    def open_document(given: Arguments) -> dict[str, Any]:
        span = given.get("range")
        pointed = "uri" in given and (span is None or span["start"] != span["end"])
        mentioned = attachment_mentions({"attachments": [given]}, backend.views.plain()) if pointed else ""
        words = " ".join(filter(None, (given.get("text", ""), mentioned)))
        prompting.completion.warm()
        later(prompting.documents.open(f"{words} " if mentioned else words, backend.front.language()))
        return {}

    async def send(given: Arguments) -> dict[str, Any]:
        words = prompting.documents.task(given["uri"])
        chosen = {key: given[key] for key in ("mode", "attempts", "sessionId") if key in given}
        asked = (given["uri"], words, repr(chosen))
        # The second click waits for the start that the first one began, and gets its answer.
        async with sending:
            if asked not in just_sent or time.monotonic() - just_sent[asked][0] > TWICE_SECONDS:
                answer = await start({"task": words, **chosen})
                # Only the last one: an older one cannot be a second click.
                just_sent.clear()
                just_sent[asked] = (time.monotonic(), answer)
        prompting.documents.sent(given["uri"])
        return just_sent[asked][1]

    async def complete(given: Arguments) -> list[dict[str, Any]]:
        return await prompting.completion.complete_text(given["text"])

    return {"codeagent.prompt.complete": complete, "codeagent.prompt": open_document, "codeagent.prompt.send": send}


def question_commands(backend: Backend) -> Table:
    """Return the handlers of `codeagent.cancel`, `codeagent.pending` and `codeagent.respond` by name; each takes
    checked arguments and returns JSON data.
    """

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
            *(item.to_dict() for item in backend.inbox.open()),
            *_changes(backend),
            *_plans(backend),
            *waiting_words(backend.manager.sessions()),
        ],
        "codeagent.respond": respond,
    }


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


RUNS, MOST_RUNS = 50, 1000


class QueueCommands:
    """The handlers of `codeagent.enqueue`, `steer`, `withdraw` and `runs`; `start` starts a run from a command's
    arguments, `later` runs work after the answer.
    """

    def __init__(self, backend: Backend, start: Callable[[Arguments], Awaitable[dict[str, Any]]], later: Later) -> None:
        self._backend = backend
        self._manager = backend.manager
        self._start = start
        self._later = later

    def table(self) -> Table:
        """Return the handlers by the names of their commands."""
        return {
            "codeagent.enqueue": self._enqueue,
            "codeagent.steer": self._steer,
            "codeagent.withdraw": self._withdraw,
            "codeagent.runs": self._runs,
        }

    async def _enqueue(self, given: Arguments) -> dict[str, Any]:
        answer = await self._start(given)
        return {"queued": False, **answer}

    async def _steer(self, given: Arguments) -> dict[str, Any]:
        await self._backend.ready()  # the words are stored: their secrets are masked then
        run_id = given.get("runId")
        run = self._manager.runs.newest_at_work() if run_id is None else await recorded_run(self._backend, run_id)
        if run.record.attempt_of:  # what is said is for all attempts
            run = await recorded_run(self._backend, run.record.attempt_of)
        if "text" in given:
            return self._say(run, given["text"])
        self._manager.queue.check(run)
        self._later(self._ask_what(run))
        return {"runId": run.record.run_id}

    def _say(self, run: Run, words: str) -> dict[str, Any]:
        """Say something to a run; if it has ended while the user was writing, the words are the next task."""
        try:
            return {"runId": run.record.run_id, "itemId": self._manager.queue.say(run, words)}
        except SessionError:
            request = RunRequest("run", words, short_title(words, self._backend.redactor.hide))
            return started_answer(self._manager, self._manager.start(request, run.session.session_id))

    async def _ask_what(self, run: Run) -> None:
        """Ask the user for the words, in an editor that has no input of its own."""
        run_id, language = run.record.run_id, self._backend.front.language()
        question = Question("question", text("ask.steer", language, title=run.record.title))
        answer = await self._backend.inbox.ask(run_id, question, lambda event: run.session.emit(run_id, event))
        if answer and answer[0].strip():
            self._say(run, answer[0])

    async def _withdraw(self, given: Arguments) -> dict[str, bool]:
        if not any(session.context.waiting.has(given["itemId"]) for session in self._manager.sessions()):
            await load_session_of(self._backend, given["itemId"])
        self._manager.queue.withdraw(given["itemId"], self._manager.sessions())
        return {"ok": True}

    async def _runs(self, given: Arguments) -> list[dict[str, Any]]:
        """Return the newest runs of the workspace; those of other processes as they were last recorded."""
        limit = max(1, min(given.get("limit", RUNS), MOST_RUNS))
        return [
            listed(run, self._state(run)) for run in await asyncio.to_thread(self._backend.kept.history.runs, limit)
        ]

    def _state(self, run: RecordedRun) -> str:
        """Return the state of a run that has no recorded end; '' for the recorded one."""
        if run.status != "running":
            return ""
        if any(item.run_id == run.run_id for item in self._backend.inbox.open()):
            return "waiting"
        if run.run_id in self._manager.runs.active() or self._backend.store.is_used_elsewhere(run.session_id):
            return "running"
        return "interrupted"


def started_answer(manager: SessionManager, run_id: str) -> dict[str, Any]:
    """Return the answer of a command that started or queued a run: `runId`, `sessionId`, and `queued` (True) if it
    waits. SessionError for an unknown run.
    """
    for session in manager.sessions():
        if run_id in session.context.waiting.tasks:
            return {"runId": run_id, "sessionId": session.session_id, "queued": True}
    return {"runId": run_id, "sessionId": manager.runs.get(run_id).session.session_id}


def waiting_words(sessions: Iterable[Session]) -> list[dict[str, Any]]:
    """Return the words and tasks that wait in these sessions as plain data, in the form of the command
    `codeagent.pending`: `kind` (`steer`, `queued`), `itemId`, `runId`, `title`, of tasks also `task`; [] for none.
    """
    sessions = tuple(sessions)
    return [
        item
        for session in sessions
        if not any(run.attempt_of for run in session.context.runs.values())  # the whole run has the same words
        for item in (
            *(
                {"kind": "steer", "itemId": said.item_id, "runId": said.run_id, "title": said.text}
                for said in session.context.waiting.said.values()
                if not any(each.context.waiting.was_heard(said.item_id) for each in sessions)  # as by an attempt
            ),
            *(
                {"kind": "queued", "itemId": run_id, "runId": run_id, "title": task.title, "task": task.task}
                for run_id, task in session.context.waiting.tasks.items()
            ),
        )
    ]
