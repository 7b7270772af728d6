"""Whole numbers in texts of others: models, servers, files of a workspace, reports of programs.

Not here: numbers of JSON, which are numbers already.
"""

from __future__ import annotations

MOST_DIGITS = 18


def whole_number(text: str) -> int | None:
    """Return the number that a text is, written in ASCII digits alone; None for any other text, and for one of more
    than 18 digits. `int` raises an error for thousands of digits, and for digits such as `²`, which `isdigit` takes.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None
