"""Where answers end: blocks of languages by indentation and by brackets, what follows, lines, tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.inline.completer import cut
from codeagent_lsp.inline.context import Place


def at(text: str, path: str = "x.py") -> Place:
    """The place of the mark in a text."""
    return Place(path, text.replace("‸", ""), text.index("‸"))


CASES = {
    "the rest of a line": ("x = ‸", "a + b\ny = 3\n", "a + b"),
    "a body": ("def f(a):‸", "\n    b = a\n    return b\n\ndef g():\n    pass\n", "\n    b = a\n    return b"),
    "a body on its own line": (
        "def f(a):\n    ‸",
        "b = a\n    if b:\n        b = 1\n    return b\n\n\ndef g():",
        "b = a\n    if b:\n        b = 1\n    return b",
    ),
    "what follows is not repeated": ("def f(a):\n    ‸\n    return b\n", "b = a\n    return b\n", "b = a"),
    "else belongs to if": (
        "    if a:‸",
        "\n        b()\n    else:\n        c()\n    d()\n",
        "\n        b()\n    else:\n        c()",
    ),
    "a closing brace": ("function f(a) {‸", "\n  return a;\n}\n\nfunction g() {\n", "\n  return a;\n}"),
    "a closing brace that is there": ("function f(a) {‸\n}\n", "\n  return a;\n}\n", "\n  return a;"),
    "the rest of the line is there": ("print(‸)", "a, b)\n", "a, b"),
    "a balanced call before a bracket": ("print(‸)", "f(a)", "f(a)"),
    "a quote that is there": ('x = "‸"', 'word"\n', "word"),
    "a semicolon that is there": ("x = ‸;", "a + b;\n", "a + b"),
    "mid-line is one line": ("f(‸, b)", "a\nmore", "a"),
    "a token": ("x = ‸", "1<|endoftext|>\n2", "1"),
    "what is not seen": ("x = ‸", "a \u202e+ b\n", "a"),
    "what is not seen at the end": ("x = ‸", "a\u200b<|endoftext|>", "a"),
    "what is not seen, mid-line": ("f(‸, b)", "a\u2066c", "a"),
    "an escape": ("def f():\n    ‸", "a()\n    b(\x1b[2J)\n    c()\n", "a()\n    b("),
    "an emoji of several": ("x = ‸", "'\U0001f468\u200d\U0001f469'\n", "'\U0001f468\u200d\U0001f469'"),
    "circles": ("def f():‸", "\n    a()\n    a()\n    a()\n    a()\n", "\n    a()\n    a()"),
    "nothing": ("def f():\n    ‸\n", "\n\n", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_the_end(name: str) -> None:
    text, answer, wanted = CASES[name]
    assert cut(at(text), f"{answer}\n", 20).text == wanted


def test_no_more_lines_than_wanted() -> None:
    answer = "".join(f"\n    a{n}()" for n in range(30))
    found = cut(at("def f():‸"), answer, 4)
    assert found.text.count("\n") == 3
    assert found.final


def test_line_breaks_are_those_of_the_text() -> None:
    assert cut(at("a = 1\r\ndef f():‸"), "\n    return 1\n\n", 9).text == "\r\n    return 1"


@pytest.mark.parametrize("name", CASES)
def test_the_end_is_seen_while_the_answer_comes(name: str) -> None:
    """Whatever size the pieces have: once an answer is said to be final, more of it changes nothing."""
    text, answer, wanted = CASES[name]
    place, answer = at(text), f"{answer}\n"
    for size in range(1, 6):
        for end in range(0, len(answer) + size, size):
            found = cut(place, answer[:end], 20)
            if found.final:
                assert found.text == wanted
                break


@given(
    st.text(alphabet="ab (){}\n\t:=.'\"<>é𝔘", max_size=60), st.text(alphabet="ab (){}\n\t:=;é𝔘", max_size=80), st.data()
)
def test_any_answer_at_any_place(text: str, answer: str, data: st.DataObject) -> None:
    place = Place("x.ts", text, data.draw(st.integers(0, len(text))))
    found = cut(place, answer, 5)
    assert found.text.count("\n") < 5
    assert found.text == found.text.rstrip() or place.line_after.strip()
    if place.line_after.strip():
        assert "\n" not in found.text
