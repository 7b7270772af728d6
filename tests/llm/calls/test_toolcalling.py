"""Any model calls tools: the three modes, history rewritten, answers shown while they arrive."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.errors import ModelReplyInvalid
from codeagent_lsp.llm.calls import text_calls
from codeagent_lsp.llm.calls.text_calls import AnswerReader, render, reply_schema, write_answer, write_call
from codeagent_lsp.llm.calls.toolcalling import ToolCallingModel
from codeagent_lsp.llm.model import ModelRequest, ToolCalling
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.llm.wire import chat_messages
from codeagent_lsp.messages import Message, ToolCall
from tests.examples import examples
from tests.llm.support import TOOLS, Typewriter, collect

START = (Message("system", "You help."), Message("user", "Read a.py."))
ASK = ModelRequest(START, tools=TOOLS)
CALL = ToolCall("read_file", {"path": "a.py"})
CALLED = (
    *START,
    Message(
        "assistant",
        "Reading.",
        tool_calls=(ToolCall("read_file", {"path": "a.py"}, "1"), ToolCall("todo", {"items": []}, "2")),
    ),
    Message("tool", "x = 1", tool_call_id="1"),
    Message("tool", "ok", tool_call_id="2"),
    Message("assistant", "It says x = 1."),
    Message("user", "Thanks."),
)


async def test_constrained_turns_an_object_into_a_call() -> None:
    inner = Typewriter(write_call(CALL))
    shown, reply = await collect(ToolCallingModel(inner, "constrained"), ASK)
    assert shown == ""
    assert reply.finish_reason == "tool_calls"
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [(CALL.name, CALL.arguments)]
    assert reply.tool_calls[0].id
    asked = inner.requests[0]
    assert asked.tools == ()
    assert asked.response_schema is not None and len(asked.response_schema["oneOf"]) == len(TOOLS) + 1
    assert "read_file(path: string, offset?: integer)" in asked.messages[0].content


async def test_what_is_not_allowed_is_described_and_cannot_be_called() -> None:
    inner = Typewriter(write_answer("No."))
    model = ToolCallingModel(inner, "constrained")
    for allowed in (None, ("todo",), ()):
        await collect(model, replace(ASK, allowed=allowed))
    everything, one, none = inner.requests
    assert everything.messages == one.messages == none.messages
    assert everything.response_schema == reply_schema(TOOLS)
    assert one.response_schema == reply_schema(tuple(tool for tool in TOOLS if tool["name"] == "todo"))
    assert none.response_schema is not None and len(none.response_schema["oneOf"]) == 1


async def test_constrained_shows_an_answer_while_it_arrives() -> None:
    answer = 'Two\nlines, "quoted" \\ and 🎉.'
    inner = Typewriter(json.dumps({"tool": "final_answer", "args": {"text": answer}}), size=1)
    shown, reply = await collect(ToolCallingModel(inner, "constrained"), ASK)
    assert shown == answer
    assert (reply.text, reply.tool_calls, reply.problem) == (answer, (), "")


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=60), st.integers(1, 9), st.booleans())
def test_the_answer_reader_equals_json(text: str, size: int, ascii_only: bool) -> None:
    text = text.encode("utf-8", "replace").decode()
    source = json.dumps({"tool": "final_answer", "args": {"text": text}}, ensure_ascii=ascii_only)
    reader = AnswerReader()
    assert "".join(reader.feed(source[at : at + size]) for at in range(0, len(source), size)) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"tool": "read_file", "args": {}}', "needs 'path'"),
        ('{"tool": "nope", "args": {}}', "no tool 'nope'"),
    ],
)
@pytest.mark.parametrize("mode", ["constrained", "text"])
async def test_a_call_that_does_not_fit_is_a_problem(mode: ToolCalling, text: str, says: str) -> None:
    _, reply = await collect(ToolCallingModel(Typewriter(text), mode), ASK)
    assert reply.tool_calls == ()
    assert says in reply.problem


@pytest.mark.parametrize("mode", ["constrained", "text", "native"])
@pytest.mark.parametrize(
    "written",
    [
        '{"tool": "read_file", "args": {"path": "a',
        '<tool_call>{"name": "read_file", "arguments": {"path": "a',
        '<function=read_file>{"path": "a',
        '[TOOL_CALLS]read_file{"path": "a',
    ],
)
async def test_a_call_that_lost_its_end_never_runs_whatever_the_server_says(mode: ToolCalling, written: str) -> None:
    _, reply = await collect(ToolCallingModel(Typewriter(written, finish="stop"), mode), ASK)
    assert reply.tool_calls == ()
    assert reply.problem


@pytest.mark.parametrize("mode", ["constrained", "text"])
async def test_a_call_cut_at_the_limit_never_runs(mode: ToolCalling) -> None:
    inner = Typewriter('{"tool": "read_file", "args": {"path": "a', finish="length")
    _, reply = await collect(ToolCallingModel(inner, mode), ASK)
    assert reply.tool_calls == ()
    assert "token limit" in reply.problem


async def test_constrained_survives_a_server_that_ignores_the_grammar() -> None:
    for text, calls in (("Just prose.", 0), (f"Sure.\n```json\n{write_call(CALL)}\n```", 1), (write_answer("Hi"), 0)):
        _, reply = await collect(ToolCallingModel(Typewriter(text), "constrained"), ASK)
        assert len(reply.tool_calls) == calls
        assert reply.problem == ""
        assert reply.text in ("Just prose.", "Sure.", "Hi")


async def test_text_mode_shows_prose_and_hides_the_call() -> None:
    inner = Typewriter(f"I will look.\n{render(CALL)}")
    shown, reply = await collect(ToolCallingModel(inner, "text"), ASK)
    assert shown == "I will look.\n"
    assert reply.text == "I will look."
    assert [call.name for call in reply.tool_calls] == ["read_file"]
    assert "<tool_call>" in inner.requests[0].messages[0].content


async def test_native_calls_are_made_to_fit() -> None:
    calls = (ToolCall("functions.read_file", {"path": "a", "offset": "3"}, "7"), ToolCall("todo", {}, "8"))
    inner = ScriptedModel([ScriptedReply(tool_calls=calls)])
    _, reply = await collect(ToolCallingModel(inner, "native"), ASK)
    assert reply.tool_calls == (ToolCall("read_file", {"path": "a", "offset": 3}, "7"),)
    assert "needs 'items'" in reply.problem
    assert inner.requests[0].tools == TOOLS


async def test_a_call_that_leaked_into_the_text_of_a_native_reply_is_found() -> None:
    inner = ScriptedModel([ScriptedReply(render(CALL, "qwen_xml"), chunks=9)])
    shown, reply = await collect(ToolCallingModel(inner, "native"), ASK)
    assert [call.name for call in reply.tool_calls] == ["read_file"]
    assert shown == ""


class Choking(Typewriter):
    """A server that cannot parse its own model's calls."""

    def stream(self, request: ModelRequest):  # type: ignore[no-untyped-def] # as in Typewriter
        if request.tools:
            self.requests.append(request)
            raise ModelReplyInvalid("model.server_parse", url="u", reason="Failed to parse")
        return super().stream(request)


async def test_a_server_that_chokes_on_its_own_calls_is_asked_in_text() -> None:
    inner = Choking(render(CALL))
    _, reply = await collect(ToolCallingModel(inner, "native"), ASK)
    assert [call.name for call in reply.tool_calls] == ["read_file"]
    assert len(inner.requests) == 2


@pytest.mark.parametrize("mode", ["constrained", "text"])
async def test_history_becomes_text_with_alternating_roles(mode: ToolCalling) -> None:
    inner = Typewriter(write_answer("ok") if mode == "constrained" else "ok")
    await collect(ToolCallingModel(inner, mode), ModelRequest(CALLED, tools=TOOLS))
    sent = inner.requests[0].messages
    roles = [message.role for message in sent]
    assert roles[0] == "system" and "system" not in roles[1:]
    assert all(a != b for a, b in itertools.pairwise(roles))
    assert not any(message.tool_calls or message.role == "tool" for message in sent)
    told = "\n".join(message.content for message in sent)
    assert "Result of read_file:\nx = 1" in told and "Result of todo:\nok" in told
    assert told.index("Result of read_file") < told.index("Result of todo") < told.index("It says x = 1.")


async def test_the_prompt_only_ever_grows() -> None:
    inner = Typewriter(' { "tool": "read_file", "args": {"path": "a.py"}}', write_answer("done"))
    model = ToolCallingModel(inner, "constrained")
    _, reply = await collect(model, ASK)
    call = reply.tool_calls[0]
    more = (*START, Message("assistant", tool_calls=(call,)), Message("tool", "x", tool_call_id=call.id))
    await collect(model, ModelRequest(more, tools=TOOLS))
    first, second = inner.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert second.messages[2].content == ' { "tool": "read_file", "args": {"path": "a.py"}}', "as the model wrote it"


def test_equal_ids_in_different_turns_keep_their_own_results() -> None:
    turns = [
        message
        for n in (1, 2)
        for message in (
            Message("user", f"q{n}"),
            Message("assistant", tool_calls=(ToolCall("read_file", {"path": str(n)}, "call_1"),)),
            Message("tool", f"result {n}", tool_call_id="call_1"),
        )
    ]
    told = [message.content for message in text_calls.as_text(turns, "i", write_call)]
    assert told[3].startswith("Result of read_file:\nresult 1")
    assert told[5] == "Result of read_file:\nresult 2"


async def test_without_tools_nothing_is_imposed() -> None:
    inner = Typewriter("Summary.")
    shown, reply = await collect(ToolCallingModel(inner, "constrained"), ModelRequest(CALLED))
    assert shown == reply.text == "Summary."
    assert inner.requests[0].response_schema is None
    assert not any(message.role == "tool" for message in inner.requests[0].messages)


def test_the_schema_is_one_that_grammars_understand() -> None:
    schema = reply_schema(TOOLS)
    todo = schema["oneOf"][1]["properties"]["args"]
    assert todo["additionalProperties"] is False
    assert todo["properties"]["items"]["items"]["properties"]["state"] == {"enum": ["open", "done"]}
    assert "description" not in json.dumps(schema)


def test_the_wire_has_one_system_message_and_no_two_users_in_a_row() -> None:
    sent = chat_messages(
        [
            Message("system", "a"),
            Message("system", "b"),
            Message("user", "c"),
            Message("system", "d"),
            Message("assistant", "e"),
        ]
    )
    assert [(message["role"], message["content"]) for message in sent] == [
        ("system", "a\n\nb"),
        ("user", "c\n\nd"),
        ("assistant", "e"),
    ]


async def test_info_tells_the_mode() -> None:
    model = ToolCallingModel(Typewriter("x"), "constrained")
    assert model.info.tool_calling == "constrained"
    assert await model.count_tokens("abc") == 3
    await model.close()


async def test_a_native_request_without_tools_has_no_calls_in_its_history() -> None:
    """Some servers refuse calls in a conversation whose request describes no tools."""
    call = ToolCall("read_file", {"path": "a.py"}, "c1")
    said = (
        Message("user", "look"),
        Message("assistant", "", (call,)),
        Message("tool", "x = 1", (), "c1", "read_file"),
        Message("user", "sum up"),
    )
    inner = Typewriter("Summary.")
    _, reply = await collect(ToolCallingModel(inner, "native"), ModelRequest(said))
    assert reply.text == "Summary."
    sent = inner.requests[0].messages
    assert not any(message.tool_calls or message.role == "tool" for message in sent)
    assert "x = 1" in "".join(message.content for message in sent)
