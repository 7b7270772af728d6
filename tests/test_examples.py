"""The rows of `pairwise`: any two values meet, in few rows, and with the whole volume in all there are."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.examples import pairwise

SIZES = ((), (3,), (2, 5), (2, 2, 2), (2, 4, 6), (6, 4, 2), (3, 3, 3, 3), (2, 3, 4, 5), (1, 4, 1, 3))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_any_two_values_meet_in_few_rows(sizes: tuple[int, ...]) -> None:
    axes = [range(size) for size in sizes]
    rows = pairwise(*axes, share=0.2)
    for (one, first), (other, second) in combinations(enumerate(axes), 2):
        assert {(row[one], row[other]) for row in rows} == {*product(first, second)}
    largest = max((one * other for one, other in combinations(sizes, 2)), default=max(sizes, default=1))
    assert largest <= len(rows) <= largest * 1.5
    assert len({*rows}) == len(rows)
    assert rows == pairwise(*axes, share=0.2)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_the_whole_volume_is_the_product(sizes: tuple[int, ...]) -> None:
    axes = [range(size) for size in sizes]
    assert pairwise(*axes, share=1) == [*product(*axes)]


def test_values_need_no_order_and_no_hash() -> None:
    assert pairwise([[1], {}], "ab", share=0.2) == [([1], "a"), ([1], "b"), ({}, "a"), ({}, "b")]
