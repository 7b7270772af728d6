"""What of an answer to a quick action is code: one fenced block, and nothing else."""

from __future__ import annotations

import random

import pytest

from codeagent_lsp.direct.fences import CUT, DIFF, ELISION, NO_FENCE, SEVERAL, WORDS, grammar, read_envelope
from tests.direct.prose_replies import prose_replies

SELECTED = {
    "python": "def area(width, height):\n    if width < 0:\n        raise ValueError\n    return width * height\n",
    "typescript": "export function area(width: number, height: number): number {\n  return width * height;\n}\n",
    "go": "func Area(w, h int) int {\n\tif w < 0 {\n\t\treturn 0\n\t}\n\treturn w * h\n}\n",
    "rust": "fn area(w: u32, h: u32) -> u32 {\n    w * h\n}\n",
    "shell": 'area() {\n  echo "$(( $1 * $2 ))"\n}\n',
    "yaml": "jobs:\n  build:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n",
    "sql": "SELECT name, total FROM orders WHERE total > 10 ORDER BY total;\n",
    "css": ".area {\n  width: 10px;\n  color: red;\n}\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("language", SELECTED)
def test_prose_is_never_code(language: str) -> None:
    selected = SELECTED[language]
    for reply in prose_replies(selected, 700, seed=len(language)):
        found = read_envelope(reply, selected)
        assert found.code is None, reply
        assert found.problem or found.declined


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", NO_FENCE),
        ("The code looks fine to me", NO_FENCE),
        ("抱歉，我无法修改这段代码。", NO_FENCE),
        ("Error: rate limit exceeded", NO_FENCE),
        ("def area(w, h):\n    return w * h\n", NO_FENCE),
        ("```\n\n```", NO_FENCE),
        ("```python\ndef area(width", CUT),
        ("~~~\nx = 1\n```", CUT),
        ("```\nx = 1\n```\nor\n```\nx = 2\n```", SEVERAL),
        ("```diff\n-x = 1\n+x = 2\n```", DIFF),
        ("```\n-    return width\n+    return height\n```", DIFF),
        ("```\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n```", DIFF),
        ("```\nSorry, that is not possible here.\n```", WORDS),
        ("```python\ndef area(width, height):\n    # ... rest of the code unchanged\n```", ELISION),
        ("```python\ndef area(width, height):\n    # existing code\n    return 1\n```", ELISION),
    ],
)
def test_what_is_refused_says_why(reply: str, problem: str) -> None:
    found = read_envelope(reply, SELECTED["python"])
    assert (found.code, found.problem, found.declined) == (None, problem, "")


@pytest.mark.parametrize(
    "reply",
    [
        "NO CHANGE: it is right",
        "**No change:** it is right",
        "no change - it is right",
        "```\nNO CHANGE: it is right\n```",
    ],
)
def test_a_reason_for_no_change(reply: str) -> None:
    found = read_envelope(reply, SELECTED["python"])
    assert (found.code, found.problem, found.declined.rstrip("\n`")) == (None, "", "it is right")


def test_words_around_one_block_are_prose() -> None:
    found = read_envelope("Sure:\n```python\nx = 1\n```\nI set x.", "x = 0\n")
    assert (found.code, found.prose, found.problem) == ("x = 1\n", "Sure:\nI set x.", "")


def test_code_with_much_documentation_is_code() -> None:
    documented = (
        'def area(width, height):\n    """Return the area of a room.\n\n' + "    The room is as wide as told.\n" * 20
    )
    reply = f'```python\n{documented}    """\n    return width * height\n```'
    assert read_envelope(reply, SELECTED["python"]).code is not None


@pytest.mark.parametrize("selected", ["# Title\n\nThis text is long and plain.\n", "Some words of a letter.\n"])
def test_prose_may_replace_prose(selected: str) -> None:
    assert (
        read_envelope("```\nOther words of the same letter.\n```", selected).code == "Other words of the same letter.\n"
    )


def test_a_diff_may_replace_a_diff() -> None:
    selected = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"
    assert read_envelope(f"```\n{selected.replace('+b', '+c')}```", selected).code is not None


def test_any_text_is_read_without_an_error() -> None:
    dice = random.Random(3)
    pieces = ["```", "~~~", "\n", "NO CHANGE:", "def f():", "    return 1", "+", "-", "@@ -1", "字", "# ...", " "]
    for _ in range(3000):
        read_envelope("".join(dice.choices(pieces, k=dice.randint(0, 12))), "".join(dice.choices(pieces, k=3)))


def test_the_grammar_has_the_fence() -> None:
    assert grammar("````").count('"````"') == 2 and '"```" [^`' in grammar("````")
