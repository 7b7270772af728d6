"""A rename by machine keeps programs as they were: names of other scopes, keywords and imports stay, and a member whose
name a base class, an interface or the language prescribes is left to the model.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import re

import pytest

from tests.direct.renames import lines_after

OWN = "def size(x=()):\n    return len(x)\n\n\n"
KEPT = {
    "a keyword of a pattern": "def f(x):\n    match x:\n        case Point(size=size):\n            return size\n",
    "a default of a lambda": ("f = lambda size=size: size\n", "f = lambda size=extent: size\n"),
    "annotations": (
        "def f(a: size, *, size: int = 1) -> size: ...\n",
        "def f(a: extent, *, size: int = 1) -> extent: ...\n",
    ),
    "a class that takes the name": (
        "class A:\n    size = size\n    def f(self, size=size): ...\n",
        "class A:\n    size = extent\n    def f(self, size=size): ...\n",
    ),
}
LEFT_TO_THE_MODEL = {
    "an import below": ("a.py", f"{OWN}def g():\n    import size\n    return size.x\n", "size"),
    "another module's": ("a.py", f"try:\n    from fast import size\nexcept ImportError:\n    {OWN[:-2]}", "size"),
    "a base class": ("a.py", "import b\n\nclass A(b.B):\n    def size(self): ...\n", "A.size"),
    "called by the language": ("a.py", "class A:\n    def __len__(self): ...\n", "A.__len__"),
    "TypeScript": ("a.ts", "class A extends B { override size() { return super.size(); } }\n", "A.size"),
    "an interface": ("a.ts", "class A implements I { size() {} }\n", "A.size"),
    "by its shape": ("a.ts", "interface I { size(): void }\nclass A { size() {} }\n", "A.size"),
    "Java": ("A.java", "class A implements C<A> {\n  public int size(A o) { return 1; }\n}\n", "A.size"),
    "C#": ("A.cs", "class A : B {\n  public override int Size() { return 1; }\n}\n", "A.Size"),
    "C++": ("a.cpp", "struct A : B {\n  int size() override { return 1; }\n};\n", "A.size"),
    "a trait": ("a.rs", "struct A;\nimpl I for A { fn size(&self) {} }\n", "A.size"),
    "Go": ("a.go", "package a\n\ntype A struct{}\n\nfunc (a A) Size() {}\n\ntype I interface{ Size() }\n", "A.Size"),
    "the language Go": (
        "a.go",
        "package a\n\ntype A struct{}\n\nfunc (a A) Error() string { return a.x }\n",
        "A.Error",
    ),
    "PHP": ("a.php", "<?php class A extends B { function size() {} }\n", "A.size"),
    "Ruby": ("a.rb", "class A < B\n  def size\n  end\nend\n", "A.size"),
    "another this": ("a.js", "class A { size() {} f() { return function () { return this.size(); }; } }\n", "A.size"),
}


@pytest.mark.parametrize("kind", KEPT)
def test_only_uses_of_the_function_change(kind: str) -> None:
    text = KEPT[kind]
    before, after = (text, text) if isinstance(text, str) else text
    assert lines_after("a.py", OWN + before, "size", "extent") == OWN.replace("size", "extent") + after


@pytest.mark.parametrize("kind", LEFT_TO_THE_MODEL)
def test_what_may_be_another_thing_is_left_to_the_model(kind: str) -> None:
    path, text, old = LEFT_TO_THE_MODEL[kind]
    assert lines_after(path, text, old, "extent") is None


def test_lifetimes_and_labels_are_no_uses() -> None:
    text = "fn size<'size>(x: &'size str) -> &'size str { 'size: loop { break 'size; } }\nfn g() { size(\"\"); }\n"
    wanted = text.replace("fn size<", "fn extent<").replace("{ size(", "{ extent(")
    assert lines_after("a.rs", text, "size", "extent") == wanted


STATEMENTS = """
def F(size): return size

def F(a=size, size=2): return a([1]) + size

F = lambda size=size: size

F = [size for size in range(3)]

F = [size([1]) for _ in size and range(2)]

F = {'size': size([1]), **dict(size=2)}

class F:
    size = size
    def size2(self, size=size): return size

class F:
    other = size
    size = 4
    third = size
    def m(self): return size([self.size])

def F():
    global size
    return size([1, 2])

def F():
    size = 1
    def inner():
        nonlocal size
        size += 1
        return size
    return inner()

def F(x):
    match x:
        case {'size': size}: return size
        case [size, *_]: return size
        case slice(start=size): return size
    return size(x)

def F(x: size = size, *size: size) -> size: return x

def F():
    for size in range(2): pass
    return size

def F():
    try: raise KeyError(1)
    except KeyError as size: return str(size)

def F():
    if (size := 3): return size

F = f'{size([1, 2])} size {size.__call__([1])!r:>{size([])}}'

F = 'size' + str(size([3]))
""".strip().split("\n\n")
SHOWN = """
for name, each in sorted(globals().items()):
    if name.startswith("f_"):
        found = {key: getattr(value, "__name__", value) for key, value in vars(each).items() if "size" in key or key in
                 ("extent", "other", "third")} if isinstance(each, type) else each() if callable(each) else each
        print(name, getattr(found, "__name__", found))
"""


@pytest.mark.slow
def test_a_program_prints_the_same_after_any_rename() -> None:
    chance, done = random.Random(34), 0
    every = list(itertools.combinations(range(len(STATEMENTS)), 2))
    for chosen in (*every, *(chance.sample(range(len(STATEMENTS)), 6) for _ in range(200))):
        body = "\n".join(re.sub(r"\bF\b", f"f_{number}", STATEMENTS[number]) for number in chosen)
        text = f"{OWN}{body}\n"
        after = lines_after("a.py", text, "size", "extent")
        if after is not None:
            done += 1
            assert _printed(after).replace("extent", "size") == _printed(text), after
    assert done > len(every) // 2


def _printed(text: str) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            exec(compile(text + SHOWN, "a.py", "exec"), {})
        except Exception as error:
            said.write(f"{type(error).__name__}: {error}")
    return said.getvalue()
