"""Search and replace blocks are about whole lines: what they delete leaves no empty line behind, and no line matches
inside a longer one.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.direct.answer import Answer, Files, read_answer
from codeagent_lsp.errors import EditRefused
from codeagent_lsp.workspace.edits.match import replace


def answered(text: str, old: str, new: str, path: str = "a.txt") -> Answer:
    reply = f"{path}\n```\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n"
    return read_answer(reply, Files({path: text}), "blocks")


@given(
    st.lists(st.sampled_from(["  a", "b", "\tc", "", "d  "]), min_size=2, max_size=8),
    st.data(),
    st.sampled_from(["\n", "\r\n"]),
)
def test_deleted_lines_are_gone(kinds: list[str], data: st.DataObject, newline: str) -> None:
    lines = [f"{kind}{number}" if kind else "" for number, kind in enumerate(kinds)]
    start = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(start + 1, len(lines)))
    gone, rest = lines[start:end], lines[:start] + lines[end:]
    if not any(rest) or not (gone[0] and gone[-1]):  # a block of nothing, or of blank lines at its ends, has no place
        return
    found = answered("".join(line + newline for line in lines), "".join(f"{line}\n" for line in gone), "")
    assert found.texts == {"a.txt": "".join(line + newline for line in rest)}, found.problem


@pytest.mark.parametrize(
    ("text", "old", "wanted"),
    [
        ("max = 1\nz = 10\n", "x = 1\n", None),
        ("x = 10\n", "x = 1\n", None),
        ("font_size = 1\n", "size = 1\n", None),
        ("max = 1\nx = 1\nx = 10\n", "x = 1\n", "max = 1\nNEW\nx = 10\n"),
        ("a\n  x = 1\n", "x = 1\n", "a\n  NEW\n"),
        ("f(x = 1)\n", "x = 1\n", "f(NEW)\n"),
        ("标题甲乙\n", "标题\n", "NEW甲乙\n"),
    ],
)
def test_a_line_is_not_found_inside_a_word(text: str, old: str, wanted: str | None) -> None:
    found = answered(text, old, "NEW\n")
    assert found.texts == ({} if wanted is None else {"a.txt": wanted})


def test_an_edit_of_lines_does_not_begin_inside_a_word() -> None:
    with pytest.raises(EditRefused):
        replace("xy = 2\ny = 20\n", "y = 2\n", "y = 3\n")
    with pytest.raises(EditRefused, match=r"2 times|several|more than once|lines"):
        replace("xy = 2\ny = 2\n", "y = 2\n", "y = 3\n")
