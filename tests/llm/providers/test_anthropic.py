"""Anthropic's Messages API: what it refuses is not sent, its errors become ours, every block goes back as it came."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import ModelSettings
from codeagent_lsp.errors import (
    ContextOverflow,
    ModelBusy,
    ModelError,
    ModelNotFound,
    ModelRejected,
    ModelStreamBroken,
    ModelUnauthorized,
)
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.factory import open_model
from codeagent_lsp.llm.learned_facts import Facts, combine
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, Reply
from codeagent_lsp.llm.providers.anthropic import AnthropicModel, MessagesAssembler
from codeagent_lsp.llm.providers.http_model import RetryPolicy
from codeagent_lsp.llm.wire import unpack
from codeagent_lsp.messages import Message, ToolCall, ToolSpec, Usage
from tests.llm.asking import QUICK
from tests.llm.providers.fake_messages import KEY, NEWER, FakeMessages
from tests.llm.providers.fake_server import Answer, Said, serving
from tests.llm.providers.official_packages import Unavailable, judged
from tests.llm.providers.twenty_turns import converse, script
from tests.llm.support import TOOLS, collect

ASK = ModelRequest((Message("system", "s"), Message("user", "u")), tools=TOOLS)
ONCE = RetryPolicy(attempts=1)
TWO = (("read_file", {"path": "a"}), ("read_file", {"path": "b"}))


def model_at(url: str, effort: str = "auto", policy: RetryPolicy = QUICK, **known: Any) -> AnthropicModel:
    facts = combine([("server", Facts(**known))])
    info = ModelInfo("claude-test", "anthropic", url, facts)
    return AnthropicModel(endpoint(url, KEY), info, effort=effort, policy=policy)


async def ask(fake: FakeMessages, request: ModelRequest = ASK, effort: str = "auto", **known: Any) -> Reply:
    async with serving(fake) as url:
        model = model_at(url, effort, **known)
        _, reply = await collect(model, request)
        await model.close()
    return reply


async def failing(fake: FakeMessages, policy: RetryPolicy = ONCE) -> ModelError:
    async with serving(fake) as url:
        model = model_at(url, policy=policy)
        with pytest.raises(ModelError) as caught:
            await collect(model, ASK)
        await model.close()
    return caught.value


def error(status: int, kind: str, message: str) -> Answer:
    value = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return status, "application/json", json.dumps(value).encode()


def events(*blocks: dict[str, Any], stop: str | None = "end_turn") -> list[dict[str, Any]]:
    """A stream of whole blocks; without a stop reason it is cut after them."""
    usage = {"input_tokens": 2, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 4, "output_tokens": 1}
    made: list[dict[str, Any]] = [{"type": "message_start", "message": {"model": "claude-test", "usage": usage}}]
    for at, block in enumerate(blocks):
        made.append({"type": "content_block_start", "index": at, "content_block": block})
        made.append({"type": "content_block_stop", "index": at})
    if stop is None:
        return made
    end = {"stop_reason": stop, "stop_sequence": None}
    return [*made, {"type": "message_delta", "delta": end, "usage": {"output_tokens": 9}}, {"type": "message_stop"}]


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


CALL = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "ä"}}
HALF = {"type": "thinking", "thinking": "Hm", "signature": ""}


@pytest.mark.parametrize(
    ("blocks", "stop", "reason", "problem"),
    [
        ([text("Half")], "max_tokens", "length", ""),
        ([HALF], "max_tokens", "length", "before any answer"),
        ([text("Fine.")], "stop_sequence", "stop", ""),
        ([text("Going on.")], "pause_turn", "stop", ""),
        ([text("New.")], "a_reason_of_tomorrow", "stop", ""),
        ([CALL], "tool_use", "tool_calls", ""),
        ([text("I look."), {**CALL, "id": ""}], "tool_use", "tool_calls", ""),
    ],
)
async def test_endings(blocks: list[dict[str, Any]], stop: str, reason: str, problem: str) -> None:
    fake = FakeMessages()
    fake.events = events(*blocks, stop=stop)
    reply = await ask(fake)
    assert (reply.finish_reason, bool(reply.problem)) == (reason, bool(problem))
    assert problem in reply.problem
    assert all(call.id and call.arguments == {"path": "ä"} for call in reply.tool_calls)
    assert unpack(ModelInfo("claude-test", "anthropic"), reply.carried) == []


@pytest.mark.parametrize(
    ("streamed", "kind", "key"),
    [
        (events(text("I"), stop="refusal"), ModelRejected, "model.filtered"),
        (events(stop="refusal"), ModelRejected, "model.filtered"),
        (events(text("Long"), stop="model_context_window_exceeded"), ContextOverflow, "model.overflow"),
        (events(text("cut"), stop=None), ModelStreamBroken, "model.stream_cut"),
        (events(stop=None), ModelStreamBroken, "model.stream_cut"),
        ([{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}], ModelBusy, "model.busy"),
        (
            [
                *events(text("x"), stop=None),
                {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow"}},
            ],
            ModelBusy,
            "model.busy",
        ),
        (
            [{"type": "error", "error": {"type": "authentication_error", "message": "revoked"}}],
            ModelUnauthorized,
            "model.unauthorized",
        ),
        ([{"type": "error", "error": "what?"}], ModelStreamBroken, "model.stream_error"),
        ([{"type": "error"}], ModelStreamBroken, "model.stream_error"),
    ],
)
async def test_replies_that_are_none(streamed: list[dict[str, Any]], kind: type[ModelError], key: str) -> None:
    fake = FakeMessages()
    fake.events = streamed
    caught = await failing(fake)
    assert (type(caught), caught.key) == (kind, key)


@pytest.mark.parametrize(
    ("answer", "kind", "key"),
    [
        (error(529, "overloaded_error", "Overloaded"), ModelBusy, "model.busy"),
        (error(500, "api_error", "Internal server error"), ModelBusy, "model.busy"),
        (error(429, "rate_limit_error", "This would exceed the rate limit for your plan"), ModelBusy, "model.busy"),
        (error(403, "permission_error", "Not for this key"), ModelUnauthorized, "model.unauthorized"),
        (error(404, "not_found_error", "model: claude-9"), ModelNotFound, "model.withheld"),
        (error(413, "request_too_large", "Request exceeds the maximum size"), ContextOverflow, "model.overflow"),
        (
            error(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
            ModelRejected,
            "model.quota",
        ),
        (error(400, "invalid_request_error", "messages: odd"), ModelRejected, "model.rejected"),
    ],
)
async def test_errors(answer: Answer, kind: type[ModelError], key: str) -> None:
    fake = FakeMessages()
    fake.errors = [answer]
    caught = await failing(fake)
    assert (type(caught), caught.key) == (kind, key)


@pytest.mark.parametrize(
    "told",
    [
        "prompt is too long: 205001 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
    ],
)
async def test_an_overflow_tells_the_window(told: str) -> None:
    fake = FakeMessages()
    fake.errors = [error(400, "invalid_request_error", told)]
    caught = await failing(fake)
    assert isinstance(caught, ContextOverflow)
    assert caught.stated == 200_000


@pytest.mark.parametrize("kind", ["header", "limits"])
async def test_overload_is_waited_for_as_the_server_says(kind: str) -> None:
    fake = FakeMessages(Said("At last."))
    fake.errors = [error(429, "rate_limit_error", "Slow down")]
    fake.headers = {"retry-after": "0.05"}
    if kind == "limits":
        limit = "anthropic-ratelimit-input-tokens-"
        fake.headers = {f"{limit}remaining": "0", f"{limit}reset": "2020-01-01T00:00:00Z"}
    assert (await ask(fake)).text == "At last."
    assert not fake.errors


async def test_a_wait_that_is_too_long_is_told() -> None:
    fake = FakeMessages()
    fake.errors = [error(529, "overloaded_error", "Overloaded")]
    fake.headers = {"retry-after": "3600"}
    caught = await failing(fake, policy=QUICK)
    assert isinstance(caught, ModelBusy)
    assert (caught.key, caught.retry_after) == ("model.busy_wait", 3600)


@pytest.mark.parametrize(
    ("adaptive", "effort", "sent"),
    [
        (True, "auto", [None]),
        (True, "none", ["disabled"]),
        (True, "high", ["adaptive"]),
        (False, "high", ["adaptive", "enabled"]),
        (None, "high", ["adaptive", "enabled", None]),
        (None, "none", ["disabled"]),
    ],
)
async def test_effort_is_learned_from_refusals(adaptive: bool | None, effort: str, sent: list[str | None]) -> None:
    fake = FakeMessages(adaptive=adaptive)
    async with serving(fake) as url:
        model = model_at(url, effort)
        for _ in range(2):
            await collect(model, ASK)
        await model.close()
    assert [body.get("thinking", {}).get("type") for body in fake.bodies] == [*sent, sent[-1]]
    last = fake.bodies[-1]
    thinks = sent[-1] in ("adaptive", "enabled")
    assert ("temperature" in last) is not thinks
    assert last.get("output_config", {}).get("effort") == (effort if sent[-1] == "adaptive" else None)


async def test_a_server_that_does_not_know_how_thinking_is_shown_still_thinks() -> None:
    fake = FakeMessages()
    fake.hides = False
    await ask(fake, effort="high")
    assert [body["thinking"] for body in fake.bodies] == [
        {"type": "adaptive", "display": "summarized"},
        {"type": "adaptive"},
    ]


async def test_a_proxy_to_another_api_may_refuse_a_parameter_of_that_one() -> None:
    told = "lm_studio does not support parameters: ['reasoning_effort'], for model=m."  # litellm 1.106
    fake = FakeMessages(Said("Hello."))
    fake.errors = [error(400, "invalid_request_error", told)] * 2
    assert (await ask(fake, effort="low")).text == "Hello."
    assert "thinking" not in fake.bodies[0]


@pytest.mark.parametrize(
    ("known", "effort", "asked", "sent"),
    [
        ({}, "auto", None, [8192]),
        ({}, "auto", 100, [100]),
        ({"reasoning": True}, "auto", 100, [100 + 8192]),
        ({"reasoning": True}, "none", 100, [100]),
        ({}, "low", 100, [100 + 2048]),
        ({"longest_reply": 4000}, "high", 100_000, [4000]),
        ({"longest_reply": 4000}, "auto", None, [4000]),
        ({}, "auto", 80_000, [80_000, 64_000]),
    ],
)
async def test_the_longest_reply(known: dict[str, Any], effort: str, asked: int | None, sent: list[int]) -> None:
    fake = FakeMessages()
    await ask(fake, ModelRequest(ASK.messages, max_tokens=asked), effort, **known)
    assert [body["max_tokens"] for body in fake.bodies] == sent


async def test_temperature_schema_and_stops_are_sent() -> None:
    fake = FakeMessages(Said("{}"))
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    await ask(fake, ModelRequest(ASK.messages, temperature=1.5, stop=("x",), response_schema=schema), "low")
    await ask(fake, ModelRequest(ASK.messages, temperature=1.5), "auto")
    thinking, plain = fake.bodies
    assert thinking["output_config"] == {"format": {"type": "json_schema", "schema": schema}, "effort": "low"}
    assert thinking["stop_sequences"] == ["x"]
    assert "temperature" not in thinking
    assert plain["temperature"] == 1.0


async def test_a_newer_version_of_the_api_is_the_user_s_to_ask_for() -> None:
    fake = FakeMessages(Said("Hello."))
    async with serving(fake) as url:
        where = endpoint(url, KEY, headers={"anthropic-version": NEWER})
        model = AnthropicModel(where, ModelInfo("claude-test", "anthropic", url))
        assert (await collect(model, ASK))[0] == "Hello."
        await model.close()
    assert fake.refusals == ["temperature: Extra inputs are not permitted"]


async def test_the_parts_of_the_prompt_are_summed_and_later_counts_replace_earlier() -> None:
    fake = FakeMessages()
    fake.events = events(text("Hi."))
    assert (await ask(fake)).usage == Usage(16, 10, 9, 4)
    fake.events = [*events(text("Hi.")), {"type": "message_stop"}]
    told = {"input_tokens": 5, "cache_read_input_tokens": None, "output_tokens": 7, "output_tokens_details": None}
    fake.events[-3]["usage"] = told
    assert (await ask(fake)).usage == Usage(19, 10, 7, 4)


async def test_turns_of_other_models_and_later_words_are_sent_as_the_api_takes_them() -> None:
    fake = FakeMessages(Said("Both. ", "Hm.", TWO), Said("End."))
    async with serving(fake) as url:
        model = model_at(url, "high")
        _, reply = await collect(model, ASK)
        foreign = (ToolCall("own.tool", {"x": 1}, "call|1.2"), ToolCall("read_file", {}, "call:3"))
        history = (
            Message("system", "s"),
            Message("assistant", "Earlier."),
            Message("user", " "),
            Message("assistant", " \n", foreign, carried="damaged"),
            Message("tool", " ", (), "call|1.2", "own.tool"),
            Message("tool", "done", (), "call:3", "read_file"),
            Message("system", "Said by the program."),
            Message("assistant", " "),
            Message("user", "And now?"),
            Message("assistant", reply.text, reply.tool_calls[1:], carried=reply.carried),  # a compaction dropped one
            Message("tool", "b", (), reply.tool_calls[1].id, "read_file"),
            Message("user", "Go on."),
        )
        assert (await collect(model, ModelRequest(history, tools=TOOLS)))[0] == "End."
        await model.close()
    assert not fake.refusals
    turns = fake.bodies[-1]["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * 2 + ["user"]
    calls = [block for turn in turns for block in turn["content"] if block["type"] == "tool_use"]
    assert [(call["id"], call["name"], call["input"]) for call in calls] == [
        ("call_1_2", "own__tool", {"x": 1}),
        ("call_3", "read_file", {}),
        (reply.tool_calls[1].id, "read_file", {"path": "b"}),
    ]
    assert [block["type"] for block in turns[-2]["content"]][:2] == ["thinking", "redacted_thinking"]


async def test_thinking_is_left_out_with_its_calls() -> None:
    fake = FakeMessages(Said("", "Hm.", TWO), Said("End."))
    async with serving(fake) as url:
        model = model_at(url, "high")
        _, reply = await collect(model, ASK)
        own = Message("assistant", "", (), carried=reply.carried)
        await collect(model, ModelRequest((*ASK.messages, own, Message("user", "Go on.")), tools=TOOLS))
        await model.close()
    assert not fake.refusals
    assert [block["type"] for block in fake.bodies[-1]["messages"][0]["content"]] == ["text", "text"]


@pytest.mark.parametrize("adaptive", [True, False])
async def test_a_turn_that_another_model_began_goes_on_and_the_next_one_thinks(adaptive: bool) -> None:
    fake = FakeMessages(adaptive=adaptive)
    call = ToolCall("read_file", {"path": "a"}, "c1")
    going_on = (*ASK.messages, Message("assistant", "", (call,)), Message("tool", "t", (), "c1"))
    async with serving(fake) as url:
        model = model_at(url, "high")
        await collect(model, ASK)
        fake.refusals.clear()
        await collect(model, ModelRequest(going_on, tools=TOOLS))
        after = (*going_on, Message("assistant", "Done."), Message("user", "Next."))
        await collect(model, ModelRequest(after, tools=TOOLS))
        await model.close()
    assert not fake.refusals
    wanted = "adaptive" if adaptive else "enabled"
    kinds = [body.get("thinking", {}).get("type") for body in fake.bodies[-2:]]
    assert kinds == ["adaptive" if adaptive else None, wanted]


@pytest.mark.parametrize("change", ["signature", "thinking", "redacted"])
async def test_a_changed_block_is_what_the_fake_refuses(change: str) -> None:
    fake = FakeMessages(Said("", "Hm, well.", TWO))
    async with serving(fake) as url:
        model = model_at(url, "high", policy=ONCE)
        _, reply = await collect(model, ASK)
        sealed = json.loads(reply.carried)["items"][0]["signature"]
        old, new = {
            "signature": (f'"{sealed}"', '"forged"'),
            "thinking": ("Hm, well.", "Hm, well!"),
            "redacted": ("sealed-", "sealed:"),
        }[change]
        assert reply.carried.count(old) == 1
        own = Message("assistant", "", reply.tool_calls, carried=reply.carried.replace(old, new))
        results = (Message("tool", "t", (), call.id) for call in reply.tool_calls)
        with pytest.raises(ModelRejected, match="cannot be modified"):
            await collect(model, ModelRequest((*ASK.messages, own, *results), tools=TOOLS))
        await model.close()


async def test_cut_thinking_and_blank_text_are_not_given_back() -> None:
    fake = FakeMessages(Said("", "Whole.", TWO))
    async with serving(fake) as url:
        model = model_at(url, "high")
        _, first = await collect(model, ASK)
        whole = json.loads(first.carried)["items"][0]
        fake.events = events(whole, text("\n\n"), CALL, HALF, stop="max_tokens")
        _, reply = await collect(model, ASK)
        await model.close()
    blocks = unpack(ModelInfo("claude-test", "anthropic"), reply.carried)
    assert blocks == [whole, CALL]
    assert reply.tool_calls == (ToolCall("read_file", {"path": "ä"}, "toolu_1"),)


async def test_marks_stay_below_five_and_are_on_the_last_two_turns_of_the_user() -> None:
    fake = FakeMessages()
    turns = [Message("user" if at % 2 == 0 else "assistant", f"Word {at}.") for at in range(9)]
    await ask(fake, ModelRequest((Message("system", "s"), *turns), tools=TOOLS))
    assert fake.marks == [4]
    body = fake.bodies[0]
    marked = [at for at, turn in enumerate(body["messages"]) if "cache_control" in turn["content"][-1]]
    assert marked == [6, 8]
    assert ["cache_control" in tool for tool in body["tools"]] == [False] * (len(TOOLS) - 1) + [True]


async def test_the_settings_open_it_and_no_probe_is_spent(tmp_path: Path) -> None:
    fake = FakeMessages(Said("Hello."))
    async with serving(fake) as url:
        model = await open_model(ModelSettings(provider="anthropic", base_url=url, api_key=KEY), tmp_path)
        facts = model.info.facts
        assert (model.info.name, model.info.tool_calling) == ("claude-test", "native")
        assert (facts.context_window, facts.longest_reply) == (200_000, 64_000)
        assert not fake.bodies
        assert (await collect(model, ASK))[0] == "Hello."
        await model.close()


async def test_a_name_with_a_dot_goes_and_comes_back(tmp_path: Path) -> None:
    fake = FakeMessages(Said(calls=(("own__tool", {"path": "a"}),)))
    spec: ToolSpec = {**TOOLS[0], "name": "own.tool"}
    async with serving(fake) as url:
        model = await open_model(ModelSettings(provider="anthropic", base_url=url, api_key=KEY), tmp_path)
        _, reply = await collect(model, ModelRequest(ASK.messages, tools=(spec,)))
        await model.close()
    assert not fake.refusals
    assert [call.name for call in reply.tool_calls] == ["own.tool"]


GARBAGE: tuple[Any, ...] = (None, 0, "x", [], {}, [None], [{}], {"x": 1}, True, 1.5)


@pytest.mark.parametrize("place", ["message", "usage", "delta", "content_block", "index", "error", "stop", "block"])
def test_a_reply_of_any_other_shape_is_no_crash(place: str) -> None:
    for value in GARBAGE:
        kinds = (
            "message_start",
            "content_block_start",
            "content_block_delta",
            "message_delta",
            "error",
            "message_stop",
        )
        for kind in kinds:
            assembler = MessagesAssembler(endpoint("http://127.0.0.1"), ModelInfo("c", "anthropic"))
            chunks = events(text("Hi."), CALL)
            chunks[1:1] = [
                {"type": kind, place: value},
                {"type": kind, "message": {place: value}, "delta": {place: value}},
            ]
            if place == "block":
                chunks[2:2] = [{"type": "content_block_start", "index": 7, "content_block": {**CALL, "input": value}}]
            with suppress(ModelError):
                for chunk in chunks:
                    assembler.feed(chunk)
                assembler.finish(done_marker=False)


@pytest.mark.slow
@pytest.mark.parametrize("adaptive", [True, False])
async def test_anthropic_s_own_package_takes_our_requests_and_reads_the_fake_s_replies(*, adaptive: bool) -> None:
    said = Said("Hello.", "I greet. ", (("greet", {"who": "you"}),))
    fake = FakeMessages(*script(), said, said, adaptive=adaptive)
    async with serving(fake) as url:
        model = model_at(url, "high")
        await converse(model, stored=True)
        asked = ModelRequest(ASK.messages, response_schema={"type": "object"}, stop=("x",))
        bodies = [*fake.bodies, model._body(asked), model_at(url)._body(asked), model_at(url, "none")._body(asked)]
        await model.close()
        for body in bodies:
            body.pop("temperature", None)  # not in the version of the API that the package is for
        case = {"api": "anthropic", "bodies": bodies, "url": url, "key": KEY, "model": "claude-test"}
        try:
            told = await asyncio.to_thread(judged, case)
        except Unavailable as reason:
            pytest.skip(str(reason))
    assert told == {
        "bodies": 23 if adaptive else 24,
        "kinds": ["thinking", "redacted_thinking", "text", "tool_use"],
        "text": "Hello.",
        "thoughts": "I greet. ",
        "calls": [["greet", {"who": "you"}]],
        "stop": "tool_use",
        "output_tokens": 40,
        "thinking_tokens": 15,
        "window": 200_000,
        "errors": ["BadRequestError invalid_request_error"],
    }
