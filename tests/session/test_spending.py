"""Budgets, sums and stand-ins of whole runs: where a budget ends the run stops, and nothing of its work is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.agent.context.history import size, tools_size
from codeagent_lsp.config import Settings
from codeagent_lsp.llm.learned_facts import Facts, Prices, combine
from codeagent_lsp.llm.model import Model, ModelInfo, ModelRequest, Reply, StreamItem
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.messages import Message, Usage
from codeagent_lsp.server.progress import ending
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.spending import cached_percent, cost_words, dollars, used_in
from tests.session.fakes import World, call, calls, say, world, write

FACTS = combine([("server", Facts(context_window=32_768)), ("catalogue", Facts(prices=Prices(3.0, 15.0)))])
PAID = ModelInfo("paid", "scripted", facts=FACTS, tool_calling="native")


def budget(usd: float | None = None, tokens: int | None = None) -> Callable[[Settings], Settings]:
    return lambda settings: replace(
        settings,
        budget=replace(settings.budget, usd=usd, tokens=tokens),
        agent=replace(settings.agent, max_iterations=100),
    )


class PaidModel(ScriptedModel):
    """A scripted model that counts tools and calls too, as servers do."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        async with aclosing(super().stream(request)) as items:
            async for item in items:
                if isinstance(item, Reply):
                    written = size([Message("assistant", item.text, item.tool_calls)])
                    item = replace(item, usage=Usage(size(request.messages) + tools_size(request.tools), 0, written))
                yield item


def paid(made: World, *replies: ScriptedReply) -> ScriptedModel:
    model = made.models["model"] = PaidModel(replies, info=PAID)
    return model


def used(made: World, run_id: str) -> list[events.UsageReported]:
    return [event for event in made.events if isinstance(event, events.UsageReported) and event.run_id == run_id]


def ended(made: World) -> events.RunCompleted:
    return next(event for event in reversed(made.events) if isinstance(event, events.RunCompleted))


def forty() -> list[ScriptedReply]:
    """A run that writes twenty files and has two helpers with ten calls each."""
    helpers = calls(call("delegate", agent="coder", task="one"), call("delegate", agent="coder", task="two"))
    writes = [write(f"file{number}.py", f"x = {number}\n") for number in range(40)]
    return [*writes[:5], helpers, *writes[5:15], say("helper done"), *writes[15:25], say("helper done"), *writes[25:]]


@pytest.mark.slow
@pytest.mark.volume
async def test_forty_calls_with_two_subagents_stop_before_the_call_that_goes_beyond(tmp_path: Path) -> None:
    free = world(tmp_path / "free" / "w", settings=budget(), apply="auto")
    paid(free, *forty())
    await free.run()
    whole = sum(event.cost or 0 for event in used(free, ended(free).run_id))
    for number, share in enumerate((0.3, 0.8)):
        made = world(tmp_path / f"w{number}" / "w", settings=budget(usd=whole * share), apply="auto")
        paid(made, *forty())
        await made.run()
        end, spent = ended(made), sum(event.cost or 0 for event in used(made, ended(made).run_id))
        assert end.status == "stopped" and "budget.usd" in end.summary
        assert whole * share * 0.6 < spent <= whole * share
        assert len(made.editor.applied) == 1 and end.files_changed  # what was changed is kept
        paid(made, say())
        await made.run("Go on")  # with a budget of its own
        assert ended(made).status == "completed"


@pytest.mark.slow
async def test_tokens_of_a_run_are_limited(tmp_path: Path) -> None:
    made = world(tmp_path / "w", settings=budget(tokens=100_000), apply="auto")
    paid(made, *forty())
    await made.run()
    assert ended(made).status == "stopped" and "budget.tokens" in ended(made).summary
    spent = sum(event.prompt_tokens + event.completion_tokens for event in used(made, ended(made).run_id))
    assert 30_000 < spent <= 100_000


async def test_sums_of_run_and_session_are_told_and_come_back(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    paid(made, say("one"), say("two"))
    await made.run("a")
    first = ended(made)
    assert first.usage is not None and first.usage == first.session_usage and first.usage["cost"] > 0
    await made.run("b")
    second = ended(made)
    assert second.usage is not None and second.session_usage is not None
    assert abs(second.session_usage["cost"] - first.usage["cost"] - second.usage["cost"]) < 1e-9
    assert (await made.manager.list())[0]["usage"] == second.session_usage
    session = made.manager.current()
    again = Session(session.session_id, made.store)
    replay(again, made.store.load(session.session_id))
    assert again.context.usage == session.context.usage
    made.store.close()
    assert (await world(tmp_path / "w").manager.list())[0]["usage"] == second.session_usage


async def test_a_model_without_prices_says_once_that_money_cannot_be_limited(tmp_path: Path) -> None:
    made = world(tmp_path / "w", settings=budget(usd=0.01))
    made.models["model"] = ScriptedModel([say()], info=ModelInfo("m", "openai", tool_calling="native"))
    await made.run()
    said = [event.message for event in made.events if isinstance(event, events.StatusChanged)]
    assert [words for words in said if "budget.usd" in words] == [
        "No prices are known of m, so budget.usd cannot be kept for it; budget.tokens can."
    ]


async def test_a_stand_in_takes_over_and_is_told_once(tmp_path: Path) -> None:
    def wanted(settings: Settings) -> Settings:
        return replace(settings, model=replace(settings.model, fallback=("second", "third")))

    made = world(tmp_path / "w", ScriptedReply(error="busy"), settings=wanted, apply="auto")
    second = ScriptedModel([write("a.py", "x = 1\n"), say("Done by the second.")], info=replace(PAID, name="second"))

    async def named(name: str) -> Model:
        assert name == "second"
        return second

    services = made.manager._services
    made.manager._services = replace(services, models=replace(services.models, open_named=named))
    await made.run()
    assert ended(made).status == "completed" and ended(made).summary == "Done by the second."
    told = [event.message for event in made.events if isinstance(event, events.StatusChanged)]
    assert sum("second takes over" in message for message in told) == 1


async def test_what_another_model_reads_is_masked_and_counts_too(tmp_path: Path) -> None:
    """A helper's own model once got the text without the redactor."""

    def wanted(settings: Settings) -> Settings:
        return replace(settings, model=replace(settings.model, small="little"))

    opened: list[str] = []
    made = world(tmp_path / "w", say(), settings=wanted)
    little = ScriptedModel([], info=replace(PAID, name="little"))

    async def named(name: str) -> Model:
        opened.append(name)
        return little

    services = made.manager._services
    made.manager._services = replace(services, models=replace(services.models, open_named=named))
    await made.run()
    assert opened and ended(made).status == "completed"


def test_costs_in_words() -> None:
    assert [dollars(cost) for cost in (0, 0.00001, 0.00042, 0.0123, 0.1, 1.239, 12)] == [
        "$0", "$0", "$0.00042", "$0.012", "$0.10", "$1.24", "$12.00",
    ]  # fmt: skip
    assert cost_words({"cost": 0.2}, {"cost": 0.5}, "en") == "$0.20, the session $0.50"
    assert cost_words({"cost": 0.2}, {"cost": 0.2}, "zh-cn") == "$0.20"
    assert cost_words({"prompt_tokens": 3}, None, "en") == cost_words(None, None, "en") == ""


def test_the_share_from_the_cache_stands_where_the_cost_stands() -> None:
    run, session = (
        {"cost": 0.2, "prompt_tokens": 900, "cached_tokens": 755},
        {"cost": 0.5, "prompt_tokens": 2000, "cached_tokens": 1999},
    )
    assert cost_words(run, session, "en") == "$0.20 (83 % cached), the session $0.50 (99 % cached)"
    assert cost_words(run, None, "zh-cn") == "$0.20（缓存命中 83%）"
    assert cost_words({**run, "cached_tokens": 0}, None, "en") == "$0.20"
    end = events.RunCompleted(status="completed", summary="", usage=run, session_usage=run)
    assert ending(end, "en").endswith(" · $0.20 (83 % cached)")
    odd: list[Any] = [None, {}, {"prompt_tokens": "x", "cached_tokens": 5}, {"prompt_tokens": 0, "cached_tokens": 5}]
    assert [cached_percent(usage) for usage in odd] == [0, 0, 0, 0]
    assert cached_percent({"prompt_tokens": 5, "cached_tokens": 9}) == 100


async def test_sessions_are_listed_with_the_share_from_the_cache(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    info = replace(PAID, facts=replace(PAID.facts, prices=Prices(3.0, 15.0, cached=0.3)))
    made.models["model"] = CachingModel([say("Hello.")], info=info)
    done = await made.run("a")
    (row,) = await made.manager.list()
    usage = row["usage"]
    assert usage["cached_tokens"] == usage["prompt_tokens"] // 2
    assert row["cachedPercent"] in (49, 50)
    assert f"({row['cachedPercent']} % cached)" in cost_words(done.usage, done.session_usage, "en")
    assert usage["cost"] < (3 * usage["prompt_tokens"] + 15 * usage["completion_tokens"]) / 1e6


class CachingModel(ScriptedModel):
    """Half of each prompt comes from a cache."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        async for item in super().stream(request):
            if isinstance(item, Reply):
                item = replace(item, usage=replace(item.usage, cached_tokens=item.usage.prompt_tokens // 2))
            yield item


async def test_an_assumed_small_window_is_told_once_for_each_session(tmp_path: Path) -> None:
    made = world(tmp_path / "w")
    facts = combine([("assumed", Facts(context_window=8192))])
    made.models["model"] = ScriptedModel([say()] * 3, info=replace(PAID, name="local", facts=facts))
    await made.run("a")
    await made.run("b")
    said = [event.message for event in made.events if isinstance(event, events.StatusChanged)]
    told = [words for words in said if "model.contextWindow" in words]
    assert told == [
        "The server does not tell the window of local: 8,192 tokens are assumed. "
        "Set model.contextWindow if it has another."
    ]


def test_the_sum_of_a_run_s_end_counts_with_the_calls_after_it() -> None:
    call = {"type": "usage", "run_id": "r1", "prompt_tokens": 10, "completion_tokens": 1, "cost": 0.25}
    end = {"type": "run_completed", "run_id": "r1", "usage": {"prompt_tokens": 60, "completion_tokens": 6, "cost": 1.5}}
    assert used_in([call]) == Usage(10, 0, 1, cost=0.25)
    assert used_in([call, end]) == Usage(60, 0, 6, cost=1.5), "with that of its attempts"
    assert used_in([call, end, call]) == Usage(70, 0, 7, cost=1.75), "it was resumed"
    assert used_in([call, end, {**call, "run_id": "r2"}]) == Usage(70, 0, 7, cost=1.75)
    damages: tuple[object, ...] = (None, [], "x", {"prompt_tokens": "many"}, {})
    for damaged in damages:
        assert used_in([call, {**end, "usage": damaged}]) == Usage(10, 0, 1, cost=0.25)
