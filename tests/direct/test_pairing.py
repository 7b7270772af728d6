"""A definition of a reply replaces the one that it means: among overloads and accessors, in a class or outside."""

from __future__ import annotations

import re

import pytest

from codeagent_lsp.direct.answer import Answer, Files, read_answer
from codeagent_lsp.direct.definitions import lost_definitions

POINT = '''class Point:
    """A point."""

    @property
    def x(self):
        return self._y

    @x.setter
    def x(self, value):
        self._z = value

    def move(self):
        self.x += 1
'''
GETTER = "    @property\n    def x(self):\n        return self._x\n"
SETTER = "    @x.setter\n    def x(self, value):\n        self._x = value\n"
CONFIG = "class Config:\n    def load(self):\n        return self.text\n\n\ndef main():\n    return Config().load()\n"
DECORATOR = "def traced(call):\n    def wrapper(*given):\n        return call(*given)\n\n    return wrapper\n"
SUMS = (
    "class Sums {\n    int add(int a, int b) {\n        return a - b;\n    }\n\n"
    "    double add(double a, double b) {\n        return a + b;\n    }\n}\n"
)
SUM = "    int add(int a, int b) {\n        return a + b;\n    }\n"


def answered(path: str, now: str, code: str, preferred: tuple[str, ...] = ()) -> Answer:
    return read_answer(f"{path}\n```\n{code}```\n", Files({path: now}, preferred), "function")


def written(path: str, now: str, code: str, preferred: tuple[str, ...] = ()) -> str:
    answer = answered(path, now, code, preferred)
    assert not answer.problem
    return answer.texts[path]


def test_a_getter_alone_replaces_the_getter() -> None:
    assert written("a.py", POINT, f"class Point:\n{GETTER}") == POINT.replace("self._y", "self._x")


def test_a_setter_alone_replaces_the_setter() -> None:
    assert written("a.py", POINT, f"class Point:\n{SETTER}") == POINT.replace("self._z", "self._x")


@pytest.mark.parametrize("code", [f"{GETTER}\n{SETTER}", f"{SETTER}\n{GETTER}"])
def test_a_getter_and_a_setter_replace_both(code: str) -> None:
    fixed = POINT.replace("self._y", "self._x").replace("self._z", "self._x")
    assert written("a.py", POINT, f"class Point:\n{code}") == fixed


def test_accessors_with_new_parameters() -> None:
    setter = SETTER.replace("value", "x: int")
    getter = GETTER.replace("(self)", "(self, /)")
    wanted = POINT.replace("self, value", "self, x: int").replace("_z = value", "_x = x: int").replace(": int\n", "\n")
    setter = setter.replace("= x: int", "= x")
    assert written("a.py", POINT, f"class Point:\n{setter}") == wanted
    both = wanted.replace("x(self)", "x(self, /)").replace("_y", "_x")
    assert written("a.py", POINT, f"class Point:\n{setter}\n{getter}") == both


def test_a_setter_for_a_lone_getter_is_added() -> None:
    now = f"class Point:\n    def move(self):\n        self.x += 1\n\n{GETTER}"
    assert written("a.py", now, f"class Point:\n{SETTER}") == f"{now}\n{SETTER}"
    assert written("a.py", now, f"class Point:\n{GETTER}\n{SETTER}") == f"{now}\n{SETTER}"


def test_accessors_of_typescript() -> None:
    now = (
        "class P {\n  get x() {\n    return this.b;\n  }\n\n  set x(v) {\n    this.a = v;\n  }\n\n"
        "  other() {\n    return 1;\n  }\n}\n"
    )
    code = "class P {\n  get x() {\n    return this.a;\n  }\n}\n"
    assert written("a.ts", now, code) == now.replace("this.b", "this.a")


def test_an_overload_replaces_the_one_with_its_parameters() -> None:
    assert written("Sums.java", SUMS, f"class Sums {{\n{SUM}}}\n") == SUMS.replace("a - b", "a + b")


def test_overloads_given_together_replace_one_another_in_order() -> None:
    changed = SUMS.replace("a - b", "a + b").replace("double b", "float b")
    code = changed.replace("class Sums {\n", "class Sums {\n    int last;\n\n")
    text = written("Sums.java", SUMS.replace("class Sums {\n", "class Sums {\n    int kept;\n\n"), code)
    assert "int kept;" in text
    assert changed.removeprefix("class Sums {\n").removesuffix("}\n") in text


def test_one_overload_with_new_parameters_is_unclear() -> None:
    code = "class Sums {\n    long add(long a, long b) {\n        return a + b;\n    }\n}\n"
    now = SUMS.replace("class Sums {\n", "class Sums {\n    int kept;\n\n")
    answer = answered("Sums.java", now, code)
    assert not answer.texts
    assert "Sums.add 2 times" in answer.problem
    assert "line 4: int add(int a, int b)" in answer.problem


def test_new_overloads_stay_beside_the_one_they_belong_to() -> None:
    now = "from typing import overload\n\n\ndef twice(a):\n    return a\n\n\ndef main():\n    return twice(1)\n"
    code = (
        "@overload\ndef twice(a: int) -> int: ...\n\n\n@overload\ndef twice(a: str) -> str: ...\n\n\n"
        "def twice(a):\n    return a * 2\n"
    )
    text = written("a.py", now, code)
    assert text.count("def twice") == 3
    assert text.index("a: int") < text.index("a: str") < text.index("a * 2") < text.index("def main")


def test_the_implementation_of_typescript_overloads() -> None:
    now = (
        "export function f(a: string): string;\nexport function f(a: number): number;\n"
        "export function f(a: any): any {\n  return 1;\n}\n\nexport const k = 1;\n"
    )
    code = "export function f(a: unknown): any {\n  return a;\n}\n"
    assert written("a.ts", now, code) == now.replace("(a: any): any {\n  return 1", "(a: unknown): any {\n  return a")


def test_of_two_definitions_in_one_block_the_last_holds() -> None:
    now = "def f(a):\n    return 1\n\n\ndef f(a):\n    return 2\n"
    assert written("a.py", now, "def f(a):\n    return 3\n") == now.replace("return 2", "return 3")


def test_definitions_in_two_branches_are_unclear() -> None:
    now = "import sys\n\nif sys.argv:\n    def f(a):\n        return 1\nelse:\n    def f(a):\n        return 2\n"
    assert "not clear" in answered("a.py", now, "def f(a):\n    return 3\n").problem


def test_a_definition_given_twice_is_unclear() -> None:
    now = "def f(a):\n    return 1\n\n\ndef g(a):\n    return f(a)\n"
    assert "once" in answered("a.py", now, "def f(a):\n    return 3\n\n\ndef f(a):\n    return 4\n").problem


def test_methods_of_two_traits() -> None:
    one = "impl Display for A {\n    fn fmt(&self) -> i32 {\n        1\n    }\n}\n"
    now = f"struct A;\n\n{one}\n{one.replace('Display', 'Debug')}"
    fixed = one.replace("        1", "        2")
    assert written("a.rs", now, fixed) == now.replace(one, fixed, 1)
    assert "not clear" in answered("a.rs", now, fixed.replace("Display", "Hash")).problem


def test_a_new_function_does_not_replace_a_method_of_its_name() -> None:
    code = "def load(path):\n    return open(path).read()\n"
    assert written("a.py", CONFIG, code) == f"{CONFIG}\n\n{code}"


@pytest.mark.parametrize(
    ("code", "preferred"),
    [
        ("def load(self):\n    return 1\n", ()),
        ("    def load(self):\n        return 1\n", ()),
        ("class Config:\n    def load(self):\n        return 1\n", ()),
        ("def load(self):\n    return 1\n", ("Config.load",)),
        ("@traced(\n    1,\n)\ndef load(self):\n    return 1\n", ()),
    ],
)
def test_a_bare_method_replaces_the_method(code: str, preferred: tuple[str, ...]) -> None:
    text = written("a.py", CONFIG, code, preferred)
    assert text.replace("    @traced(\n        1,\n    )\n", "") == CONFIG.replace("self.text", "1")


def test_a_preferred_or_an_indented_method_needs_no_self() -> None:
    code = "def load(this):\n    return 1\n"
    text = written("a.py", CONFIG, code, ("Config.load",))
    assert text == written("a.py", CONFIG, "    def load(this):\n        return 1\n")
    assert text == CONFIG.replace("load(self)", "load(this)").replace("self.text", "1")


def test_a_method_does_not_replace_a_function_of_its_name() -> None:
    now = f"def load(path):\n    return path\n\n\n{CONFIG}"
    assert written("a.py", now, "def load(self):\n    return 1\n") == now.replace("self.text", "1")


def test_one_inside_a_function_is_replaced_where_it_is_or_asked_for_with_what_is_around_it() -> None:
    code = "def wrapper(call):\n    return call\n"
    assert "give traced whole" in answered("a.py", DECORATOR, code).problem
    assert "give traced whole" in answered("a.py", DECORATOR, code, ("traced.wrapper",)).problem
    now = "def outer(x):\n    def inner(y):\n        return y\n\n    return inner(x)\n"
    assert written("a.py", now, "def inner(y):\n    return y + 1\n") == now.replace("return y\n", "return y + 1\n")
    tsx = "function App() {\n  const show = (n: number) => {\n    return n;\n  };\n  return <p>{show(1)}</p>;\n}\n"
    shown = written("a.tsx", tsx, "const show = (n: number) => {\n  return n + 1;\n};\n")
    assert shown == tsx.replace("return n;", "return n + 1;")
    both = f"{now}\n\ndef inner(y):\n    return 0\n"
    assert written("a.py", both, "def inner(y):\n    return 1\n") == both.replace("return 0", "return 1")
    twice = f"{now}\n\ndef other(x):\n    def inner(y):\n        return 2\n\n    return inner(x)\n"
    assert "may be any of" in answered("a.py", twice, "def inner(y):\n    return 1\n").problem


def test_a_class_in_a_namespace_may_be_given_alone() -> None:
    now = "namespace N\n{\n    class A\n    {\n        int F() { return 1; }\n    }\n}\n"
    code = "class A\n{\n    int F() { return 2; }\n}\n"
    assert written("a.cs", now, code) == now.replace("return 1", "return 2")


def test_a_part_of_a_class_in_a_namespace_keeps_the_rest() -> None:
    now = (
        "namespace N\n{\n    class A\n    {\n        int F() { return 1; }\n\n        int G() { return 3; }\n    }\n\n"
        "    class B\n    {\n        int F() { return 1; }\n    }\n}\n"
    )
    code = "class A\n{\n    int F() { return 2; }\n}\n"
    assert written("a.cs", now, code) == now.replace("return 1", "return 2", 1)


def test_a_class_inside_a_class_is_asked_for_with_what_is_around_it() -> None:
    now = "class Model:\n    class Config:\n        def load(self):\n            return 1\n\n        strict = True\n"
    code = "class Config:\n    def load(self):\n        return 2\n"
    assert "give Model whole" in answered("a.py", now, code).problem


def test_a_method_is_added_below_overloads() -> None:
    code = "class Sums {\n    int none() {\n        return 0;\n    }\n}\n"
    text = written("Sums.java", SUMS, code)
    assert text.index("a + b") < text.index("int none()")
    assert text.startswith(SUMS.removesuffix("}\n"))


def test_a_type_and_a_method_beside_it() -> None:
    now = (
        "struct A {\n    n: i32,\n}\n\nimpl A {\n    fn one(&self) -> i32 {\n        self.n\n    }\n\n"
        "    fn two(&self) -> i32 {\n        2\n    }\n}\n"
    )
    code = "struct A {\n    n: i32,\n}\n\nimpl A {\n    fn one(&self) -> i32 {\n        1\n    }\n}\n"
    assert written("a.rs", now, code) == now.replace("self.n", "1")


def test_a_lost_overload_is_missed_and_a_prototype_is_not() -> None:
    now = "int f(int a);\n\nint f(int a) {\n    return a;\n}\n\nint g(int a) {\n    return f(a);\n}\n"
    whole = now.removeprefix("int f(int a);\n\n").replace("return a", "return 1")
    assert not lost_definitions("a.c", now, whole)
    assert lost_definitions("Sums.java", SUMS, f"class Sums {{\n{SUM}}}\n") == ("Sums.add",)


BODY = "\n            SELECT 1\n        "
MOVED = {
    "a.py": f'class A:\n    def f(self):\n        run("""{BODY}""")\n        return 1\n',
    "a.ts": f"class A {{\n    f() {{\n        run(`{BODY}`);\n        return 1;\n    }}\n}}\n",
    "A.java": f'class A {{\n    int f() {{\n        run("""{BODY}""");\n        return 1;\n    }}\n}}\n',
    "a.rs": f'impl A {{\n    fn f(&self) -> i32 {{\n        run("{BODY}");\n        return 1;\n    }}\n}}\n',
    "a.rb": "class A\n  def f\n    run(<<~S)\n      SELECT 1\n    S\n    return 1\n  end\nend\n",
    "a.php": f'<?php\nclass A {{\n    function f() {{\n        run("{BODY}");\n        return 1;\n    }}\n}}\n',
}


@pytest.mark.parametrize("depth", [-1, 0, 1, 2])
@pytest.mark.parametrize(("path", "text"), MOVED.items(), ids=MOVED.keys())
def test_a_method_that_comes_back_at_another_depth_leaves_its_strings(path: str, text: str, depth: int) -> None:
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if re.search(r"\bf\b", line))
    end = next(number for number, line in enumerate(lines) if "return" in line) + (not path.endswith(".py"))
    unit = re.match(r" *", lines[start])[0]  # type: ignore[index] # it always matches
    body = [line.replace("return 1", "return 3") for line in lines[start : end + 1]]
    given = [line.removeprefix(unit) if depth < 0 else unit * depth + line for line in body]
    answer = read_answer("```\n" + "\n".join(given) + "\n```", Files({path: text}), "function")
    assert answer.texts == {path: text.replace("return 1", "return 3")}


DOCUMENTED = 'class C:\n    """C.\n\n    More.\n    """\n\n    def m(self):\n        return 41\n'


@pytest.mark.parametrize("indent", ["", "    "])
@pytest.mark.parametrize("docstring", ['"""C."""', '"""C.\n\n    More.\n    """', "'C.'"])
def test_a_class_given_for_its_methods_keeps_its_docstring(docstring: str, indent: str) -> None:
    text = DOCUMENTED.replace('"""C.\n\n    More.\n    """', docstring)
    text = text if not indent else f"class Outer:\n{re.sub('(?m)^(?=.)', indent, text)}"
    code = "class C:\n    def m(self):\n        return 42\n"
    if indent:
        code = f"class Outer:\n{re.sub('(?m)^(?=.)', indent, code)}"
    answer = read_answer(f"a.py\n```python\n{code}```\n", Files({"a.py": text}), "function")
    assert answer.texts == {"a.py": text.replace("41", "42")}


FUNCTIONS = """\
class C:
    @property
    def size(self):
        \"\"\"How large.\"\"\"
        return 41

    @size.setter
    def size(self, value):
        self.value = value


async def load(path):
    \'\'\'Load it.

      - path: where
    \'\'\'

    def inner():
        \"\"\"Inner.\"\"\"
        return 1

    return path + 41
"""


@pytest.mark.parametrize("name", ["C", "C.size", "load"])
def test_a_function_given_for_its_code_keeps_its_docstring(name: str) -> None:
    bare = re.sub(r"(?s) *(\"\"\"|\'\'\').*?\1\n\n?", "", FUNCTIONS)
    whole, load = bare.split("\n\n\n")
    getter = "\n".join(line.removeprefix("    ") for line in whole.split("\n")[1:4]) + "\n"
    code = {"C": whole + "\n", "C.size": getter, "load": load}[name].replace("41", "42")
    answer = read_answer(f"a.py\n```python\n{code}```\n", Files({"a.py": FUNCTIONS}), "function")
    old, new = ("path + 41", "path + 42") if name == "load" else ("return 41", "return 42")
    assert answer.texts == {"a.py": FUNCTIONS.replace(old, new)}


def test_a_docstring_that_alone_is_gone_was_taken_out() -> None:
    code = "class C:\n    def m(self):\n        return 41\n"
    answer = read_answer(f"a.py\n```python\n{code}```\n", Files({"a.py": DOCUMENTED}), "function")
    assert answer.texts == {"a.py": code}


def test_a_new_docstring_takes_the_place_of_the_old_one() -> None:
    code = 'class C:\n    """New."""\n\n    def m(self):\n        return 42\n'
    answer = read_answer(f"a.py\n```python\n{code}```\n", Files({"a.py": DOCUMENTED}), "function")
    assert answer.texts == {"a.py": code}


@pytest.mark.parametrize(
    ("files", "code", "path"),
    [
        (
            {"a.h": "struct A {\n    int f() const;\n};\n", "a.cpp": "int A::f() const {\n    return 41;\n}\n"},
            "int A::f() const {\n    return 42;\n}\n",
            "a.cpp",
        ),
        (
            {"a.h": "int f(int);\n", "a.c": "int f(int a) {\n    return 41;\n}\n"},
            "int f(int a) {\n    return 42;\n}\n",
            "a.c",
        ),
        (
            {
                "a.pyi": "def f(a): ...\n",
                "a.d.ts": "export function f(a): number;\n",
                "a.ts": "export function f(a) {\n  return 41;\n}\n",
            },
            "export function f(a) {\n  return 42;\n}\n",
            "a.ts",
        ),
    ],
)
def test_code_belongs_where_it_is_defined_and_not_where_it_is_declared(
    files: dict[str, str], code: str, path: str
) -> None:
    answer = read_answer(f"```\n{code}```\n", Files(files), "function")
    assert answer.texts == {path: files[path].replace("41", "42")}


@pytest.mark.parametrize(
    "body",
    [
        "    ?>\n<p>\n  x\n</p>\n<?php\n",
        "    ?><b><?= $n ?></b><?php\n",
        "    ?>\n<?php if ($n): ?>\n<i>\n<?php endif;\n",
    ],
)
def test_a_function_of_php_may_have_html_inside(body: str) -> None:
    function = f"function f() {{\n    $n = 41;\n{body}}}\n"
    text = f"<?php\n{function}"
    for given in (function, text):
        reply = f"a.php\n```php\n{given.replace('41', '42')}```\n"
        assert read_answer(reply, Files({"a.php": text}), "function").texts == {"a.php": text.replace("41", "42")}


PROPERTY = (
    "class A:\n    @property\n    def x(self):\n        return 1\n\n    @x.setter\n    def x(self, value):\n"
    "        self._x = 2\n\n    @x.deleter\n    def x(self):\n        f(3)\n"
)
GET_SET = "class A {\n  get x() { return 1; }\n\n  set x(value) { this._x = 2; }\n}\n"


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        ("def x(self, value):\n    self._x = 9\n", "= 2", "= 9"),
        ("class A:\n    def x(self, value):\n        self._x = 9\n", "= 2", "= 9"),
        ("def x(self):\n    return 9\n", "return 1", "return 9"),
    ],
)
def test_an_accessor_without_its_decorator_is_known_by_its_parameters(code: str, before: str, after: str) -> None:
    assert written("a.py", PROPERTY, code) == PROPERTY.replace(before, after)


INIT = "package a\n\nfunc init() {\n\tx()\n}\n\nfunc init() {\n\ty()\n}\n"
DECLARED = (
    "struct A {\n    int f();\n    int g();\n};\n\nint A::f() {\n    return 1;\n}\n\nint A::g() {\n    return 1;\n}\n"
)
TWINS = [
    # None of them has two parameters, and `set` is no decorator that stays.
    ("a.py", PROPERTY, "def x(self, a, b):\n    return 9\n", "parameters that it has"),
    ("a.js", GET_SET, "class A {\n  x(value) { this._x = 9; }\n}\n", "parameters that it has"),
    ("a.go", INIT, "func init() {\n\tz()\n}\n", "Give each one once"),
    ("a.cpp", DECLARED, "struct A {\n    int g() {\n        return 2;\n    }\n};\n", "A::g"),
    (
        "a.rs",
        "#[cfg(a)]\nfn f() {\n    g(1)\n}\n\n#[cfg(b)]\nfn f() {\n    g(2)\n}\n",
        "fn f() {\n    g(3)\n}\n",
        "once",
    ),
]


@pytest.mark.parametrize(("path", "now", "code", "said"), TWINS)
def test_one_of_twins_is_refused_with_what_to_send(path: str, now: str, code: str, said: str) -> None:
    answer = answered(path, now, code)
    assert answer.texts == {}
    assert said in answer.problem


def test_each_of_twins_given_once_takes_its_place() -> None:
    assert written("a.go", INIT, "func init() {\n\tx()\n}\n\nfunc init() {\n\tz()\n}\n") == INIT.replace("y()", "z()")
    code = "int A::g() {\n    return 2;\n}\n"
    assert written("a.cpp", DECLARED, code) == DECLARED[: DECLARED.rindex("int A::g")] + code
