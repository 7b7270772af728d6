"""The words of an answer are shown while they come, its code is not, however it is cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.direct.solver import ProseFilter

REPLY = (
    "The sign is wrong.\n\nsrc/a.py\n```python\ndef f():\n    return 1\n```\nAnd\nb.py\n<<<<<<< SEARCH\nx\n=======\ny\n"
    ">>>>>>> REPLACE\nWRONG: x = 1\nRIGHT: x = 2\nthat is all"
)
SHOWN = "The sign is wrong.\nAnd\nthat is all\n"


def shown(pieces: list[str]) -> str:
    words = ProseFilter()
    return "".join(map(words.feed, pieces)) + words.close()


def test_words_without_code() -> None:
    assert shown([REPLY]) == SHOWN


@given(st.lists(st.integers(0, len(REPLY)), max_size=30))
def test_any_pieces_give_the_same(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(REPLY)]
    assert shown([REPLY[start:end] for start, end in pairwise(places)]) == SHOWN


@pytest.mark.parametrize("reply", ["```python\nx = 1", "```\n```\n", ""])
def test_nothing_of_code_that_has_no_end(reply: str) -> None:
    assert shown([reply]) == ""
