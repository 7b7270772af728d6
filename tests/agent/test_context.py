"""A conversation is made to fit without breaking it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.agent.context import SHORT_RESULT, estimate_tokens, fit, size
from codeagent_lsp.agent.history import NOTE, note
from codeagent_lsp.messages import Message, ToolCall
from tests.agent.test_history import conversations
from tests.session.fakes import assert_well_formed


def exchange(number: int, result: str, arguments: dict[str, str] | None = None) -> list[Message]:
    call = ToolCall("read_file", arguments or {"path": "a"}, f"c{number}")
    return [Message("assistant", "", (call,)), Message("tool", result, tool_call_id=call.id, name=call.name)]


def requests(messages: tuple[Message, ...]) -> list[Message]:
    return [message for message in messages if message.role == "user" and message.name != NOTE]


@given(conversations(), st.integers(10, 4000), st.integers(1, 40), st.integers(0, 5000))
def test_whatever_the_budget_the_result_is_well_formed(
    messages: tuple[Message, ...], budget: int, most: int, length: int
) -> None:
    long = tuple(
        Message(m.role, m.content + "x\n" * length, m.tool_calls, m.tool_call_id, m.name) if m.role == "tool" else m
        for m in messages
    )
    fitted = fit(long, budget, most)
    assert_well_formed(fitted)
    assert [m for m in fitted if m.role == "system"] == [m for m in long if m.role == "system"]
    if requests(long):
        assert requests(fitted)[-1:] == requests(long)[-1:]
    assert size(fitted) <= size(long)


@given(conversations(), st.integers(1, 40))
def test_what_fits_is_left_alone(messages: tuple[Message, ...], most: int) -> None:
    assert fit(messages, 1_000_000, 1000) == messages
    assert len(requests(fit(messages, 1_000_000, most))) <= len(requests(messages))


def test_old_turns_go_whole_and_first() -> None:
    messages = [Message("system", "s")]
    for turn in range(5):
        messages += [Message("user", f"task {turn}"), *exchange(turn, "r" * 3000), Message("assistant", "ok")]
    fitted = fit(messages, 2500, 1000)
    assert [m.content for m in requests(fitted)] == ["task 3", "task 4"]
    assert size(fitted) <= 2500


def test_the_number_of_messages_is_bounded_at_a_users_request() -> None:
    messages = [message for turn in range(9) for message in (Message("user", str(turn)), Message("assistant", "a"))]
    assert len(fit(messages, 10_000, 5)) == 4


def test_a_note_of_ours_does_not_push_the_task_out() -> None:
    messages = [Message("system", "s"), Message("user", "the task")]
    for number in range(20):
        messages += [*exchange(number, "r" * 900), note("Step back.")]
    fitted = fit(messages, 1500, 6)
    assert "the task" in [m.content for m in fitted]
    assert size(fitted) <= 1500


def test_long_results_are_cut_oldest_first() -> None:
    messages = [Message("user", "t"), *exchange(1, "a\n" * 5000), *exchange(2, "b\n" * 1000)]
    fitted = fit(messages, 1200, 100)
    assert len(fitted[2].content) < SHORT_RESULT + 100
    assert fitted[4] == messages[4]
    assert size(fitted) <= 1200


def test_a_run_of_many_calls_loses_its_oldest_exchanges() -> None:
    content = {"path": "f", "content": "x" * 3000}
    messages = [Message("system", "s"), Message("user", "the task")]
    messages += [item for number in range(8) for item in exchange(number, "ok", content)]
    fitted = fit(messages, 3000, 100)
    assert size(fitted) <= 3000
    assert fitted[:2] == tuple(messages[:2])
    assert fitted[-2:] == tuple(messages[-2:])
    assert_well_formed(fitted)


def test_long_texts_are_cut_last_and_the_users_words_after_the_models() -> None:
    messages = [Message("system", "s" * 6000), Message("user", "u" * 6000), Message("assistant", "a" * 6000)]
    fitted = fit(messages, 4600, 100)
    assert fitted[0].content == messages[0].content
    assert fitted[1].content == messages[1].content
    assert len(fitted[2].content) < 6000
    tiny = fit(messages, 1200, 100)
    assert size(tiny) <= 1200
    assert [m.role for m in tiny] == ["system", "user", "assistant"]


def test_a_short_budget_keeps_the_last_request_even_so() -> None:
    fitted = fit([Message("system", "rules"), Message("user", "a"), Message("user", "b")], 1, 1)
    assert [m.content for m in fitted] == ["rules", "b"]


def test_tokens_are_counted_on_the_safe_side() -> None:
    assert estimate_tokens("") == 1
    assert estimate_tokens("中文") == 3
    assert estimate_tokens("\ud800") >= 1
    assert size([Message("assistant", "", (ToolCall("t", {"a": "x" * 300}),))]) > 100
    assert size([Message("user", "abc")], len) == 9
