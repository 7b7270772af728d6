"""Gemini: what it refuses is not sent, its errors become ours, and every part goes back as it came."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
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
    ModelUnauthorized,
)
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.factory import Surroundings, list_models, open_model
from codeagent_lsp.llm.learned_facts import Facts, combine
from codeagent_lsp.llm.model import ModelInfo, ModelRequest
from codeagent_lsp.llm.providers.gemini import GeminiAssembler, GeminiModel, declaration, reduce_schema
from codeagent_lsp.llm.providers.http_model import RetryPolicy
from codeagent_lsp.llm.survey import kind_of
from codeagent_lsp.messages import Message, ToolCall, ToolSpec
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.tool import compact_schema
from tests.llm.asking import QUICK
from tests.llm.providers.fake_gemini import KEY, SKIP, FakeGemini, check_schema
from tests.llm.providers.fake_server import Said, serving
from tests.llm.providers.genai_package import Unavailable, judged
from tests.llm.providers.twenty_turns import converse, script
from tests.llm.support import TOOLS, collect

ASK = ModelRequest((Message("system", "s"), Message("user", "u")), tools=TOOLS)
SPECS: dict[str, ToolSpec] = {
    tool.traits.name: {
        "name": tool.traits.name,
        "description": tool.traits.description,
        "parameters": compact_schema(tool.parameters.model_json_schema()),
    }
    for tool in BUILTIN
}
ONCE = RetryPolicy(attempts=1)


def model_at(url: str, name: str = "gemini-3.1-pro", effort: str = "auto", policy: RetryPolicy = QUICK) -> GeminiModel:
    facts = combine([("server", Facts(1_048_576, 65_536, reasoning=True))])
    return GeminiModel(endpoint(url, KEY), ModelInfo(name, "gemini", url, facts), effort=effort, policy=policy)


async def failing(fake: FakeGemini, *, policy: RetryPolicy = ONCE) -> ModelError:
    async with serving(fake) as url:
        model = model_at(url, policy=policy)
        with pytest.raises(ModelError) as caught:
            await collect(model, ASK)
        await model.close()
    return caught.value


def error(code: int, message: str, *details: dict[str, Any]) -> tuple[int, str, bytes]:
    value = {"error": {"code": code, "message": message, "status": "X", "details": list(details)}}
    return code, "application/json", json.dumps(value).encode()


def ending(reason: str | None, *parts: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    finish = {"finishReason": reason} if reason else {}
    return [{"candidates": [{"content": {"role": "model", "parts": list(parts)}, **finish, **more}]}]


@pytest.mark.parametrize("provider", ["gemini", "auto"])
async def test_the_settings_open_it_and_the_server_tells_of_the_model(
    provider: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeGemini(Said("Hello."))
    async with serving(fake) as url:
        base = url
        if provider == "auto":  # by its address, through a proxy, with the key of the environment
            base = "http://generativelanguage.googleapis.com"
            monkeypatch.setenv("HTTP_PROXY", url)
            monkeypatch.setenv("GEMINI_API_KEY", KEY)
            monkeypatch.setattr(FakeGemini, "answer", _direct(FakeGemini.answer))
        key = None if provider == "auto" else KEY
        settings = ModelSettings(provider=provider, base_url=base, api_key=key, name="gemini-3.1-pro")
        model = await open_model(settings, tmp_path)
        facts = model.info.facts
        assert (facts.context_window, facts.longest_reply, facts.reasoning) == (1_048_576, 65_536, True)
        assert (model.info.provider, model.info.tool_calling, facts.sources["reasoning"]) == (
            "gemini",
            "native",
            "server",
        )
        assert (await collect(model, ASK))[0] == "Hello."
        assert await list_models(settings) == ["gemini-3.1-pro"]
        await model.close()


def _direct(answer: Any) -> Any:
    def without_host(self: FakeGemini, asked: Any) -> Any:
        asked.line = asked.line.replace("http://generativelanguage.googleapis.com", "")
        return answer(self, asked)

    return without_host


def test_google_s_openai_compatible_address_speaks_that() -> None:
    assert kind_of("https://generativelanguage.googleapis.com/v1beta/openai/") == ""
    assert kind_of("https://generativelanguage.googleapis.com/v1beta") == "gemini"


async def test_gemma_has_to_prove_that_it_calls_tools(tmp_path: Path) -> None:
    fake = FakeGemini(model="gemma-3-27b", thinking=False)
    async with serving(fake) as url:
        model = await open_model(ModelSettings(provider="gemini", base_url=url, api_key=KEY), tmp_path)
        assert (model.info.tool_calling, model.info.facts.native_tools) == ("native", None)
        await model.close()
    assert len(fake.bodies) == 1


async def test_a_wrong_key_is_told_when_the_model_is_opened(tmp_path: Path) -> None:
    async with serving(FakeGemini()) as url:
        settings = ModelSettings(provider="gemini", base_url=url, api_key="wrong", name="gemini-3.1-pro")
        with pytest.raises(ModelRejected, match="CODEAGENT_API_KEY"):
            await open_model(settings, tmp_path, around=Surroundings(ports={}, embedded=False))


async def test_an_unknown_model_is_told_with_those_that_there_are() -> None:
    fake = FakeGemini()
    async with serving(fake) as url:
        model = model_at(url, "gemini-9")
        with pytest.raises(ModelNotFound, match=r"gemini-9.*offers: gemini-3.1-pro"):
            await collect(model, ASK)
        await model.close()


@pytest.mark.parametrize("name", sorted(SPECS))
def test_every_tool_of_ours_is_declared_as_the_api_takes_it(name: str) -> None:
    spec = SPECS[name]
    made = declaration(spec)
    if "parameters" in made:
        check_schema(made["parameters"], name)
        assert made["parameters"]["properties"].keys() == spec["parameters"]["properties"].keys()


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": ["a", None]}, {"type": "string", "enum": ["a"]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer", "description": "One of 1, 2."}),
        ({"type": "string", "enum": [""]}, {"type": "string", "description": 'One of "".'}),
        ({"type": "string", "format": "uri"}, {"type": "string"}),
        ({"type": "integer", "format": "int64", "multipleOf": 2}, {"type": "integer", "format": "int64"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string", "description": "Any value, as JSON."}}),
        (
            {"type": "array", "items": True},
            {"type": "array", "items": {"type": "string", "description": "Any value, as JSON."}},
        ),
        ({"type": "object", "additionalProperties": {}}, {"type": "string", "description": "A JSON object, as text."}),
        (
            {"oneOf": [{"type": "string"}, {"type": "null"}, {"type": "integer"}], "description": "d", "default": None},
            {
                "anyOf": [
                    {"type": "string", "description": "d", "nullable": True},
                    {"type": "integer", "description": "d", "nullable": True},
                ]
            },
        ),
        (
            {"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}}}},
            {"type": "object", "properties": {"a": {"type": "string", "description": "Any value, as JSON."}}},
        ),
        ({"$ref": "#/$defs/none"}, {"type": "string", "description": "Any value, as JSON."}),
        (
            {
                "allOf": [
                    {"properties": {"a": {}}, "required": ["a", "b"]},
                    {"properties": {"c": {"minimum": 1, "type": "number"}}},
                ]
            },
            {
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "c": {"type": "number", "minimum": 1},
                },
                "required": ["a"],
            },
        ),
    ],
)
def test_a_schema_is_reduced(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    made = reduce_schema(schema)
    assert made == expected
    check_schema(made, "test")


def test_a_schema_that_refers_to_itself_in_many_places_stays_small() -> None:
    names = [f"d{number}" for number in range(30)]
    definitions = {
        name: {"type": "object", "properties": {other: {"$ref": f"#/$defs/{other}"} for other in names[:3]}}
        for name in names
    }
    made = reduce_schema({"$ref": "#/$defs/d0", "$defs": definitions})
    check_schema(made, "test")
    assert len(json.dumps(made)) < 10_000


async def test_turns_of_other_models_and_dropped_calls_are_sent_as_the_api_takes_them() -> None:
    fake = FakeGemini(Said("Both. ", "Hm.", (("read_file", {"path": "a"}), ("read_file", {"path": "b"}))), Said("End."))
    async with serving(fake) as url:
        model = model_at(url)
        _, reply = await collect(model, ASK)
        own = Message("assistant", reply.text, reply.tool_calls[1:], carried=reply.carried)
        foreign = ToolCall("own.tool", {"x": 1}, "f1")
        history = (
            Message("system", "s"),
            Message("assistant", "Earlier."),
            Message("user", " "),
            Message("assistant", "", (foreign, ToolCall("lost", {}, "f2")), carried="damaged"),
            Message("tool", "done", (), "f1", "own.tool"),
            Message("tool", "orphan", (), "f9", "gone"),
            own,
            Message("tool", "", (), reply.tool_calls[1].id, "read_file"),
        )
        assert (await collect(model, ModelRequest(history, tools=TOOLS)))[0] == "End."
        await model.close()
    assert not fake.refusals
    turns = fake.bodies[-1]["contents"]
    calls = [part for turn in turns for part in turn["parts"] if "functionCall" in part]
    assert [call["functionCall"].get("args") for call in calls] == [{"x": 1}, {"path": "b"}]
    assert [call.get("thoughtSignature") for call in calls] == [SKIP, SKIP]
    assert {"text": "Result of gone:\norphan"} in [part for turn in turns for part in turn["parts"]]


async def test_a_changed_signature_is_what_the_fake_refuses() -> None:
    fake = FakeGemini(Said("", "", (("read_file", {"path": "a"}),)), Said("End."))
    async with serving(fake) as url:
        model = model_at(url, policy=ONCE)
        _, reply = await collect(model, ASK)
        for carried in (reply.carried.replace('"path":"a"', '"path":"z"'), ""):
            own = Message("assistant", "", reply.tool_calls, carried=carried)
            asked = (*ASK.messages, own, Message("tool", "t", (), reply.tool_calls[0].id))
            if carried:
                with pytest.raises(ModelRejected, match="Corrupted thought signature"):
                    await collect(model, ModelRequest(asked, tools=TOOLS))
            else:
                await collect(model, ModelRequest(asked, tools=TOOLS))
        await model.close()
    assert fake.skipped == 1


@pytest.mark.parametrize(
    ("name", "effort", "config"),
    [
        ("gemini-2.5-pro", "none", {"includeThoughts": True, "thinkingBudget": 128}),
        ("gemini-2.5-flash", "none", {"includeThoughts": False, "thinkingBudget": 0}),
        ("gemini-2.5-flash", "low", {"includeThoughts": True, "thinkingBudget": 1024}),
        ("gemini-3.1-pro", "none", {"includeThoughts": True, "thinkingLevel": "low"}),
        ("gemini-3.5-flash", "none", {"includeThoughts": True, "thinkingLevel": "minimal"}),
        ("gemini-3.5-flash", "high", {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-4-argon", "auto", {"includeThoughts": True}),
    ],
)
async def test_effort_is_said_in_the_terms_of_the_generation(name: str, effort: str, config: dict[str, Any]) -> None:
    fake = FakeGemini(model=name)
    async with serving(fake) as url:
        model = model_at(url, name, effort)
        await collect(model, ModelRequest(ASK.messages, max_tokens=100))
        await model.close()
    sent = fake.bodies[0]["generationConfig"]
    assert sent["thinkingConfig"] == config
    assert sent["maxOutputTokens"] == 100 + 8192
    assert ("temperature" in sent) is name.startswith("gemini-2")


async def test_thinking_that_is_refused_is_left_out_from_then_on() -> None:
    fake = FakeGemini(thinking=False)
    async with serving(fake) as url:
        model = model_at(url)
        for _ in range(2):
            await collect(model, ASK)
        await model.close()
    assert ["thinkingConfig" in body["generationConfig"] for body in fake.bodies] == [True, False, False]


async def test_a_schema_of_the_reply_and_stops_are_sent() -> None:
    fake = FakeGemini(Said("{}"))
    schema = {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": False}
    async with serving(fake) as url:
        model = model_at(url)
        await collect(model, ModelRequest(ASK.messages, response_schema=schema, stop=("x",), temperature=0.5))
        await model.close()
    sent = fake.bodies[0]["generationConfig"]
    assert (sent["stopSequences"], sent["temperature"], sent["responseMimeType"]) == (["x"], 0.5, "application/json")


@pytest.mark.parametrize(
    ("chunks", "key"),
    [
        ([{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}], "model.filtered"),
        (ending("SAFETY"), "model.filtered"),
        (ending("RECITATION", {"text": "Once upon"}), "model.filtered"),
        (ending(None, {"text": "cut"}), "model.stream_cut"),
        (ending("OTHER"), "model.stream_cut"),
        ([{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}], "model.busy"),
    ],
)
async def test_replies_that_are_none(chunks: list[dict[str, Any]], key: str) -> None:
    fake = FakeGemini()
    fake.ends = chunks
    assert (await failing(fake)).key == key


@pytest.mark.parametrize(
    ("chunks", "reason", "problem"),
    [
        (ending("MAX_TOKENS", {"text": "Half"}), "length", ""),
        (ending("MAX_TOKENS", {"text": "Hm", "thought": True}), "length", "before any answer"),
        (ending("MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: print(x)"), "stop", "print(x)"),
        (ending("A_NEW_REASON", {"text": "Fine."}), "stop", ""),
    ],
)
async def test_endings(chunks: list[dict[str, Any]], reason: str, problem: str) -> None:
    fake = FakeGemini()
    fake.ends = chunks
    async with serving(fake) as url:
        model = model_at(url)
        _, reply = await collect(model, ASK)
        await model.close()
    assert reply.finish_reason == reason
    assert problem in reply.problem
    assert bool(reply.problem) is bool(problem)


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.2s"}
LONG = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3600s"}
DAY = {"@type": "x.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}
QUOTA = "You exceeded your current quota, please check your plan and billing details."


@pytest.mark.parametrize(
    ("answer", "kind", "key"),
    [
        (error(429, QUOTA, RETRY, DAY), ModelRejected, "model.quota"),
        (error(429, QUOTA, LONG), ModelBusy, "model.busy_wait"),
        (
            error(400, "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."),
            ContextOverflow,
            "model.overflow",
        ),
        (error(403, "Permission denied"), ModelUnauthorized, "model.unauthorized"),
        (error(400, "User location is not supported"), ModelRejected, "model.rejected"),
        (error(503, "The model is overloaded."), ModelBusy, "model.busy"),
        ((500, "text/html", b"<html><title>Oops</title>"), ModelBusy, "model.busy"),
    ],
)
async def test_errors(answer: Any, kind: type[ModelError], key: str) -> None:
    fake = FakeGemini()
    fake.errors = [answer]
    caught = await failing(fake, policy=QUICK if key == "model.busy_wait" else ONCE)
    assert (type(caught), caught.key) == (kind, key)
    assert KEY not in str(caught)


@pytest.mark.slow
async def test_a_rate_limit_waits_as_the_body_says() -> None:
    fake = FakeGemini(Said("At last."))
    fake.errors = [error(429, QUOTA, RETRY)]
    async with serving(fake) as url:
        model = model_at(url)
        assert (await collect(model, ASK))[0] == "At last."
        await model.close()
    assert not fake.errors


async def test_an_error_as_a_list_and_a_broken_connection() -> None:
    fake = FakeGemini()
    fake.errors = [(400, "application/json", b'[{"error": {"code": 400, "message": "Bad thing."}}]')]
    assert "Bad thing." in str(await failing(fake))


GARBAGE: tuple[Any, ...] = (None, 0, "x", [], {}, [None], [{}], {"x": 1}, True, 1.5)


@pytest.mark.parametrize(
    "name",
    [
        "candidates",
        "content",
        "parts",
        "part",
        "functionCall",
        "text",
        "finishReason",
        "usageMetadata",
        "promptFeedback",
        "finishMessage",
    ],
)
def test_a_reply_of_any_other_shape_is_no_crash(name: str) -> None:
    for value in GARBAGE:
        part = {"functionCall": {"name": "x", "args": value}} if name == "part" else {"text": "Hi."}
        part = {**part, **({name: value} if name in ("functionCall", "text") else {})}
        content = value if name == "content" else {"parts": value if name == "parts" else [part, value]}
        candidate: dict[str, Any] = {"content": content, "finishReason": "STOP"}
        candidate |= {name: value} if name in ("finishReason", "finishMessage") else {}
        chunk: dict[str, Any] = {"candidates": value if name == "candidates" else [candidate, value]}
        chunk |= {name: value} if name in ("usageMetadata", "promptFeedback") else {}
        assembler = GeminiAssembler(endpoint("http://127.0.0.1"), ModelInfo("gemini-3", "gemini"))
        with suppress(ModelError):
            assembler.feed(chunk)
            assembler.flush()
            assembler.finish(done_marker=False)


@pytest.fixture
async def spoken() -> AsyncGenerator[tuple[FakeGemini, str], None]:
    """A fake after twenty turns, and its address."""
    fake = FakeGemini(*script(), Said("Hello.", "I greet. ", (("greet", {"who": "you"}),)))
    async with serving(fake) as url:
        model = model_at(url)
        await converse(model, stored=False)
        await model.close()
        yield fake, url


@pytest.mark.slow
async def test_google_s_own_package_takes_our_requests_and_reads_the_fake_s_replies(
    spoken: tuple[FakeGemini, str],
) -> None:
    fake, url = spoken
    case: dict[str, Any] = {"bodies": list(fake.bodies), "url": url, "key": KEY, "model": fake.model}
    case["bodies"].append(model_at(url)._body(ModelRequest(ASK.messages, tuple(SPECS.values()))))
    try:
        told = await asyncio.to_thread(judged, case)
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert told == {
        "bodies": 21,
        "text": "Hello.",
        "thoughts": "I greet. ",
        "calls": ["greet"],
        "signatures": 1,
        "finish": "STOP",
        "thinking_tokens": 7,
        "window": 1_048_576,
    }
