"""Time grows with the text, never with its form. The table itself is `python -m tests.bench.sanitizer`."""

from __future__ import annotations

import pytest

from tests.bench.sanitizer import measure, texts

SLOWEST = 15.0  # seconds per MB on a busy machine; what is not linear takes minutes

NAMES = sorted(texts(10))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_text_makes_it_slow(name: str) -> None:
    text = texts(120_000)[name]
    whole, quarter = measure(text), measure(text[:30_000])
    assert whole < SLOWEST
    assert whole < 3 * quarter + 1  # per MB the same
