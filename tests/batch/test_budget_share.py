"""The budget of a batch: whatever tasks cost within their shares, together they never go beyond it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.batch.command import LEAST_USD, BudgetShare
from codeagent_lsp.batch.task_file import BatchOptions

MOVES = st.lists(st.tuples(st.booleans(), st.floats(0, 1), st.integers(1, 8)), max_size=60)


@given(st.floats(0.01, 100), MOVES)
def test_never_beyond(usd: float, moves: list[tuple[bool, float, int]]) -> None:
    budget, running, spent = BudgetShare(usd), dict[str, float](), 0.0
    for number, (begin, part, free) in enumerate(moves):
        if begin:
            share = budget.promise(str(number), free)
            assert share is not None
            if share:
                running[str(number)] = share
        elif running:
            name, share = running.popitem()
            budget.settle(name, share * part, 10)
            spent += share * part
        assert spent + sum(running.values()) <= usd * (1 + 1e-9)
    assert abs(budget.spent - spent) < 1e-9


def test_an_even_share_for_each_place() -> None:
    budget = BudgetShare(10.0, spent=4.0)
    assert [budget.promise("a", 3), budget.promise("b", 2), budget.promise("c", 1)] == [2.0, 2.0, 2.0]
    assert budget.promise("d", 1) == 0.0
    assert not budget.is_over  # the others may leave something over
    for name in "abc":
        budget.settle(name, 2.0, 5)
    assert budget.is_over


def test_what_is_left_is_used_up() -> None:
    budget = BudgetShare(0.01, spent=0.008)
    assert budget.promise("a", 8) == LEAST_USD  # an even share would be too little to begin with
    assert budget.promise("b", 7) == LEAST_USD
    assert budget.promise("c", 6) == 0.0


def test_without_a_limit_there_is_no_share() -> None:
    budget = BudgetShare(None)
    assert budget.promise("a", 1) is None
    budget.settle("a", None, 100)
    assert not budget.is_over


def test_a_model_without_prices_ends_a_limited_batch() -> None:
    budget = BudgetShare(1.0)
    budget.promise("a", 2)
    budget.settle("a", None, 100)
    assert budget.is_over
    assert budget.promise("b", 1) == 0.0


def test_attempts_divide_the_share() -> None:
    options = BatchOptions(settings=(("budget.usd", 5.0),), attempts=3)
    assert dict(options.limited(3.0).settings)["budget.usd"] == 1.0
    assert dict(options.limited(30.0).settings)["budget.usd"] == 5.0
    assert dict(BatchOptions().limited(LEAST_USD).settings)["budget.usd"] == LEAST_USD
