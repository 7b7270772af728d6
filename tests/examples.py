"""How many examples a property is tried on where the number of its profile is too small, how much of a volume of kills,
cancels, random histories and products of parameters is tried, and the letters they are made of. Not here: the profiles.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from itertools import combinations, product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

FEW = 10
SHARE = float(os.environ.get("CODEAGENT_TEST_VOLUME", "0.2"))
WHOLE = SHARE >= 1  # with `--volumes`


def examples(number: int) -> int:
    """`number` in the slow stage, a tenth of them, though no less than `FEW`, while somebody waits."""
    return max(FEW, number // 10) if settings.get_current_profile_name() == "few" else number


def volume(number: int, fewer: int = 1) -> int:
    """Return the part of `number` seeded tries that each run of everything makes: a fifth, all with `--volumes`.

    Where one try costs seconds, it is that part of a fifth that `fewer` says: 2 for the half of it.
    """
    return max(1, round(number * (SHARE if WHOLE else SHARE / fewer)))


def spread(start: int) -> Iterator[int]:
    """Yield places in what cannot be counted before: each one at first, then farther and farther apart; no end."""
    number = start
    while True:
        yield number
        number += 1 + round((number - start) * (1 - SHARE) / 20)


def pairwise(*axes: Collection[Any], share: float = SHARE) -> list[tuple[Any, ...]]:
    """Return rows of a value of each axis, so that any two values of two axes meet in a row; all rows with `--volumes`.

    Each next row is the one with the most pairs that no row before it has, the first of those in the order of the
    product (a greedy covering array of strength two, as AETG makes them). The same axes give the same rows; those of
    one or two axes are their product.
    """
    rows = [*product(*(range(len(axis)) for axis in axes))]
    if share < 1 and len(axes) > 2:
        pairs = {row: {*combinations(enumerate(row), 2)} for row in rows}
        missing = {pair for each in pairs.values() for pair in each}
        rows = []
        while missing:
            rows.append(max(pairs, key=lambda row: len(pairs[row] & missing)))
            missing -= pairs.pop(rows[-1])
    return [tuple(axis[place] for axis, place in zip(map(list, axes), row, strict=True)) for row in sorted(rows)]


@settings(max_examples=1, database=None)
@given(st.text())
def letters_known(text: str) -> None:
    """Have Hypothesis build its table of letters, which it keeps in a file."""
