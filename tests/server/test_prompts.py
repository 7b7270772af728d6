"""Questions as they are shown: one at a time, with deadlines, and never lost when the client cannot show them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from lsprotocol import types

from codeagent_lsp import events
from codeagent_lsp.errors import EditorError, SessionError
from codeagent_lsp.protocol import INPUT_METHOD
from codeagent_lsp.server.clients import ClientPolicy
from codeagent_lsp.server.front import Client
from codeagent_lsp.server.prompts import Prompts
from codeagent_lsp.server.server import CodeAgentServer
from codeagent_lsp.server.virtual_documents import VirtualDocuments
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.tools.asking import Question

Respond = Callable[[str, Any], Awaitable[Any]]
CHOICES = ("Keep", "Delete")


class Wire:
    """Takes requests and notifications; `respond` answers the requests."""

    def __init__(self, respond: Respond) -> None:
        self.requests: list[tuple[str, Any]] = []
        self.notes: list[tuple[str, Any]] = []
        self.open = self.most = 0
        self._respond = respond

    async def request(self, method: str, params: Any, seconds: float) -> Any:
        self.requests.append((method, params))
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            return await self._respond(method, params)
        finally:
            self.open -= 1

    def notify(self, method: str, params: Any) -> None:
        self.notes.append((method, params))


class Answers:
    """Stands for the documents of ours: notes which answer document was opened."""

    def __init__(self, *, shown: bool) -> None:
        self.opened: list[str] = []
        self._shown = shown

    async def open_answer(self, request_id: str, title: str, detail: str) -> bool:
        self.opened.append(title)
        return self._shown


async def pick_last(method: str, params: Any) -> Any:
    return types.MessageActionItem(params.actions[-1].title)


def connected(
    respond: Respond, *, deadline: float = 5.0, shown: bool = True, policy: ClientPolicy | None = None
) -> tuple[Wire, Inbox, Answers]:
    wire, documents = Wire(respond), Answers(shown=shown)
    client = Client(cast("CodeAgentServer", wire), policy=policy)
    prompts = Prompts(client, cast("VirtualDocuments", documents))
    inbox = prompts.inbox = Inbox(prompts, deadline)
    return wire, inbox, documents


async def ask(inbox: Inbox, title: str = "Sure?", choices: tuple[str, ...] = CHOICES, **more: Any) -> Any:
    seen: list[events.Event] = []
    return await inbox.ask("run", Question("approval", title, choices, **more), seen.append)


async def test_the_chosen_title_is_the_answer() -> None:
    wire, inbox, _ = connected(pick_last)
    assert await ask(inbox) == ("Delete",)
    method, params = wire.requests[0]
    assert method == "window/showMessageRequest"
    assert [item.title for item in params.actions] == ["Keep", "Delete"]
    assert inbox.open() == ()


HIDDEN = "Run [this](command:x)? \u202eon\x1b]8;;x\x07\u200b [docs](https://a.example)"
SHOWN = r"Run [this]\(command:x)? \u202eon\u200b [docs](https://a.example)"


async def test_words_of_a_model_hide_nothing_and_lead_to_the_web_alone() -> None:
    async def respond(method: str, params: Any) -> Any:
        return {"value": ""} if method == INPUT_METHOD else await pick_last(method, params)

    wire, inbox, _ = connected(respond, policy=ClientPolicy(input=True))
    assert await ask(inbox, HIDDEN, ("Keep", HIDDEN)) == (HIDDEN,), "what is chosen is the answer as it was offered"
    await ask(inbox, HIDDEN, (), detail=HIDDEN)
    (_, boxed), (_, asked) = wire.requests
    assert [boxed.message, boxed.actions[1].title] == [SHOWN] * 2
    assert [asked["title"], asked["prompt"]] == [SHOWN] * 2
    Client(cast("CodeAgentServer", wire)).tell(HIDDEN)
    assert wire.notes[-1][1].message == SHOWN


async def test_a_question_that_takes_other_words_asks_for_them() -> None:
    async def respond(method: str, params: Any) -> Any:
        return {"value": "Grey"} if method == INPUT_METHOD else await pick_last(method, params)

    wire, inbox, _ = connected(respond, policy=ClientPolicy(input=True))
    assert await ask(inbox, free=True) == ("Grey",)
    assert [item.title for item in wire.requests[0][1].actions] == ["Keep", "Delete", "Something else…"]
    assert [method for method, _ in wire.requests] == ["window/showMessageRequest", INPUT_METHOD]


async def test_a_question_beside_a_document_waits_until_it_is_asked_for() -> None:
    wire, inbox, _ = connected(pick_last)
    asking = asyncio.ensure_future(ask(inbox, beside=True))
    await asyncio.sleep(0.02)
    assert not wire.requests and len(inbox.open()) == 1
    inbox.respond(inbox.open()[0].request_id, ("Keep",))
    assert await asking == ("Keep",)


@pytest.mark.parametrize("answer", [None, types.MessageActionItem("Sure"), {"nothing": 1}])
async def test_null_and_nonsense_are_no(answer: Any) -> None:
    async def respond(method: str, params: Any) -> Any:
        return answer

    _, inbox, _ = connected(respond)
    assert await ask(inbox) is None


@pytest.mark.parametrize("code", [-32603, -32800, None])
async def test_an_error_is_no(code: int | None) -> None:
    async def respond(method: str, params: Any) -> Any:
        raise EditorError("editor.error", method=method, message="no", code=code)

    _, inbox, _ = connected(respond)
    assert await ask(inbox) is None


async def test_an_editor_without_prompts_leaves_the_question_open_and_says_so() -> None:
    async def respond(method: str, params: Any) -> Any:
        raise EditorError("editor.error", method=method, message="no", code=-32601)

    wire, inbox, _ = connected(respond)
    asking = asyncio.ensure_future(ask(inbox))
    await asyncio.sleep(0.02)
    assert len(inbox.open()) == 1
    assert "Sure?" in wire.notes[0][1].message
    inbox.respond(inbox.open()[0].request_id, ("Keep",))
    assert await asking == ("Keep",)


async def test_no_answer_in_time_is_no_and_nothing_stays_behind() -> None:
    async def respond(method: str, params: Any) -> Any:
        await asyncio.sleep(60)

    wire, inbox, _ = connected(respond, deadline=0.05)
    before = len(asyncio.all_tasks())
    assert await ask(inbox) is None
    await asyncio.sleep(0.02)
    assert (wire.open, inbox.open()) == (0, ())
    assert len(asyncio.all_tasks()) <= before + 1


async def test_an_answer_from_elsewhere_ends_the_prompt() -> None:
    async def respond(method: str, params: Any) -> Any:
        await asyncio.sleep(60)

    wire, inbox, _ = connected(respond)
    asking = asyncio.ensure_future(ask(inbox))
    await asyncio.sleep(0.02)
    request_id = inbox.open()[0].request_id
    inbox.respond(request_id, ("Delete",))
    assert await asking == ("Delete",)
    await asyncio.sleep(0)
    assert wire.open == 0
    with pytest.raises(SessionError):
        inbox.respond(request_id, ("Keep",))


async def test_many_questions_are_shown_one_after_the_other() -> None:
    async def respond(method: str, params: Any) -> Any:
        await asyncio.sleep(0.005)
        return types.MessageActionItem(params.actions[0].title)

    wire, inbox, _ = connected(respond)
    answers = await asyncio.gather(*(ask(inbox, f"Question {number}") for number in range(8)))
    assert answers == [("Keep",)] * 8
    assert wire.most == 1
    assert [params.message for _, params in wire.requests] == [f"Question {number}" for number in range(8)]


async def test_a_question_that_is_over_before_its_turn_is_never_shown() -> None:
    async def respond(method: str, params: Any) -> Any:
        await asyncio.sleep(0.05)
        return types.MessageActionItem("Keep")

    wire, inbox, _ = connected(respond)
    first, second = (asyncio.ensure_future(ask(inbox, title)) for title in ("first", "second"))
    await asyncio.sleep(0.01)
    second.cancel()
    assert await first == ("Keep",)
    await asyncio.sleep(0.02)
    assert [params.message for _, params in wire.requests] == ["first"]


async def test_a_cancelled_asker_ends_its_prompt() -> None:
    async def respond(method: str, params: Any) -> Any:
        await asyncio.sleep(60)

    wire, inbox, _ = connected(respond)
    asking = asyncio.ensure_future(ask(inbox))
    await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await asyncio.sleep(0.01)
    assert (wire.open, inbox.open()) == (0, ())


async def test_a_title_is_one_short_line_and_danger_is_a_warning() -> None:
    wire, inbox, _ = connected(pick_last)
    await ask(inbox, "many\nlines " * 100, danger=True)
    params = wire.requests[0][1]
    assert "\n" not in params.message
    assert len(params.message) <= 2000
    assert params.type == types.MessageType.Warning


async def test_an_approval_is_shown_to_its_end_or_marked() -> None:
    wire, inbox, _ = connected(pick_last)
    await ask(inbox, "a" * 3000 + "END")
    assert wire.requests[0][1].message.endswith("END") and "not shown" not in wire.requests[0][1].message
    await ask(inbox, "a" * 9000 + "END")
    assert wire.requests[1][1].message.endswith("END") and "5,003 characters not shown" in wire.requests[1][1].message


async def test_several_choices_end_when_it_is_enough() -> None:
    picks = iter(["b", "a", "That is all"])

    async def respond(method: str, params: Any) -> Any:
        return types.MessageActionItem(next(picks))

    wire, inbox, _ = connected(respond)
    assert await ask(inbox, "Which?", ("a", "b", "c"), multiple=True) == ("b", "a")
    assert wire.requests[2][1].message == "Which? [b, a]"


async def test_closing_a_sequence_in_between_is_no() -> None:
    picks = iter([types.MessageActionItem("b"), None])

    async def respond(method: str, params: Any) -> Any:
        return next(picks)

    _, inbox, _ = connected(respond)
    assert await ask(inbox, "Which?", ("a", "b", "c"), multiple=True) is None


async def test_free_text_by_a_document_stays_open_until_it_is_answered() -> None:
    _, inbox, documents = connected(pick_last)
    asking = asyncio.ensure_future(ask(inbox, "Name?", ()))
    await asyncio.sleep(0.02)
    assert documents.opened == ["Name?"]
    inbox.respond(inbox.open()[0].request_id, ("Ada",))
    assert await asking == ("Ada",)


async def test_free_text_where_no_document_can_be_shown_is_told() -> None:
    wire, inbox, _ = connected(pick_last, shown=False, deadline=0.1)
    assert await ask(inbox, "Name?", ()) is None
    assert "Name?" in wire.notes[0][1].message


@pytest.mark.parametrize(("value", "answer"), [("Ada", ("Ada",)), ("", None), (None, None), (7, None)])
async def test_free_text_by_the_clients_own_input(value: Any, answer: Any) -> None:
    async def respond(method: str, params: Any) -> Any:
        assert (method, params["title"]) == ("codeagent/input", "Name?")
        return {"value": value}

    _, inbox, documents = connected(respond, policy=ClientPolicy(input=True))
    assert await ask(inbox, "Name?", ()) == answer
    assert documents.opened == []


async def test_a_secret_is_typed_into_the_clients_own_input_and_hidden_from_records() -> None:
    async def respond(method: str, params: Any) -> Any:
        assert (method, params["secret"]) == ("codeagent/input", True)
        return {"value": "hunter2-and-more"}

    _, inbox, documents = connected(respond, policy=ClientPolicy(input=True))
    told: list[events.Event] = []
    answer = await inbox.ask("run", Question("question", "Value?", secret=True), told.append)
    assert answer == ("hunter2-and-more",)
    assert "hunter2" not in repr(told)
    assert [event.answer for event in told if isinstance(event, events.QuestionAnswered)] == ["•••"]
    assert documents.opened == []


async def test_a_secret_never_goes_into_a_document() -> None:
    wire, inbox, documents = connected(pick_last, policy=ClientPolicy(shows_documents=True))
    assert await inbox.ask("run", Question("question", "Value of KEY?", secret=True), lambda event: None) is None
    assert (documents.opened, wire.requests) == ([], [])
    message = wire.notes[0][1].message
    assert "Value of KEY?" in message
    assert "environment your editor is started from" in message


async def test_an_open_question_says_that_it_is_secret() -> None:
    async def respond(method: str, params: Any) -> Any:
        await asyncio.sleep(60)

    _, inbox, _ = connected(respond, policy=ClientPolicy(input=True))
    asking = asyncio.ensure_future(inbox.ask("run", Question("question", "Value?", secret=True), lambda event: None))
    await asyncio.sleep(0.02)
    (item,) = inbox.open()
    assert item.to_dict()["secret"] is True
    inbox.respond(item.request_id, ("from anywhere",))
    assert await asking == ("from anywhere",)


async def test_plain_free_text_is_not_called_secret() -> None:
    async def respond(method: str, params: Any) -> Any:
        assert "secret" not in params
        return {"value": "Ada"}

    _, inbox, _ = connected(respond, policy=ClientPolicy(input=True))
    assert await ask(inbox, "Name?", ()) == ("Ada",)
