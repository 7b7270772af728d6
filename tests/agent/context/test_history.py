"""The conversation stays well-formed wherever it is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.agent.context.history import (
    INTERRUPTED,
    NOTE,
    SUMMARY,
    UNCHANGED,
    History,
    is_request,
    note,
    open_calls,
    reference,
    render_focused_file,
    well_formed,
    whole_file,
)
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


def test_a_compacted_conversation_takes_the_place_of_the_old_one() -> None:
    told: list[tuple[Message, ...]] = []
    history = History([Message("user", "x")], on_replace=told.append)
    short = (Message("user", "y"), Message("tool", "orphan", tool_call_id="1"))
    history.replace(short)
    assert history.messages == (Message("user", "y"),)
    assert told == [history.messages]


def test_only_the_users_own_words_are_requests() -> None:
    assert is_request(Message("user", "x"))
    assert not is_request(note("x"))
    assert not is_request(Message("user", "x", name=SUMMARY))
    assert not is_request(Message("assistant", "x"))


TEXT = "1|a line\n" * 100


def read(number: int, text: str, **arguments: object) -> list[Message]:
    wanted = ToolCall("read_file", {"path": "a.py", **arguments}, f"c{number}")
    return [Message("assistant", "", (wanted,)), Message("tool", text, tool_call_id=wanted.id, name=wanted.name)]


AGAIN = ToolCall("read_file", {"path": "a.py"}, "c9")


def test_reading_unchanged_text_again_refers_to_it() -> None:
    assert reference(read(1, TEXT), AGAIN, TEXT) == f"{UNCHANGED} (call c1)."
    twice = [*read(1, TEXT), *read(2, f"{UNCHANGED} (call c1).")]
    assert reference(twice, AGAIN, TEXT) == f"{UNCHANGED} (call c1)."


def test_changed_text_other_ranges_other_tools_and_short_texts_are_given_in_full() -> None:
    assert reference(read(1, TEXT), AGAIN, TEXT + "more") is None
    assert reference(read(1, TEXT, start_line=1), AGAIN, TEXT) is None
    assert reference(read(1, TEXT), ToolCall("grep", {"path": "a.py"}, "c9"), TEXT) is None
    assert reference(read(1, "short"), AGAIN, "short") is None
    assert reference([], AGAIN, TEXT) is None


def test_a_file_that_was_put_before_the_task_is_referred_to() -> None:
    before = note(f"Files.\n\n{whole_file('a.py', TEXT)}\n\nMore.")
    assert (reference([before, Message("user", "go")], AGAIN, TEXT) or "").startswith(UNCHANGED)
    assert reference([before], AGAIN, TEXT.replace("a", "b")) is None
    assert reference([before], ToolCall("read_file", {"path": "b.py"}, "c9"), TEXT) is None
    assert reference([before, *read(1, "other")], AGAIN, TEXT) is None


def test_what_changed_and_changed_back_is_given_anew() -> None:
    assert reference([*read(1, TEXT), *read(2, "other")], AGAIN, TEXT) is None


def test_a_file_that_stands_in_the_summary_is_referred_to() -> None:
    summary = Message("user", f"Files as they are now:\n{render_focused_file('a.py', TEXT)}", name=SUMMARY)
    assert (reference([summary], AGAIN, TEXT) or "").startswith(UNCHANGED)
    assert reference([summary], AGAIN, TEXT.replace("a", "b")) is None
    assert reference([summary], ToolCall("read_file", {"path": "a.py", "end_line": 3}, "c9"), TEXT) is None
    assert reference([summary, *read(1, "other")], AGAIN, TEXT) is None
