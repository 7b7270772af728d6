"""Answers of one line: read as they come, also when more comes with them."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.answer import as_pair, line_pair

WRONG = "if first > second:"


@pytest.mark.parametrize(
    "reply",
    [
        "if first < second:",
        "`if first < second:`",
        "RIGHT: if first < second:",
        "Corrected line: `if first < second:`",
        "WRONG: if first > second:\nRIGHT: if first < second:",
        "```python\nif first < second:\n```",
        "```python\ndef near(first, second):\n    if first < second:\n        return True\n```",
    ],
)
def test_the_line_that_was_asked_for(reply: str) -> None:
    assert line_pair(as_pair(WRONG, reply)) == (WRONG, "if first < second:")


def test_no_line_at_all() -> None:
    assert line_pair(as_pair(WRONG, "")) == (WRONG, "")
