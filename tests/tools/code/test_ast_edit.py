"""Editing by name: what each operation makes of a text, language by language, and what is refused."""

# ruff: noqa: E501 - a row of a table is one line, so that before and after can be compared

from __future__ import annotations

import pytest

from codeagent_lsp.errors import EditRefused, ToolFailed
from codeagent_lsp.tools.code.ast_edit import AstEdit, Operation, edited

PYTHON = '''\
import os


# about f
@cache
@other(1)
def f(a):  # noqa
    """Doc."""
    # inside
    return run("def f(): pass")
    # end


class A(B):
    """A."""

    x = 1

    def m(self):
        return self.m() + f(1)

    @property
    def p(self): return 1

    @p.setter
    def p(self, v): self.v = v


def g(): return f(2)
'''


def one(path: str, text: str, target: str, operation: Operation, code: str = "") -> str:
    return edited(path, text, [AstEdit(target, operation, code)]).text


class TestReplace:
    @pytest.mark.parametrize(
        ("path", "before", "target", "code", "after"),
        [
            ("a.py", "# c\n@d\ndef f(): 1\n", "f", "def f(): 2", "# c\n@d\ndef f(): 2\n"),
            ("a.py", "# c\n@d\ndef f(): 1\n", "f", "@e\n@g\ndef f(): 2", "# c\n@e\n@g\ndef f(): 2\n"),
            ("a.py", "# c\n@d\ndef f(): 1\n", "f", "# new\ndef f(): 2", "# new\n@d\ndef f(): 2\n"),
            ("a.py", "class A:\n\tdef f(self):\n\t\tx\n", "A.f", "def f(self):\n    y", "class A:\n\tdef f(self):\n\t\ty\n"),
            ("a.py", "class A:\n    x = 1  # why\n", "A.x", "x: int = 2", "class A:\n    x: int = 2  # why\n"),
            ("a.rs", "/// c\n#[test]\nfn f() {}\n", "f", "/// new\nfn f() { 1 }", "/// new\n#[test]\nfn f() { 1 }\n"),
            ("A.java", "class A {\n  @X\n  void f() {}\n}\n", "A.f", "/** c */\nvoid f() { 1; }", "class A {\n  /** c */\n  @X\n  void f() { 1; }\n}\n"),
            ("a.ts", "/** c */\nexport const f = () => 1;\n", "f", "const f = () => 2;", "/** c */\nexport const f = () => 2;\n"),
            ("a.ts", "export function f() {}\n", "f", "export default function f() { 1 }", "export default function f() { 1 }\n"),
            ("a.ts", "class A {\n  @X() f() {}\n}\n", "A.f", "f() { 1 }", "class A {\n  @X() f() { 1 }\n}\n"),
            ("a.ts", "class A {\n  @X() f() {}\n}\n", "A.f", "@Y() f() { 1 }", "class A {\n  @Y() f() { 1 }\n}\n"),
            ("a.ts", "class A {\n  x = 1;\n}\n", "A.x", "x = 2;", "class A {\n  x = 2;\n}\n"),
            ("a.go", "// F.\nfunc F() {}\n", "F", "func F() int { return 1 }", "// F.\nfunc F() int { return 1 }\n"),
            ("a.rs", "/// d\n#[a]\nfn f() {}\n", "f", "#[b]\npub fn f() {}", "/// d\n#[b]\npub fn f() {}\n"),
            ("a.rs", "/// d\n#[a]\nfn f() {}\n", "f", "/// e\n#[b]\nfn f() {}", "/// e\n#[b]\nfn f() {}\n"),
            ("A.java", "class A {\n  @X\n  int f() { return 1; }\n}\n", "f", "long f() { return 2; }",
             "class A {\n  @X\n  long f() { return 2; }\n}\n"),
            ("A.cs", "class A {\n  [X]\n  int F() => 1;\n}\n", "F", "[Y] int F() => 2;", "class A {\n  [Y] int F() => 2;\n}\n"),
            ("a.php", "<?php\n#[X]\nfunction f() {}\n", "f", "function f() { 1; }", "<?php\n#[X]\nfunction f() { 1; }\n"),
            ("a.php", "<?php\nclass A {\n  private const X = 1;\n}\n", "A.X", "const X = 2;", "<?php\nclass A {\n  const X = 2;\n}\n"),
            ("a.sh", "# c\nexport X=1\n", "X", "export X=2", "# c\nexport X=2\n"),
            ("a.c", "struct a { int x; };\n", "a", "struct a { int y; };", "struct a { int y; };\n"),
            ("a.c", "struct a { int x; };\n", "a", "struct a { int y; }", "struct a { int y; };\n"),
            ("a.cpp", "template <class T>\nT f() { }\n", "f", "int f() { }", "int f() { }\n"),
            ("a.rb", "# c\ndef f\nend\n", "f", "def f(x)\n  x\nend", "# c\ndef f(x)\n  x\nend\n"),
            ("a.sh", "# c\nf() { :; }\n", "f", "f() {\n  ls\n}", "# c\nf() {\n  ls\n}\n"),
        ],
    )  # fmt: skip
    def test_what_the_code_does_not_bring_stays(
        self, path: str, before: str, target: str, code: str, after: str
    ) -> None:
        assert one(path, before, target, "replace", code) == after

    def test_code_may_be_indented_as_it_will_be_or_not_at_all(self) -> None:
        text = "class A:\n    def f(self):\n        pass\n"
        expected = "class A:\n    def f(self):\n        if a:\n            b\n"
        for code in (
            "def f(self):\n    if a:\n        b",
            "    def f(self):\n        if a:\n            b\n",
            "def f(self):\n        if a:\n            b",
            "\n\n        def f(self):\n            if a:\n                b\n\n",
        ):
            assert one("a.py", text, "A.f", "replace", code) == expected

    def test_strings_keep_their_lines_and_docstrings_move(self) -> None:
        text = "class A:\n    def f(self): ...\n"
        code = 'def f(self):\n    """Doc.\n\n    More.\n    """\n    return """\nx\n"""'
        expected = '    def f(self):\n        """Doc.\n\n        More.\n        """\n        return """\nx\n"""\n'
        assert one("a.py", text, "A.f", "replace", code) == f"class A:\n{expected}"

    def test_numbers_of_a_read_result_are_dropped(self) -> None:
        assert one("a.py", "def f(): 1\n", "f", "replace", "1|def f():\n2|    return 2") == "def f():\n    return 2\n"

    def test_line_ends_and_a_missing_last_one_stay(self) -> None:
        text = "x = 1\r\n\r\ndef f():\r\n    return 1"
        assert (
            one("a.py", text, "f", "replace", "def f():\n    a\n    b\n") == "x = 1\r\n\r\ndef f():\r\n    a\r\n    b"
        )


class TestReplaceBody:
    @pytest.mark.parametrize(
        ("path", "before", "target", "code", "after"),
        [
            ("a.py", "def f(): return 1\n", "f", "return 2", "def f():\n    return 2\n"),
            ("a.py", "def f():  # noqa\n    # c\n    x\n    # d\ny = 1\n", "f", "z", "def f():  # noqa\n    z\ny = 1\n"),
            ("a.py", 'def f():\n    """D."""\n    x\n', "f", "y", 'def f():\n    """D."""\n    y\n'),
            ("a.py", 'def f(): "D."; x\n', "f", "y", 'def f():\n    "D."\n    y\n'),
            ("a.py", 'def f():\n    """D."""\n    x\n', "f", "'''E.'''\ny", "def f():\n    '''E.'''\n    y\n"),
            ("a.py", "class A(B[x:y]):\n  z = 1\n", "A", "w = 2", "class A(B[x:y]):\n  w = 2\n"),
            ("a.js", "const f = (a) => a;\n", "f", "a + 1", "const f = (a) => a + 1;\n"),
            ("a.js", "const f = (a) => a;\n", "f", "return a;", "const f = (a) => {\n    return a;\n};\n"),
            ("a.js", "function f()\n{\n\tx;\n}\n", "f", "y;", "function f()\n{\n\ty;\n}\n"),
            ("a.js", "function f() { x }\n", "f", "{\n  y;\n}", "function f() {\n  y;\n}\n"),
            ("a.js", "a = {\n  f() {\n    x;\n  },\n};\n", "f", "{\n    y;\n    z;\n}", "a = {\n  f() {\n    y;\n    z;\n  },\n};\n"),
            ("a.rs", "impl A {\n    fn f() {\n        x;\n    }\n}\n", "A.f", "{\n        y;\n}", "impl A {\n    fn f() {\n        y;\n    }\n}\n"),
            ("a.js", "function f() {}\n", "f", "const { a } = b;\nreturn { a }", "function f() {\n    const { a } = b;\n    return { a }\n}\n"),
            ("a.go", "func F() {\n}\n", "F", "x()", "func F() {\n\tx()\n}\n"),
            ("a.rs", "impl A {\n  fn f() { 1 }\n}\n", "A.f", "2", "impl A {\n  fn f() {\n    2\n  }\n}\n"),
            ("A.cs", "class A {\n  int F() => 1;\n}\n", "F", "2", "class A {\n  int F() => 2;\n}\n"),
            ("A.cs", "class A {\n  int F() => 1;\n}\n", "F", "return 2;", "class A {\n  int F() {\n    return 2;\n  }\n}\n"),
            ("a.rb", "class A\n  def f(x) # c\n    1\n  rescue\n    2\n  end\nend\n", "A.f", "3", "class A\n  def f(x) # c\n    3\n  end\nend\n"),
            ("a.rb", "def f; 1; end\n", "f", "2", "def f\n    2\nend\n"),
            ("a.rb", "def f = 1\n", "f", "2", "def f = 2\n"),
            ("a.rb", "def f\nend\n", "f", "2", "def f\n    2\nend\n"),
            ("a.php", "<?php\nfunction f()\n{\n}\n", "f", "return 1;", "<?php\nfunction f()\n{\n    return 1;\n}\n"),
            ("a.sh", "f() (\n  ls\n)\n", "f", "cd", "f() (\n  cd\n)\n"),
            ("a.sh", "f() {\n  ls\n}\n", "f", "cat <<E\nx\nE", "f() {\n  cat <<E\nx\nE\n}\n"),
            ("a.cpp", "class A {\n public:\n  int x;\n};\n", "A", "int y;", "class A {\n  int y;\n};\n"),
            ("a.c", "int f(int);\nint f(int a) { return a; }\n", "f", "return 1;", "int f(int);\nint f(int a) {\n    return 1;\n}\n"),
        ],
    )  # fmt: skip
    def test_only_what_is_inside_changes(self, path: str, before: str, target: str, code: str, after: str) -> None:
        assert one(path, before, target, "replace_body", code) == after

    @pytest.mark.parametrize(
        ("path", "text", "target", "code", "said"),
        [
            ("a.py", "def f(): ...\n", "f", "def f():\n    return 1", "whole definition"),
            ("a.py", "x = 1\n", "x", "2", "no body"),
            ("a.ts", "interface A { f(): void }\n", "A.f", "x", "no body"),
            ("A.java", "class A { int f() { return 1; } }\n", "A.f", "return 2", "';' is missing"),
        ],
    )
    def test_refusals(self, path: str, text: str, target: str, code: str, said: str) -> None:
        with pytest.raises(EditRefused, match=said):
            one(path, text, target, "replace_body", code)

    def test_a_constructor_takes_no_classs_place(self) -> None:
        text = "struct Box {\n  Box(int w) { f(1); }\n  int g() { return 1; }\n};\n"
        for code in ("Box(int w) { f(2); }", "Box::Box(int w) { f(2); }", "Box::~Box() {}"):
            with pytest.raises(EditRefused, match=r"Name Box\.Box"):
                one("a.cpp", text, "Box", "replace", code)
        assert one("a.cpp", text, "Box.Box", "replace", "Box(int w) { f(2); }") == text.replace("f(1)", "f(2)")


class TestInsert:
    @pytest.mark.parametrize(
        ("path", "before", "target", "operation", "code", "after"),
        [
            ("a.py", "# c\n@d\ndef f(): ...\n", "f", "insert_before", "def g(): ...", "def g(): ...\n\n\n# c\n@d\ndef f(): ...\n"),
            ("a.py", "def f(): ...\n", "f", "insert_after", "def g():\n  1", "def f(): ...\n\n\ndef g():\n  1\n"),
            ("a.py", "def f(): ...", "f", "insert_after", "def g():\n  1", "def f(): ...\n\n\ndef g():\n  1"),
            ("a.py", "class A:\n  def f(self): ...\n\n\nx = 1\n", "A.f", "insert_after", "def g(self): ...",
             "class A:\n  def f(self): ...\n\n  def g(self): ...\n\n\nx = 1\n"),
            ("a.py", "X = 1\nY = 2\n", "X", "insert_after", "Z = 3", "X = 1\nZ = 3\nY = 2\n"),
            ("a.py", "class A:\n  def f(self): ...\n\n  def h(self): ...\n", "A.f", "insert_after", "def g(self): ...",
             "class A:\n  def f(self): ...\n\n  def g(self): ...\n\n  def h(self): ...\n"),
            ("a.py", "class P:\n  def f(self): ...\n  def h(self): ...\n", "P.f", "insert_after", "def g(self): ...",
             "class P:\n  def f(self): ...\n  def g(self): ...\n  def h(self): ...\n"),
            ("a.ts", "class A {\n  x = 1;\n}\n", "A.x", "insert_after", "y = 2;", "class A {\n  x = 1;\n  y = 2;\n}\n"),
            ("a.js", "const o = {\n  f() {},\n};\n", "o.f", "insert_after", "g() {},", "const o = {\n  f() {},\n  g() {},\n};\n"),
            ("a.rs", "/// d\n#[a]\nfn f() {}\n", "f", "insert_before", "fn g() {}", "fn g() {}\n\n/// d\n#[a]\nfn f() {}\n"),
            ("a.cpp", "struct A { int x; };  // A\n", "A", "insert_after", "int y;", "struct A { int x; };  // A\n\nint y;\n"),
        ],
    )  # fmt: skip
    def test_on_lines_of_its_own(
        self, path: str, before: str, target: str, operation: Operation, code: str, after: str
    ) -> None:
        assert one(path, before, target, operation, code) == after

    def test_several_at_one_place_keep_their_order(self) -> None:
        edits = [AstEdit("f", "insert_after", "a = 1"), AstEdit("f", "insert_after", "b = 2")]
        done = edited("a.py", "f = 0\ng = 3\n", edits).text
        assert done == "f = 0\na = 1\nb = 2\ng = 3\n"

    def test_beside_other_code_is_refused(self) -> None:
        with pytest.raises(EditRefused, match="shares line 1"):
            one("A.java", "class A { int f() { return 1; } }\n", "A.f", "insert_after", "int g;")


class TestDelete:
    @pytest.mark.parametrize(
        ("path", "before", "target", "after"),
        [
            ("a.py", "a = 1\n\n\n# c\n@d\ndef f(): ...\n\n\nb = 2\n", "f", "a = 1\n\n\nb = 2\n"),
            ("a.py", "import os\n\ndef f(): ...\n\n\ng = 1\n", "f", "import os\n\n\ng = 1\n"),
            ("a.py", "a = 1\n\n\ndef f(): ...", "f", "a = 1"),
            ("a.py", "def f(): ...\n", "f", ""),
            ("a.py", "class A:\n    def f(self): ...\n", "A.f", "class A:\n    pass\n"),
            ("a.py", "class A:\n    def f(self): ...  # c\n    x = 1\n", "A.f", "class A:\n    x = 1\n"),
            ("a.py", "def a():\n    x\n    # of a\ndef f(): ...\n", "f", "def a():\n    x\n    # of a\n"),
            ("a.ts", "class A {\n  /** c */\n  @X()\n  f() {}\n\n  y = 1;\n}\n", "A.f", "class A {\n  y = 1;\n}\n"),
            ("a.ts", "class A {\n  y = 1;\n\n  f() {}\n}\n", "A.f", "class A {\n  y = 1;\n}\n"),
            ("a.ts", "enum E {\n  A,\n  B,\n}\n", "E.A", "enum E {\n  B,\n}\n"),
            ("a.rs", "//! doc\n/// d\n#[a]\nfn f() {}\n\nfn g() {}\n", "f", "//! doc\n\nfn g() {}\n"),
            ("a.c", "int a;\n\nstruct s { int x; };\n\nint b;\n", "s", "int a;\n\nint b;\n"),
            ("a.go", "type A struct{}\n\n// F.\nfunc F() {}\n", "F", "type A struct{}\n"),
            ("a.go", "const (\n\tA = 1\n\tB = 2\n)\n", "A", "const (\n\tB = 2\n)\n"),
            ("a.rb", "class A\n  # d\n  def f; end\n\n  def g; end\nend\n", "A.f", "class A\n  def g; end\nend\n"),
        ],
    )  # fmt: skip
    def test_with_all_that_belongs_to_it(self, path: str, before: str, target: str, after: str) -> None:
        assert one(path, before, target, "delete") == after
        assert one(path, before.replace("\n", "\r\n"), target, "delete") == after.replace("\n", "\r\n")

    def test_everything_in_a_class(self) -> None:
        text = "class A:\n    x = 1\n\n    def f(self): ...\n\n\nclass B: ...\n"
        done = edited("a.py", text, [AstEdit("A.f", "delete"), AstEdit("A.x", "delete")]).text
        assert done.startswith("class A:\n    pass\n") and done.endswith("class B: ...\n")

    @pytest.mark.parametrize(
        ("path", "text", "target", "said"),
        [
            ("a.js", "const a = 1, b = () => 2;\n", "b", "shares line 1"),
            ("A.java", "class A {\n  int x = 1, y;\n}\n", "A.x", "together with other names"),
            ("a.py", "a = b = 1\n", "a", "together with other names"),
            ("a.go", "var a, b = 1, 2\n", "a", "together with other names"),
            ("a.php", "<?php\nclass A {\n  public $x = 1, $y;\n}\n", "A.y", "together with other names"),
            ("A.cs", "class A {\n  int x, y;\n}\n", "A.y", "together with other names"),
        ],
    )
    def test_a_part_of_a_declaration_is_refused(self, path: str, text: str, target: str, said: str) -> None:
        with pytest.raises(EditRefused, match=said):
            one(path, text, target, "delete")


class TestRename:
    @pytest.mark.parametrize(
        ("path", "target", "marked"),
        [
            ("a.py", "f", "def «f»(f=1): ...\n«f»(f=«f»)\ndef g(f): f()\nclass A:\n    def f(self): «f»(); self.f()\nx.f\n"),
            ("a.py", "A.f", "class A:\n    def «f»(self): self.«f»(); f()\n    g = «f»\nA.«f»\nx.f\nclass B:\n    def f(self): self.f()\n"),
            ("a.py", "A.x", "class A:\n    @property\n    def «x»(self): ...\n    @«x».setter\n    def «x»(self, x): self.«x» = x\n"),
            ("a.ts", "f", "function «f»(): void;\nfunction «f»(a?: number) {}\nx.f(); «f»(); g({ f: 1 });\nclass A { f() { «f»() } }\n"),
            ("a.ts", "A", "class «A» { a: «A» }\nlet x: «A» = new «A»(); // A\n"),
            ("a.js", "o.f", "const o = { «f»() {} };\nf(); o.«f»(); x.f();\n"),
            ("a.go", "S.F", "func (s *S) «F»() { s.«F»(); F() }\nfunc (t T) F() { t.F() }\n"),
            ("a.go", "S", "type «S» struct{}\nfunc (s *«S») F() { x := «S»{}; y.S = S2 }\n"),
            ("a.rs", "m.f", "mod m { pub fn «f»() {} fn g() { «f»() } }\nfn h() { m::«f»(); n::f(); f() }\n"),
            ("a.rs", "A.f", "impl A { fn «f»(&self) { self.«f»(); Self::«f»(self) } }\nfn g(a: A) { A::«f»(a); a.f() }\n"),
            ("A.java", "A", "class «A» { «A» a = new «A»(); «A»() {} void f(int A) { A++; } }\n"),
            ("A.java", "A.f", "class A { void «f»() { «f»(); this.«f»(); x.f(); } class B { void f() { f(); } } }\n"),
            ("a.c", "f", "int «f»(int);\nint «f»(int a) { int b = «f»(1); s.f; return b; }\nint g(int f) { return f; }\n"),
            ("a.c", "E.A", "enum E { «A», B };\nint f(void) { return «A»; }\n"),
            ("a.cpp", "n.V", "namespace n { class «V» { «V»(); ~«V»(); }; }\nn::«V»::«V»() {}\nn::«V» x;\n"),
            ("A.cs", "A.F", "class A { int «F»() => «F»() + this.«F»() + b.F(); int G(int F) => F; }\n"),
            ("a.rb", "A.f", "class A\n  def «f»; «f»(1); self.«f»; x.f; end\nend\ndef f; end\nf\n"),
            ("a.php", "A.f", "<?php\nclass A { function «f»() { $this->«f»(); self::«f»(); f(); $f; } }\nA::«f»(); $a->f();\n"),
            ("a.sh", "f", "«f»() { «f» f; echo $f; }\n"),
            ("a.sh", "f#2", "f() { f f; echo $«f»; }\n«f»=1\n"),
            ("A.cs", "A.F", "class A { static int «F»() => 1; object G() => new X { F = «F»() }; }\n"),
            ("a.tsx", "N", "type «N» = 1;\nfunction f(p: { c: React.N }): «N» { return 1; }\n"),
            ("a.cpp", "f", "int «f»();\nTEST(f, works) { «f»(«f», «f»()); E(f); EQ(f, «f»()); }\n"),
            ("A.java", "A.f#2", "class A { int f; int «f»() { return f + «f»(); } }\n"),
        ],
    )  # fmt: skip
    def test_only_what_can_mean_nothing_else(self, path: str, target: str, marked: str) -> None:
        old = target.rpartition(".")[2].partition("#")[0]
        text = marked.replace("«", "").replace("»", "")
        done = edited(path, text, [AstEdit(target, "rename", "renamed")])
        assert done.text == marked.replace(f"«{old}»", "renamed")

    def test_a_short_form_is_written_out(self) -> None:
        assert one("a.js", "function f() {}\nconst o = { f };\n", "f", "rename", "g").endswith("{ f: g };\n")

    def test_a_name_of_several_parts_is_refused(self) -> None:
        with pytest.raises(EditRefused, match="several parts"):
            one("a.rb", "module A::Hello\nend\n", "A::Hello", "rename", "Other")

    def test_where_the_name_is_left_is_told(self) -> None:
        done = edited("a.py", "def f(): ...\n# f\nx.f\n'f'\nf()\nff\n", [AstEdit("f", "rename", "g")])
        assert done.left == (("f", (2, 3, 4)),)

    @pytest.mark.parametrize(
        ("text", "target", "name", "said"),
        [
            ("def f(): ...\ndef g(): ...\n", "f", "g", "defined already, on line 2"),
            ("def f(): ...\ng()\n", "f", "g", "used already, on line 2"),
            ("def f(): ...\ndef h(g): f()\n", "f", "g", "local name"),
            ("def f(): ...\n", "f", "g h", "no name"),
            ("def f(): ...\n", "f", "f", "called so already"),
            ("def f(): ...\n", "f", "class", "would be broken"),
            ("class A:\n  def f(self): ...\ndef f(): ...\nclass B:\n  def f(self): ...\n", "B.g", "x", "Similar"),
            ("class A:\n  def h(self): ...\nclass B:\n  def h(self): ...\n", "h", "x", "2 definitions"),
            ("class A: ...\ndef f[A](a: A) -> A: ...\n", "A", "B", "declared again on line 2 .* Use edit_file"),
        ],
    )
    def test_refusals(self, text: str, target: str, name: str, said: str) -> None:
        with pytest.raises(EditRefused, match=said):
            one("a.py", text, target, "rename", name)


class TestAllOrNone:
    def test_targets_are_found_in_the_text_as_it_was(self) -> None:
        edits = [
            AstEdit("f", "replace", "def h(): ..."),
            AstEdit("g", "insert_before", "def f(): ..."),
            AstEdit("A.m", "delete"),
            AstEdit("A", "insert_after", "class Z: ..."),
        ]
        done = edited("a.py", PYTHON, edits).text
        assert [line for line in done.splitlines() if line.startswith(("def", "class"))] == [
            "def h(): ...", "class A(B):", "class Z: ...", "def f(): ...", "def g(): return f(2)"
        ]  # fmt: skip

    def test_the_edit_that_is_refused_is_named(self) -> None:
        with pytest.raises(
            EditRefused, match=r"Edit 2 \(delete A.q\) was refused, so none was made. .*A.x \(line 17\)"
        ):
            edited("a.py", PYTHON, [AstEdit("f", "delete"), AstEdit("A.q", "delete")])

    @pytest.mark.parametrize(
        "edits",
        [
            [AstEdit("A", "delete"), AstEdit("A.m", "replace_body", "pass")],
            [AstEdit("f", "replace", "def f(): ..."), AstEdit("f", "replace_body", "pass")],
            [AstEdit("f", "delete"), AstEdit("f", "delete")],
            [AstEdit("f", "rename", "k"), AstEdit("g", "replace_body", "f(3)")],
        ],
    )
    def test_edits_of_the_same_lines_are_refused(self, edits: list[AstEdit]) -> None:
        with pytest.raises(EditRefused, match=r"Edits 1 and 2 both change a\.py at line"):
            edited("a.py", PYTHON, edits)

    def test_ambiguous_targets_are_listed_and_can_be_numbered(self) -> None:
        with pytest.raises(EditRefused, match=r"A.p#1: line 22: def p\(self\)\n  A.p#2: line 25: def p\(self, v\)"):
            one("a.py", PYTHON, "A.p", "delete")
        assert "setter" not in one("a.py", PYTHON, "A.p#2", "delete")
        with pytest.raises(EditRefused, match=r"A\.p#2"):
            one("a.py", PYTHON, "A.p#3", "delete")

    @pytest.mark.parametrize("target", ["A.m", "m", "A::m", "A#m", "A->m", "A.m()", "A.m#1"])
    def test_ways_to_name_a_method(self, target: str) -> None:
        assert "def m" not in one("a.py", PYTHON, target, "delete")

    @pytest.mark.parametrize("operation", ["replace", "replace_body", "insert_before", "insert_after", "rename"])
    def test_code_is_needed(self, operation: Operation) -> None:
        with pytest.raises(EditRefused, match="needs code"):
            one("a.py", PYTHON, "f", operation, "  \n")

    def test_code_that_swallows_what_follows_is_refused(self) -> None:
        text = "f() { :; }\n\ng() { :; }\n"
        with pytest.raises(EditRefused, match=r"cannot take its place: line 1"):
            one("a.sh", text, "f", "replace", "f() { cat <<EOF\n}\n}")

    def test_pythons_own_parser_is_asked_too(self) -> None:
        with pytest.raises(
            EditRefused, match=r"line 1: (non-default argument follows default|parameter without a default follows)"
        ):
            one("a.py", "def f(): ...\nx = 1\n", "f", "replace", "def f(a=1, b): ...")

    def test_broken_code_elsewhere_is_no_hindrance(self) -> None:
        text = "def f(): ...\n\ndef (:\n    (((\n"
        assert one("a.py", text, "f", "replace", "def f(): 1") == text.replace("...", "1")

    @pytest.mark.parametrize(("path", "said"), [("a.txt", "not known here"), ("a.py", "cannot be parsed")])
    def test_texts_without_a_tree(self, path: str, said: str) -> None:
        with pytest.raises(ToolFailed, match=said):
            one(path, "x" * (1 << 20 if path == "a.py" else 1) + "y", "f", "delete")


@pytest.mark.parametrize(
    ("path", "head", "code"),
    [
        ("a.py", "# -*- coding: latin-1 -*-\n", "def f():\n    pass\n"),
        ("a.py", "# ruff: noqa\n", "def f():\n    pass\n"),
        ("a.rb", "# frozen_string_literal: true\n", "def f\nend\n"),
        ("a.ts", "// @ts-check\n", "function f() {}\n"),
        ("a.js", "/* eslint-disable no-undef */\n", "function f() {}\n"),
        ("a.go", "// SPDX-License-Identifier: MIT\n", "func f() {}\n"),
    ],
)
def test_a_comment_about_the_file_is_not_one_of_its_first_definition(path: str, head: str, code: str) -> None:
    text = head + code
    assert edited(path, text, [AstEdit("f", "delete")]).text.startswith(head)
    assert edited(path, text, [AstEdit("f", "insert_before", "x = 1")]).text.startswith(head)
