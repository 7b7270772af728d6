"""From a model's reply to new code in the file, whatever the model wrapped around it."""

from __future__ import annotations

import pytest

from codeagent_lsp.agent.replacement import replaced
from codeagent_lsp.direct.fences import read_envelope
from codeagent_lsp.index.indentation import in_style

CLASS = "import os\n\n\nclass A:\n    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n"
ONE = "    def one(self):\n        return 1\n"
NEW = "    def one(self):\n        x = 1\n        return x\n"


def put(text: str, selected: str, reply: str) -> str:
    """The selection in `text` replaced; everything outside must be as it was."""
    start = text.index(selected)
    new = replaced(text, start, start + len(selected), code_of(reply, selected))
    assert new.startswith(text[:start])
    assert new.endswith(text[start + len(selected) :])
    return new[start : len(new) - (len(text) - start - len(selected))]


def code_of(reply: str, selected: str) -> str:
    found = read_envelope(reply, selected)
    assert found.code is not None, found
    return found.code


def fenced(code: str, language: str = "python") -> str:
    return f"```{language}\n{code.strip(chr(10))}\n```"


# --- which part of a reply is code

REPLIES = {
    "fenced": fenced(NEW),
    "without a language": fenced(NEW, ""),
    "tildes": f"~~~\n{NEW}~~~",
    "long fence": f"````python\n{NEW}````",
    "indented fence": f"  ```python\n{NEW}  ```",
    "CRLF": fenced(NEW).replace("\n", "\r\n"),
    "explained": f"Sure! Here is the code:\n\n{fenced(NEW)}\n\nI added a variable.",
    "tags": fenced(f"<selection>\n{NEW}</selection>"),
    "tags in the line": fenced(f"<selection>{NEW}</selection>"),
    "dedented": fenced("def one(self):\n    x = 1\n    return x"),
    "first line dedented": fenced("def one(self):\n        x = 1\n        return x"),
    "too deep": fenced("        def one(self):\n            x = 1\n            return x"),
    "tabs": fenced("def one(self):\n\tx = 1\n\treturn x"),
    "blank lines around": f"```\n\n\n{NEW}\n\n```",
    "with the line before": fenced("class A:\n" + NEW),
    "with the lines after": fenced(NEW + "\n    def two(self):\n        return 2\n"),
    "the whole class": fenced("class A:\n" + NEW + "\n    def two(self):\n        return 2\n"),
    "the whole file": fenced("import os\n\n\nclass A:\n" + NEW + "\n    def two(self):\n        return 2\n"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_every_reply_gives_the_same_code(name: str) -> None:
    assert put(CLASS, ONE, REPLIES[name]) == NEW


@pytest.mark.parametrize("name", REPLIES)
def test_a_selection_that_begins_behind_the_indentation(name: str) -> None:
    assert put(CLASS, ONE[4:], REPLIES[name]) == NEW[4:]


@pytest.mark.parametrize("name", REPLIES)
def test_a_selection_without_its_last_line_end(name: str) -> None:
    assert put(CLASS, ONE[:-1], REPLIES[name]) == NEW[:-1]


@pytest.mark.parametrize("name", REPLIES)
def test_line_ends_stay_those_of_the_file(name: str) -> None:
    crlf, selected = CLASS.replace("\n", "\r\n"), ONE.replace("\n", "\r\n")
    assert put(crlf, selected, REPLIES[name]) == NEW.replace("\n", "\r\n")


def test_code_that_holds_fences_keeps_them() -> None:
    text = "# Title\n\nText\n\n```sh\nls\n```\n\nEnd\n"
    selected = "Text\n\n```sh\nls\n```\n"
    reply = "````markdown\nBetter\n\n```sh\nls -l\n```\n````\nDone."
    assert put(text, selected, reply) == "Better\n\n```sh\nls -l\n```\n"
    assert put(text, selected, reply.replace("````", "```")) == "Better\n\n```sh\nls -l\n```\n"


# --- lines around that are repeated, and lines that only look so


def test_a_body_that_comes_back_with_its_head() -> None:
    text = "def area(width, height):\n    return width * height\n\nprint(area(1, 2))\n"
    reply = fenced("def area(width, height):\n    if width < 0:\n        raise ValueError\n    return width * height")
    expected = "    if width < 0:\n        raise ValueError\n    return width * height\n"
    assert put(text, "    return width * height\n", reply) == expected


def test_braces_that_belong_to_the_surroundings_go_and_own_ones_stay() -> None:
    text = "void run() {\n  step(1);\n}\n\nvoid stop() {\n}\n"
    assert put(text, "  step(1);\n", fenced("void run() {\n  step(2);\n}")) == "  step(2);\n"
    assert put(text, "  step(1);\n", fenced("  step(2);\n}")) == "  step(2);\n"
    assert put(text, "  step(1);\n", fenced("  if (x) {\n    step(2);\n  }")) == "  if (x) {\n    step(2);\n  }\n"
    whole = "void run() {\n  step(1);\n}\n"
    assert put(text, whole, fenced("void run() {\n  step(2);\n}")) == "void run() {\n  step(2);\n}\n"


def test_equal_lines_that_belong_to_the_selection_stay() -> None:
    text = "increment()\nincrement()\nshow_value()\nincrement()\n"
    start = len("increment()\n")
    end = start + len("increment()\nshow_value()\n")
    new = replaced(text, start, end, "increment()\nshow_value(2)\n")
    assert new == "increment()\nincrement()\nshow_value(2)\nincrement()\n"


def test_a_reply_is_never_stripped_to_nothing() -> None:
    text = "initialise()\nold()\nfinalise()\n"
    assert put(text, "old()\n", fenced("initialise()")) == "initialise()\n"


def test_deleting_to_one_line_and_growing_from_one() -> None:
    text = "if a:\n    x = 1\n    y = 2\nend\n"
    assert put(text, "    x = 1\n    y = 2\n", fenced("x, y = 1, 2")) == "    x, y = 1, 2\n"
    grown = "    if b:\n        x = 1\n"
    assert put(text, "    x = 1\n", fenced("if b:\n    x = 1")) == grown
    assert put(text, "    x = 1\n", fenced(grown)) == grown
    assert put(text, "    x = 1\n", fenced("x = 1\nz = 3")) == "    x = 1\n    z = 3\n"


# --- parts of a line


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("```\nfetch(2)\n```", "fetch(2)"),
        ("```\nresult = fetch(2)\n```", "fetch(2)"),
        ("```\nresult = fetch(2) or None\n```", "fetch(2)"),
        ("```\n    result = fetch(2) or None\n```", "fetch(2)"),
        ("```\n  fetch(2)  \n```", "fetch(2)"),
    ],
)
def test_a_part_of_a_line_stays_a_part_of_a_line(reply: str, expected: str) -> None:
    assert put("def f():\n    result = fetch(1) or None\n", "fetch(1)", reply) == expected


def test_an_empty_selection_is_an_insertion() -> None:
    text = "def f():\n    \n    return 1\n"
    place = text.index("    \n") + 4
    assert replaced(text, place, place, "x = 1\ny = 2") == "def f():\n    x = 1\n    y = 2\n    return 1\n"
    assert replaced("a = \n", 4, 4, "1\n") == "a = 1\n"
    assert replaced("", 0, 0, "x = 1") == "x = 1"


def test_blank_lines_at_the_ends_of_a_selection_stay() -> None:
    text = "a()\n\n\nb()\n\n\nc()\n"
    assert put(text, "\n\nb()\n\n\n", fenced("d()")) == "\n\nd()\n\n\n"


def test_a_file_without_a_last_line_end_stays_so() -> None:
    assert replaced("a\nb", 2, 3, "c\nd") == "a\nc\nd"


# --- tabs and blanks


def test_a_file_with_tabs_gets_tabs() -> None:
    text = "func a() {\n\tif x {\n\t\ty()\n\t}\n}\n"
    reply = fenced("    if x {\n        z()\n    }", "go")
    assert put(text, "\tif x {\n\t\ty()\n\t}\n", reply) == "\tif x {\n\t\tz()\n\t}\n"
    assert put(text, "\tif x {\n\t\ty()\n\t}\n", fenced("if x {\n\tz()\n}")) == "\tif x {\n\t\tz()\n\t}\n"


def test_style_is_left_alone_where_the_file_has_both_or_none() -> None:
    assert in_style("\tx", "a\nb") == "\tx"
    assert in_style("    x", "\ta\n    b") == "    x"
    assert in_style("\tx\n\t\ty", "if:\n  a") == "  x\n    y"


def test_two_blanks_and_deep_places() -> None:
    text = "a {\n  b {\n    c {\n      d;\n    }\n  }\n}\n"
    assert put(text, "    c {\n      d;\n    }\n", fenced("c {\n  e;\n}")) == "    c {\n      e;\n    }\n"
    assert put(text, "    c {\n      d;\n    }\n", fenced("c {\n      e;\n    }")) == "    c {\n      e;\n    }\n"


def test_wide_characters_and_blank_lines_inside() -> None:
    text = "def f():\n    s = '🎉'\n\n    return s\n"
    body = "    s = '🎉🎉'\n\n    return s\n"
    assert put(text, "    s = '🎉'\n\n    return s\n", fenced("s = '🎉🎉'\n\nreturn s")) == body


# --- what the selection itself has is code

PAGE = "<page>\n  <selection>\n    <item>1</item>\n  </selection>\n</page>\n"
ELEMENT = "  <selection>\n    <item>1</item>\n  </selection>\n"
CHANGED = ELEMENT.replace("1", "2")
TAGGED = {
    "as it is": CHANGED,
    "wrapped": f"<selection>\n{CHANGED}</selection>\n",
    "dedented": "<selection>\n  <item>2</item>\n</selection>\n",
    "dedented, wrapped": "<selection>\n<selection>\n  <item>2</item>\n</selection>\n</selection>\n",
}


@pytest.mark.parametrize("name", TAGGED)
def test_an_element_of_the_name_of_our_tag_is_code(name: str) -> None:
    assert replaced(PAGE, PAGE.index(ELEMENT), PAGE.index(ELEMENT) + len(ELEMENT), TAGGED[name], "a.xml") == (
        PAGE.replace("1", "2")
    )


def test_our_tag_in_a_string_is_code() -> None:
    text = 'OPEN = "<selection>"\nCLOSE = "</selection>"\n'
    new = text.replace("OPEN", "BEGIN")
    assert replaced(text, 0, len(text), new, "a.py") == new
    assert replaced(text, 0, len(text), f"<selection>\n{new}</selection>", "a.py") == new
    one = "x = 1\n"
    assert replaced(one, 0, len(one), 'x = "<selection> </selection>"\n', "a.py") == 'x = "<selection> </selection>"\n'


def test_a_selection_inside_a_string_stays_as_it_is_given() -> None:
    text = 'q = """\n    SELECT 1\n    FROM t\n"""\n'
    start, end = text.index("    SELECT"), text.index('"""\n', 8)
    given = "  SELECT 2\nFROM t\n"
    assert replaced(text, start, end, given, "a.py") == text[:start] + given + text[end:]


# --- files of every kind: «…» is the selection

SHAPES = {
    "a mapping in a list": (
        "ci.yml",
        "steps:\n«  - uses: a/b@v1\n    with:\n      x: 1»\n  - run: y\n",
        "- uses: a/b@v2\n  with:\n    x: 1\n",
        "  - uses: a/b@v2\n    with:\n      x: 1",
    ),
    "an anchor": ("c.yml", "a:\n«  c: &x\n    d: 1»\n", "c: &x\n  d: 2\n", "  c: &x\n    d: 2"),
    "a comment behind the head": (
        "a.nim",
        "proc f() =\n«  if a: # note\n    b()»\n",
        "if a: # note\n  b(2)\n",
        "  if a: # note\n    b(2)",
    ),
    "head and end by words": (
        "a.lua",
        "function compute()\n«  old()\n»end\n",
        "function compute()\n  new()\nend\n",
        "  new()\n",
    ),
    "a short head": (
        "a.go",
        "package a\n\nfunc f() {\n\tif ok {\n«\t\told()\n»\t}\n}\n",
        "if ok {\n\tnew()\n}\n",
        "\t\tnew()\n",
    ),
    "tags": ("a.xyz", "<div>\n«  <b>old</b>\n»</div>\n", "<div>\n  <b>new</b>\n</div>\n", "  <b>new</b>\n"),
    "lines before one": ("a.js", "a();\n«»b();\n", "// note\n", "// note\n"),
    "lines before one that is indented": ("a.yaml", "a:\n  «»b: 1\n", "c: 2\n", "c: 2\n  "),
    "a sign in a text": (
        "a.yaml",
        "a:\n«  b: 1»\ng: 1\n",
        'b: "use ` here"\nc:\n  d: 1\ne: "and ` there"\nf: 2\n',
        '  b: "use ` here"\n  c:\n    d: 1\n  e: "and ` there"\n  f: 2',
    ),
    "a fence in a list": (
        "a.md",
        "- a\n\n«  text»\n",
        "```py\ndef f():\n    x\n```\n",
        "  ```py\n  def f():\n      x\n  ```",
    ),
    "a sign after a part of a line": ("a.js", "  f(«b(1)»);\n", "    b(2)\n", "b(2)"),
    "the end of a statement": ("a.js", "f() {\n    «b(1)»;\n}\n", "    b(2);\n", "b(2)"),
    "the end of an item": ("a.py", "x = [\n    «b(1)»,\n]\n", "b(2),\n", "b(2)"),
    "a bracket of its own": ("a.js", "f(«x»)\n", "g(x)\n", "g(x)"),
    "a list of lists": ("a.hs", "f =\n«  1»\n", "g [[1, 2],\n  [3]]\nh\n", "  g [[1, 2],\n    [3]]\n  h"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_files_of_every_kind(name: str) -> None:
    path, marked, given, wanted = SHAPES[name]
    start, end = marked.index("«"), marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    assert replaced(text, start, end, given, path) == text[:start] + wanted + text[end:]


NESTED = """\
class A {
    f() {
        const a = 1;
        if (a) {
            b(2);
        }
        return 3;
    }

    g() {
        return 4;
    }
}
"""


@pytest.mark.parametrize("unit", ["    ", "  ", "\t"])
def test_from_inside_a_line_to_any_later_end(unit: str) -> None:
    text = NESTED.replace("    ", unit)
    lines = text.splitlines(keepends=True)
    for first, line in enumerate(lines):
        for last in range(first + 1, len(lines)):
            selected = line.lstrip() + "".join(lines[first + 1 : last + 1])
            digit = next((each for each in "1234" if each in selected), "")
            if not line.strip() or not lines[last].strip() or not digit:
                continue
            start = len("".join(lines[:first])) + len(line) - len(line.lstrip())
            done = replaced(text, start, start + len(selected), selected.replace(digit, "7"), "a.ts")
            assert done == text[:start] + selected.replace(digit, "7") + text[start + len(selected) :]


WITH_LITERAL = "    if x:\n        n = 41\n        s = '''\nSELECT 1\n  x\n'''\n        return s + n\n"
REPLACED_LINE = {
    **{
        path: (WITH_LITERAL, WITH_LITERAL.replace("\n    ", "\n").removeprefix("    "))
        for path in ("a.bzl", "a.pyx", "BUILD", "SConstruct", "Tiltfile", "Snakefile", "a.gd", "a.nim", "a.py.j2", "x")
    },
    "a.tcl": ('    set n 41\n    set s "a\nb\n  c"\n', 'set n 41\nset s "a\nb\n  c"\n'),
    "a.gleam": ('    let n = 41\n    let s = "a\nb\n  c"\n', 'let n = 41\nlet s = "a\nb\n  c"\n'),
    "a.hx": ('    var n = 41;\n    var s = "a\nb\n  c";\n', 'var n = 41;\nvar s = "a\nb\n  c";\n'),
    "a.cr": (
        "  def f\n    n = 41\n    s = <<-SQL\n  SELECT 1\n x\n  SQL\n  end\n",
        "def f\n  n = 41\n  s = <<-SQL\nSELECT 1\n x\nSQL\nend\n",
    ),
    "Makefile": ('\tcc 41 \\\n\t  -o x\n\techo "a\tb"\n', '    cc 41 \\\n      -o x\n    echo "a\tb"\n'),
    "a.lua": (
        "\tlocal n = 41\n\tlocal s = [[\n    a\n\tb]]\n",
        "    local n = 41\n    local s = [[\n    a\n\tb]]\n",
    ),
    "a.sql": ("\tSELECT 41,\n\t\t'a\tb'\n", "    SELECT 41,\n        'a\tb'\n"),
}


@pytest.mark.parametrize("path", REPLACED_LINE)
def test_without_a_grammar_a_replaced_line_stands_as_its_neighbours_do(path: str) -> None:
    """However the whole is moved, and whatever its literals are."""
    selected, moved = REPLACED_LINE[path]
    text = f"def g {{\n{selected}}}\n"
    start = text.index(selected)
    for reply in (selected, moved, moved.lstrip(), moved.rstrip()):
        got = replaced(text, start, start + len(selected), reply.replace("41", "42"), path)
        assert got == text.replace("41", "42"), reply


@pytest.mark.parametrize(
    ("line", "selected", "reply", "expected"),
    [
        ("    return 41  # why", "return 41", "    return 42  # why", "    return 42  # why"),
        ("    return 41  // why", "return 41", "return 42 // why", "    return 42  // why"),
        ("a = f(41) or default_of(x)", "f(41)", "g(42) or default_of(x)", "a = g(42) or default_of(x)"),
        ("a = 41 /* why */", "a = 41", "a = 42 /* why */", "a = 42 /* why */"),
        ("    return 41;  // why", "return 41", "return 42;  // why", "    return 42;  // why"),
        ("<b>41</b> <!-- why -->", "<b>41</b>", "<b>42</b> <!-- why -->", "<b>42</b> <!-- why -->"),
        # The sign is the code's own.
        ("f(g(41))", "g(41)", "h(g(42))", "f(h(g(42)))"),
        ("x = [a, b]", "b", "c[0]", "x = [a, c[0]]"),
        ("x = 41  # why", "x = 41  # why", "x = 42  # why", "x = 42  # why"),
        ("x = '41'", "41", "a # why", "x = 'a # why'"),
    ],
)
def test_what_stands_behind_the_selection_is_not_doubled(line: str, selected: str, reply: str, expected: str) -> None:
    text = f"def f():\n{line}\nend\n"
    start = text.index(selected)
    done = replaced(text, start, start + len(selected), code_of(fenced(reply), selected), "a.py")
    assert done == text.replace(line, expected)
