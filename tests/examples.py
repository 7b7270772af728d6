"""How many examples a property is tried on where the number of its profile is too small, and the letters they are made
of. Not here: the profiles.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

FEW = 10


def examples(number: int) -> int:
    """`number` in the slow stage, a tenth of them, though no less than `FEW`, while somebody waits."""
    return max(FEW, number // 10) if settings.get_current_profile_name() == "few" else number


@settings(max_examples=1, database=None)
@given(st.text())
def letters_known(text: str) -> None:
    """Have Hypothesis build its table of letters, which it keeps in a file."""
