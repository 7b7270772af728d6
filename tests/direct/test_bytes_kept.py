"""What a reply does not change stays byte for byte: line ends of mixed files, blanks at ends, fences, form feeds, signs
behind a statement, the file's own indentation; and comments above a definition come with it, in all languages.
"""

from __future__ import annotations

import pytest

from codeagent_lsp.agent.replacement import replaced
from codeagent_lsp.direct.answer import Files, read_answer
from codeagent_lsp.direct.fences import FENCES, read_envelope
from codeagent_lsp.workspace.edits.merge import with_line_ends_of

PIECES = {
    "CRLF among LF": "x 1\r\ny\r\n",
    "CR among LF": "x 1\ry\rz\n",
    "CRLF and LF": "x 1\r\ny\nx 1\n",
    "two blanks in Markdown": "x 1  \nline two  \n",
    "one line with blanks": "x 1  \n",
    "a tab at the end": "x 1\t\n",
    "form feed": "x 1\n\x0cy\n",
    "other separators": "x 1\u2028y\x85z\x0b\n",
    "no end": "x 1",
}


@pytest.mark.parametrize("path", ["a.md", "a.txt", "a.py", "a.go", "a.yaml"])
@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES.keys())
def test_a_quick_action(piece: str, path: str) -> None:
    for before, after in (("", ""), ("top\n", "end\n"), ("top\r\n", "end\r\n")):
        if after and not piece.endswith("\n"):
            continue
        text, wanted = before + piece + after, before + piece.replace("1", "7") + after
        start, end = len(before), len(before) + len(piece)
        for given in (piece.replace("1", "7"), piece.replace("1", "7").replace("\r\n", "\n").replace("\r", "\n")):
            assert replaced(text, start, end, given, path) == wanted


def test_lines_in_the_place_of_as_many_others_get_their_ends() -> None:
    assert with_line_ends_of("a\r\nb\nc\rd\n", "a\nB\nC\nd\n") == "a\r\nB\nC\rd\n"
    assert with_line_ends_of("a\nb\r\nc\n", "a\nB\nB2\nc\n") == "a\nB\nB2\nc\n"


@pytest.mark.parametrize("mark", ["```", "~~~"])
@pytest.mark.parametrize("piece", ["{0}sh\nx 1\n{0}\n", "Use:\n\n{0}\nx 1\n{0}\nThen.\n"])
def test_a_document_without_an_envelope_keeps_its_fences(piece: str, mark: str) -> None:
    selected = piece.format(mark)
    told = read_envelope(selected.replace("1", "7"), selected)
    assert (told.code, told.problem) == (None, FENCES)
    around = read_envelope(f"````\n{selected.replace('1', '7')}````\n", selected)
    assert (around.code or "").strip() == selected.replace("1", "7").strip()
    without = read_envelope("````\nx 7\n````\n", selected)  # told apart, so the fences may go
    assert (without.code or "").strip() == "x 7"


COMMENTED = {
    "a.js": "/**\n * Old words.\n */\nfunction f() {\n  return 1;\n}\n",
    "a.ts": "/** Old. */\nexport function f(): number {\n  return 1;\n}\n",
    "a.tsx": "/** Old. */\nexport const F = () => {\n  return <b>1</b>;\n};\n",
    "a.go": "package a\n\n// F does Old.\nfunc F() int {\n\treturn 1\n}\n",
    "a.rs": "/// Old words.\n#[inline]\npub fn f() -> i32 {\n    1\n}\n",
    "a.c": "/* Old. */\nint f(void) {\n    return 1;\n}\n",
    "a.cpp": "/// Old.\nint f() {\n    return 1;\n}\n",
    "A.java": "class A {\n    /** Old. */\n    @Override\n    int f() {\n        return 1;\n    }\n}\n",
    "A.cs": "class A {\n    /// <summary>Old.</summary>\n    int F() {\n        return 1;\n    }\n}\n",
    "a.rb": "# Old.\ndef f\n  1\nend\n",
    "a.php": "<?php\n/** Old. */\nfunction f() {\n    return 1;\n}\n",
    "a.sh": "# Old.\nf() {\n  echo 1\n}\n",
    "a.py": "# Old.\ndef f():\n    return 1\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["function", "whole"])
@pytest.mark.parametrize(("path", "text"), COMMENTED.items(), ids=COMMENTED.keys())
def test_the_comment_above_a_definition_comes_with_it(path: str, text: str, form: str) -> None:
    for wanted in (text.replace("Old", "New"), text.replace("Old", "New").replace("1", "7")):
        answer = read_answer(f"{path}\n````\n{wanted}````\n", Files({path: text}), form)  # type: ignore[arg-type]
        assert answer.texts == {path: wanted}, answer.problem


def test_words_above_a_function_that_had_none_are_no_comment_of_it() -> None:
    text = "def f():\n    return 1\n\n\ndef g():\n    return 2\n"
    for above in ("# a.py\n", "# Fixed: returns 7.\n", "# a.py\n# The fix.\n"):
        answer = read_answer(f"```\n{above}def f():\n    return 7\n```\n", Files({"a.py": text}), "function")
        assert answer.texts == {"a.py": text.replace("1", "7")}, answer.problem


GIVEN = {
    "tabs, nested": ("a.py", "def o():\n\tdef i():\n\t\treturn 1\n\treturn i\n", "def i():\n    return 7\n"),
    "tabs, method": (
        "a.js",
        "class A {\n\tf() {\n\t\tif (x) {\n\t\t\treturn 1;\n\t\t}\n\t}\n}\n",
        "f() {\n  if (x) {\n    return 7;\n  }\n}\n",
    ),
    "tabs, Go": ("a.go", "package a\n\nfunc F() int {\n\treturn 1\n}\n", "func F() int {\n    return 7\n}\n"),
    "blanks": (
        "A.java",
        "class A {\n    int f() {\n        return 1;\n    }\n}\n",
        "\tint f() {\n\t\treturn 7;\n\t}\n",
    ),
    "a semicolon": (
        "a.js",
        "exports.f = function () {\n  return 1;\n};\n",
        "exports.f = function () {\n  return 7;\n};\n",
    ),
    "a prototype": (
        "a.js",
        "A.prototype.f = function () {\n  return 1;\n};\nB.prototype.f = function () {\n  return 2;\n};\n",
        "A.prototype.f = function () {\n  return 7;\n};\n",
    ),
    "a form feed before": (
        "a.py",
        "def a():\n    return 2\n\n\x0cdef b():\n    return 1\n",
        "\x0cdef b():\n    return 7\n",
    ),
    "a form feed inside": (
        "a.py",
        "class A:\n    def f(self):\n        return 1\n\x0c\n    def g(self):\n        return 2\n",
        "class A:\n    def f(self):\n        return 7\n\x0c\n    def g(self):\n        return 2\n",
    ),
    "lines of blanks": (
        "a.py",
        "class A:\n    def f(self):\n        a = 2\n        \n        return 1\n    \n    def g(self): ...\n",
        "def f(self):\n    a = 2\n    \n    return 7\n",
    ),
    "CRLF": ("a.py", "def o():\r\n    def i():\r\n        return 1\r\n    return i\r\n", "def i():\n    return 7\n"),
}


@pytest.mark.parametrize(("path", "text", "code"), GIVEN.values(), ids=GIVEN.keys())
def test_the_form_function(path: str, text: str, code: str) -> None:
    answer = read_answer(f"{path}\n```\n{code}```\n", Files({path: text}), "function")
    assert answer.texts == {path: text.replace("1", "7")}, answer.problem
