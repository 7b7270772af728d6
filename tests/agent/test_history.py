"""The conversation stays well-formed wherever it is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.agent.history import INTERRUPTED, NOTE, History, note, open_calls, well_formed
from codeagent_lsp.messages import Message, ToolCall
from tests.session.fakes import assert_well_formed


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """A whole conversation, with ids that are unique."""
    messages = [Message("system", "rules")]
    number = 0
    for turn in range(draw(st.integers(0, 4))):
        messages.append(Message("user", f"task {turn}"))
        for _ in range(draw(st.integers(0, 3))):
            count = draw(st.integers(0, 4))
            calls = tuple(ToolCall("tool", {"n": number + i}, f"c{number + i}") for i in range(count))
            number += count
            messages.append(Message("assistant", "text", calls))
            order = draw(st.permutations(calls))
            messages += [Message("tool", "result", tool_call_id=item.id, name=item.name) for item in order]
        if draw(st.booleans()):
            messages.append(note("you repeat yourself"))
    return tuple(messages)


@given(conversations(), st.data())
def test_a_conversation_cut_anywhere_is_mended(messages: tuple[Message, ...], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(messages)))
    mended = well_formed(messages[:cut])
    assert_well_formed(mended)
    assert [m for m in mended if m.content != INTERRUPTED] == list(messages[:cut])


@given(conversations())
def test_a_whole_conversation_is_left_alone(messages: tuple[Message, ...]) -> None:
    assert well_formed(messages) == messages


@given(conversations(), st.lists(st.integers(0, 30)), st.integers(0, 30))
def test_lost_and_doubled_messages_are_mended(messages: tuple[Message, ...], lost: list[int], doubled: int) -> None:
    kept = [message for index, message in enumerate(messages) if index not in lost]
    if kept and kept[doubled % len(kept)].role == "tool":
        kept.insert(doubled % len(kept), kept[doubled % len(kept)])
    assert_well_formed(well_formed(kept))


@given(conversations(), st.data())
def test_closing_the_open_calls_is_enough_after_an_interruption(
    messages: tuple[Message, ...], data: st.DataObject
) -> None:
    told: list[Message] = []
    history = History(on_append=told.append)
    for message in messages[: data.draw(st.integers(0, len(messages)))]:
        history.append(message)
    history.close_turn()
    assert_well_formed(history.messages)
    assert tuple(told) == history.messages
    history.close_turn()
    assert tuple(told) == history.messages


def test_open_calls_are_those_of_the_last_reply_without_a_result() -> None:
    calls = (ToolCall("a", {}, "1"), ToolCall("b", {}, "2"))
    messages = [Message("user", "x"), Message("assistant", "", calls), Message("tool", "r", tool_call_id="1")]
    assert open_calls(messages) == [("2", "b")]
    assert open_calls([*messages, Message("user", "next")]) == []
    assert open_calls([]) == []


def test_an_orphaned_result_is_left_out_and_a_note_is_no_request() -> None:
    assert well_formed([Message("tool", "r", tool_call_id="1")]) == ()
    assert note("x") == Message("user", "x", name=NOTE)


def test_what_fails_to_be_stored_is_not_in_the_history() -> None:
    def refuse(message: Message) -> None:
        raise OSError

    history = History(on_append=refuse)
    try:
        history.append(Message("user", "x"))
    except OSError:
        pass
    assert history.messages == ()
