"""A reply that gives only a part of the selected code, or has it twice, is told from one that rewrites it."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.thinned import is_doubled, left_away

# A file's ending, and two functions or blocks; `1` is what changes.
PIECES = (
    (
        "py",
        "def one(a):\n    check(a)\n    b = a + 1\n    save(b)\n    return b\n",
        "def two(a):\n    return more(a)\n",
    ),
    (
        "js",
        "function one(a) {\n  check(a);\n  const b = a + 1;\n  save(b);\n  return b;\n}\n",
        "function two(a) {\n  return more(a);\n}\n",
    ),
    (
        "java",
        "int one(int a) {\n    check(a);\n    int b = a + 1;\n    save(b);\n    return b;\n}\n",
        "int two(int a) {\n    return more(a);\n}\n",
    ),
    (
        "kt",
        "fun one(a: Int): Int {\n    check(a)\n    val b = a + 1\n    save(b)\n    return b\n}\n",
        "fun two() = 2\n",
    ),
    ("lua", "function one(a)\n  check(a)\n  local b = a + 1\n  save(b)\n  return b\nend\n", "function two()\nend\n"),
    (
        "css",
        ".first {\n  color: red;\n  margin: 0 auto;\n  width: 1px;\n  display: flex;\n}\n",
        ".two {\n  color: blue;\n  margin: 0 auto;\n  width: 3px;\n}\n",
    ),
)
ALL = pytest.mark.parametrize(("ending", "one", "two"), PIECES)
PLAIN = "count one up"


@ALL
def test_parts(ending: str, one: str, two: str) -> None:
    path, both, changed = f"a.{ending}", f"{one}\n{two}", one.replace("1", "2")
    lines = changed.splitlines(keepends=True)
    line = next(each for each in lines if "2" in each)
    head_and_line = lines[0] + line + (lines[-1] if ending != "py" else "")
    for selected, code in (
        (both, changed),
        (both, "".join(lines[:3])),
        (one, line),
        (one, "".join(lines[1:-1])),
        (one, head_and_line),
    ):
        assert left_away(path, selected, code, PLAIN), code
        assert not left_away(path, selected, code, "remove what is not needed")


@ALL
def test_rewritten(ending: str, one: str, two: str) -> None:
    path, both = f"a.{ending}", f"{one}\n{two}"
    changed = both.replace("1", "2")
    for code in (changed, f"{changed}\n{two.replace('two', 'three')}", one.replace("one", "another_name") + two):
        assert not left_away(path, both, code, PLAIN), code
        assert not is_doubled(both, code, PLAIN), code
    rows = one.splitlines(keepends=True)
    assert not left_away(path, one, rows[0] + "  whole_new_way(of, doing, it)\n" + rows[-1], PLAIN)
    assert not left_away(path, one, "".join((*rows[:1], *rows[2:])), PLAIN)


@ALL
def test_doubled(ending: str, one: str, two: str) -> None:
    changed = one.replace("1", "2")
    assert is_doubled(one, f"{changed}\n{changed}", PLAIN)
    assert is_doubled(one, f"{one}\n{changed}", PLAIN) or ending == "css"
    sign = {"py": "#", "lua": "--", "css": "/*"}.get(ending, "//")
    end = " */" if ending == "css" else ""
    line = next(each for each in one.splitlines() if "1" in each)
    assert is_doubled(line, f"{sign} Before{end}\n{line}\n\n{sign} After{end}\n{line.replace('1', '2')}\n", PLAIN)


def test_two_were_asked_for() -> None:
    assert not is_doubled("go();\n", "go();\ngo();\n", "call it twice")
    assert is_doubled("begin();\n", "begin(1);\nbegin(1);\n", PLAIN)


@pytest.mark.parametrize(
    ("selected", "code", "words"),
    [
        ("resp = get(url)\n", "try:\n    resp = get(url)\nexcept OSError:\n    resp = get(url)\n", "handle errors"),
        ("run(data)\n", "if data:\n    run(data)\nelse:\n    run(data)\n", "handle None"),
        ("print('abcde')\n", "print('abcde')\n" * 4, "print it four times"),
        ("int f(void)\n{\n}\n", "#ifdef A\nint f(void)\n{\n}\n#else\nint f(void)\n{\n}\n#endif\n", "two on windows"),
    ],
)
def test_a_statement_may_come_twice(selected: str, code: str, words: str) -> None:
    assert not is_doubled(selected, code, words)


@pytest.mark.parametrize("words", ["use pathlib", "resolve the conflict", "enable the test", "no debug output"])
def test_ways_to_ask_for_less(words: str) -> None:
    old = "import os\nimport sys\n\na = os.path.join(b, c)\nd = a\nprint(d)\nprint(a)\n"
    assert not left_away("a.py", old, "a = b.joinpath(c)\n", words)


def test_names_of_heads_that_are_written_in_another_way() -> None:
    old = "class A {\n    public Data(\n        int one, int two) {\n        this.one = one;\n    }\n}\n"
    new = "class A {\n    public Data(int one, int two) {\n        this.one = one;\n    }\n}\n"
    assert not left_away("A.java", old, new, PLAIN)
    assert not is_doubled('#[cfg(a = "b")]\nfn f() {}\n', '#[cfg(a = "b")]\n#[cfg(a = "c")]\nfn f() {}\n', PLAIN)
