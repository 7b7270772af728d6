"""Open questions and approvals: asked once, answered by whoever answers first, never lost.

A question stays open until somebody answers it, its asker is cancelled, or its time is over; then the asker gets
None. Not here: how a question is shown (the presenter does that and answers here).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.tools.asking import Question

DEADLINE_SECONDS = 600.0
HIDDEN = "•••"  # what records and listeners get of a secret answer

Answer = tuple[str, ...] | None


@dataclass(slots=True)
class OpenQuestion:
    """A question that waits. `answer` resolves to the chosen titles, or None."""

    request_id: str
    run_id: str
    question: Question
    answer: asyncio.Future[Answer] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """As `codeagent.pending` lists it."""
        return {
            "requestId": self.request_id,
            "runId": self.run_id,
            "kind": self.question.kind,
            "title": self.question.title,
            "choices": list(self.question.choices),
            "detail": self.question.detail,
            "multiple": self.question.multiple,
            "secret": self.question.secret,
        }


class Presenter(Protocol):
    """Whoever shows questions to the user. Both calls return at once."""

    def show(self, question: OpenQuestion) -> None:
        """Begin to show; the answer comes through `Inbox.respond`."""

    def withdraw(self, question: OpenQuestion) -> None:
        """It is answered or over; stop showing it."""


class Inbox:
    """All open questions of a server."""

    def __init__(self, presenter: Presenter, deadline: float = DEADLINE_SECONDS) -> None:
        self._presenter = presenter
        self._deadline = deadline
        self._open: dict[str, OpenQuestion] = {}

    def open(self) -> tuple[OpenQuestion, ...]:
        """What waits, oldest first."""
        return tuple(self._open.values())

    async def ask(self, run_id: str, question: Question, emit: Callable[[events.Event], None]) -> Answer:
        """The answer, or None. Asked and answered are both events."""
        request_id = uuid.uuid4().hex
        item = OpenQuestion(request_id, run_id, question, asyncio.get_running_loop().create_future())
        self._open[request_id] = item
        answer: Answer = None
        try:
            emit(_asked(item))
            self._presenter.show(item)
            async with asyncio.timeout(self._deadline):
                answer = await item.answer
        except TimeoutError:  # an answer that came in the same moment counts
            answer = None if item.answer.cancelled() or not item.answer.done() else item.answer.result()
        finally:
            self._open.pop(request_id, None)
            self._presenter.withdraw(item)
            emit(_answered(item, answer))
        return answer

    def respond(self, request_id: str, answer: Answer) -> None:
        """Give the answer. SessionError when the question is not open (any more) or the answer is none of its own."""
        item = self._open.get(request_id)
        if item is None or item.answer.done():
            raise SessionError("question.closed", request=request_id)
        choices = item.question.choices
        if answer is not None and choices and not set(answer) <= set(choices):
            raise SessionError("question.choices", choices=", ".join(choices))
        if answer is not None and not item.question.multiple and len(answer) != 1:
            raise SessionError("question.one")
        item.answer.set_result(answer)

    def settle(self, run_id: str, question: Question) -> None:
        """Close a question of a run without an answer: somebody decided another way."""
        for item in tuple(self._open.values()):
            if item.run_id == run_id and item.question is question and not item.answer.done():
                item.answer.set_result(None)


def _asked(item: OpenQuestion) -> events.Event:
    question = item.question
    cls = events.ApprovalRequested if question.kind == "approval" else events.QuestionAsked
    return cls(request_id=item.request_id, title=question.title, detail=question.detail, choices=question.choices)


def _answered(item: OpenQuestion, answer: Answer) -> events.Event:
    said = None if answer is None else ", ".join(answer)
    if said and item.question.secret:
        said = HIDDEN
    cls = events.ApprovalResolved if item.question.kind == "approval" else events.QuestionAnswered
    return cls(request_id=item.request_id, answer=said)
