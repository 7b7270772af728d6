"""Shows questions to the user: one at a time by `window/showMessageRequest`, free text by an answer document or the
client's own input.

Whatever the client does, the question stays in the inbox until it is answered or withdrawn. Not here: asking and
waiting for answers (`session/inbox.py`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codeagent_lsp import events
from codeagent_lsp.errors import EditorError, SessionError
from codeagent_lsp.protocol import EVENT_METHOD, INPUT_METHOD
from codeagent_lsp.server.wire.outgoing import METHOD_NOT_FOUND
from codeagent_lsp.session.inbox import answer_event, question_event
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.text.visible import cut, ends_of, in_box

if TYPE_CHECKING:
    from codeagent_lsp.server.front import Client
    from codeagent_lsp.server.virtual_documents import VirtualDocuments
    from codeagent_lsp.session.inbox import Inbox, OpenQuestion
    from codeagent_lsp.tools.asking import Question

PROMPT_SECONDS = 600.0
TITLE_LENGTH = 200
APPROVAL_LENGTH = 4000


class Prompts:
    """The `Presenter` of the inbox: shows questions to the client's user, one at a time. Call `close` in the end."""

    def __init__(
        self,
        client: Client,
        documents: VirtualDocuments,
    ) -> None:
        self.inbox: Inbox | None = None
        self._client = client
        self._documents = documents
        self._queue: deque[OpenQuestion] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._showing: asyncio.Task[None] | None = None
        self._shown: OpenQuestion | None = None

    def show(self, question: OpenQuestion) -> None:
        """Queue a question and return at once; it is shown when those before it are over. One that is `beside` is not
        shown, but offered by code action and lens. A question that belongs to no run is sent as an event, too.
        """
        if not question.run_id:
            self._tell_event(question_event(question))
        if not question.question.beside:
            self.show_now(question)

    def show_now(self, question: OpenQuestion) -> None:
        """Queue a question because the user wants to see it, also one that is `beside`. Nothing for a client that asks
        by itself.
        """
        if self._client.policy.asks:
            return
        self._queue.append(question)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.ensure_future(self._work())

    def withdraw(self, question: OpenQuestion, answer: tuple[str, ...] | None) -> None:
        """Remove a question that is over, or stop waiting for the client's answer to it; `answer` is the one given
        elsewhere, None for none. Returns at once.
        """
        if not question.run_id:
            self._tell_event(answer_event(question, answer))
        if question in self._queue:
            self._queue.remove(question)
        if self._shown is question and self._showing is not None:
            self._showing.cancel()

    def close(self) -> None:
        """Drop all queued questions and stop waiting for the client; they stay in the inbox. Returns at once."""
        self._queue.clear()
        for task in (self._showing, self._worker):
            if task is not None:
                task.cancel()

    def _tell_event(self, event: events.Event) -> None:
        if self._client.policy.events:
            self._client.server.notify(EVENT_METHOD, events.to_dict(event))

    async def _work(self) -> None:
        while self._queue:
            self._shown = self._queue.popleft()
            # A task of its own, so that withdrawing one question does not end the worker.
            self._showing = asyncio.ensure_future(self._present(self._shown))
            await asyncio.wait([self._showing])
            self._shown = self._showing = None

    async def _present(self, item: OpenQuestion) -> None:
        """Show one question to its end; an error of the client counts as a *no*, a missing method leaves it open."""
        try:
            answer = await self._answer(item)
        except EditorError as error:
            # Helix up to 25.07: the user has seen nothing, so there is no *no* to be taken from it.
            if error.values.get("code") == METHOD_NOT_FOUND:
                self._tell(text("question.open", self._client.language, title=item.question.title))
                return
            answer = None
        except _StaysOpen:
            return
        self._respond(item, answer)

    async def _answer(self, item: OpenQuestion) -> tuple[str, ...] | None:
        question = item.question
        if not question.choices:
            return await self._free_text(item)
        if question.multiple:
            return await self._several(item)
        other = text("choice.other", self._client.language)
        offered = (*question.choices, other) if question.free and other not in question.choices else question.choices
        title = await self._choose(item, self._one_line(question.title, question), offered)
        if title == other and title not in question.choices:
            return await self._free_text(item)
        return None if title is None else (title,)

    async def _several(self, item: OpenQuestion) -> tuple[str, ...] | None:
        """Ask for several choices one after the other, until the user picks "enough"."""
        picked: list[str] = []
        enough = text("choice.enough", self._client.language)
        while len(picked) < len(item.question.choices):
            left = [choice for choice in item.question.choices if choice not in picked]
            shown = f"{item.question.title} [{', '.join(picked)}]" if picked else item.question.title
            title = await self._choose(item, self._one_line(shown, item.question), (enough, *left))
            if title is None:
                return None
            if title == enough:
                break
            picked.append(title)
        return tuple(picked)

    async def _choose(self, item: OpenQuestion, message: str, choices: tuple[str, ...]) -> str | None:
        kind = types.MessageType.Warning if item.question.danger else types.MessageType.Info
        shown = {in_box(choice): choice for choice in reversed(choices)}
        actions = [types.MessageActionItem(title=in_box(choice)) for choice in choices]
        params = types.ShowMessageRequestParams(type=kind, message=in_box(message), actions=actions)
        answer = await self._client.server.request(types.WINDOW_SHOW_MESSAGE_REQUEST, params, PROMPT_SECONDS)
        # Clients may answer with a text that was not offered.
        return shown.get(getattr(answer, "title", None) or "")

    async def _free_text(self, item: OpenQuestion) -> tuple[str, ...] | None:
        """Ask for text by the client's own input, else by a document; never for a secret by a document."""
        if self._client.policy.input:
            params: dict[str, Any] = {
                "requestId": item.request_id,
                "title": in_box(item.question.title),
                "prompt": in_box(item.question.detail),
            }
            if item.question.secret:
                params["secret"] = True
            answer = await self._client.server.request(INPUT_METHOD, params, PROMPT_SECONDS)
            value = answer.get("value") if isinstance(answer, dict) else getattr(answer, "value", None)
            return (value,) if isinstance(value, str) and value else None
        if item.question.secret:
            title = self._one_line(item.question.title, item.question)
            self._tell(text("env.no_input", self._client.language, title=title))
            return None
        shown = await self._documents.open_answer(item.request_id, item.question.title, item.question.detail)
        if not shown:
            self._tell(text("question.open", self._client.language, title=item.question.title))
        raise _StaysOpen

    def _one_line(self, title: str, question: Question) -> str:
        """Return the title for a message box; an approval is never cut unmarked."""
        line = " ".join(title.split())
        if question.kind == "approval":
            return ends_of(line, APPROVAL_LENGTH, self._client.language)
        return cut(line, TITLE_LENGTH)

    def _respond(self, item: OpenQuestion, answer: tuple[str, ...] | None) -> None:
        if self.inbox is not None:
            try:
                self.inbox.respond(item.request_id, answer)
            except SessionError:
                return  # it was answered in another way meanwhile

    def _tell(self, message: str) -> None:
        self._client.tell(message)


class _StaysOpen(Exception):
    """Raised when the question stays open and is answered later."""
