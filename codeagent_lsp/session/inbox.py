"""Holds the open questions and approvals of a server: each is asked once, and its first answer counts.

A question stays open until it is answered, its asker is cancelled, or its time is over; without an answer the asker
gets None. Not here: how a question is shown (the `Presenter`, which passes the answer to `Inbox.respond`).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.tools.asking import Question

DEADLINE_SECONDS = 600.0
HIDDEN = "•••"  # replaces a secret answer in events

Answer = tuple[str, ...] | None


@dataclass(slots=True)
class OpenQuestion:
    """A question without an answer yet. `answer` becomes the chosen titles, the text if there are no choices, or None
    for no answer.
    """

    request_id: str
    run_id: str
    question: Question
    answer: asyncio.Future[Answer] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the question as plain data for JSON, in the form in which the command `codeagent.pending` lists it:
        `requestId`, `runId`, `kind`, `title`, `choices`, `detail`, `multiple`, `secret`, `free`.
        """
        return {
            "requestId": self.request_id,
            "runId": self.run_id,
            "kind": self.question.kind,
            "title": self.question.title,
            "choices": list(self.question.choices),
            "detail": self.question.detail,
            "multiple": self.question.multiple,
            "secret": self.question.secret,
            "free": self.question.free,
        }


class Presenter(Protocol):
    """Port: shows questions to the user. Both methods return at once."""

    def show(self, question: OpenQuestion) -> None:
        """Begin to show a question; the answer comes through `Inbox.respond`."""

    def withdraw(self, question: OpenQuestion, answer: Answer) -> None:
        """Stop showing a question, which is answered or over."""


class Inbox:
    """All open questions of a server. `deadline` is the time for an answer, in seconds; a `Presenter` shows them. For
    one event loop, not thread-safe.
    """

    def __init__(self, presenter: Presenter, deadline: float = DEADLINE_SECONDS) -> None:
        self._presenter = presenter
        self._deadline = deadline
        self._open: dict[str, OpenQuestion] = {}

    def open(self) -> tuple[OpenQuestion, ...]:
        """Return the open questions of all runs and sessions, the oldest first; () for none."""
        return tuple(self._open.values())

    def find(self, request_id: str) -> OpenQuestion:
        """Return the open question with this id. SessionError if there is none, or it has just been answered."""
        item = self._open.get(request_id)
        # An answer is given before its asker runs again: until then the question is still listed.
        if item is None or item.answer.done():
            raise SessionError("question.closed", request=request_id)
        return item

    async def ask(self, run_id: str, question: Question, emit: Callable[[events.Event], None]) -> Answer:
        """Ask the user and wait; return the answer, None if there is none in time. Emits question and answer as events,
        also when it is cancelled, which withdraws the question.
        """
        request_id = uuid.uuid4().hex
        item = OpenQuestion(request_id, run_id, question, asyncio.get_running_loop().create_future())
        # Before it is shown: a client may answer at once.
        self._open[request_id] = item
        answer: Answer = None
        try:
            emit(question_event(item))
            self._presenter.show(item)
            async with asyncio.timeout(self._deadline):
                answer = await item.answer
        except TimeoutError:  # an answer that came at the same moment counts
            answer = None if item.answer.cancelled() or not item.answer.done() else item.answer.result()
        finally:
            self._open.pop(request_id, None)
            self._presenter.withdraw(item, answer)
            # Also when the asker is cancelled: a question without its end in the file would be asked again after a
            # restart.
            emit(answer_event(item, answer))
        return answer

    def respond(self, request_id: str, answer: Answer) -> None:
        """Answer an open question by a tuple of chosen titles, or of one free text; None means no answer, or what
        closing the question stands for. Returns at once. SessionError if the question is not open, or does not accept
        this answer.
        """
        item = self.find(request_id)
        if answer is None and item.question.dismissed:
            answer = (item.question.dismissed,)
        choices = item.question.choices
        if answer is not None and choices and not item.question.free and not set(answer) <= set(choices):
            raise SessionError("question.choices", choices=", ".join(choices))
        if answer is not None and not item.question.multiple and len(answer) != 1:
            raise SessionError("question.one")
        item.answer.set_result(answer)

    def settle(self, run_id: str, question: Question) -> None:
        """Close a question of a run without an answer, because the user has decided in another way; nothing if it is
        not open.
        """
        for item in tuple(self._open.values()):
            # By identity: two questions of a run may have the same words.
            if item.run_id == run_id and item.question is question and not item.answer.done():
                item.answer.set_result(None)


def question_event(item: OpenQuestion) -> events.Event:
    """Return the event that announces a question, an `ApprovalRequested` for an approval, else a `QuestionAsked`."""
    question = item.question
    cls = events.ApprovalRequested if question.kind == "approval" else events.QuestionAsked
    event = cls(
        request_id=item.request_id,
        title=question.title,
        detail=question.detail,
        choices=question.choices,
        beside=question.beside or None,
    )
    if isinstance(event, events.ApprovalRequested):
        return replace(event, call_id=question.call_id)
    return replace(event, by_agent=question.by_agent, multiple=question.multiple or None)


def answer_event(item: OpenQuestion, answer: Answer) -> events.Event:
    """Return the event with the answer to a question: several choices joined by `, `, a secret replaced by `•••`, None
    without answer.
    """
    said = None if answer is None else ", ".join(answer)
    if said and item.question.secret:
        said = HIDDEN
    cls = events.ApprovalResolved if item.question.kind == "approval" else events.QuestionAnswered
    return cls(request_id=item.request_id, answer=said)
