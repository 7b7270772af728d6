"""Replies put together from chunks in any order, and the conversation as it goes over the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.errors import ModelError, ModelReplyInvalid, ModelStreamBroken
from codeagent_lsp.llm import wire
from codeagent_lsp.llm.calls.text_calls import as_text
from codeagent_lsp.llm.deltas import REPLY_LIMIT, Assembler, numbers, with_timings
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.model import Reply, TextChunk
from codeagent_lsp.llm.providers.llamacpp import as_chat_chunk
from codeagent_lsp.messages import Message, ToolCall, Usage
from tests.examples import examples
from tests.faults.model_server import delta
from tests.llm.support import chunked

WHERE = endpoint("http://127.0.0.1:1")
NAMES = ("read_file", "grep", "list_dir")


def finished(*chunks: dict[str, Any], reason: str = "tool_calls") -> Reply:
    assembler = Assembler(WHERE)
    for chunk in [*chunks, delta(finish=reason)]:
        assembler.feed(chunk)
    assembler.flush()
    return assembler.finish(done_marker=True)


CALLS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.dictionaries(st.sampled_from("abc"), st.text(max_size=12), max_size=3)),
    min_size=1,
    max_size=4,
)


@settings(max_examples=examples(150), deadline=None)
@given(CALLS, st.integers(0, 999), st.sampled_from(["id", "index", "both", "order"]), st.randoms())
def test_parallel_calls_however_they_are_cut_and_mixed(calls: Any, seed: int, by: str, dice: Any) -> None:
    streams: list[list[dict[str, Any]]] = []
    for number, (name, arguments) in enumerate(calls):
        pieces = chunked(json.dumps(arguments), seed + number)
        mark: dict[str, Any] = {}
        if by in ("id", "both"):
            mark["id"] = f"call-{number}"
        if by in ("index", "both"):
            mark["index"] = number
        first = {**mark, "function": {"name": name, "arguments": pieces[0]}}
        rest = [{**mark, "function": {"arguments": piece}} for piece in pieces[1:]]
        streams.append([first, *rest])
    chunks: list[dict[str, Any]] = []
    for stream in list(streams):
        if by == "order":
            chunks += stream
    while by != "order" and any(streams):
        chunks.append(dice.choice([stream for stream in streams if stream]).pop(0))
    reply = finished(*[delta(calls=[chunk]) for chunk in chunks])
    assert sorted((call.name, json.dumps(call.arguments, sort_keys=True)) for call in reply.tool_calls) == sorted(
        (name, json.dumps(arguments, sort_keys=True)) for name, arguments in calls
    )
    assert len({call.id for call in reply.tool_calls}) == len(calls)


def piece(name: str = "", arguments: str = "", **mark: Any) -> dict[str, Any]:
    return delta(calls=[{**mark, "function": {**({"name": name} if name else {}), "arguments": arguments}}])


@pytest.mark.parametrize(
    ("chunks", "wanted"),
    [
        (  # two whole calls, both of index 0, without ids
            [piece("grep", '{"a": "1"}', index=0), piece("grep", '{"a": "2"}', index=0)],
            [("grep", {"a": "1"}), ("grep", {"a": "2"})],
        ),
        (
            [piece("read_file", '{"a": "1"}', index=0, id=""), piece("grep", "", index=0), piece("", "{}", index=0)],
            [("read_file", {"a": "1"}), ("grep", {})],
        ),
        (  # the name with every piece, and an empty piece behind the end
            [piece("grep", '{"a":', index=0), piece("grep", ' "1"}', index=0), piece("grep", "", index=0)],
            [("grep", {"a": "1"})],
        ),
        (  # an id of its own for every piece
            [
                piece("grep", "", index=0, id="x1"),
                piece("", '{"a": ', index=0, id="x2"),
                piece("", '"1"}', index=0, id="x3"),
            ],
            [("grep", {"a": "1"})],
        ),
        (  # the index as text, two calls mixed
            [
                piece("grep", '{"a": ', index="0"),
                piece("read_file", '{"b"', index="1"),
                piece("", '"1"}', index="0"),
                piece("", ': "2"}', index="1"),
            ],
            [("grep", {"a": "1"}), ("read_file", {"b": "2"})],
        ),
    ],
)
def test_calls_of_servers_that_number_them_badly(chunks: list[Any], wanted: list[Any]) -> None:
    reply = finished(*chunks)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == wanted
    assert reply.problem == ""
    assert len({call.id for call in reply.tool_calls}) == len(wanted)


@pytest.mark.parametrize("reason", ["tool_calls", "stop"])
def test_a_call_that_lost_its_end_does_not_run_although_the_server_calls_it_whole(reason: str) -> None:
    reply = finished(piece("write_file", '{"path": "a.py", "content": "def g(', index=0, id="1"), reason=reason)
    assert reply.tool_calls == ()
    assert "write_file" in reply.problem
    assert [call.name for call in reply.unusable] == ["write_file"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "message",
                    "content",
                    "tool_calls",
                    "function",
                    "name",
                    "arguments",
                    "id",
                    "index",
                    "finish_reason",
                    "usage",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage", "timings", "model", "error"]), JSON), max_size=4))
def test_any_chunk_gives_a_reply_or_a_model_error(chunks: list[dict[str, Any]]) -> None:
    assembler = Assembler(WHERE)
    try:
        for chunk in chunks:
            assembler.feed(chunk)
        assembler.flush()
        reply = assembler.finish(done_marker=True)
    except ModelError:
        return
    assert isinstance(reply.text, str)


@pytest.mark.parametrize(
    ("reason", "wanted"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("eos", "stop"),
        ("function_call", "tool_calls"),
    ],
)
def test_finish_reasons(reason: str, wanted: str) -> None:
    assert finished(delta("x"), reason=reason).finish_reason == wanted


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("", '{"a": 1}', "had no name"),
        ("f", "[1]", "not a JSON object"),
        ("f", "words", "not a JSON object"),
        ("f", '"text"', "not a JSON object"),
    ],
)
def test_calls_that_are_none_are_complained_about(name: str, arguments: str, says: str) -> None:
    reply = finished(delta(calls=[{"index": 0, "id": "1", "function": {"name": name, "arguments": arguments}}]))
    assert reply.tool_calls == ()
    assert says in reply.problem


def test_a_good_call_beside_a_bad_one_is_kept() -> None:
    good = {"index": 0, "id": "1", "function": {"name": "f", "arguments": "{}"}}
    bad = {"index": 1, "id": "2", "function": {"name": "g", "arguments": "[]"}}
    reply = finished(delta(calls=[good, bad]))
    assert reply.tool_calls == (ToolCall("f", {}, "1"),)
    assert "g" in reply.problem


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("chunks", [[], [delta("x")], [delta(calls=[{"index": 0, "function": {"name": "f"}}])]])
def test_without_a_reason_only_text_before_done_counts(chunks: list[Any], done: bool) -> None:
    assembler = Assembler(WHERE)
    for chunk in chunks:
        assembler.feed(chunk)
    if done and "tool_calls" not in str(chunks):
        assert assembler.finish(done_marker=True).tool_calls == ()
        return
    with pytest.raises(ModelStreamBroken):
        assembler.finish(done_marker=done)


@pytest.mark.slow
def test_the_limit_counts_everything_together() -> None:
    assembler = Assembler(WHERE)
    third = "x" * (REPLY_LIMIT // 3)
    assembler.feed(delta(third))
    assembler.feed(delta(reasoning_content=third))
    with pytest.raises(ModelReplyInvalid):
        assembler.feed(delta(calls=[{"index": 0, "function": {"arguments": third + "xxx"}}]))


@pytest.mark.parametrize(
    ("usage", "timings", "wanted"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, None, Usage(5, 0, 2)),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}}, None, Usage(5, 3, 0)),
        ({"prompt_tokens": 5, "prompt_cache_hit_tokens": 4}, None, Usage(5, 4, 0)),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 5}},
            None,
            Usage(9, 3, 0, 5),
        ),
        ({"prompt_tokens": "5", "completion_tokens": None}, None, Usage(0, 0, 0)),
        ({"prompt_tokens": -5, "completion_tokens": True}, None, Usage(0, 0, 0)),
        ({"prompt_tokens": 5, "prompt_tokens_details": None}, {"cache_n": 4, "prompt_n": 1}, Usage(5, 4, 0)),
        (None, {"cache_n": 4, "prompt_n": 1, "predicted_n": 7}, Usage(5, 4, 7)),
    ],
)
def test_usage_of_every_server(usage: Any, timings: Any, wanted: Usage) -> None:
    assert finished(delta("x"), {"usage": usage, "timings": timings}, reason="stop").usage == wanted


def test_timings_are_numbers_only() -> None:
    assert numbers({"a": 1, "b": 2.5, "c": "x", "d": True, "e": None}) == {"a": 1.0, "b": 2.5}
    assert with_timings(Usage(9, 0, 3), {"cache_n": 8.0, "predicted_n": 5.0}) == Usage(9, 8, 3)


@pytest.mark.parametrize(
    ("chunk", "reason"),
    [
        ({"content": "x"}, None),
        ({"content": "", "stop": True, "stop_type": "eos"}, "stop"),
        ({"content": "", "stop": True, "stop_type": "word"}, "stop"),
        ({"content": "", "stop": True, "stop_type": "limit"}, "length"),
        ({"content": "", "stop": True, "truncated": True}, "length"),
    ],
)
def test_raw_chunks_become_chat_chunks(chunk: dict[str, Any], reason: str | None) -> None:
    made = as_chat_chunk(chunk)
    assert made["choices"][0]["finish_reason"] == reason
    shown = Assembler(WHERE).feed(made)
    assert shown == ([TextChunk(chunk["content"])] if chunk["content"] else [])


# --- the conversation on its way out

WORDS = st.text(st.sampled_from("ab \n"), max_size=6)
CALLED = st.builds(lambda name, path: ToolCall(name, {"path": path}, "id"), st.sampled_from(NAMES), WORDS)
MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["system", "user"]), WORDS)
    | st.builds(lambda text, calls: Message("assistant", text, tuple(calls)), WORDS, st.lists(CALLED, max_size=2))
    | st.builds(lambda text: Message("tool", text, tool_call_id="id", name="grep"), WORDS),
    max_size=8,
)


@settings(max_examples=examples(200), deadline=None)
@given(MESSAGES, st.booleans())
def test_as_text_any_history_alternates_after_one_system_message(messages: list[Message], together: bool) -> None:
    sent = as_text(messages, "rules", lambda call: f"<{call.name}>", together=together)
    roles = [message.role for message in sent]
    assert roles[0] == "system" and roles.count("system") == 1
    assert all(roles[at] != roles[at + 1] for at in range(len(roles) - 1))
    assert "tool" not in roles and not any(message.tool_calls for message in sent)
    assert roles[1:2] != ["assistant"]
    assert sent == as_text(messages, "rules", lambda call: f"<{call.name}>", together=together)


@settings(max_examples=examples(200), deadline=None)
@given(MESSAGES, MESSAGES)
def test_on_the_wire_the_beginning_stays_when_the_history_grows(first: list[Message], more: list[Message]) -> None:
    start = [Message("system", "s"), *first, Message("assistant", "stop")]
    short = wire.chat_messages(start)
    assert wire.chat_messages([*start, *more])[: len(short)] == short


def test_bytes_on_the_wire() -> None:
    assert wire.encode({"a": "é\ud800"}) == '{"a":"é?"}'.encode()
    call = ToolCall("f", {"é": "🎉"}, "1")
    sent = wire.chat_messages([Message("assistant", "", (call,)), Message("tool", "ok", tool_call_id="1")])
    assert sent[0]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"é": "🎉"}'}
    assert sent[1] == {"role": "tool", "tool_call_id": "1", "content": "ok"}
    assert len({wire.new_call_id() for _ in range(1000)}) == 1000
