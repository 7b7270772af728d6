"""Our approvals and questions as requests of the Agent Client Protocol: a permission, a form, or plain words.

An approval is a permission; a question is a form where the client offers forms (elicitation), else a choice in the
shape of a permission; free text without forms is asked for in the conversation, and the next prompt answers it. Not
here: what follows from an answer (`session/inbox.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from acp import Client, schema
from acp.helpers import text_block, tool_content, update_agent_message_text

from codeagent_lsp.texts import pair, text
from codeagent_lsp.workspace.text.visible import fenced

Answer = tuple[str, ...] | None
"""The chosen titles, or the entered text; None for no answer."""

OTHER = "other"
_ANSWER = "answer"
_ALWAYS = ("choice.session", "choice.always")
_NO = (
    "choice.deny", "choice.discard", "choice.keep", "choice.reject", "choice.mine", "choice.later", "choice.neither",
    "choice.stop",
)  # fmt: skip
_LEFT_OUT = "choice.review"  # the permission shows the changes
_APPLY = "choice.apply"

PermissionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class AskInWords(Exception):
    """Raised if a question can only be asked as text in the conversation, and answered by the next prompt."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits for the user, as `codeagent.pending` lists it. `choices` are the titles to choose from, ()
    for a free text; with `free` a text of the user's own is also allowed, with `multiple` several choices. `secret`:
    the answer must not be shown. `call_id` is the tool call that it is about, '' for none.
    """

    request_id: str
    run_id: str
    kind: str
    title: str
    detail: str
    choices: tuple[str, ...]
    multiple: bool
    secret: bool
    free: bool
    call_id: str

    @staticmethod
    def of(item: Mapping[str, Any], event: Mapping[str, Any]) -> OpenQuestion:
        """Return the question of a row of `codeagent.pending` and of the event that asked it ({} if that is not known).
        KeyError if the row lacks `requestId`, `kind`, `title` or `choices`.
        """
        return OpenQuestion(
            item["requestId"],
            item.get("runId", ""),
            item["kind"],
            item["title"],
            item.get("detail", ""),
            tuple(item["choices"]),
            bool(item.get("multiple")),
            bool(item.get("secret")),
            bool(item.get("free")),
            event.get("call_id") or "",
        )

    @property
    def about_changes(self) -> bool:
        """Whether it asks if staged changes are to be applied or discarded."""
        return self.kind == "approval" and any(title in pair(_APPLY) for title in self.choices)


class Questions:
    """Asks the user of one session through the client. `forms` says whether the client shows forms. Answers are the
    chosen titles or the text; None if the user closed the question.
    """

    def __init__(self, client: Client, session_id: str, language: str, *, forms: bool) -> None:
        self._client = client
        self._session_id = session_id
        self._language = language
        self._forms = forms

    async def approve(
        self,
        question: OpenQuestion,
        call_id: str,
        diffs: Sequence[Any] = (),
        places: Sequence[schema.ToolCallLocation] = (),
    ) -> Answer:
        """Ask for a permission, without a time limit, and return the answer: the chosen title, None if the user closed
        the question. `call_id` is the tool call under which it is shown, `diffs` are the changes that it is about, in
        the files of `places`.
        """
        # The detail of a question about changes is their diff again.
        shown = [] if diffs or not question.detail else [tool_content(text_block(fenced(question.detail)))]
        call = schema.ToolCallUpdate(
            tool_call_id=call_id,
            title=question.title,
            kind="edit" if diffs else "execute" if question.call_id else "other",
            status="pending",
            content=[*diffs, *shown],
            locations=[*places] or None,
        )
        return await self._permit(call, [title for title in question.choices if title not in pair(_LEFT_OUT)])

    async def ask(self, question: OpenQuestion) -> Answer:
        """Ask a question, without a time limit, and return the answer: the chosen titles or the text, None if the user
        closed it. AskInWords if it needs free text and the client has no forms, and for a secret without choices.
        """
        # What is typed into a form, or into the conversation, a client may show and keep: a secret gets no answer here.
        if self._forms and not question.secret:
            return await self._filled_in(question)
        if not question.choices:
            raise AskInWords
        if question.multiple:
            return await self._one_by_one(question)
        other = text("choice.other", self._language)
        choices = [*question.choices, *([other] if question.free and other not in question.choices else [])]
        chosen = await self._choose(question, question.title, choices)
        # The user wants to write: the next message of the conversation is the answer.
        if chosen == (other,) and other not in question.choices:
            raise AskInWords
        return chosen

    async def say(self, question: OpenQuestion) -> None:
        """Send the question as text (Markdown) of the conversation, without waiting for an answer, which the next
        prompt is.
        """
        lines = [f"**{question.title}**", question.detail, *(f"- {choice}" for choice in question.choices)]
        words = "\n\n".join(filter(None, lines))
        await self._client.session_update(self._session_id, update_agent_message_text(f"\n\n{words}\n"))

    async def _filled_in(self, question: OpenQuestion) -> Answer:
        """Ask by a form with one field, and one more for words of the user's own."""
        schema_of = {_ANSWER: _field(question)}
        free = question.free and bool(question.choices)
        if free:
            other = text("choice.other", self._language)
            schema_of[OTHER] = schema.ElicitationStringPropertySchema(type="string", title=other)
        wanted = schema.ElicitationSchema(
            type="object", properties=schema_of, required=None if free else [_ANSWER], title=None
        )
        mode = schema.ElicitationFormSessionMode(
            session_id=self._session_id, tool_call_id=question.call_id or None, requested_schema=wanted
        )
        message = "\n\n".join(filter(None, (question.title, question.detail)))
        answer = await self._client.create_elicitation(message=message, mode=mode)
        if not isinstance(answer, schema.AcceptElicitationResponse):
            return None
        content = answer.content or {}
        given, own = content.get(_ANSWER), content.get(OTHER)
        if free and isinstance(own, str) and own.strip():
            return (own,)
        titles = tuple(map(str, given)) if isinstance(given, list) else (str(given),) if given else None
        # Nothing chosen of several is an answer.
        return titles if titles or question.multiple else None

    async def _one_by_one(self, question: OpenQuestion) -> Answer:
        """Ask for several choices one after the other, until the user has enough."""
        picked: list[str] = []
        enough = text("choice.enough", self._language)
        while len(picked) < len(question.choices):
            left = [choice for choice in question.choices if choice not in picked]
            title = f"{question.title} [{', '.join(picked)}]" if picked else question.title
            chosen = await self._choose(question, title, [enough, *left])
            if chosen is None:
                return None
            if chosen == (enough,):
                break
            picked += chosen
        return tuple(picked)

    async def _choose(self, question: OpenQuestion, title: str, choices: Sequence[str]) -> Answer:
        detail: list[Any] | None = [tool_content(text_block(question.detail))] if question.detail else None
        call = schema.ToolCallUpdate(
            tool_call_id=question.request_id, title=title, kind="other", status="pending", content=detail
        )
        return await self._permit(call, choices)

    async def _permit(self, call: schema.ToolCallUpdate, choices: Sequence[str]) -> Answer:
        options = [
            schema.PermissionOption(option_id=str(number), name=title, kind=kind_of(title))
            for number, title in enumerate(choices)
        ]
        answer = await self._client.request_permission(session_id=self._session_id, tool_call=call, options=options)
        outcome = answer.outcome
        if not isinstance(outcome, schema.AllowedOutcome):
            return None
        return next(((option.name,) for option in options if option.option_id == outcome.option_id), None)


def kind_of(title: str) -> PermissionKind:
    """Return the protocol's kind of a choice by its English or Chinese title, `allow_always`, `reject_once` or
    `allow_once`; the last for titles that are not known.
    """
    if any(title in pair(key) for key in _ALWAYS):
        return "allow_always"
    return "reject_once" if any(title in pair(key) for key in _NO) else "allow_once"


def _field(question: OpenQuestion) -> Any:
    if not question.choices:
        return schema.ElicitationStringPropertySchema(type="string", title=question.title)
    options = [schema.EnumOption(const=choice, title=choice) for choice in question.choices]
    if question.multiple:
        items = schema.TitledMultiSelectItems(any_of=options)
        return schema.ElicitationMultiSelectPropertySchema(type="array", title=question.title, items=items)
    return schema.ElicitationStringPropertySchema(type="string", title=question.title, one_of=options)
