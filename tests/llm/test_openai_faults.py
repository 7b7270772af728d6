"""Every way a model server can fail, over real sockets: survived, in time, with an error that helps."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from codeagent_lsp.errors import (
    ContextOverflow,
    ModelBusy,
    ModelError,
    ModelNotFound,
    ModelRejected,
    ModelReplyInvalid,
    ModelStreamBroken,
    ModelTimeout,
    ModelUnauthorized,
    ModelUnreachable,
)
from codeagent_lsp.llm.endpoint import TimeLimits, endpoint
from codeagent_lsp.llm.model import ModelInfo, Reply, TextChunk
from codeagent_lsp.llm.providers.openai import OpenAIModel
from codeagent_lsp.messages import ToolCall
from tests.faults import model_server as rig
from tests.faults.model_server import HELLO, Script, delta, events, head
from tests.llm.asking import ASK, KEY, LIMITS, QUICK, ask, ask_at

pytestmark = pytest.mark.slow  # waits for time limits


def tool(index: int | None = 0, id: str | None = None, name: str | None = None, args: Any = None) -> Any:  # noqa: A002 - the wire's word
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not None}
    whole = {"index": index, "id": id, "function": function}
    return delta(calls=[{key: value for key, value in whole.items() if value is not None}])


CALLED = delta(finish="tool_calls")
READ_A = ToolCall("read_file", {"path": "a"})
READ_B = ToolCall("read_file", {"path": "b"})


def values(reply: Reply | None) -> list[tuple[str, Any]]:
    assert reply is not None
    ids = [call.id for call in reply.tool_calls]
    assert all(ids) and len(set(ids)) == len(ids)
    return [(call.name, call.arguments) for call in reply.tool_calls]


# --- streams that are odd but whole


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (rig.stream(), "Hello"),
        (rig.stream(done=False), "Hello"),
        (rig.stream(size=1), "Hello"),
        (rig.stream(delta("né 🎉 中"), delta(finish="stop"), size=1), "né 🎉 中"),
        (rig.stream(delta("a\u2028b\u2029c\u0085d\x0be"), delta(finish="stop")), "a\u2028b\u2029c\u0085d\x0be"),
        (rig.stream(delta("a\x00b"), delta(finish="stop")), "a\x00b"),
        (rig.stream({"choices": []}, {"choices": None}, {"usage": {}}, *HELLO, {"choices": []}), "Hello"),
        (rig.raw(head() + events(*HELLO).replace(b"data: ", b"data:")), "Hello"),
        (rig.raw(head() + events(*HELLO).replace(b"\n", b"\r\n")), "Hello"),
        (rig.raw(head() + events(*HELLO).replace(b"\n", b"\r")), "Hello"),
        (
            rig.raw(head() + b": ping\n\n" + events(*HELLO).replace(b"data:", b"id: 1\nevent: m\nretry: 5\ndata:")),
            "Hello",
        ),
        (rig.raw(head() + b"\xef\xbb\xbf" + events(*HELLO)), "Hello"),
        (rig.raw(head() + events("ping", *HELLO)), "Hello"),
        (
            rig.raw(head() + b'data: {"choices":[{"delta":\ndata: {"content":"Hello"},"finish_reason":"stop"}]}\n\n'),
            "Hello",
        ),
        (rig.raw(head() + events(*HELLO, done=False).rstrip(b"\n")), "Hello"),
        (rig.stream(delta("Hello"), done=True), "Hello"),
        (
            rig.raw(head(content_type="text/event-stream; charset=latin-1") + events(delta("é"), delta(finish="stop"))),
            "é",
        ),
        (rig.raw(head(content_type="text/plain") + events(*HELLO)), "Hello"),
        (rig.raw(head(Content_Encoding="gzip") + gzip.compress(events(*HELLO))), "Hello"),
        (
            rig.status(201, json.dumps({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]})),
            "Hello",
        ),
        (rig.raw(head(201) + events(*HELLO)), "Hello"),
        (
            rig.status(200, json.dumps({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]})),
            "Hello",
        ),
        (rig.stream(delta([{"type": "text", "text": "Hello"}]), delta(finish="stop")), "Hello"),  # type: ignore[arg-type] # some servers send parts
        (rig.stream(delta("x" * 1_000_000), delta(finish="stop")), "x" * 1_000_000),
        (rig.stream(delta(refusal="No."), delta(finish="stop")), "No."),
    ],
)
async def test_odd_streams_are_understood(script: Script, text: str) -> None:
    outcome = await ask(script, limits=TimeLimits(0.5, 2.0, 2.0))
    assert outcome.error is None
    assert outcome.text == text
    assert outcome.reply is not None and outcome.reply.text == text
    assert outcome.requests == 1


@pytest.mark.parametrize(
    ("chunks", "calls"),
    [
        ([tool(0, "1", "read_file", '{"pa'), tool(0, args='th": "a"}')], [READ_A]),
        ([tool(None, "1", "read_file", '{"pa'), tool(None, args='th": "a"}')], [READ_A]),
        (
            [tool(None, None, "read_file", '{"path": "a"}'), tool(None, None, "read_file", '{"path": "b"}')],
            [READ_A, READ_B],
        ),
        (
            [
                tool(0, "1", "read_file", '{"path":'),
                tool(1, "2", "read_file", '{"path":'),
                tool(0, args='"a"}'),
                tool(1, args='"b"}'),
            ],
            [READ_A, READ_B],
        ),
        (
            [
                tool(None, "1", "read_file", '{"path":'),
                tool(None, "2", "read_file", '{"path":'),
                tool(None, "1", args='"a"}'),
                tool(None, "2", args='"b"}'),
            ],
            [READ_A, READ_B],
        ),
        ([tool(0, "1", "read_file", '{"path":"a"}'), tool(0, "2", "read_file", '{"path":"b"}')], [READ_A, READ_B]),
        ([tool(0, "1", "read_file", '{"path":"a"}'), tool(1, "1", "read_file", '{"path":"b"}')], [READ_A, READ_B]),
        ([tool(0, "1", "read_"), tool(0, name="file"), tool(0, args='{"path":"a"}')], [READ_A]),
        ([tool(0, args='{"path":"a"}'), tool(0, "1", "read_file")], [READ_A]),
        ([tool(0, "1", "read_file", '{"path":'), tool(0, "1", "read_file", '"a"}')], [READ_A]),
        ([tool(0, "1", "read_file", {"path": "a"})], [READ_A]),
        ([tool(0, "1", "read_file", ""), tool(0, args=None)], [ToolCall("read_file", {})]),
        ([tool(0, "1", "read_file", '{"path": "a",}')], [READ_A]),
        ([delta(function_call={"name": "read_file", "arguments": '{"path":"a"}'})], [READ_A]),
    ],
)
async def test_tool_calls_are_assembled(chunks: list[Any], calls: list[ToolCall]) -> None:
    outcome = await ask(rig.stream(*chunks, CALLED))
    assert values(outcome.reply) == [(call.name, call.arguments) for call in calls]
    assert outcome.reply is not None and outcome.reply.finish_reason == "tool_calls"


async def test_a_call_with_finish_reason_stop_counts() -> None:
    outcome = await ask(rig.stream(tool(0, "1", "read_file", '{"path":"a"}'), delta(finish="stop")))
    assert values(outcome.reply) == [("read_file", {"path": "a"})]


async def test_a_call_cut_at_the_token_limit_is_not_mended() -> None:
    outcome = await ask(rig.stream(tool(0, "1", "read_file", '{"path": "a'), delta(finish="length")))
    assert outcome.reply is not None
    assert outcome.reply.tool_calls == ()
    assert outcome.reply.finish_reason == "length"
    assert "token limit" in outcome.reply.problem


async def test_thinking_is_kept_out_of_the_answer() -> None:
    for script in (
        rig.stream(delta("<thi"), delta("nk>hm"), delta("m</think>\n\nYes"), delta(finish="stop")),
        rig.stream(delta(reasoning_content="hmm"), delta("Yes"), delta(finish="stop")),
        rig.stream(delta(reasoning="hmm"), delta("Yes"), delta(finish="stop")),
    ):
        outcome = await ask(script)
        assert (outcome.text, outcome.reasoning) == ("Yes", "hmm")
        assert outcome.reply is not None and outcome.reply.reasoning == "hmm"


async def test_usage_timings_and_the_serving_model_are_kept() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 8}}
    outcome = await ask(
        rig.stream(*HELLO, {"choices": [], "usage": usage, "timings": {"prompt_ms": 3}, "model": "other"})
    )
    assert outcome.reply is not None
    assert (outcome.reply.usage.prompt_tokens, outcome.reply.usage.cached_tokens) == (10, 8)
    assert outcome.reply.timings == {"prompt_ms": 3.0}
    assert outcome.served == "other"


@pytest.mark.parametrize("sign", [b": ping\n\n", b"event: ping\ndata: {}\n\n", events(delta(""), done=False)])
async def test_signs_of_life_alone_do_not_hold_a_run(sign: bytes) -> None:
    async def play(connection: rig.Connection) -> None:
        await connection.send(head() + events(delta("Hel"), done=False))
        await connection.send(sign * 200, size=len(sign), pause=0.02)

    outcome = await ask(play, limits=TimeLimits(0.5, 0.2, 0.1))
    assert isinstance(outcome.error, ModelTimeout)
    assert outcome.seconds < 2.0


async def test_a_slow_but_healthy_stream_has_no_total_limit() -> None:
    outcome = await ask(rig.stream(*map(delta, "healthy."), delta(finish="stop"), size=80, pause=0.1))
    assert outcome.error is None
    assert outcome.seconds > LIMITS.first + LIMITS.silence


async def test_a_hundred_thousand_small_deltas_are_cheap() -> None:
    begun = time.process_time()
    outcome = await ask(rig.stream(*[delta("x")] * 20_000, delta(finish="stop")), limits=TimeLimits(1, 20, 20))
    assert outcome.text == "x" * 20_000
    assert time.process_time() - begun < 5.0, "far above the bar: a fifth of 100,000 in 2 s"


# --- streams that are broken: nothing of them is used

CALL = events(tool(0, "1", "read_file", '{"path": "a"}'), done=False)
BROKEN: list[tuple[str, Script, type[ModelError], str]] = [
    ("cut in the headers", rig.raw(b"HTTP/1.1 200 OK\r\nContent-Ty"), ModelUnreachable, "log"),
    ("closed at once", rig.raw(b""), ModelUnreachable, "log"),
    ("reset at once", rig.then_reset(b""), ModelUnreachable, "log"),
    ("never answers", rig.then_hang(), ModelTimeout, "timeoutSeconds"),
    ("headers, then nothing", rig.then_hang(head()), ModelTimeout, "timeoutSeconds"),
    ("only keep-alives", rig.endless(b": ping\n\n", first=head()), ModelTimeout, "timeoutSeconds"),
    ("empty stream", rig.raw(head()), ModelStreamBroken, "cut"),
    ("garbage instead of HTTP", rig.raw(b"\x16\x03\x01\x02\x00garbage\r\n\r\n"), ModelStreamBroken, "baseUrl"),
    ("an HTML page", rig.status(200, "<html><title>Login</title></html>", "text/html"), ModelStreamBroken, "baseUrl"),
    ("JSON that is none", rig.status(200, "{nope"), ModelStreamBroken, "cut"),
    ("an error in a JSON body", rig.status(200, '{"error": "no GPU"}'), ModelStreamBroken, "no GPU"),
    ("gzip that is none", rig.raw(head(Content_Encoding="gzip") + b"no gzip"), ModelStreamBroken, "baseUrl"),
    ("nested gzip", rig.raw(head(Content_Encoding="gzip, gzip") + b"x"), ModelStreamBroken, "baseUrl"),
    ("error event first", rig.stream({"error": {"message": "boom"}}), ModelStreamBroken, "boom"),
    ("500", rig.error(500, "boom"), ModelBusy, "boom"),
    ("502", rig.status(502, "<html><title>Bad Gateway</title>", "text/html"), ModelBusy, "Bad Gateway"),
    ("503", rig.error(503, "Loading model"), ModelBusy, "Loading model"),
    ("529", rig.error(529, "overloaded"), ModelBusy, "overloaded"),
    ("429", rig.error(429, "slow down"), ModelBusy, "slow down"),
    ("408", rig.error(408, "timeout"), ModelBusy, "again"),
]


@pytest.mark.parametrize(("name", "script", "kind", "says"), BROKEN, ids=[case[0] for case in BROKEN])
async def test_what_fails_before_anything_was_shown_is_tried_three_times(
    name: str, script: Script, kind: type[ModelError], says: str
) -> None:
    outcome = await ask(script)
    assert type(outcome.error) is kind, name
    assert says in str(outcome.error)
    assert outcome.reply is None
    permanent = "garbage" in name or "HTML" in name or "gzip" in name
    assert outcome.requests == (1 if permanent else 3)
    assert outcome.seconds < 4


@pytest.mark.parametrize(("name", "script", "kind", "says"), BROKEN, ids=[case[0] for case in BROKEN])
async def test_a_passing_failure_is_survived(name: str, script: Script, kind: type[ModelError], says: str) -> None:
    outcome = await ask(script, rig.stream())
    if kind is ModelStreamBroken and "baseUrl" in says:
        assert outcome.error is not None
    else:
        assert outcome.text == "Hello", name


@pytest.mark.parametrize(
    ("script", "kind", "says"),
    [
        (rig.stream(delta("Hel"), delta("lo"), done=False), ModelStreamBroken, "cut"),
        (
            rig.raw(head() + events(delta("Hello"), done=False) + b'data: {"choices": [{"de'),
            ModelStreamBroken,
            "Try again",
        ),
        (rig.then_reset(head() + events(delta("Hello"), done=False)), ModelStreamBroken, "cut"),
        (rig.then_hang(head() + events(delta("Hello"), done=False)), ModelTimeout, "paused"),
        (rig.stream(delta("Hello"), {"error": {"message": "lost the GPU"}}), ModelStreamBroken, "lost the GPU"),
        (rig.stream(delta("Hello"), '{"choices": [{"delta": {', delta(finish="stop")), ModelStreamBroken, "not JSON"),
        (rig.raw(head(Content_Length="99999") + events(*HELLO[:1], done=False)), ModelStreamBroken, "cut"),
        (
            rig.raw(head(Transfer_Encoding="chunked") + b"5000\r\n" + events(delta("Hello"), done=False)),
            ModelStreamBroken,
            "cut",
        ),
        (rig.stream(delta("Hello"), delta(finish="content_filter")), ModelRejected, "content filter"),
        (
            rig.stream(delta("Hello"), {"error": {"message": "exceeds the available context size"}}),
            ContextOverflow,
            "window",
        ),
    ],
)
async def test_what_breaks_after_something_was_shown_is_not_tried_again(
    script: Script, kind: type[ModelError], says: str
) -> None:
    outcome = await ask(script)
    assert type(outcome.error) is kind
    assert says in str(outcome.error)
    assert "Hel" in outcome.text
    assert outcome.reply is None
    assert outcome.requests == 1


@pytest.mark.parametrize("cut", range(0, len(CALL), 7))
async def test_no_tool_call_of_a_cut_stream_is_ever_returned(cut: int) -> None:
    outcome = await ask(rig.raw(head() + CALL[:cut]))
    assert outcome.reply is None
    assert isinstance(outcome.error, ModelStreamBroken)


async def test_a_tool_call_without_finish_reason_is_not_returned_even_after_done() -> None:
    outcome = await ask(rig.raw(head() + CALL + b"data: [DONE]\n\n"))
    assert outcome.reply is None and isinstance(outcome.error, ModelStreamBroken)


@pytest.mark.parametrize(
    "script",
    [
        rig.endless(b"x" * 65536, first=head() + b"data: "),
        rig.endless(events(delta("y" * 60_000), done=False), first=head()),
        rig.endless(
            events(tool(0, args="z" * 60_000), done=False),
            first=head() + events(tool(0, "1", "read_file", "{"), done=False),
        ),
        rig.raw(head(Content_Encoding="gzip") + gzip.compress(b"data: " + b"x" * 80_000_000, 1)),
    ],
    ids=["line", "text", "arguments", "gzip bomb"],
)
async def test_replies_without_end_are_stopped(script: Script) -> None:
    outcome = await ask(script, limits=TimeLimits(0.5, 20, 20))
    assert isinstance(outcome.error, ModelReplyInvalid)
    assert "maxTokens" in str(outcome.error)
    assert outcome.reply is None
    assert outcome.requests == 1


# --- empty answers


async def test_an_empty_answer_is_asked_for_once_more() -> None:
    empty = rig.stream(delta(""), delta(finish="stop"))
    outcome = await ask(empty, rig.stream())
    assert (outcome.text, outcome.requests) == ("Hello", 2)
    outcome = await ask(empty)
    assert isinstance(outcome.error, ModelReplyInvalid)
    assert outcome.requests == 2


async def test_an_empty_answer_at_the_token_limit_says_so() -> None:
    outcome = await ask(rig.stream(delta(reasoning_content="hmm"), delta(finish="length")))
    assert outcome.reply is not None and "token limit" in outcome.reply.problem


# --- refusals

REFUSED: list[tuple[Script, type[ModelError], str]] = [
    (rig.error(401, "bad key"), ModelUnauthorized, "CODEAGENT_API_KEY"),
    (rig.error(403, "no access"), ModelUnauthorized, "no access"),
    (rig.error(402, "pay first"), ModelRejected, "credit"),
    (rig.error(429, "You exceeded your quota: insufficient_quota"), ModelRejected, "credit"),
    (rig.error(400, "This model's maximum context length is 4096 tokens"), ContextOverflow, "4096"),
    (rig.error(400, "request (9000 tokens) exceeds the available context size (8192)"), ContextOverflow, "8192"),
    (rig.error(413, "too large"), ContextOverflow, "too large"),
    (rig.error(400, "bad temperature of the sea"), ModelRejected, "sea"),
    (rig.error(404, "The model `m` does not exist"), ModelNotFound, "one, two"),
    (rig.status(404, "404 page not found", "text/plain"), ModelNotFound, "/v1"),
    (rig.status(302, "", location="http://127.0.0.1:9/steal"), ModelRejected, "not followed"),
    (rig.error(500, "Failed to parse input at pos 3"), ModelReplyInvalid, "toolCalling"),
    (rig.error(501, "not implemented"), ModelRejected, "not implemented"),
]


@pytest.mark.parametrize(("script", "kind", "says"), REFUSED)
async def test_refusals_are_told_and_never_tried_again(script: Script, kind: type[ModelError], says: str) -> None:
    outcome = await ask(script, get=rig.models(["one", "two"]))
    assert type(outcome.error) is kind
    assert says in str(outcome.error)
    assert outcome.requests <= 2  # the one about temperature is asked once more without it
    assert outcome.reply is None
    assert outcome.error is not None and outcome.error.localized("zh-cn") != str(outcome.error)


@pytest.mark.parametrize("listed", [["m", "one"], []])
async def test_a_refused_model_that_is_listed_or_whose_server_lists_none_has_the_servers_reason(
    listed: list[str],
) -> None:
    reason = "The model `m` does not exist or you do not have access to it"
    outcome = await ask(rig.error(404, reason), get=rig.models(listed))
    assert isinstance(outcome.error, ModelNotFound)
    assert reason in str(outcome.error) and "Set model.name" in str(outcome.error)
    assert "It offers" not in str(outcome.error)


async def test_a_refused_optional_parameter_is_left_out_for_good() -> None:
    async with rig.model_server(
        rig.error(400, "unknown field stream_options"),
        rig.error(400, "Unsupported parameter: 'max_tokens', use max_completion_tokens"),
        rig.stream(),
    ) as server:
        model = OpenAIModel(endpoint(server.url), ModelInfo("m", "openai"), limits=LIMITS, policy=QUICK, max_tokens=7)
        for _ in range(2):
            assert [type(item) async for item in model.stream(ASK)][-1] is Reply
        await model.close()
        assert len(server.chats) == 4
        assert "stream_options" not in server.chats[-1].json
        assert server.chats[-1].json["max_completion_tokens"] == 7


async def test_the_key_is_sent_but_never_shown() -> None:
    echo = rig.status(401, json.dumps({"error": f"bad key {KEY}; headers: Authorization: Bearer {KEY}"}))
    async with rig.model_server(echo) as server:
        outcome = await ask_at(server.url)
        assert server.chats[0].headers["authorization"] == f"Bearer {KEY}"
    assert outcome.error is not None
    assert KEY not in str(outcome.error)
    assert KEY not in repr(endpoint("http://localhost", KEY))


async def test_nothing_listens() -> None:
    outcome = await ask_at(f"http://127.0.0.1:{rig.free_port()}")
    assert isinstance(outcome.error, ModelUnreachable)
    assert "running" in str(outcome.error)
    assert outcome.seconds < 2


async def test_a_name_that_does_not_exist_is_not_asked_for_again() -> None:
    outcome = await ask_at("http://no-such-host.invalid", TimeLimits(connect=5, first=5))
    assert isinstance(outcome.error, ModelUnreachable | ModelTimeout | ModelStreamBroken | ModelRejected)


async def test_no_proxy_is_used_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{rig.free_port()}")
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{rig.free_port()}")
    assert (await ask(rig.stream())).text == "Hello"


# --- waiting as told


def in_two_seconds() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=1.5), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"Retry_After": "0.3"}, 0.3, 0.9),
        ({"retry_after_ms": "300"}, 0.3, 0.9),
        ({"Retry_After": "-5"}, 0.0, 0.3),
        ({"Retry_After": "soon"}, 0.0, 0.3),
        ({"Retry_After": "nan"}, 0.0, 0.3),
        ({}, 0.0, 0.3),
    ],
)
async def test_retry_after_is_honoured(headers: dict[str, str], least: float, most: float) -> None:
    outcome = await ask(rig.error(429, "slow", **headers), rig.stream())
    assert outcome.text == "Hello"
    assert least <= outcome.seconds < most + 0.5


async def test_retry_after_as_a_date() -> None:
    outcome = await ask(rig.error(503, "later", Retry_After=in_two_seconds()), rig.stream())
    assert outcome.text == "Hello"
    assert outcome.seconds < 3


async def test_a_long_wait_is_told_and_not_slept() -> None:
    outcome = await ask(rig.error(429, "slow", Retry_After="86400"))
    assert isinstance(outcome.error, ModelBusy)
    assert outcome.error.retry_after == 86400
    assert "86400" in str(outcome.error)
    assert outcome.seconds < 1


# --- cancelling


@pytest.mark.parametrize(
    "script",
    [
        rig.then_hang(),
        rig.then_hang(head() + events(delta("Hel"), done=False)),
        rig.error(429, "slow", Retry_After="0.9"),
    ],
    ids=["before headers", "in the stream", "while waiting"],
)
async def test_cancelling_ends_at_once(script: Script) -> None:
    async with rig.model_server(script) as server:
        task = asyncio.create_task(ask_at(server.url, TimeLimits(5, 30, 30)))
        await asyncio.sleep(0.2)
        begun = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - begun < 5, "what it waited for lasts longer"


async def test_closing_the_generator_ends_the_request() -> None:
    closed = asyncio.Event()

    async def watch(connection: rig.Connection) -> None:
        await connection.send(head() + events(delta("Hello"), done=False))
        try:
            while True:
                await connection.send(b": ping\n\n", pause=0.02)
        except ConnectionError:
            closed.set()

    async with rig.model_server(watch) as server:
        model = OpenAIModel(endpoint(server.url), ModelInfo("m", "openai"), policy=QUICK)
        items = model.stream(ASK)
        assert await anext(items) == TextChunk("Hello")
        await items.aclose()
        async with asyncio.timeout(2):
            await closed.wait()
        await model.close()
