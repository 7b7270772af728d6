"""The lines that are asked about one by one: code that may be wrong, likeliest first, each of them only once there."""

from __future__ import annotations

from codeagent_lsp.direct.gathering import MOST_SUSPECTS, suspects
from codeagent_lsp.direct.material import Hints
from codeagent_lsp.tools.code.source import SourceFile, source_of

CODE = '''import math

LIMIT = 3


def area(radius, scale=1):
    """The area of a circle.

    scale * 2 is for documentation.
    """
    # radius + 1 would be wrong
    size = math.pi * radius
    if radius < 0:
        raise ValueError(radius)
    else:
        size = size * scale
    total = 0
    note = (
        "size < 0"
    )
    return size, total


def other(values):
    total = 0
    return values[0] + 1
'''


def source(text: str = CODE, path: str = "a.py") -> SourceFile:
    found = source_of(path, text)
    assert found is not None
    return found


def test_code_of_the_function_that_is_meant_operators_first() -> None:
    found = suspects(source(), Hints(frozenset(("area",))))
    assert found[0] == "if radius < 0:"
    assert set(found) == {
        "def area(radius, scale=1):",
        "size = math.pi * radius",
        "if radius < 0:",
        "raise ValueError(radius)",
        "size = size * scale",
        "note = (",
        "return size, total",
    }


def test_a_line_in_a_traceback_comes_first() -> None:
    at = CODE.splitlines().index("        raise ValueError(radius)") + 1
    assert suspects(source(), Hints(frozenset(("area",)), lines={"a.py": {at}}))[0] == "raise ValueError(radius)"


def test_where_nothing_is_meant_all_functions_are() -> None:
    assert "return values[0] + 1" in suspects(source(), Hints())


def test_no_more_than_can_be_asked() -> None:
    body = "".join(f"    x{number} = {number} + a\n" for number in range(100))
    assert len(suspects(source(f"def many(a):\n{body}"), Hints())) == MOST_SUSPECTS


def test_other_languages() -> None:
    text = "function near(a, b) {\n  // a < b\n  if (a > b) {\n    return a - b;\n  }\n  return `a > b`;\n}\n"
    assert suspects(source(text, "a.js"), Hints()) == ("if (a > b) {", "return a - b;", "return `a > b`;")
