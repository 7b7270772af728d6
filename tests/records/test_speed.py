"""Time grows with the text, never with its form. The table itself is `python -m tests.bench.sanitizer`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from codeagent_lsp.records.sanitizer import Sanitizer
from tests.bench.sanitizer import ODD, texts

SMALL, LARGE = 15_000, 60_000
SLOPE = 2.5  # times the cost a character of the small text; what is not linear has four
WORDS = 40  # times one search for all words, measured in the same run
NAMES = sorted(texts(10))

_WORDS = re.compile(r"\w+")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_longer_text_costs_no_more_a_character(name: str) -> None:
    text = texts(LARGE)[name]
    small, large = (_seconds(Sanitizer().text, text[:size]) / size for size in (SMALL, LARGE))
    assert large < SLOPE * small, f"{small * 1e6:.2f} and {large * 1e6:.2f} s/MB"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(ODD)])
def test_ordinary_text_costs_a_few_searches(name: str) -> None:
    text = texts(LARGE)["source code"] + texts(LARGE)[name]
    plain = _seconds(lambda given: len(_WORDS.findall(given)), text)
    assert _seconds(Sanitizer().text, text) < WORDS * plain


def _seconds(what: Callable[[str], object], text: str) -> float:
    """Processor time of the best of three: a busy machine lengthens single runs."""
    best = float("inf")
    for number in range(3):
        given = text + " " * number  # no run may use what another has kept
        started = time.process_time()
        what(given)
        best = min(best, time.process_time() - started)
    return best
