"""What the calls of one run may cost together: nothing goes beyond, whatever runs at once or fails."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator

import pytest

from codeagent_lsp.errors import BudgetSpent, ModelBusy
from codeagent_lsp.llm.learned_facts import Facts, Prices, combine
from codeagent_lsp.llm.model import ModelInfo, ModelRequest, Reply, StreamItem, TextChunk
from codeagent_lsp.messages import Message, Usage
from codeagent_lsp.session.run_models import LEAST_REPLY, Budget, BudgetedModel, Limits

PRICES = Prices(input=3.0, output=15.0, cached=0.3, written=3.75)
ASK = ModelRequest((Message("system", "s" * 3000), Message("user", "u" * 300)), max_tokens=2000)


class Paid:
    """A model that uses the whole prompt and as long a reply as it may; `calls` are the limits it was given."""

    def __init__(self, prices: Prices | None = PRICES, *, fails: bool = False) -> None:
        facts = combine([("catalogue", Facts(prices=prices))]) if prices else combine([])
        self.info = ModelInfo("paid", "openai", facts=facts)
        self.calls: list[int | None] = []
        self._fails = fails

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        await asyncio.sleep(0)
        if self._fails:
            raise ModelBusy("model.busy", url="u", reason="r")
        self.calls.append(request.max_tokens)
        yield TextChunk("t")
        yield Reply("t", usage=Usage(1000, completion_tokens=request.max_tokens or 700))

    async def count_tokens(self, text: str) -> int:
        return len(text)

    async def close(self) -> None:
        pass


async def reply(model: BudgetedModel, request: ModelRequest = ASK) -> Reply:
    async for item in model.stream(request):
        if isinstance(item, Reply):
            last = item
    return last


def test_a_cost_is_the_sum_of_four_prices() -> None:
    used = Usage(prompt_tokens=1_000_000, cached_tokens=600_000, completion_tokens=100_000, written_tokens=200_000)
    assert PRICES.cost(used) == pytest.approx(0.2 * 3 + 0.6 * 0.3 + 0.2 * 3.75 + 0.1 * 15)
    assert Prices(2.0, 4.0).cost(used) == pytest.approx(2.0 + 0.4)  # no price of its own: as the prompt


async def test_without_limits_replies_only_get_their_cost() -> None:
    model = Paid()
    got = await reply(BudgetedModel(model, Budget(Limits())))
    assert model.calls == [2000] and got.usage.cost == pytest.approx(PRICES.cost(got.usage))
    assert (await reply(BudgetedModel(Paid(None), Budget(Limits())))).usage.cost is None


@pytest.mark.parametrize(("usd", "tokens"), [(0.2, None), (None, 30_000), (0.5, 40_000), (0.01, None)])
async def test_the_call_that_would_go_beyond_is_not_made(usd: float | None, tokens: int | None) -> None:
    model, budget = Paid(), Budget(Limits(usd, tokens))
    spent = Usage()
    with pytest.raises(BudgetSpent) as refused:
        for _ in range(1000):
            spent += (await reply(BudgetedModel(model, budget))).usage
    assert spent.cost is not None or usd == 0.01
    assert usd is None or (spent.cost or 0) <= usd
    assert tokens is None or spent.prompt_tokens + spent.completion_tokens <= tokens
    assert refused.value.key == ("budget.usd" if tokens is None or (usd and usd < 0.5) else refused.value.key)
    assert all(asked is not None and LEAST_REPLY <= asked <= 2000 for asked in model.calls)
    assert "go on" in str(refused.value) and "继续" in refused.value.localized("zh-cn")


async def test_the_last_reply_is_cut_where_the_budget_ends() -> None:
    model = Paid()
    budget = Budget(Limits(tokens=5000))
    await reply(BudgetedModel(model, budget))
    await reply(BudgetedModel(model, budget))
    assert model.calls[0] == 2000 and model.calls[1] is not None and LEAST_REPLY <= model.calls[1] < 2000


async def test_calls_at_once_share_what_is_left() -> None:
    """Subagents beside the run, many orders of their steps: never more than the limit together."""
    for seed in range(50):
        chance = random.Random(seed)
        model, budget = Paid(), Budget(Limits(usd=chance.uniform(0.05, 0.6)))
        limit = budget._limits.usd or 0

        async def worker(model: Paid = model, budget: Budget = budget) -> float:
            spent = 0.0
            try:
                while True:
                    spent += (await reply(BudgetedModel(model, budget))).usage.cost or 0
            except BudgetSpent:
                return spent

        together = sum(await asyncio.gather(*(worker() for _ in range(3))))
        assert limit - 0.1 < together <= limit


async def test_a_call_that_fails_before_its_first_word_costs_nothing() -> None:
    budget = Budget(Limits(tokens=5000))
    for _ in range(20):
        with pytest.raises(ModelBusy):
            await reply(BudgetedModel(Paid(fails=True), budget))
    await reply(BudgetedModel(Paid(), budget))


async def test_a_call_that_is_left_counts_as_promised() -> None:
    model, budget = BudgetedModel(Paid(), Budget(Limits(tokens=3500))), None
    stream = model.stream(ASK)
    await anext(stream)
    await stream.aclose()
    with pytest.raises(BudgetSpent):
        await reply(model)
    assert budget is None


async def test_free_and_unknown_prices_do_not_end_a_budget_in_money() -> None:
    for prices in (Prices(0, 0), None):
        model = Paid(prices)
        guarded = BudgetedModel(model, Budget(Limits(usd=0.001)))
        for _ in range(5):
            await reply(guarded)
        assert model.calls == [2000] * 5
