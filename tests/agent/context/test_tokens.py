"""Tokens are counted on the safe side and then as the server counts; conversations are taken apart and put together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.agent.context.history import (
    NOTE,
    OVERHEAD_PER_MESSAGE,
    PER_IMAGE,
    SUMMARY,
    Sizes,
    TokenMeter,
    composition,
    flat,
    is_request,
    note,
    size,
    take_apart,
    tools_size,
)
from codeagent_lsp.messages import Image, Message, ToolCall, ToolSpec, estimate_tokens
from tests.agent.context.test_history import conversations

COUNTS = st.integers(1, 100_000)


def test_tokens_are_counted_on_the_safe_side() -> None:
    assert estimate_tokens("") == 1
    assert estimate_tokens("中文") == 3
    assert estimate_tokens("\ud800") >= 1
    assert size([Message("assistant", "", (ToolCall("t", {"a": "x" * 300}),))]) > 100
    assert size([Message("user", "abc")]) == estimate_tokens("abc") + OVERHEAD_PER_MESSAGE
    assert tools_size([ToolSpec(name="t", description="x" * 300, parameters={})]) > 100


def test_tools_are_counted_again_when_they_are_others() -> None:
    sizes, one = Sizes(), ToolSpec(name="t", description="x" * 300, parameters={})
    other = ToolSpec(name="t", description="y", parameters={})
    for tools in ([one], [one, one], [other], [], [one]):
        assert sizes.of_tools(tools) == sizes.of_tools(tools) == tools_size(tools)


def test_without_a_count_the_estimate_stands() -> None:
    assert TokenMeter().tokens(1000) == 1000
    assert TokenMeter().estimate(1000) == 1000
    assert TokenMeter().told(1000, 0) == TokenMeter()


def test_what_the_server_counted_is_exact_and_the_rest_is_careful() -> None:
    meter = TokenMeter().told(1000, 600)
    assert meter.tokens(1000) == 600
    assert meter.tokens(1100) == 680
    dense = TokenMeter().told(1000, 2000)
    assert dense.tokens(1000) == 2000
    assert dense.tokens(1100) == 2200
    assert dense.tokens(500) == 1000


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_more_text_is_never_less_tokens(estimated: int, counted: int, base: int, more: int) -> None:
    meter = TokenMeter().told(estimated, counted)
    assert meter.tokens(estimated + base) <= meter.tokens(estimated + base + more)
    assert meter.tokens(estimated) == counted


@given(COUNTS, COUNTS, COUNTS)
def test_a_prompt_made_for_a_number_of_tokens_takes_no_more(estimated: int, counted: int, wanted: int) -> None:
    meter = TokenMeter().told(estimated, counted)
    made = meter.estimate(wanted)
    if made < estimated:
        assert meter.tokens(made) <= wanted


@given(conversations())
def test_the_parts_are_the_conversation(messages: tuple[Message, ...]) -> None:
    parts = take_apart(messages)
    assert (*parts.system, *flat(parts.exchanges)) == messages
    for exchange in parts.exchanges:
        assert exchange[0].role != "tool"
        assert all(message.role == "tool" for message in exchange[1:])
    if any(map(is_request, messages)):
        assert parts.exchanges[parts.latest_turn][0] == [m for m in messages if is_request(m)][-1]


def test_after_a_compaction_the_kept_requests_are_no_turns() -> None:
    told = Message("user", "what happened", name=SUMMARY)
    messages = [
        Message("system", "s"),
        Message("user", "a"),
        Message("user", "b"),
        told,
        note("n"),
        Message("user", "c"),
    ]
    parts = take_apart(messages)
    assert [message.content for message in parts.requests] == ["a", "b"]
    assert parts.summary == (told,)
    assert [exchange[0].content for exchange in parts.exchanges] == ["n", "c"]
    assert parts.latest_turn == 1
    assert take_apart(messages[:5]).latest_turn == 0


def test_what_a_prompt_consists_of_adds_up_to_what_the_server_counted() -> None:
    read, ran, found = (ToolCall(name, {}, name) for name in ("read_file", "run_cmd", "grep"))
    messages = (
        Message("system", "s" * 900),
        Message("user", "n" * 600, name=NOTE),
        Message("user", "t" * 300, images=(Image("image/png", "AAAA"),)),
        Message("assistant", "", (read, ran, found)),
        *(Message("tool", "x" * 3000, (), call.id, call.name) for call in (read, ran, found)),
    )
    tool = ToolSpec(name="grep", description="d" * 300, parameters={})
    estimated = composition(messages, (tool,), 0)
    kinds = {"system", "tools", "notes", "talk", "files", "output", "results", "pictures"}
    assert estimated.keys() == kinds
    assert sum(estimated.values()) == size(messages) + tools_size([tool])
    assert estimated["pictures"] == PER_IMAGE
    counted = composition(messages, (tool,), 10_000)
    assert abs(sum(counted.values()) - 10_000) <= len(kinds)
    assert counted["files"] == counted["output"] == counted["results"] > counted["system"] > counted["notes"]
    assert composition(messages[:1], (), 0).keys() == {"system"}
