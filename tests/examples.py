"""How many examples a property is tried on where the number of its profile is too small, how much of a volume of kills,
cancels, and random histories is tried, and the letters they are made of. Not here: the profiles.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

FEW = 10
SHARE = float(os.environ.get("CODEAGENT_TEST_VOLUME", "0.2"))


def examples(number: int) -> int:
    """`number` in the slow stage, a tenth of them, though no less than `FEW`, while somebody waits."""
    return max(FEW, number // 10) if settings.get_current_profile_name() == "few" else number


def volume(number: int) -> int:
    """Return the part of `number` seeded tries that each run of everything makes: a fifth, all with `--volumes`."""
    return max(1, round(number * SHARE))


def spread(start: int) -> Iterator[int]:
    """Yield places in what cannot be counted before: each one at first, then farther and farther apart; no end."""
    number = start
    while True:
        yield number
        number += 1 + round((number - start) * (1 - SHARE) / 20)


@settings(max_examples=1, database=None)
@given(st.text())
def letters_known(text: str) -> None:
    """Have Hypothesis build its table of letters, which it keeps in a file."""
