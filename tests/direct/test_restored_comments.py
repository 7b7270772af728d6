"""Comments between lines that a reply keeps stay; others go."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.restoring import with_comments

# A file's ending, the sign of a comment, and code around its place with `1` for what changes.
PIECES = (
    ("py", "    # {}\n", "def f(a):\n    b = a + 1\n", "    check(b)\n    return b\n"),
    ("js", "  // {}\n", "function f(a) {\n  const b = a + 1;\n", "  check(b);\n  return b;\n}\n"),
    ("c", "\t/* {} */\n", "int f(int a)\n{\n\tint b = a + 1;\n", "\tcheck(b);\n\treturn b;\n}\n"),
    ("kt", "    // {}\n", "fun f(a: Int): Int {\n    val b = a + 1\n", "    check(b)\n    return b\n}\n"),
    ("lua", "  -- {}\n", "function f(a)\n  local b = a + 1\n", "  check(b)\n  return b\nend\n"),
    ("sql", "-- {}\n", "SELECT a + 1\n", "FROM b\nWHERE c;\n"),
    ("css", "  /* {} */\n", ".a {\n  width: 1px;\n", "  color: red;\n}\n"),
    ("html", "  <!-- {} -->\n", '<p id="1">\n', "  <b>a</b>\n</p>\n"),
    ("yaml", "# {}\n", "a: 1\n", "b: c\n"),
)
ALL = pytest.mark.parametrize(("ending", "sign", "above", "below"), PIECES)
SAID = "All of them count here."


@ALL
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_stays(ending: str, sign: str, above: str, below: str, ends: str) -> None:
    path, between = f"a.{ending}", "  same\n" if ending != "py" else "    same\n"
    before = (above + between + sign.format(SAID) + below).replace("\n", ends)
    after = before.replace("1", "2").replace(sign.format(SAID).replace("\n", ends), "")
    assert with_comments(path, before, after, "count two") == before.replace("1", "2")
    # Asked for, or the only change.
    assert with_comments(path, before, after, "remove the comments") == after
    assert with_comments(path, before, after.replace("2", "1"), "tidy it up") == after.replace("2", "1")


@ALL
@pytest.mark.parametrize("said", ["TODO: count all of them", "b = f(a); g(c)", "----"])
def test_goes(ending: str, sign: str, above: str, below: str, said: str) -> None:
    before = above + "  same\n" + sign.format(said) + below
    after = before.replace("1", "2").replace(sign.format(said), "")
    assert with_comments(f"a.{ending}", before, after, "count two") == after


@ALL
def test_the_line_below_changes(ending: str, sign: str, above: str, below: str) -> None:
    rows = below.splitlines(keepends=True)
    before = above + sign.format(SAID) + below
    after = above.replace("1", "2") + "  something else\n" + "".join(rows[1:])
    assert with_comments(f"a.{ending}", before, after, "count two") == after


def test_said_in_other_words_or_moved() -> None:
    before = "a = 1\n# All of them count here.\nb = 2\nc = 3\n"
    for after in ("a = 2\n# Each of them counts.\nb = 2\nc = 3\n", "a = 2\nb = 2\n# All of them count here.\nc = 3\n"):
        assert with_comments("a.py", before, after, "count two") == after


KEPT_OUT = (
    ("a.c", "int a;\n#ifdef WIN\nint b;\n#endif\nint c = 1;\n", "int a;\nint b;\nint c = 2;\n"),
    ("a.py", "s = '''\n# this is text here\nabc\n'''\nb = 1\n", "s = '''\nabc\n'''\nb = 2\n"),
    (
        "a.py",
        "a = 1\n# The file is closed by the caller.\nb = 2\n",
        "# The file is closed by its caller.\na = 3\nb = 2\n",
    ),
)


@pytest.mark.parametrize(("path", "before", "after"), KEPT_OUT)
def test_what_is_no_comment_or_said_elsewhere(path: str, before: str, after: str) -> None:
    assert with_comments(path, before, after, "count two") == after
