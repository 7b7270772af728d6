"""Lines of tens of thousands of characters, as in data and minified code: compared and merged in bounded time."""

from __future__ import annotations

import difflib
import json
import random

import pytest

from codeagent_lsp.workspace.edits.line_matching import likeness
from codeagent_lsp.workspace.edits.merge import merge

pytestmark = pytest.mark.timeout(60)


def data(length: int, letters: str = "abcdefgh ") -> str:
    chance = random.Random(length)
    return json.dumps({f"k{at}": "".join(chance.choices(letters, k=12)) for at in range(length // 22)})


@pytest.mark.parametrize("length", [60_000, pytest.param(400_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("formatted", [False, True])
def test_both_have_typed_into_one_line(length: int, formatted: bool) -> None:
    base = f"head\n{data(length)}\ntail\n"
    ours, theirs = base.replace('"k50"', '"K50x"'), base.replace('"k70"', '"k70 typed"').replace("tail", "end")
    merged = merge(base, ours, theirs, beside=True, formatted=formatted)
    assert len(merged.conflicts) == 1
    assert merged.text == theirs


def test_one_has_typed_into_a_line_and_one_below() -> None:
    base = f"head\n{data(60_000)}\ntail\n"
    ours, theirs = base.replace('"k50"', '"K50x"'), f"{base}more\n"
    merged = merge(base, ours, theirs, beside=True)
    assert (merged.conflicts, merged.text) == ((), f"{ours}more\n")


def test_short_texts_are_as_alike_as_difflib_says() -> None:
    for length in (0, 22, 200):
        for other in (data(length), data(length, "ijk"), data(2 * length), "x"):
            said = difflib.SequenceMatcher(None, data(length), other, autojunk=False).ratio()
            assert likeness(data(length), other) == said


@pytest.mark.slow
@pytest.mark.parametrize("length", [2_000, 20_000, 200_000])
def test_long_texts(length: int) -> None:
    text = data(length)
    assert likeness(text, text) == 1
    assert likeness(text, text.replace('"k5"', '"K5x"').replace('"k9"', "typed")) > 0.99
    assert likeness(text, data(length, "ijklmnop")) < 0.6
    assert likeness(text, "") == 0
