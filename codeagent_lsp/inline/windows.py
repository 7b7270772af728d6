"""How much of a text is sent: the budget, and the part of the text around the cursor that fits in it.

The part begins at a line that stays the same while the user types on, because a model that has read a beginning does
not read it again. Not here: pieces of other places (`context.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from codeagent_lsp.inline.place import Place


@dataclass(frozen=True, slots=True)
class Budget:
    """Characters of the text before and after the cursor, and of pieces of other places; tokens of an answer."""

    prefix: int
    suffix: int
    pieces: int
    tokens: int


SLOW = Budget(900, 240, 700, 96)
"""For a model on a processor: some 550 tokens, of which few change from key to key."""

FAST = Budget(6000, 2000, 6000, 256)

_STEP = 0.5
"""Share of the prefix's budget by which its beginning jumps on, instead of moving with every line."""


def prefix_of(place: Place, budget: Budget) -> str:
    """Return the text before the cursor, from the beginning of a line that few keys change."""
    start = place.offset - budget.prefix
    if start <= 0:
        return place.text[: place.offset]
    step = max(1, int(budget.prefix * _STEP))
    start = -(-start // step) * step  # the next of fixed places, so never more than the budget
    begins = place.text.find("\n", start, place.line_start) + 1
    return place.text[begins or place.line_start : place.offset][-2 * budget.prefix :]


def suffix_of(place: Place, budget: Budget) -> str:
    """Return the text after the cursor, to the end of a line."""
    text = place.text[place.offset : place.offset + budget.suffix]
    if place.offset + budget.suffix >= len(place.text):
        return text
    end = text.rfind("\n")
    return text[: end + 1] if end >= 0 else text
