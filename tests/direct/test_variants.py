"""Small changes of code: what a small fault has changed is among the changes that are tried."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.material import functions_of
from codeagent_lsp.direct.variants import Variant, variants
from codeagent_lsp.tools.code.source import source_of

MANY = 1000
PYTHON = (
    "def window(items, size, pad=None):\n"
    '    """The last `size` items, 3 at least; not a > b."""\n'
    "    start = max(0, len(items) - size)\n"
    "    if size <= 0 and pad is not None:\n"
    "        return []\n"
    "    found = [item for item in items[start:] if item != pad]\n"
    "    total = 0\n"
    "    total += size\n"
    "    size //= 2\n"
    "    if not (0 < size < 9) or not even(size):\n"
    "        return not ready(found)\n"
    "    while not done(found, size):\n"
    "        found.append(pad)\n"
    "    return found if ready else pad\n"
)
FAULTS = {
    "comparison": ("size <= 0", "size < 0"),
    "equality": ("item != pad", "item == pad"),
    "identity": ("pad is not None", "pad is None"),
    "logic": ("<= 0 and pad", "<= 0 or pad"),
    "arithmetic": ("len(items) - size", "len(items) + size"),
    "constant": ("max(0,", "max(1,"),
    "name of a pair": ("max(0", "min(0"),
    "dropped not": ("not done(", "done("),
    "operand left out": ("len(items) - size", "len(items)"),
    "one too many": ("items[start:]", "items[start + 1:]"),
    "order of arguments": ("done(found, size)", "done(size, found)"),
    "bound of a slice": ("items[start:]", "items[:]"),
    "plain assignment": ("total += size", "total = size"),
    "plain assignment, of a quotient": ("size //= 2", "size = 2"),
    "dropped not, of two comparisons": ("not (0 < size < 9)", "0 < size < 9"),
    "dropped not, of a side": ("or not even(size)", "or even(size)"),
    "dropped not, of an answer": ("return not ready(found)", "return ready(found)"),
    "another variable": ("items[start:]", "items[size:]"),
    "branches": ("found if ready else pad", "pad if ready else found"),
    "condition": ("if ready else", "if not ready else"),
}
# What is left out would have to be invented.
GONE = {"operand left out"}
OTHERS = {
    "a.ts": (
        "function at(items: Array<number>, n: number): number {\n  if (n >= 0 && n < items.length) {\n"
        "    return items[n - 1];\n  }\n  return Math.min(n, 7);\n}\n"
    ),
    "a.js": "function f(a, b) {\n  while (a !== b) { a += 2; }\n  return !a ? a : b;\n}\n",
    "a.go": "package a\n\nfunc F(a, b int) bool {\n\tif a == b || a > 3 {\n\t\treturn true\n\t}\n\treturn a-b < 0\n}\n",
    "A.java": "class A {\n  int f(int a, int b) {\n    if (a < b) { return a * 2; }\n    return b % 3;\n  }\n}\n",
    "a.rs": "fn f(a: i32, b: i32) -> bool {\n  if a <= b && b != 4 {\n    return false;\n  }\n  a + b > 1\n}\n",
    "a.c": "int f(int a, int b) {\n  if (a >= b) return a - 1;\n  return a << 2;\n}\n",
    "a.rb": "def f(a, b)\n  return a if a == b\n  a > 2 ? b : a\nend\n",
    "a.php": "<?php\nfunction f($a, $b) {\n  if ($a === $b || $a > 2) { return true; }\n  return $a + 1 < $b;\n}\n",
}


def of(path: str, text: str) -> tuple[Variant, ...]:
    """The changes of the first function of a text."""
    source = source_of(path, text)
    assert source is not None
    return variants(source, functions_of(source)[:1], (), MANY)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_taken_back(kind: str) -> None:
    right, wrong = FAULTS[kind]
    assert right in PYTHON
    faulty = PYTHON.replace(right, wrong, 1)
    found = [made for made in of("a.py", faulty) if made.text == PYTHON]
    assert len(found) == (kind not in GONE)
    for made in found:
        lines = faulty.splitlines(), PYTHON.splitlines()
        assert [made.before, made.after] == [each[made.line - 1].strip() for each in lines]


@pytest.mark.slow
@pytest.mark.parametrize("path", OTHERS)
def test_what_is_changed_comes_back_in_other_languages(path: str) -> None:
    """Each change of an operator, a constant or a truth value is taken back by one of the changes of what it made."""
    text = OTHERS[path]
    made = [each for each in of(path, text) if len(each.text) - len(text) in (-1, 0, 1)][:25]
    assert len(made) >= 5
    back = [each for each in made if any(again.text == text for again in of(path, each.text))]
    assert len(back) >= 0.6 * len(made), [each.after for each in made if each not in back]


@pytest.mark.parametrize("path", ["a.py", *OTHERS])
def test_words_and_types_stay(path: str) -> None:
    text = PYTHON if path == "a.py" else OTHERS[path]
    made = of(path, text)
    assert len({each.text for each in made}) == len(made), "twice the same"
    assert text not in {each.text for each in made}
    kept = [words for words in ('at least; not a > b."""', "Array<number>", "(a: i32, b: i32)") if words in text]
    assert not [each for each in made if not all(words in each.text for words in kept)]
    for each in made:
        assert each.text.count("\n") == text.count("\n")


@pytest.mark.slow
def test_likely_changes_come_first_and_no_more_than_are_wanted() -> None:
    source = source_of("a.py", PYTHON)
    assert source is not None
    made = variants(source, functions_of(source), (), MANY)
    assert [each.likely for each in made] == sorted((each.likely for each in made), reverse=True)
    assert variants(source, functions_of(source), (), 7) == made[:7]
    long = "def f(a):\n    return " + " + ".join(["a"] * 1500) + "\n"
    deep = source_of("a.py", long)
    assert deep is not None
    assert len(variants(deep, functions_of(deep), (), 7)) == 7
    traced = variants(source, functions_of(source), {6}, MANY)
    assert traced[0].line == 6 != made[0].line
    assert {each.text for each in traced} == {each.text for each in made}
