"""What a provider is told for its prompt cache, and no other server; what writing into the cache costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.config import ModelSettings, NetworkSettings
from codeagent_lsp.llm.endpoint import endpoint
from codeagent_lsp.llm.factory import Surroundings, open_model
from codeagent_lsp.llm.learned_facts import Facts, Prices, combine
from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest
from codeagent_lsp.llm.providers.anthropic import AnthropicModel
from codeagent_lsp.llm.providers.openai import OpenAIModel
from codeagent_lsp.llm.providers.responses import ResponsesModel
from codeagent_lsp.llm.survey import find
from codeagent_lsp.messages import Message, Usage
from codeagent_lsp.session.run_models import Budget, BudgetedModel, Limits
from tests.llm.asking import QUICK
from tests.llm.providers import fake_messages, fake_responses
from tests.llm.providers.fake_chat import FakeChat
from tests.llm.providers.fake_messages import FakeMessages
from tests.llm.providers.fake_responses import OWN_ADDRESS, FakeResponses
from tests.llm.providers.fake_server import FakeServer, serving
from tests.llm.support import TOOLS, collect

SYSTEM = Message("system", "Be careful. " * 50)
BEGIN = (SYSTEM, Message("user", "u"))
LATER = (*BEGIN, Message("assistant", "Hello."), Message("user", "More."))
BILLED = Prices(2.0, 10.0, cached=0.2, written=2.5)
FREE = Prices(5.0, 30.0, cached=0.5)
MARK = {"mode": "explicit"}
FIELDS = ("prompt_cache_key", "prompt_cache_breakpoint", "prompt_cache_options", "prompt_cache_retention")


def openai_s(kind: type[Any], name: str, proxy: str, prices: Prices | None = None) -> Model:
    """A model at OpenAI's own address, reached through a proxy on this machine, which answers in its place."""
    where = endpoint(f"{OWN_ADDRESS}/v1", fake_responses.KEY, network=NetworkSettings(proxy=proxy))
    facts = combine([("catalogue", Facts(prices=prices))])
    made: Model = kind(where, ModelInfo(name, "openai", where.root, facts), policy=QUICK)
    return made


async def bodies(fake: FakeServer, model: Model, *requests: ModelRequest) -> list[Any]:
    for request in requests:
        await collect(model, request)
    await model.close()
    return fake.bodies


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "prices", "marks"),
    [
        ("gpt-5.6-sol", BILLED, True),
        ("gpt-6.2-sol", None, True),  # newer than the price list
        ("gpt-5.6", None, True),
        ("gpt-5.5", FREE, False),
        ("gpt-5.10-mini", None, True),
        ("gpt-5.5", None, False),
        ("gpt-5-mini", None, False),
        ("gpt-4o", None, False),
        ("o3", None, False),
    ],
)
async def test_the_stable_prefix_is_marked_where_openai_bills_writes(
    name: str, prices: Prices | None, *, marks: bool
) -> None:
    fakes: tuple[tuple[FakeServer, type[Any]], ...] = (
        (FakeResponses(), ResponsesModel),
        (FakeChat(style="openai"), OpenAIModel),
    )
    for fake, kind in fakes:
        async with serving(fake) as proxy:
            model = openai_s(kind, name, proxy, prices)
            asked = await bodies(fake, model, ModelRequest(BEGIN, TOOLS, session="s1"))
        assert fake.refusals == (
            ["Unsupported parameter: 'temperature' is not supported"] if kind is ResponsesModel else []
        )
        body = asked[-1]
        assert str(body).count("prompt_cache_breakpoint") == int(marks)
        if kind is OpenAIModel:
            content = [{"type": "text", "text": SYSTEM.content, "prompt_cache_breakpoint": MARK}]
            assert body["messages"][0] == {"role": "system", "content": content if marks else SYSTEM.content}
        elif marks:
            first = {"type": "input_text", "text": SYSTEM.content, "prompt_cache_breakpoint": MARK}
            assert body["input"][0] == {"type": "message", "role": "developer", "content": [first]}
            assert "instructions" not in body
        else:
            assert body["instructions"] == SYSTEM.content


@pytest.mark.parametrize(("kind", "fake"), [(ResponsesModel, FakeResponses()), (OpenAIModel, FakeChat(style="openai"))])
async def test_a_session_has_one_key_whatever_becomes_of_its_conversation(kind: type[Any], fake: FakeServer) -> None:
    compacted = (SYSTEM, Message("user", "Summary of our work so far."))
    async with serving(fake) as proxy:
        model = openai_s(kind, "gpt-6.2-sol", proxy)
        requests = [ModelRequest(each, TOOLS, session="s1") for each in (BEGIN, LATER, compacted)]
        other = ModelRequest(BEGIN, TOOLS, session="s2")
        without = [ModelRequest(each, TOOLS) for each in (BEGIN, LATER)]
        asked = await bodies(fake, model, *requests, other, *without)
    keys = [body["prompt_cache_key"] for body in asked if "temperature" not in body or kind is OpenAIModel]
    assert len(keys) == 6
    assert keys[0] == keys[1] == keys[2]
    assert keys[4] == keys[5]
    assert len({*keys}) == 3
    assert not any("s1" in key or "s2" in key for key in keys)


async def test_the_requests_of_a_run_have_the_session_s_key() -> None:
    fake = FakeResponses()
    async with serving(fake) as proxy:
        model = openai_s(ResponsesModel, "gpt-6.2-sol", proxy)
        for session in ("one", "two"):
            await collect(BudgetedModel(model, Budget(Limits()), session), ModelRequest(BEGIN))
        await model.close()
    assert len({body["prompt_cache_key"] for body in fake.bodies}) == 2


async def test_other_servers_never_get_the_fields() -> None:
    for fake, kind in ((FakeResponses(), ResponsesModel), (FakeChat(), OpenAIModel)):
        async with serving(fake) as url:
            info = ModelInfo("gpt-6.2-sol", "openai", url, combine([("server", Facts(prices=BILLED))]))
            model = kind(endpoint(url, fake_responses.KEY), info, policy=QUICK)
            asked = await bodies(fake, model, ModelRequest(BEGIN, TOOLS, session="s1"))
        assert not [field for body in asked for field in FIELDS if field in str(body)]
        assert not [told for told in fake.refusals if "temperature" not in told]


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com.example.org/v1",
        "https://notapi.openai.com/v1",
        "https://openai.com/v1",
        "https://resource.openai.azure.com/openai/v1",
        "http://127.0.0.1:1/api.openai.com/v1",
    ],
)
def test_addresses_that_only_look_like_openai_s(url: str) -> None:
    request = ModelRequest(BEGIN, TOOLS, session="s1")
    info = ModelInfo("gpt-6.2-sol", "openai")
    for model in (ResponsesModel(endpoint(url), info), OpenAIModel(endpoint(url), info)):
        assert not [field for field in FIELDS if field in str(model._body(request))]


async def test_a_refused_mark_is_left_out_from_then_on() -> None:
    fake = FakeResponses()
    fake.marks = False
    async with serving(fake) as proxy:
        model = openai_s(ResponsesModel, "gpt-6.2-sol", proxy)
        asked = await bodies(fake, model, ModelRequest(BEGIN), ModelRequest(LATER))
    assert ["prompt_cache_breakpoint" in str(body) for body in asked][-2:] == [False, False]
    assert sum("prompt_cache_breakpoint" in told for told in fake.refusals) == 1
    assert asked[-1]["instructions"] == SYSTEM.content


def anthropic(url: str, *, interactive: bool, prices: Prices | None = None) -> AnthropicModel:
    info = ModelInfo("claude-test", "anthropic", url, combine([("catalogue", Facts(prices=prices))]))
    return AnthropicModel(endpoint(url, fake_messages.KEY), info, policy=QUICK, interactive=interactive)


def ttls(body: Any) -> list[list[Any]]:
    """The marks of tools, system prompt and conversation."""
    turns = [turn["content"][-1] for turn in body["messages"]]
    parts = (body["tools"], body["system"], turns)
    return [[each["cache_control"] for each in part if "cache_control" in each] for part in parts]


@pytest.mark.parametrize("interactive", [True, False])
async def test_in_an_editor_tools_and_system_prompt_are_kept_for_an_hour(*, interactive: bool) -> None:
    fake = FakeMessages()
    async with serving(fake) as url:
        asked = await bodies(fake, anthropic(url, interactive=interactive), ModelRequest(LATER, TOOLS))
    short, head = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"} if interactive else {"type": "ephemeral"}
    assert ttls(asked[0]) == [[head], [head], [short, short]]
    assert fake.refusals == []


async def test_a_server_that_knows_no_hour_is_asked_without_it() -> None:
    fake = FakeMessages()
    fake.lasts = False
    async with serving(fake) as url:
        asked = await bodies(fake, anthropic(url, interactive=True), ModelRequest(BEGIN, TOOLS), ModelRequest(LATER))
    assert len(fake.refusals) == 1
    assert ["1h" in str(body) for body in asked] == [True, False, False]


@pytest.mark.parametrize("interactive", [True, False])
async def test_who_opens_the_model_says_whether_a_person_works_with_it(tmp_path: Path, *, interactive: bool) -> None:
    fake = FakeMessages()
    async with serving(fake) as url:
        settings = ModelSettings(provider="anthropic", base_url=url, name="claude-test", api_key=fake_messages.KEY)
        model = await open_model(settings, tmp_path, around=Surroundings(interactive=interactive))
        asked = await bodies(fake, model, ModelRequest(BEGIN, TOOLS))
    assert ("1h" in str(asked[0])) == interactive


async def test_what_is_written_for_an_hour_costs_twice() -> None:
    fake = FakeMessages()
    prices = Prices(4.0, 20.0, cached=0.2, written=5.0, written_1h=8.0)
    async with serving(fake) as url:
        model = BudgetedModel(anthropic(url, interactive=True, prices=prices), Budget(Limits()))
        _, reply = await collect(model, ModelRequest(BEGIN, TOOLS))
        await model.close()
    usage = reply.usage
    assert 0 < usage.written_1h_tokens < usage.written_tokens
    fresh = usage.prompt_tokens - usage.cached_tokens - usage.written_tokens
    short = usage.written_tokens - usage.written_1h_tokens
    paid = (
        fresh * 4 + usage.cached_tokens * 0.2 + short * 5 + usage.written_1h_tokens * 8 + usage.completion_tokens * 20
    )
    assert usage.cost == pytest.approx(paid / 1e6)


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        (Prices(4.0, 20.0, 0.2, 5.0, 8.0), 30 * 4 + 10 * 5 + 60 * 8),
        (Prices(4.0, 20.0, 0.2, 5.0), 30 * 4 + 10 * 5 + 60 * 8),
        (Prices(4.0, 20.0), 100 * 4),
    ],
)
def test_prices_of_writes(prices: Prices, cost: float) -> None:
    assert prices.cost(Usage(100, written_tokens=70, written_1h_tokens=60)) == pytest.approx(cost / 1e6)
    assert prices.cost(Usage(100, written_tokens=70)) <= prices.at_most(100) + 1e-12
    assert prices.cost(Usage(100, written_tokens=70, written_1h_tokens=60)) <= prices.at_most(100, 60) + 1e-12


def test_the_price_list_knows_both_writes() -> None:
    prices = find("claude-opus-5-5", "https://api.anthropic.com").prices
    assert prices is not None
    assert (prices.written, prices.written_1h) == (1.25 * prices.input, 2 * prices.input)


async def test_a_budget_reckons_with_what_writing_costs() -> None:
    """A call whose prompt is all written, the head of it for an hour, stays below the limit that let it begin."""
    prices = Prices(4000.0, 0.0, cached=0.2, written=5000.0, written_1h=8000.0)
    budget = Budget(Limits(usd=100.0))
    promised = budget.promise(1000, None, prices, 400)
    assert promised.cost == pytest.approx(600 * 0.005 + 400 * 0.008)
