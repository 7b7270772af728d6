"""What a reply about a selection repeats of the file around it is taken off, and data is never left broken."""

from __future__ import annotations

import json

import pytest

from codeagent_lsp.direct.material import Material, ShownFile
from codeagent_lsp.direct.question import RewriteLimits, RewriteRequest, SelectionQuestion
from codeagent_lsp.workspace.files.file_view import FileText

PY = '''\
"""Doc."""
import os


class Cart:
    name = "a"

    def total(self):
        return 1

    def more(self):
        return 2
'''
JAVA = """\
package a;

import java.util.List;

class Cart {
    int total() {
        return 1;
    }

    int more() {
        return 2;
    }
}
"""
CS = """\
using System;

class Cart
{
    int Total()
    {
        return 1;
    }

    int More() => 2;
}
"""
KT = """\
package a

import a.B

class Cart {
    fun total(): Int {
        return 1
    }

    fun more() = 2
}
"""
SWIFT = """\
import UIKit

class Cart {
    func total() -> Int {
        return 1
    }

    func more() {}
}
"""
CPP = """\
#include <vector>

template <typename T>
class Cart {
public:
    T total() const {
        return 1;
    }

    T more() const { return 2; }
};
"""
RB = """\
require 'set'

class Cart
  def total
    1
  end

  def more
    2
  end
end
"""
PHP = """\
<?php

use A\\B;

class Cart
{
    function total()
    {
        return 1;
    }

    function more() { return 2; }
}
"""
MEMBERS = {
    "cart.py": (PY, "    def total(self):\n        return 1\n"),
    "Cart.java": (JAVA, "    int total() {\n        return 1;\n    }\n"),
    "Cart.cs": (CS, "    int Total()\n    {\n        return 1;\n    }\n"),
    "Cart.kt": (KT, "    fun total(): Int {\n        return 1\n    }\n"),
    "Cart.swift": (SWIFT, "    func total() -> Int {\n        return 1\n    }\n"),
    "cart.cpp": (CPP, "    T total() const {\n        return 1;\n    }\n"),
    "cart.rb": (RB, "  def total\n    1\n  end\n"),
    "cart.php": (PHP, "    function total()\n    {\n        return 1;\n    }\n"),
}
SIGNS = {"py": "#", "rb": "#", "php": "//"}
IMPORTS = {
    "py": "import math",
    "java": "import java.util.Map;",
    "cs": "using System.Linq;",
    "kt": "import a.C",
    "swift": "import Foundation",
    "cpp": "#include <map>",
    "php": "use A\\C;",
}


def asked(path: str, text: str, selected: str, reply: str) -> tuple[str, str]:
    """The text after a quick action whose model gives this reply, and what is wrong with the reply."""
    at = text.index(selected)
    request = RewriteRequest(path, text, at, at + len(selected), "do it")
    material = Material((ShownFile(path, FileText(text, "utf-8", "disk")),))
    answer = SelectionQuestion(request, "", RewriteLimits()).read(reply, material, "whole")
    return answer.texts.get(path, text), answer.problem


def fenced(code: str) -> str:
    return f"Here it is.\n\n```\n{code.rstrip()}\n```\n"


def ending(path: str) -> str:
    return path.rpartition(".")[2]


def changed(text: str) -> str:
    return text.replace("return 1", "return 5").replace("\n    1\n", "\n    5\n")


def around(path: str, selected: str) -> str:
    """The member in its class, as a model shows it."""
    text = MEMBERS[path][0]
    head = text[: text.index(selected)].split("\n\n")[-1]
    name = '    name = "a"\n\n'
    return head.replace(name, "") + selected + {"py": "", "rb": "end\n", "cpp": "};\n"}.get(ending(path), "}\n")


@pytest.mark.parametrize("indented", [False, True], ids=["at the margin", "as it stands"])
@pytest.mark.parametrize("path", MEMBERS)
def test_a_member_alone_is_replaced(path: str, indented: bool) -> None:
    text, selected = MEMBERS[path]
    margin = selected[: len(selected) - len(selected.lstrip())]
    code = changed(selected)
    code = code if indented else "\n".join(line.removeprefix(margin) for line in code.split("\n"))
    assert asked(path, text, selected, fenced(code)) == (changed(text), "")


@pytest.mark.parametrize(
    ("path", "text", "selected", "code"),
    [
        ("a.yaml", "a:\n  b: 1\n  c: 2\n", "\n  b: 1", "a:\n  b: 5"),
        ("a.json", '{\n  "a": 0,\n  "b": 1\n}\n', '\n  "b": 1', '{\n  "b": 5\n}'),
        ("a.html", '<ul id="a">\n  <li>1</li>\n</ul>\n', "\n  <li>1</li>", '<ul id="a">\n  <li>5</li>\n</ul>'),
        (
            "cart.py",
            PY,
            "\n    def total(self):\n        return 1",
            "class Cart:\n    def total(self):\n        return 5",
        ),
    ],
)
def test_a_selection_that_begins_at_the_end_of_a_line(path: str, text: str, selected: str, code: str) -> None:
    assert asked(path, text, selected, fenced(code)) == (text.replace("1", "5"), "")


@pytest.mark.parametrize("comment", ["{path}", "src/{path}", "File: {path}", "filename: `{path}`"])
@pytest.mark.parametrize("path", MEMBERS)
def test_a_comment_with_the_path_is_none_of_the_code(path: str, comment: str) -> None:
    text, selected = MEMBERS[path]
    said = f"{SIGNS.get(ending(path), '//')} {comment.format(path=path)}\n"
    assert asked(path, text, selected, fenced(said + changed(selected))) == (changed(text), "")
    own = said + selected  # but where the file has it
    assert asked(path, text.replace(selected, own), own, fenced(said + changed(selected)))[0].count(said) == 1


@pytest.mark.parametrize("path", MEMBERS)
def test_a_class_around_the_member_is_taken_off(path: str) -> None:
    text, selected = MEMBERS[path]
    assert asked(path, text, selected, fenced(changed(around(path, selected)))) == (changed(text), "")


@pytest.mark.parametrize("path", [path for path in MEMBERS if ending(path) in IMPORTS])
def test_an_import_goes_where_imports_are(path: str) -> None:
    text, selected = MEMBERS[path]
    line = IMPORTS[ending(path)]
    after, problem = asked(path, text, selected, fenced(f"{line}\n\n{changed(selected)}"))
    assert problem == "" and after.count(line) == 1
    assert after.index(line) < after.index("class") and after.replace(f"{line}\n", "") == changed(text)
    known = next(each for each in text.split("\n") if each.startswith(line.split()[0]))
    assert asked(path, text, selected, fenced(f"{known}\n\n{changed(selected)}")) == (changed(text), "")


def test_an_import_of_the_place_stays_there() -> None:
    after, _ = asked("a.py", PY, "        return 1\n", fenced("import math\nreturn math.pi"))
    assert "    def total(self):\n        import math\n        return math.pi\n" in after
    body = "<?php\n\nclass A\n{\n    public $a = 1;\n}\n"
    after, _ = asked("a.php", body, "    public $a = 1;\n", fenced("use Logs;\npublic $a = 1;"))
    assert "{\n    use Logs;\n    public $a = 1;\n}" in after


def test_a_block_that_cannot_be_taken_off_is_no_code() -> None:
    reply = fenced("class Cart {\nint total() {\nreturn 5;\n}\n}")
    after, problem = asked("Cart.java", JAVA, MEMBERS["Cart.java"][1], reply)
    assert after == JAVA and "'class Cart {'" in problem and "Give the selected code alone." in problem


KOTLIN = "fun f() =\n    h(1 / (2 / 3)) // :)\n"
VUE = "<p>{{ a > b }}</p>\n<p>2</p>\n"
LIST = "<!-- <ul> -->\n<ul>\n  <li>1\n</ul>\n"
RULE = ".a {\n  top: 1;\n  left: 2;\n}\n"
SIGN = ".a::after {\n  content: '}';\n}\n"
DATA = '{\n  "a": 1,\n  "b": {\n    "c": 2\n  }\n}\n'


@pytest.mark.parametrize(
    ("path", "text", "selected", "code", "right"),
    [
        ("a.json", DATA, '  "a": 1,\n', '"a": 5', DATA.replace("1", "5")),
        ("a.json", DATA, '  "a": 1,\n', '{\n  "a": 5\n}', DATA.replace("1", "5")),
        ("a.json", DATA, '    "c": 2\n', '"c": 5,', DATA.replace("2", "5")),
        ("a.json", DATA, '    "c": 2\n', '"b": {\n  "c": 5\n}', DATA.replace("2", "5")),
        ("a.json", DATA, '  "a": 1,\n', '"a": [1', ""),
        ("a.toml", '[x]\na = "1"\nb = 2\n', 'a = "1"\n', 'a = "5', ""),
        ("a.toml", '[x]\na = "1"\nb = 2\n', 'a = "1"\n', '[x]\na = "5"', '[x]\na = "5"\nb = 2\n'),
        ("a.yaml", "a:\n  b: 1\n  c: 2\n", "  b: 1\n", "a:\n  b: 5", "a:\n  b: 5\n  c: 2\n"),
        ("a.yaml", "a:\n  b: 1\n  c: 2\n", "  b: 1\n", "b: [5", ""),
        ("a.css", RULE, "  top: 1;\n", ".a {\n  top: 5;\n}", RULE.replace("1", "5")),
        ("a.css", ".a {\n  top: 1;\n}\n.b { left: 2; }\n", "  top: 1;\n}\n", "  top: 5;", ""),
        ("a.html", LIST, "  <li>1\n</ul>\n", "  <li>5", ""),
        ("a.html", LIST, "  <li>1\n</ul>\n", "  <li>5\n  <li>6<br>\n</ul>", LIST.replace("1", "5\n  <li>6<br>")),
        ("a.html", LIST, "  <li>1\n", "  <p>5\n", LIST.replace("<li>1", "<p>5")),
        ("a.vue", VUE, "<p>2</p>\n", "<p>2", ""),
        ("a.vue", VUE, "<p>2</p>\n", '<p v-if="a > 1" />', VUE.replace("<p>2</p>", '<p v-if="a > 1" />')),
        ("a.sql", "CREATE TABLE a (\n  b int\n);\n", "  b int\n);\n", "  b bigint", ""),
        ("a.kt", "fun f() {\n    g()\n}\n", "    g()\n}\n", "    h()", ""),
        ("a.css", SIGN, "  content: '}';\n", "content: '{';", SIGN.replace("'}'", "'{'")),
        ("a.css", RULE, "  top: 1;\n", "top: 1;\nbackground: url(//a.example/(b);", ""),
        ("a.css", RULE, "  top: 1;\n", "top: url(//a.example/b);", RULE.replace("1", "url(//a.example/b)")),
        ("a.kt", "fun f() =\n    g(1)\n", "    g(1)\n", "    h(1 / (2 / 3)) // :)", KOTLIN),
        ("a.sql", "SELECT 1\nFROM a;\n", "SELECT 1\n", "SELECT (2) -- :(", "SELECT (2) -- :(\nFROM a;\n"),
    ],
)  # fmt: skip
def test_data_is_whole_or_unchanged(path: str, text: str, selected: str, code: str, right: str) -> None:
    after, problem = asked(path, text, selected, fenced(code))
    assert (after, bool(problem)) == (right or text, not right)


@pytest.mark.parametrize("key", ["code", "content", "replacement"])
@pytest.mark.parametrize("path", ["cart.py", "cart.rb", "Cart.kt", "Cart.java"])
def test_code_in_an_object_of_json(path: str, key: str) -> None:
    text, selected = MEMBERS[path]
    assert asked(path, text, selected, fenced(json.dumps({key: changed(selected)}))) == (changed(text), "")
    settings = '{\n  "x": {\n    "code": "a"\n  }\n}\n'
    inner = '  "x": {\n    "code": "a"\n  }\n'
    assert asked("a.json", settings, inner, fenced(inner.replace('"a"', '"b"')))[0] == settings.replace('"a"', '"b"')


@pytest.mark.parametrize("form", ["{n}\t", "{n} | ", "{n}|", "{n:4}\u2192"])
@pytest.mark.parametrize("path", ["Cart.kt", "Cart.java"])
def test_numbers_before_the_lines_are_none_of_the_code(path: str, form: str) -> None:
    text, selected = MEMBERS[path]
    code = changed(selected)
    numbered = "\n".join(form.format(n=number) + line for number, line in enumerate(code.rstrip().split("\n"), 20))
    assert asked(path, text, selected, fenced(numbered)) == (changed(text), "")


DOCUMENT = "# A\n\nSum:\n\n```py\ntotal(1)\n```\n\nCosts 1.\n\n## End\n"


@pytest.mark.parametrize("end", ["", "```\n\nAnd:\n\n````markdown\nSum:\n````\n"])
def test_a_document_that_is_cut_or_given_twice_is_no_answer(end: str) -> None:
    selected = DOCUMENT[5 : DOCUMENT.index("## End")]
    cut = f"```markdown\n{selected}" if not end else f"````markdown\n{selected}`{end}"
    after, problem = asked("a.md", DOCUMENT, selected, cut)
    assert after == DOCUMENT and problem
    whole = f"````markdown\n{selected.replace('Costs 1', 'Costs 2')}````\n"
    assert asked("a.md", DOCUMENT, selected, whole) == (DOCUMENT.replace("Costs 1", "Costs 2"), "")


SCHEMA = '{\n  "type": "object",\n  "properties": {\n    "address": {\n      "type": "string"\n    }\n  }\n}\n'
STREET = '"type": "object",\n"properties": {\n  "street": {\n    "type": "string"\n  }\n}'
RETRY = "def f(url):\n    resp = fetch(url)\n    if resp is None:\n        note(1)\n        log(url)\n    return resp\n"
SPEC = "spec:\n  template:\n    # to do\n    x: 1\n"
POD = "metadata:\n  labels:\n    app: x\nspec:\n  containers: []"


LISTED = "<ul>\n  <li>0</li>\n  <li>1</li>\n  <li>2</li>\n</ul>\n"
LOCK = "def f(a):\n    with a.lock:\n        x(a)\n        g(a)\n        y(a)\n"
LOOP = "for (const a of b) {\n  x();\n  c();\n  y();\n}\n"
CASES = "if (long) {\n  x();\n  c();\n  y();\n}\n"


@pytest.mark.parametrize(
    ("path", "text", "selected", "code"),
    [
        ("a.json", SCHEMA, '      "type": "string"\n', STREET),
        ("a.json", "[\n  1\n]\n", "  1\n", '{\n  "id": 3\n}'),
        ("a.yaml", SPEC, "    x: 1\n", POD),
        ("a.py", RETRY, "        log(url)\n", "resp = fetch(url)\nif resp is None:\n    raise Gone(url)"),
        ("a.html", LISTED, "  <li>1</li>\n", "  <ul>\n    <li>1</li>\n  </ul>"),
        ("a.py", LOCK, "        g(a)\n", "with a.lock:\n    h(a)"),
        ("a.js", LOOP, "  c();\n", "for (const a of b) {\n  d();\n}"),
        ("a.js", CASES, "  c();\n", "if (long) {\n  d();\n} else {\n  e();\n}"),
    ],
)
def test_new_code_that_is_like_what_stands_around(path: str, text: str, selected: str, code: str) -> None:
    after, problem = asked(path, text, selected, fenced(code))
    begin, end = text.split(selected)
    assert problem == "" and after.startswith(begin) and after.endswith(end)
    written = after[len(begin) : len(after) - len(end)]
    assert [line.strip() for line in written.strip().split("\n")] == [line.strip() for line in code.strip().split("\n")]


def test_what_may_be_a_value_is_not_taken_out_of_its_object() -> None:
    assert (
        asked("a.js", "const a = null;\n", "null", fenced('{"text": "hello"}'))[0] == 'const a = {"text": "hello"};\n'
    )
    assert asked("a.tsv", "a\tb\n", "a\tb\n", fenced("1\tone\n2\ttwo\n3\tthree"))[0] == "1\tone\n2\ttwo\n3\tthree\n"


def test_an_import_that_has_to_be_first_is_asked_for_apart() -> None:
    text, selected = MEMBERS["cart.py"]
    after, problem = asked("cart.py", text, selected, fenced(f"from __future__ import annotations\n\n{selected}"))
    assert after == text and "__future__" in problem
