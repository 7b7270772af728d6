"""OpenAI's Responses API: what it refuses is not sent, its errors become ours, and every item goes back as it came."""

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
    ModelRejected,
    ModelStreamBroken,
    ModelUnauthorized,
)
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.factory import open_model
from codeagent_lsp.llm.learned_facts import Facts, combine
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, Reply
from codeagent_lsp.llm.providers.http_model import RetryPolicy
from codeagent_lsp.llm.providers.responses import ResponsesAssembler, ResponsesModel
from codeagent_lsp.llm.wire import unpack
from codeagent_lsp.messages import Message, ToolCall, Usage
from tests.llm.asking import QUICK
from tests.llm.providers.fake_responses import KEY, RESPONSE, FakeResponses
from tests.llm.providers.fake_server import Answer, Said, serving
from tests.llm.providers.official_packages import Unavailable, judged
from tests.llm.providers.twenty_turns import converse, script
from tests.llm.support import TOOLS, collect

ASK = ModelRequest((Message("system", "s"), Message("user", "u")), tools=TOOLS)
ONCE = RetryPolicy(attempts=1)
TWO = (("read_file", {"path": "a"}), ("read_file", {"path": "b"}))
INFO = ModelInfo("gpt-test", "responses")


def model_at(url: str, effort: str = "auto", policy: RetryPolicy = QUICK, **known: Any) -> ResponsesModel:
    info = ModelInfo("gpt-test", "responses", url, combine([("server", Facts(**known))]))
    return ResponsesModel(endpoint(url, KEY), info, effort=effort, policy=policy)


async def ask(fake: FakeResponses, request: ModelRequest = ASK, effort: str = "auto", **known: Any) -> Reply:
    async with serving(fake) as url:
        model = model_at(url, effort, **known)
        _, reply = await collect(model, request)
        await model.close()
    return reply


async def failing(fake: FakeResponses, policy: RetryPolicy = ONCE) -> ModelError:
    async with serving(fake) as url:
        model = model_at(url, policy=policy)
        with pytest.raises(ModelError) as caught:
            await collect(model, ASK)
        await model.close()
    return caught.value


def error(status: int, code: str, message: str) -> Answer:
    told = {"message": message, "type": code, "param": None, "code": code}
    return status, "application/json", json.dumps({"error": told}).encode()


def item(**content: Any) -> dict[str, Any]:
    return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [content]}


CALL = {"type": "function_call", "id": "f", "call_id": "c1", "name": "read_file", "arguments": '{"path": "ä"}'}
SEALED = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"}
HALF = item(type="output_text", text="Half", annotations=[])
NO = item(type="refusal", refusal="I cannot help with that.")


def events(*items: dict[str, Any], end: str = "completed", listed: bool = False, **more: Any) -> list[dict[str, Any]]:
    """A stream of whole items, or one whose items are in its last event only; `end` '' for one that is cut."""
    made: list[dict[str, Any]] = [{"type": "response.created", "response": RESPONSE}]
    if not listed:
        made += [{"type": "response.output_item.done", "item": item} for item in items]
    last = {**RESPONSE, "status": end, "output": list(items) if listed else [], **more}
    return [*made, {"type": f"response.{end}", "response": last}] if end else made


def stopped(reason: str) -> dict[str, Any]:
    return {"end": "incomplete", "incomplete_details": {"reason": reason}}


def failed(code: str, message: str) -> list[dict[str, Any]]:
    return events(end="failed", error={"code": code, "message": message})


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(
    ("items", "how", "reason", "told"),
    [
        ([HALF], {}, "stop", "Half"),
        ([NO], {}, "stop", "I cannot help with that."),
        ([SEALED, HALF, CALL], {}, "tool_calls", "Half"),
        ([HALF], stopped("max_output_tokens"), "length", "Half"),
        ([SEALED], stopped("max_output_tokens"), "length", ""),
        ([HALF], stopped("a_reason_of_tomorrow"), "stop", "Half"),
    ],
)
async def test_endings(
    items: list[dict[str, Any]], how: dict[str, Any], reason: str, told: str, *, listed: bool
) -> None:
    fake = FakeResponses()
    fake.events = events(*items, listed=listed, **how)
    reply = await ask(fake)
    assert (reply.finish_reason, reply.text, bool(reply.problem)) == (reason, told, not told)
    assert [call.arguments for call in reply.tool_calls] == [{"path": "ä"}] * (CALL in items)
    assert unpack(INFO, reply.carried) == ([] if reason == "length" else items)


@pytest.mark.parametrize(
    ("streamed", "kind", "key"),
    [
        (events(HALF, **stopped("content_filter")), ModelRejected, "model.filtered"),
        (events(HALF, end=""), ModelStreamBroken, "model.stream_cut"),
        (events(end=""), ModelStreamBroken, "model.stream_cut"),
        (failed("rate_limit_exceeded", "Rate limit reached"), ModelBusy, "model.busy"),
        (failed("server_error", "The model failed"), ModelBusy, "model.busy"),
        (failed("insufficient_quota", "You exceeded your current quota."), ModelRejected, "model.quota"),
        (failed("invalid_prompt", "It was flagged"), ModelRejected, "model.rejected"),
        (failed("bio_policy", "No."), ModelStreamBroken, "model.stream_error"),
        (failed("context_length_exceeded", "Your input is too much."), ContextOverflow, "model.overflow"),
        ([{"type": "error", "code": "server_error", "message": "Oops", "param": None}], ModelBusy, "model.busy"),
        ([{"type": "error", "error": {"code": "rate_limit_exceeded", "message": "r"}}], ModelBusy, "model.busy"),
        ([{"type": "error", "error": "odd"}], ModelStreamBroken, "model.stream_error"),
    ],
)
async def test_replies_that_are_none(streamed: list[dict[str, Any]], kind: type[ModelError], key: str) -> None:
    fake = FakeResponses()
    fake.events = streamed
    caught = await failing(fake)
    assert (type(caught), caught.key) == (kind, key)


LIMIT = "Rate limit reached for gpt-test. You can increase it by adding a payment method at /account/billing."


@pytest.mark.parametrize(
    ("answer", "kind", "key"),
    [
        (error(429, "rate_limit_exceeded", LIMIT), ModelBusy, "model.busy"),
        (error(429, "insufficient_quota", "Check your plan and billing details."), ModelRejected, "model.quota"),
        (error(503, "server_error", "Overloaded"), ModelBusy, "model.busy"),
        (error(401, "invalid_api_key", "Incorrect API key"), ModelUnauthorized, "model.unauthorized"),
        (error(400, "invalid_request_error", "input: odd"), ModelRejected, "model.rejected"),
    ],
)
async def test_errors(answer: Answer, kind: type[ModelError], key: str) -> None:
    fake = FakeResponses()
    fake.errors = [answer]
    caught = await failing(fake)
    assert (type(caught), caught.key) == (kind, key)


async def test_an_overflow_tells_the_window() -> None:
    fake = FakeResponses()
    told = "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."
    fake.errors = [error(400, "context_length_exceeded", told)]
    caught = await failing(fake)
    assert isinstance(caught, ContextOverflow)
    assert caught.stated == 128_000


async def test_a_rate_limit_waits_until_it_is_renewed() -> None:
    fake = FakeResponses(Said("At last."))
    fake.errors = [error(429, "rate_limit_exceeded", LIMIT)]
    fake.headers = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "60ms"}
    assert (await ask(fake)).text == "At last."
    fake.errors = [error(429, "rate_limit_exceeded", LIMIT)]
    fake.headers["x-ratelimit-reset-tokens"] = "1h2m"
    caught = await failing(fake, policy=QUICK)
    assert isinstance(caught, ModelBusy)
    assert (caught.key, caught.retry_after) == ("model.busy_wait", 3720)


async def test_a_failure_before_the_first_word_is_tried_again() -> None:
    fake = FakeResponses(Said("At last."))
    fake.events = failed("server_error", "The model failed")
    assert (await ask(fake)).text == "At last."


@pytest.mark.parametrize("effort", ["auto", "low"])
async def test_a_model_that_does_not_reason_is_asked_without_it(effort: str) -> None:
    fake = FakeResponses(reasons=False)
    async with serving(fake) as url:
        model = model_at(url, effort)
        for _ in range(2):
            await collect(model, ASK)
        await model.close()
    last = fake.bodies[-1]
    assert not {"reasoning", "include"} & last.keys()
    assert last["temperature"] == 0.0
    assert len(fake.bodies) == len(fake.refusals) + 2


async def test_a_temperature_is_left_out_from_the_second_try_on() -> None:
    fake = FakeResponses()
    async with serving(fake) as url:
        model = model_at(url)
        for _ in range(2):
            await collect(model, ASK)
        await model.close()
    assert ["temperature" in body for body in fake.bodies] == [True, False, False]


async def test_an_account_without_summaries_keeps_its_effort_and_the_reverse() -> None:
    fake = FakeResponses()
    fake.verified = False
    await ask(fake, effort="high")
    assert fake.bodies[-1]["reasoning"] == {"effort": "high"}
    fake = FakeResponses()
    fake.efforts = ("low", "medium", "high")
    await ask(fake, effort="none")
    assert fake.bodies[-1]["reasoning"] == {"summary": "auto"}


@pytest.mark.parametrize(
    ("effort", "asked", "longest", "sent"),
    [
        ("auto", None, None, None),
        ("auto", 100, None, 100 + 16_384),
        ("high", 100, None, 100 + 32_768),
        ("none", 100, None, 100),
        ("none", 3, None, 16),
        ("low", 100_000, 64_000, 64_000),
    ],
)
async def test_the_longest_reply(effort: str, asked: int | None, longest: int | None, sent: int | None) -> None:
    fake = FakeResponses()
    await ask(fake, ModelRequest(ASK.messages, max_tokens=asked), effort, longest_reply=longest)
    assert [body.get("max_output_tokens") for body in fake.bodies] == [sent] * 2


async def test_a_schema_of_the_reply_is_sent_and_nothing_is_stored() -> None:
    fake = FakeResponses(Said("{}"))
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    await ask(fake, ModelRequest(ASK.messages, response_schema=schema), "low")
    body = fake.bodies[-1]
    assert body["text"]["format"]["schema"] == schema
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert body["instructions"] == "s"


async def test_usage_has_cached_and_reasoning_tokens() -> None:
    fake = FakeResponses()
    given = {"cached_tokens": 64, "cache_write_tokens": 8}
    made = {"reasoning_tokens": 5}
    told = {"input_tokens": 100, "input_tokens_details": given, "output_tokens": 9, "output_tokens_details": made}
    fake.events = events(HALF, usage=told)
    assert (await ask(fake)).usage == Usage(100, 64, 9, 8, 5)


async def test_turns_of_other_models_and_dropped_calls_are_sent_as_the_api_takes_them() -> None:
    fake = FakeResponses(Said("Both. ", "Hm.", TWO), Said("End."))
    async with serving(fake) as url:
        model = model_at(url)
        _, reply = await collect(model, ASK)
        own = Message("assistant", reply.text, reply.tool_calls[1:], carried=reply.carried)  # a compaction dropped one
        history = (
            Message("system", "s"),
            Message("assistant", "Earlier."),
            Message("user", " "),
            Message("assistant", "", (ToolCall("own.tool", {"x": "ü"}, "toolu/1"),), carried="damaged"),
            Message("tool", "", (), "toolu/1", "own.tool"),
            Message("system", "Said by the program."),
            own,
            Message("tool", "b", (), reply.tool_calls[1].id, "read_file"),
        )
        fake.refusals.clear()
        assert (await collect(model, ModelRequest(history, tools=TOOLS)))[0] == "End."
        await model.close()
    assert not fake.refusals
    told = fake.bodies[-1]["input"]
    assert [item["type"] for item in told if item["type"] != "message"] == ["function_call", "function_call_output"] * 2
    calls = [(item["call_id"], item["name"], item["arguments"]) for item in told if item["type"] == "function_call"]
    assert calls[0] == ("toolu/1", "own__tool", '{"x": "ü"}')
    assert calls[1][0] == reply.tool_calls[1].id


async def test_changed_reasoning_is_what_the_fake_refuses() -> None:
    fake = FakeResponses(Said("", "Hm, well.", TWO))
    async with serving(fake) as url:
        model = model_at(url, policy=ONCE)
        _, reply = await collect(model, ASK)
        assert "Hm, well." in reply.carried
        own = Message("assistant", "", reply.tool_calls, carried=reply.carried.replace("Hm, well.", "Hm, well!"))
        results = (Message("tool", "t", (), call.id) for call in reply.tool_calls)
        with pytest.raises(ModelRejected, match="could not be verified"):
            await collect(model, ModelRequest((*ASK.messages, own, *results), tools=TOOLS))
        await model.close()


async def test_the_settings_open_it_and_no_probe_is_spent(tmp_path: Path) -> None:
    fake = FakeResponses(Said("Hello."))
    async with serving(fake) as url:
        model = await open_model(ModelSettings(provider="responses", base_url=url, api_key=KEY), tmp_path)
        assert (model.info.name, model.info.tool_calling) == ("gpt-test", "native")
        assert not fake.bodies
        assert (await collect(model, ASK))[0] == "Hello."
        await model.close()


GARBAGE: tuple[Any, ...] = (None, 0, "x", [], {}, [None], [{}], {"x": 1}, True, 1.5)


@pytest.mark.parametrize(
    "place", ["response", "item", "delta", "error", "output_index", "summary_index", "usage", "output", "content"]
)
def test_a_reply_of_any_other_shape_is_no_crash(place: str) -> None:
    kinds = ("response.created", "response.output_item.done", "response.output_text.delta", "response.failed", "error")
    for value in GARBAGE:
        for kind in (*kinds, "response.reasoning_summary_text.delta", "response.completed", "response.incomplete"):
            assembler = ResponsesAssembler(endpoint("http://127.0.0.1"), INFO)
            response = {"usage": value, "output": value, "error": value, "incomplete_details": value}
            chunks = events(HALF, CALL)
            chunks[1:1] = [
                {"type": kind, "delta": "x", "item": {**HALF, "content": value}, place: value},
                {"type": kind, "item": {**CALL, "arguments": value, "call_id": value}, "response": response},
            ]
            with suppress(ModelError):
                for chunk in chunks:
                    assembler.feed(chunk)
                assembler.finish(done_marker=False)


@pytest.mark.slow
async def test_openai_s_own_package_takes_our_requests_and_reads_the_fake_s_replies() -> None:
    fake = FakeResponses(*script(), Said("Hello.", "I greet. ", (("greet", {"who": "you"}),)))
    async with serving(fake) as url:
        model = model_at(url, "high")
        await converse(model, stored=True)
        asked = ModelRequest(ASK.messages, response_schema={"type": "object"}, max_tokens=100)
        bodies = [*fake.bodies, model._body(asked), model_at(url)._body(asked), model_at(url, "none")._body(asked)]
        await model.close()
        case = {"api": "responses", "bodies": bodies, "url": url, "key": KEY, "model": "gpt-test"}
        try:
            told = await asyncio.to_thread(judged, case)
        except Unavailable as reason:
            pytest.skip(str(reason))
    assert told == {
        "bodies": 24,
        "kinds": ["reasoning", "message", "function_call"],
        "text": "Hello.",
        "shown": "Hello.",
        "thoughts": "I greet. ",
        "sealed": 1,
        "calls": [["greet", {"who": "you"}]],
        "status": "completed",
        "thinking_tokens": 12,
        "errors": ["BadRequestError temperature"],
        "model": "gpt-test",
    }
