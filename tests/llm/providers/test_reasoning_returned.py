"""Reasoning in chat completions: kept with the message, and given back to those who want it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codeagent_lsp.errors import ModelRejected
from codeagent_lsp.llm.deltas import add_detail
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.model import ModelInfo, ModelRequest
from codeagent_lsp.llm.providers.openai import OpenAIModel
from codeagent_lsp.llm.wire import pack, unpack
from codeagent_lsp.messages import Message, ToolCall
from tests.llm.asking import QUICK
from tests.llm.providers.fake_chat import FakeChat
from tests.llm.providers.fake_server import Said, serving
from tests.llm.support import TOOLS, collect

INFO = ModelInfo("m", "openai")
START = (Message("system", "s"), Message("user", "u"))
CALLED = Said("", "I look.", (("read_file", {"path": "a"}),))


def model_at(url: str, effort: str = "auto") -> OpenAIModel:
    return OpenAIModel(endpoint(url), INFO, effort=effort, policy=QUICK)


def turn(carried: str = "", call_id: str = "f1") -> tuple[Message, ...]:
    call = ToolCall("read_file", {"path": "a"}, call_id)
    return Message("assistant", "", (call,), carried=carried), Message("tool", "t", (), call_id)


async def test_a_server_on_this_machine_gets_it_only_when_it_demands_it() -> None:
    fake = FakeChat(CALLED, Said("Done.", "Fine."), Said("Again."), style="deepseek")
    async with serving(fake) as url:
        model = model_at(url)
        _, reply = await collect(model, ModelRequest(START, tools=TOOLS))
        assert unpack(INFO, reply.carried) == [{"reasoning_content": "I look."}]
        own = Message("assistant", "", reply.tool_calls, carried=reply.carried)
        asked = (*START, *turn(), own, Message("tool", "t", (), reply.tool_calls[0].id))
        _, last = await collect(model, ModelRequest(asked, tools=TOOLS))
        said = Message("assistant", last.text, carried=last.carried)
        await collect(model, ModelRequest((*asked, said, Message("user", "v")), tools=TOOLS))
        await model.close()
    assert len(fake.refusals) == 1
    sent = [message.get("reasoning_content") for message in fake.bodies[-1]["messages"]]
    assert sent == [None, None, "", None, "I look.", None, None, None]  # '' of the turn that another model has written


@pytest.mark.parametrize("url", ["https://api.deepseek.com", "https://openrouter.ai/api/v1"])
def test_any_other_server_gets_it_and_only_its_own(url: str) -> None:
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    items = [{"reasoning_content": "Hm."}, {"reasoning_details": details}]
    other = ModelInfo("other", "openai")
    messages = (
        *START,
        *turn(pack(INFO, items)),
        Message("assistant", "Yes.", carried=pack(INFO, items)),
        *turn(pack(other, items), "f2"),
        Message("user", "v"),
    )
    body = model_at(url)._body(ModelRequest(messages))
    given = [{k: v for k, v in message.items() if k.startswith("reasoning")} for message in body["messages"]]
    both = {"reasoning_content": "Hm.", "reasoning_details": details}
    assert given == [{}, {}, both, {}, {"reasoning_details": details}, {}, {}, {}]


async def test_a_refusal_of_something_else_is_not_taken_for_one() -> None:
    class Strict(FakeChat):
        def _check(self, body: dict[str, Any]) -> None:
            from tests.llm.providers.fake_server import Refused

            raise Refused("reasoning_content is a word in a sentence about nothing")

    async with serving(Strict()) as url:
        model = model_at(url)
        with pytest.raises(ModelRejected, match="about nothing"):
            await collect(model, ModelRequest(START))
        await model.close()


@pytest.mark.parametrize(("effort", "sent"), [("auto", None), ("none", "none"), ("high", "high")])
async def test_effort(effort: str, sent: str | None) -> None:
    fake = FakeChat()
    async with serving(fake) as url:
        model = model_at(url, effort)
        await collect(model, ModelRequest(START))
        await model.close()
    assert fake.bodies[0].get("reasoning_effort") == sent


async def test_an_effort_that_is_refused_is_left_out_from_then_on() -> None:
    fake = FakeChat(style="plain")
    async with serving(fake) as url:
        model = model_at(url, "low")
        for _ in range(2):
            await collect(model, ModelRequest(START))
        await model.close()
    assert ["reasoning_effort" in body for body in fake.bodies] == [True, False, False]


async def test_reasoning_tokens_are_counted() -> None:
    async with serving(FakeChat(CALLED)) as url:
        model = model_at(url)
        _, reply = await collect(model, ModelRequest(START))
        await model.close()
    assert reply.usage.reasoning_tokens == 9


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (
            [{"type": "reasoning.text", "text": "a", "index": 0}, {"type": "reasoning.text", "text": "b", "index": 0}],
            [{"type": "reasoning.text", "text": "ab", "index": 0}],
        ),
        (
            [
                {"type": "reasoning.summary", "summary": "a", "id": None},
                {"type": "reasoning.summary", "summary": "b", "id": "r"},
            ],
            [{"type": "reasoning.summary", "summary": "ab", "id": "r"}],
        ),
        (
            [{"type": "reasoning.text", "text": "a", "signature": "s"}, {"type": "reasoning.text", "text": "b"}],
            [{"type": "reasoning.text", "text": "a", "signature": "s"}, {"type": "reasoning.text", "text": "b"}],
        ),
        (
            [{"type": "reasoning.encrypted", "data": "x"}, {"type": "reasoning.encrypted", "data": "x"}],
            [{"type": "reasoning.encrypted", "data": "x"}, {"type": "reasoning.encrypted", "data": "x"}],
        ),
        (
            [{"type": "reasoning.text", "text": None}, {"type": "reasoning.text", "text": "b"}],
            [{"type": "reasoning.text", "text": "b"}],
        ),
    ],
)
def test_streamed_details_become_the_blocks_that_they_are_pieces_of(pieces: list[Any], whole: list[Any]) -> None:
    details: list[dict[str, Any]] = []
    for piece in pieces:
        add_detail(details, json.loads(json.dumps(piece)))
    assert details == whole
