"""Open questions: asked once, answered by the first, never lost."""

from __future__ import annotations

import asyncio

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.inbox import Inbox, OpenQuestion
from codeagent_lsp.tools.asking import Question
from tests.session.fakes import FakeUser

APPROVAL = Question("approval", "Do it?", ("No", "Yes"), detail="the call")
FREE = Question("question", "Which name?")
COLOUR = Question("question", "Which colour?", ("Red", "Blue"), by_agent=True, free=True)
RISKY = Question("question", "Which colour?", ("Red", "Blue"), by_agent=True, danger=True)
SEVERAL = Question("question", "Which ones?", ("a", "b", "c"), multiple=True)


class Asked:
    """One question on its way."""

    def __init__(self, question: Question, deadline: float = 10.0, run_id: str = "r") -> None:
        self.user = FakeUser()
        self.told: list[events.Event] = []
        self.inbox = self.user.inbox = Inbox(self.user, deadline)
        self.task = asyncio.ensure_future(self.inbox.ask(run_id, question, self.told.append))

    async def open(self) -> OpenQuestion:
        await asyncio.sleep(0)
        return self.inbox.open()[0]


async def test_the_first_answer_wins() -> None:
    asked = Asked(APPROVAL)
    item = await asked.open()
    asked.inbox.respond(item.request_id, ("Yes",))
    with pytest.raises(SessionError) as caught:
        asked.inbox.respond(item.request_id, ("No",))
    assert caught.value.key == "question.closed"
    assert await asked.task == ("Yes",)
    assert asked.inbox.open() == ()
    assert asked.user.withdrawn == [item]


async def test_asked_and_answered_are_told() -> None:
    asked = Asked(APPROVAL)
    item = await asked.open()
    asked.inbox.respond(item.request_id, ("No",))
    await asked.task
    assert asked.told == [
        events.ApprovalRequested(request_id=item.request_id, title="Do it?", detail="the call", choices=("No", "Yes")),
        events.ApprovalResolved(request_id=item.request_id, answer="No"),
    ]


async def test_questions_have_events_of_their_own() -> None:
    asked = Asked(FREE)
    asked.inbox.respond((await asked.open()).request_id, ("any text",))
    assert await asked.task == ("any text",)
    assert [event.type for event in asked.told] == ["question_asked", "question_answered"]


@pytest.mark.parametrize(
    ("question", "answer", "key"),
    [
        (APPROVAL, ("Maybe",), "question.choices"),
        (APPROVAL, ("Yes", "No"), "question.one"),
        (APPROVAL, (), "question.one"),
        (FREE, ("a", "b"), "question.one"),
        (SEVERAL, ("a", "d"), "question.choices"),
        (RISKY, ("Green",), "question.choices"),
    ],
)
async def test_an_answer_that_is_none_leaves_the_question_open(
    question: Question, answer: tuple[str, ...], key: str
) -> None:
    asked = Asked(question)
    item = await asked.open()
    with pytest.raises(SessionError) as caught:
        asked.inbox.respond(item.request_id, answer)
    assert caught.value.key == key
    assert asked.inbox.open() == (item,)
    asked.inbox.respond(item.request_id, None)
    assert await asked.task is None


async def test_several_choices() -> None:
    asked = Asked(SEVERAL)
    asked.inbox.respond((await asked.open()).request_id, ("a", "c"))
    assert await asked.task == ("a", "c")


async def test_silence_is_no_answer_after_the_deadline() -> None:
    asked = Asked(APPROVAL, deadline=0.02)
    item = await asked.open()
    assert await asked.task is None
    assert asked.told[-1] == events.ApprovalResolved(request_id=item.request_id, answer=None)
    with pytest.raises(SessionError):
        asked.inbox.respond(item.request_id, ("Yes",))


async def test_an_answer_in_the_moment_of_the_deadline_counts() -> None:
    asked = Asked(APPROVAL, deadline=0.05)
    item = await asked.open()
    loop = asyncio.get_running_loop()
    loop.call_at(loop.time() + 0.03, asked.inbox.respond, item.request_id, ("Yes",))
    end = loop.time() + 0.06
    loop.call_soon(lambda: [None for _ in iter(lambda: loop.time() < end, False)])  # both fall due in one step
    assert await asked.task == ("Yes",)


async def test_a_cancelled_asker_leaves_no_question() -> None:
    asked = Asked(APPROVAL)
    item = await asked.open()
    asked.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked.task
    assert asked.inbox.open() == ()
    assert asked.user.withdrawn == [item]
    assert asked.told[-1].type == "approval_resolved"


async def test_settling_closes_that_question_of_that_run_alone() -> None:
    user = FakeUser()
    inbox = Inbox(user)
    same = Question("approval", "Do it?", ("No", "Yes"), detail="the call")
    tasks = [
        asyncio.ensure_future(inbox.ask(run_id, question, lambda event: None))
        for run_id, question in (("one", APPROVAL), ("one", same), ("two", APPROVAL))
    ]
    await asyncio.sleep(0)
    inbox.settle("one", APPROVAL)
    assert await tasks[0] is None
    assert [(item.run_id, item.question is same) for item in inbox.open()] == [("one", True), ("two", False)]
    for task in tasks[1:]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert inbox.open() == ()


async def test_a_presenter_that_fails_leaves_no_question() -> None:
    class Broken(FakeUser):
        def show(self, question: OpenQuestion) -> None:
            raise RuntimeError("no window")

    inbox = Inbox(Broken())
    with pytest.raises(RuntimeError):
        await inbox.ask("r", APPROVAL, lambda event: None)
    assert inbox.open() == ()


async def test_what_is_open_is_listed_in_order() -> None:
    asked = Asked(APPROVAL)
    first = await asked.open()
    more = asyncio.ensure_future(asked.inbox.ask("s", FREE, asked.told.append))
    await asyncio.sleep(0)
    assert [item.to_dict()["title"] for item in asked.inbox.open()] == ["Do it?", "Which name?"]
    assert first.to_dict()["choices"] == ["No", "Yes"]
    for task in (asked.task, more):
        task.cancel()
    await asyncio.gather(asked.task, more, return_exceptions=True)


async def test_the_model_is_answered_in_own_words_as_well() -> None:
    asked = Asked(COLOUR)
    asked.inbox.respond((await asked.open()).request_id, ("Green",))
    assert await asked.task == ("Green",)
