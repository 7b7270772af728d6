"""Replies in every form become the same new text, and what is doubtful is refused."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct import TEXT_FORMS, TextForm
from codeagent_lsp.direct.answer import Files, read_answer

NOW = '''"""Sums."""

import os

LIMIT = 3


def add(a, b):
    """Add."""
    return a - b


class Counter:
    """Counts."""

    def __init__(self):
        self.count = 0

    def up(self):
        self.count += 2
        return self.count


class Other:
    def up(self):
        return 7
'''
RIGHT = NOW.replace("a - b", "a + b")
FILES = Files({"sums.py": NOW})
ADD = 'def add(a, b):\n    """Add."""\n    return a + b\n'

GOOD: dict[str, tuple[TextForm, str]] = {
    "whole": ("whole", f"The sign is wrong.\n\nsums.py\n```python\n{RIGHT}```\n"),
    "whole, asked for the function": ("function", f"sums.py\n```python\n{RIGHT}```\n"),
    "whole, with its path as a comment": ("whole", f"```python\n# sums.py\n{RIGHT}```\n"),
    "whole, without a path": ("whole", f"```python\n{RIGHT}```"),
    "whole, with line numbers": (
        "whole",
        "```python\n" + "".join(f"{n:>5}|{line}\n" for n, line in enumerate(RIGHT.splitlines(), 1)) + "```",
    ),
    "function": ("function", f"sums.py\n```python\n{ADD}```\n"),
    "function, asked for the whole file": ("whole", f"```python\n{ADD}```\n"),
    "function with a line of its place": ("function", f"```python\n# sums.py, line 8\n{ADD}```\n"),
    "function, indented": ("function", "```python\n" + "".join(f"    {line}\n" for line in ADD.splitlines()) + "```"),
    "function with an example of use": ("function", f"```python\n{ADD}\nresult = add(1, 2)\nprint(result)\n```\n"),
    "function, then a command": ("function", f"```python\n{ADD}```\nRun:\n```sh\npython -m unittest\n```\n"),
    "block": ("blocks", "sums.py\n<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE\n"),
    "block in a fence": (
        "blocks",
        "```python\nsums.py\n<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE\n```\n",
    ),
    "block without a path": (
        "blocks",
        "<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE\n",
    ),
    "diff": (
        "diff",
        '```diff\n--- a/sums.py\n+++ b/sums.py\n@@ -8,3 +8,3 @@\n def add(a, b):\n     """Add."""\n'
        "-    return a - b\n+    return a + b\n```\n",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_every_form_gives_the_same_text(name: str) -> None:
    form, reply = GOOD[name]
    answer = read_answer(reply, FILES, form)
    assert answer.problem == ""
    assert answer.texts == {"sums.py": RIGHT}


@pytest.mark.parametrize("name", GOOD)
def test_line_ends_stay(name: str) -> None:
    form, reply = GOOD[name]
    windows = NOW.replace("\n", "\r\n")
    answer = read_answer(reply, Files({"sums.py": windows}), form)
    assert answer.texts == {"sums.py": RIGHT.replace("\n", "\r\n")}


def test_a_method_is_put_into_its_class() -> None:
    reply = "```python\nclass Counter:\n    def up(self):\n        self.count += 1\n        return self.count\n```"
    answer = read_answer(reply, FILES, "function")
    assert answer.texts == {"sums.py": NOW.replace("+= 2", "+= 1")}


def test_a_bare_method_goes_where_it_was_shown() -> None:
    reply = "```python\ndef up(self):\n    return 8\n```"
    refused = read_answer(reply, FILES, "function")
    assert not refused.texts
    assert "Counter.up" in refused.problem
    shown = read_answer(reply, Files({"sums.py": NOW}, ("Other.up",)), "function")
    assert shown.texts == {"sums.py": NOW.replace("return 7", "return 8")}


def test_new_functions_methods_and_imports_are_added() -> None:
    reply = (
        "```python\nimport re\n\n\ndef words(text):\n    return re.split(r'\\s+', text)\n\n\n"
        "class Counter:\n    def down(self):\n        self.count -= 1\n```"
    )
    text = read_answer(reply, FILES, "function").texts["sums.py"]
    assert "import os\nimport re\n" in text
    assert text.index("def up") < text.index("def down") < text.index("class Other")
    assert "def words(text):" in text
    for line in NOW.splitlines():
        assert line in text


def test_a_new_method_without_its_class_goes_into_the_only_one() -> None:
    now = "class Stack:\n    def __init__(self):\n        self.items = []\n\n\nX = 1\n"
    code = "def peek(self):\n    return self.items[-1]\n"
    answer = read_answer(f"```python\n{code}```", Files({"a.py": now}), "function")
    wanted = now.replace("= []\n", "= []\n\n    def peek(self):\n        return self.items[-1]\n")
    assert answer.texts == {"a.py": wanted}


def test_a_new_method_goes_where_a_neighbour_was_shown() -> None:
    code = "def down(self):\n    self.count -= 1\n"
    files = Files({"sums.py": NOW}, ("Counter.up",))
    text = read_answer(f"```python\n{code}```", files, "function").texts["sums.py"]
    assert "        return self.count\n\n    def down(self):\n        self.count -= 1\n\n\nclass Other" in text


REFUSED: dict[str, tuple[TextForm, str, str]] = {
    "a part left out": ("whole", "```python\ndef add(a, b):\n    # ... rest of the code\n    pass\n```", "left out"),
    "a syntax error": ("function", "```python\ndef add(a, b:\n    return a + b\n```", "syntax error"),
    "cut": ("whole", f"```python\n{RIGHT[:60]}", "cut"),
    "half a block": ("blocks", "<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n", "not complete"),
    "a block that does not match": (
        "blocks",
        "<<<<<<< SEARCH\n    return nothing at all\n=======\n    return 1\n>>>>>>> REPLACE\n",
        "",
    ),
    "no definition": ("function", "```python\nprint(add(1, 2))\n```", "no whole function"),
    "a diff that deletes": (
        "diff",
        "```diff\n--- a/sums.py\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-" + '"""Sums."""\n```',
        "",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    form, reply, why = REFUSED[name]
    answer = read_answer(reply, FILES, form)
    assert answer.texts == {}
    assert answer.has_code
    assert why in answer.problem
    assert answer.problem


def test_a_file_that_loses_its_definitions_is_read_by_function() -> None:
    """A small model asked for the whole file often gives one function: the rest must not be lost."""
    answer = read_answer(f"sums.py\n```python\nimport os\n\n\n{ADD}```", FILES, "whole")
    assert answer.texts == {"sums.py": RIGHT}


def test_a_renamed_definition_is_no_lost_one() -> None:
    text = NOW.replace("def add", "def plus")
    assert read_answer(f"```python\n{text}```", FILES, "whole").texts == {"sums.py": text}


@pytest.mark.parametrize("form", TEXT_FORMS)
def test_words_alone_are_no_code(form: TextForm) -> None:
    answer = read_answer("The code looks fine to me.", FILES, form)
    assert (answer.texts, answer.has_code, answer.prose) == ({}, False, "The code looks fine to me.")


@pytest.mark.parametrize("form", TEXT_FORMS)
def test_the_same_code_changes_nothing(form: TextForm) -> None:
    answer = read_answer(f"```python\n{NOW}```", FILES, form)
    assert answer.texts == {}


def test_several_files_by_their_paths_and_by_what_they_define() -> None:
    files = Files({"a.py": "def one():\n    return 1\n", "b.py": "def two():\n    return 2\n"})
    reply = "```python\ndef two():\n    return 22\n```\n\na.py\n```python\ndef one():\n    return 11\n```\n"
    answer = read_answer(reply, files, "whole")
    assert answer.texts == {"a.py": "def one():\n    return 11\n", "b.py": "def two():\n    return 22\n"}


def test_code_that_belongs_to_no_file_is_refused_with_their_names() -> None:
    files = Files({"a.py": "def one():\n    return 1\n", "b.py": "def two():\n    return 2\n"}, creates=False)
    answer = read_answer("c.py\n```python\ndef three():\n    return 3\n```", files, "whole")
    assert answer.texts == {}
    assert answer.unknown == ("c.py",)
    assert "a.py, b.py" in answer.problem


def test_a_new_file_is_made_where_that_is_allowed() -> None:
    answer = read_answer("pkg/new.py\n```python\nX = 1\n```", FILES, "whole")
    assert answer.texts == {"pkg/new.py": "X = 1\n"}


def test_files_that_stay_as_they_are_are_passed_over() -> None:
    files = Files({"sums.py": NOW}, fixed=("test_sums.py",))
    reply = f"sums.py\n```python\n{RIGHT}```\n\ntest_sums.py\n```python\nassert True\n```\n"
    assert read_answer(reply, files, "whole").texts == {"sums.py": RIGHT}


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside.py"])
def test_no_new_file_outside(path: str) -> None:
    answer = read_answer(f"{path}\n```python\ndef f():\n    pass\n```", Files({}), "whole")
    assert answer.texts == {}


def test_a_language_without_a_grammar_is_given_whole() -> None:
    files = Files({"notes.txt": "one\ntwo\nthree\nfour\n"})
    assert read_answer("```\none\n2\nthree\nfour\n```", files, "whole").texts == {"notes.txt": "one\n2\nthree\nfour\n"}
    assert read_answer("```\n2\n```", files, "whole").problem


GO = (
    'package main\n\nimport "fmt"\n\nfunc Add(a, b int) int {\n\treturn a - b\n}\n\n'
    "func Show() {\n\tfmt.Println(Add(1, 2))\n}\n"
)
TS = "export class Box {\n  size(): number {\n    return 1;\n  }\n  name(): string {\n    return 'box';\n  }\n}\n"
RUST = (
    "struct S;\n\nimpl S {\n    fn one(&self) -> i32 {\n        2\n    }\n\n"
    "    fn two(&self) -> i32 {\n        2\n    }\n}\n"
)

LANGUAGES = {
    "go": ("main.go", GO, "func Add(a, b int) int {\n\treturn a + b\n}\n", GO.replace("a - b", "a + b")),
    "typescript": (
        "box.ts",
        TS,
        "class Box {\n  size(): number {\n    return 2;\n  }\n}\n",
        TS.replace("return 1", "return 2"),
    ),
    "rust": (
        "s.rs",
        RUST,
        "impl S {\n    fn one(&self) -> i32 {\n        1\n    }\n}\n",
        RUST.replace("        2", "        1", 1),
    ),
}

OTHERS = {
    "a.js": ("import x from 'x';\n\nexport ", "function add(a, b) {\n  return a - b;\n}\n", "\nconst k = 1;\n"),
    "a.tsx": ("const k = 1;\n\n", "function Box(p: P) {\n  return <b>{a - b}</b>;\n}\n", ""),
    "a.c": ("#include <a.h>\n\n", "int add(int a, int b)\n{\n\treturn a - b;\n}\n", "\nint z = 1;\n"),
    "a.cpp": ("#include <a>\n\n", "int A::add(int a, int b) {\n  return a - b;\n}\n", "\nint z = 1;\n"),
    "a.rb": ("require 'x'\n\n", "def add(a, b)\n  a - b\nend\n", "\nputs add(1, 2)\n"),
    "a.sh": ("set -e\n\n", "add() {\n  echo $((a - b))\n}\n", "\nadd 1 2\n"),
    "a.php": ("<?php\n\n", "function add() {\n    return a - b;\n}\n", "\necho add();\n"),
}
"""By file: what stands before a function, the function, and what stands after it."""

INSIDE = {
    "A.java": ("package p;\n\nclass A {\n", "    int add(int a, int b) {\n        return a - b;\n    }\n"),
    "A.cs": ("using System;\n\nclass A {\n", "    int Add(int a, int b) {\n        return a - b;\n    }\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_functions_of_every_indexed_language(name: str) -> None:
    before, function, after = OTHERS[name]
    right = function.replace("a - b", "a + b")
    code = ("<?php\n" if name.endswith("php") else "") + right
    answer = read_answer(f"{name}\n```\n{code}```", Files({name: before + function + after}), "function")
    assert (answer.problem, answer.texts) == ("", {name: before + right + after})


@pytest.mark.parametrize("name", INSIDE)
def test_methods_below_the_line_of_their_class(name: str) -> None:
    before, method = INSIDE[name]
    other = "\n    int zero() {\n        return 0;\n    }\n}\n"
    right = method.replace("a - b", "a + b")
    answer = read_answer(f"```\nclass A {{\n{right}}}\n```", Files({name: before + method + other}), "function")
    assert (answer.problem, answer.texts) == ("", {name: before + right + other})


@pytest.mark.parametrize("language", LANGUAGES)
def test_functions_of_other_languages(language: str) -> None:
    name, now, code, wanted = LANGUAGES[language]
    answer = read_answer(f"{name}\n```{language}\n{code}```", Files({name: now}), "function")
    assert (answer.problem, answer.texts) == ("", {name: wanted})


LINES = {
    "plain": "WRONG: return a - b\nRIGHT: return a + b",
    "indented": "WRONG:     return a - b\nRIGHT:     return a + b",
    "code spans": "WRONG: `return a - b`\nRIGHT: `return a + b`",
    "on lines of their own": "WRONG:\n    return a - b\nRIGHT:\n    return a + b",
    "in a fence": "```python\nWRONG: return a - b\nRIGHT: return a + b\n```",
    "with words around": "The sign is wrong.\n\nWRONG: return a - b\nRIGHT: return a + b\n\nThat is all.",
}


@pytest.mark.parametrize("name", LINES)
def test_one_line(name: str) -> None:
    assert read_answer(LINES[name], FILES, "line").texts == {"sums.py": RIGHT}


def test_a_line_that_is_there_twice_is_looked_for_where_it_was_shown() -> None:
    twice = NOW.replace("return 7", "return a - b")
    reply = "WRONG: return a - b\nRIGHT: return a + b"
    assert "2 lines" in read_answer(reply, Files({"sums.py": twice}), "line").problem
    shown = read_answer(reply, Files({"sums.py": twice}, ("add",)), "line")
    assert shown.texts == {"sums.py": RIGHT.replace("return 7", "return a - b")}


@pytest.mark.parametrize(
    "reply", ["WRONG: no such line\nRIGHT: x = 1", "WRONG:\nRIGHT: x", "WRONG: return a - b\nRIGHT: return ("]
)
def test_lines_that_are_refused(reply: str) -> None:
    answer = read_answer(reply, FILES, "line")
    assert answer.texts == {}
    assert answer.problem


def test_a_whole_function_is_taken_where_a_line_was_asked_for() -> None:
    assert read_answer(f"```python\n{ADD}```", FILES, "line").texts == {"sums.py": RIGHT}
