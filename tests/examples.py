"""How many examples a property is tried on where the number of its profile is too small. Not here: the profiles."""

from __future__ import annotations

from hypothesis import settings

FEW = 10


def examples(number: int) -> int:
    """`number` in the slow stage, a tenth of them, though no less than `FEW`, while somebody waits."""
    return max(FEW, number // 10) if settings.get_current_profile_name() == "few" else number
