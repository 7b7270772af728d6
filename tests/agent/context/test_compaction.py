"""A compaction shrinks, keeps what must stay word for word, and leaves a well-formed conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.agent.context.compaction import (
    END,
    GONE,
    HEADER,
    KeptFacts,
    compact,
    plan_compaction,
    squeeze,
    within,
)
from codeagent_lsp.agent.context.history import SUMMARY, UNCHANGED, FocusedFiles, is_request, note, size, take_apart
from codeagent_lsp.messages import Message, ToolCall, estimate_tokens
from tests.agent.context.test_history import conversations
from tests.session.fakes import assert_well_formed

SYSTEM = Message("system", "rules")


def exchange(number: int, result: str, tool: str = "read_file") -> list[Message]:
    call = ToolCall(tool, {"path": f"f{number}.py"}, f"c{number}")
    return [Message("assistant", "", (call,)), Message("tool", result, tool_call_id=call.id, name=tool)]


def turn(number: int, result: str = "r\n" * 1500) -> list[Message]:
    return [Message("user", f"task {number}"), *exchange(number, result), Message("assistant", f"done {number}")]


def turns(count: int) -> list[Message]:
    return [SYSTEM, *(message for number in range(count) for message in turn(number))]


def says(text: str, asked: list[tuple[Message, ...]] | None = None) -> Callable[..., Awaitable[str]]:
    async def summarise(messages: tuple[Message, ...], tokens: int) -> str:
        if asked is not None:
            asked.append(messages)
        return text

    return summarise


def summary_of(messages: tuple[Message, ...]) -> str:
    (told,) = [message.content for message in messages if message.name == SUMMARY]
    return told


def requests(messages: tuple[Message, ...] | list[Message]) -> list[Message]:
    return [message for message in messages if is_request(message)]


async def test_the_latest_turn_stays_whole_and_the_old_ones_are_told() -> None:
    messages = turns(5)
    made = await compact(messages, 4000, KeptFacts(), says("We fixed f0 to f3."))
    assert made[-4:] == tuple(messages[-4:])
    assert requests(made) == requests(messages)
    assert summary_of(made) == f"{HEADER}\nWe fixed f0 to f3.\n{END}"
    assert made[0] == SYSTEM
    assert size(made) < 4000
    assert_well_formed(made)


async def test_the_model_is_asked_with_what_it_was_sent_and_one_question() -> None:
    messages, asked = turns(5), list[tuple[Message, ...]]()
    await compact(messages, 4000, KeptFacts(), says("So.", asked))
    (question,) = asked
    assert question[:-1] == tuple(messages[: len(question) - 1])
    assert len(question) == len(messages) - 4 + 1
    assert "In at most" in question[-1].content
    assert not is_request(question[-1])


async def test_what_is_kept_stands_word_for_word() -> None:
    files = FocusedFiles().seen("a.py", "1|alpha\n2|beta").seen("b.py", "1|gamma")
    kept = KeptFacts("[ ] 1: test it", "1. look\n2. write", ("a.py", "c.py"), files)
    told = summary_of(await compact(turns(5), 6000, kept, says("So.")))
    for part in (kept.todos, kept.plan, "a.py, c.py", "a.py:\n1|alpha\n2|beta\n", "b.py:\n1|gamma\n"):
        assert told.count(part) == 1
    assert told.index(END) < told.index(kept.todos)


async def test_files_that_do_not_fit_are_left_out() -> None:
    files = FocusedFiles().seen("big.py", "x" * 50_000).seen("small.py", "1|gamma")
    told = summary_of(await compact(turns(5), 4000, KeptFacts(focused=files), says("So.")))
    assert "small.py" in told
    assert "big.py" not in told


async def test_without_a_model_or_with_one_that_says_nothing_a_list_takes_its_place() -> None:
    for summarise in (None, says(""), says("  \n")):
        told = summary_of(await compact(turns(5), 4000, KeptFacts(), summarise))
        assert "- read_file f0.py: read 1501 lines" in told
        assert "- I said: done 2" in told


async def test_a_model_that_says_too_much_is_cut() -> None:
    made = await compact(turns(5), 4000, KeptFacts(), says("blah blah\n" * 20_000))
    assert size(made) <= 4000
    assert "blah" in summary_of(made)


async def test_the_next_compaction_takes_the_last_summary_along() -> None:
    first = await compact(turns(5), 4000, KeptFacts(todos="[ ] old"), says("First words."))
    longer = [*first, *turn(7), *turn(8), *turn(9)]
    second = await compact(longer, 4000, KeptFacts(todos="[x] new"), None)
    told = summary_of(second)
    assert "First words." in told
    assert told.count("[x] new") == 1
    assert "[ ] old" not in told
    assert requests(second) == requests(longer)


async def test_in_one_long_turn_the_latest_calls_stay_and_older_results_are_references() -> None:
    messages = [SYSTEM, Message("user", "the task")]
    messages += [message for number in range(12) for message in exchange(number, "r\n" * 900)]
    made = await compact(messages, 4000, KeptFacts(), says("Read many."))
    assert made[-2:] == tuple(messages[-2:])
    short = [message.content for message in made if message.role == "tool"][:-1]
    assert short
    assert all("removed to save room" in text for text in short)
    assert requests(made) == [Message("user", "the task")]
    assert size(made) < 3000
    assert_well_formed(made)


async def test_a_note_after_the_last_calls_does_not_take_their_results() -> None:
    messages = [SYSTEM, Message("user", "the task")]
    messages += [message for number in range(9) for message in exchange(number, "r\n" * 900)]
    messages.append(note("Step back."))
    made = await compact(messages, 4000, KeptFacts(), None)
    assert made[-3:] == tuple(messages[-3:])


async def test_a_reference_to_a_text_that_goes_says_so() -> None:
    messages = [SYSTEM, Message("user", "the task"), *exchange(1, "r\n" * 2500), *exchange(2, "s\n" * 2500)]
    messages += exchange(3, f"{UNCHANGED} (call c1).")
    made = await compact(messages, 2500, KeptFacts(), None)
    assert made[-1].content == GONE
    assert not [message for message in made if UNCHANGED in message.content]


async def test_what_cannot_shrink_is_left_alone() -> None:
    messages = (SYSTEM, Message("user", "hi"))
    assert await compact(messages, 10, KeptFacts("todo", "plan"), says("words")) == messages


async def test_pressure_cuts_even_the_last_result_and_the_request() -> None:
    messages = [SYSTEM, Message("user", "u" * 9000), *exchange(1, "r\n" * 9000)]
    made = await compact(messages, 1200, KeptFacts(), None, pressure=2)
    assert size(made) <= 1200
    assert [message.role for message in made] == ["system", "user", "assistant", "tool"]
    assert_well_formed(made)


async def test_old_requests_are_cut_before_the_latest_one() -> None:
    messages = [SYSTEM, Message("user", "a b\n" * 2000), Message("assistant", "ok"), Message("user", "c d\n" * 600)]
    made = await compact(messages, 1500, KeptFacts(), None, pressure=2)
    assert made[-1] == messages[-1]
    assert size(made) <= 1500


@given(conversations(), st.integers(50, 4000), st.integers(0, 3000), st.integers(0, 2), st.booleans())
async def test_it_is_well_formed_smaller_and_keeps_requests(
    messages: tuple[Message, ...], budget: int, length: int, pressure: int, told: bool
) -> None:
    long = tuple(
        Message(m.role, m.content + "x\n" * length, m.tool_calls, m.tool_call_id, m.name) if m.role == "tool" else m
        for m in messages
    )
    kept = KeptFacts("[ ] one", "", ("a.py",), FocusedFiles().seen("a.py", "text\n" * (length // 10)))
    made = await compact(long, budget, kept, says("What we did.") if told else None, pressure=pressure)
    assert_well_formed(made)
    assert made == long or size(made) < size(long)
    assert made[:1] == long[:1]
    assert [m.content for m in requests(made)] == [m.content for m in requests(long)]
    if made != long and pressure < 2:
        assert take_apart(made).latest_turn == 0
    again = await compact(made, budget, kept, None, pressure=pressure)
    assert again == made or size(again) < size(made)


@given(conversations(), st.integers(100, 4000))
def test_a_plan_splits_without_loss(messages: tuple[Message, ...], budget: int) -> None:
    plan = plan_compaction(messages, budget)
    assert plan.sent == messages[: len(plan.sent)]
    stays = messages[len(plan.sent) :]
    assert [m.role for m in plan.tail] == [m.role for m in stays]
    assert [*plan.requests, *requests(plan.tail)] == requests(messages)
    assert_well_formed(plan.sent)


@given(st.lists(st.text(max_size=3000), max_size=6), st.integers(0, 3000))
def test_squeezing_keeps_every_message(texts: list[str], budget: int) -> None:
    messages = [Message("user", text) for text in texts]
    made = squeeze(messages, budget)
    assert [message.role for message in made] == [message.role for message in messages]
    assert size(made) <= max(budget, size(messages))


@given(st.text("ab中\n", max_size=4000), st.integers(120, 2000))
def test_a_text_is_cut_to_its_tokens(text: str, tokens: int) -> None:
    shown = within(text, tokens)
    assert len(shown) <= len(text)
    assert estimate_tokens(shown) <= max(tokens, 220)


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a.py", "content": "x = 1\n" * 50_000},
        {"files": ["a.py"] * 20_000},
        {"path": "a.py", **{f"k{number}": 1 for number in range(20_000)}},
        {"path": "a.py", "k" * 200_000: 1},
    ],
)
def test_a_call_longer_than_the_window_is_cut_once_it_has_its_result(arguments: dict[str, object]) -> None:
    call = ToolCall("write_file", arguments, "c1")
    messages = (
        Message("system", "You are."),
        Message("user", "Write it."),
        Message("assistant", "", (call,)),
        Message("tool", "Created.", tool_call_id="c1", name="write_file"),
    )
    made = squeeze(messages, 2000)
    assert size(made) <= 2000
    assert [message.content for message in made] == [message.content for message in messages]
    assert made[2].tool_calls[0].id == "c1"
    assert squeeze(messages[:2], 2000) == messages[:2]
