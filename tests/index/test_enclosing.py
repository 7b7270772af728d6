"""The symbol around a place: `«` and `»` mark it in the text, `^` is the place."""

from __future__ import annotations

import pytest

from codeagent_lsp.index.enclosing import MAX_CHARS, enclosing_symbol

CASES: dict[str, tuple[str, str]] = {
    "python function": ("a.py", "import os\n\n«def f(x):\n    return ^x\n»\ny = 1\n"),
    "python method": ("a.py", "class A:\n    a = 1\n\n«    def f(self):\n        return ^1\n»\n    def g(self): ...\n"),
    "python class body": ("a.py", "«class A:\n    a = ^1\n\n    def f(self):\n        return 1\n»"),
    "python nested": ("a.py", "def f():\n«    def g():\n        return ^1\n»    return g\n"),
    "python after nested": ("a.py", "«def f():\n    def g():\n        return 1\n    return ^g\n»"),
    "python decorated": ("a.py", "«@cache\n@other(1)\ndef f():\n    return ^1\n»"),
    "python on the decorator": ("a.py", "x = 1\n«@ca^che\ndef f():\n    return 1\n»"),
    "python async": ("a.py", "«async def f():\n    await ^x\n»"),
    "python lambda is none": ("a.py", "«def f():\n    return lambda: ^1\n»"),
    "python comment inside": ("a.py", "«def f():\n    # a comm^ent\n    return 1\n»"),
    "python docstring": ("a.py", '«def f():\n    """Says ^so."""\n»'),
    "python start of line": ("a.py", "class A:\n«^    def f(self):\n        return 1\n»"),
    "python end of line": ("a.py", "«def f():\n    return 1^\n»x = 2\n"),
    "python end of file": ("a.py", "«def f():\n    return 1^»"),
    "python broken": ("a.py", "«def f(:\n    return ^1\n»"),
    "python emoji": ("a.py", "s = '🎉🎉'  # 中文\n«def f():\n    return '🎉' + ^x\n»"),
    "python CRLF": ("a.py", "x = 1\r\n«def f():\r\n    return ^1\r\n»y = 2\r\n"),
    "python stub": ("a.pyi", "class A:\n«    def f(self, ^x: int) -> int: ...\n»"),
    "js function": ("a.js", "«function f(a) {\n  return ^a;\n}\n»f();\n"),
    "js arrow": ("a.js", "let y;\n«const f = (a) => {\n  return ^a;\n};\n»"),
    "js callback is none": ("a.mjs", "«function f(a) {\n  a.map((b) => ^b);\n}\n»"),
    "js exported": ("a.cjs", "«export function f() {\n  return ^1;\n}\n»"),
    "js method": ("a.jsx", "class A {\n«  f() {\n    return ^1;\n  }\n»}\n"),
    "js field": ("a.js", "class A {\n«  f = () => {\n    return ^1;\n  };\n»}\n"),
    "js generator": ("a.js", "«function* f() {\n  yield ^1;\n}\n»"),
    "ts interface": ("a.ts", "«export interface A {\n  b: ^string;\n}\n»"),
    "ts type": ("a.ts", "«type A = {\n  b: ^string;\n};\n»"),
    "ts enum": ("a.ts", "«enum A {\n  B = ^1,\n}\n»"),
    "ts namespace": ("a.ts", "«namespace N {\n  const ^x = 1;\n}\n»"),
    "tsx component": ("a.tsx", "«export const C = () => {\n  return <b>{^x}</b>;\n};\n»"),
    "go function": ("a.go", "package a\n\n«func F(a int) int {\n\treturn ^a\n}\n»"),
    "go method": ("a.go", "package a\n\n«func (s *S) F() int {\n\treturn s.^a\n}\n»"),
    "go struct": ("a.go", "package a\n\n«type S struct {\n\tA ^int\n}\n»"),
    "go literal is none": ("a.go", "package a\n\n«func F() {\n\tgo func() { ^x() }()\n}\n»"),
    "rust function": ("a.rs", "«fn f(a: i32) -> i32 {\n    ^a\n}\n»"),
    "rust impl method": ("a.rs", "impl A {\n«    fn f(&self) -> i32 {\n        ^1\n    }\n»}\n"),
    "rust impl": ("a.rs", "«impl A {\n    const X: i32 = ^1;\n}\n»"),
    "rust struct": ("a.rs", "«struct A {\n    a: ^i32,\n}\n»"),
    "rust trait": ("a.rs", "«trait A {\n    type ^B;\n}\n»"),
    "rust module": ("a.rs", "«mod a {\n    use std::^io;\n}\n»"),
    "java method": ("A.java", "class A {\n«    int f(int a) {\n        return ^a;\n    }\n»}\n"),
    "java constructor": ("A.java", "class A {\n«    A() {\n        this.a = ^1;\n    }\n»}\n"),
    "java record": ("A.java", "«record A(int ^a) {\n}\n»"),
    "java annotated": ("A.java", 'class A {\n«    @Over^ride\n    public String toString() { return ""; }\n»}\n'),
    "c function": ("a.c", "«int f(int a) {\n  return ^a;\n}\n»"),
    "c struct used inside": ("a.c", "«int f(void) {\n  struct po^int p = {0};\n  return p.x;\n}\n»"),
    "c typedef": ("a.c", "«typedef struct {\n  int ^x;\n} point;\n»"),
    "c header": ("a.h", "«inline int f() { return ^1; }\n»"),
    "cpp method": ("a.cpp", "«class A {\n  int ^x;\n};\n»"),
    "cpp template": ("a.hpp", "«template <typename T>\nT f(T a) {\n  return ^a;\n}\n»"),
    "cpp namespace": ("a.cc", "«namespace n {\nint ^x = 1;\n}\n»"),
    "cs method": ("A.cs", "class A {\n«    int F() {\n        return ^1;\n    }\n»}\n"),
    "cs property": ("A.cs", "class A {\n«    int B { get { return ^1; } }\n»}\n"),
    "ruby method": ("a.rb", "class A\n«  def f\n    ^1\n  end\n»end\n"),
    "ruby class method": ("a.rb", "class A\n«  def self.f\n    ^1\n  end\n»end\n"),
    "ruby class": ("a.rb", "«class A\n  B = ^1\nend\n»"),
    "ruby module": ("a.rb", "«module M\n  B = ^1\nend\n»"),
    "php function": ("a.php", "<?php\n«function f($a) {\n  return ^$a;\n}\n»"),
    "php method": ("a.php", "<?php\nclass A {\n«  public function f() {\n    return ^1;\n  }\n»}\n"),
    "bash function": ("a.sh", "x=1\n«f() {\n  echo ^1\n}\n»f\n"),
    "bash keyword": ("a.bash", "«function f {\n  echo ^1\n}\n»"),
}

NOWHERE = {
    "top level": ("a.py", "import o^s\n\ndef f(): ...\n"),
    "between": ("a.py", "def f(): ...\n\n^\ndef g(): ...\n"),
    "unknown language": ("a.txt", "def f():\n    ^x\n"),
    "no suffix": ("Makefile", "all:\n\t^x\n"),
    "empty": ("a.py", "^"),
    "php use": ("a.php", "<?php\nuse App\\^Model;\n"),
    "too large": ("a.py", "def f():\n    ^" + "x" * MAX_CHARS),
    "garbage": ("a.py", "\0\ufffd )))^((("),
}


def found(name: str, marked: str) -> str | None:
    offset = marked.index("^")
    text = marked.replace("^", "")
    span = enclosing_symbol(name, text, offset)
    return None if span is None else text[span[0] : span[1]]


@pytest.mark.parametrize("case", CASES)
def test_the_innermost_symbol(case: str) -> None:
    name, marked = CASES[case]
    expected = marked.replace("^", "").split("«")[1].split("»")[0]
    assert found(name, marked.replace("«", "").replace("»", "")) == expected


@pytest.mark.parametrize("case", NOWHERE)
def test_no_symbol(case: str) -> None:
    assert found(*NOWHERE[case]) is None


def test_names_are_compared_without_case_and_with_folders() -> None:
    assert found("src/deep/A.PY", "def f():\n    return ^1\n") is not None


def test_any_place_of_any_text_is_answered() -> None:
    for name, marked in CASES.values():
        text = marked.replace("^", "").replace("«", "").replace("»", "")
        for offset in range(len(text) + 1):
            span = enclosing_symbol(name, text, offset)
            assert span is None or 0 <= span[0] < span[1] <= len(text)


def test_lone_surrogates_do_no_harm() -> None:
    assert found("a.py", "s = '\ud800'\ndef f():\n    return ^1\n") == "def f():\n    return 1\n"
