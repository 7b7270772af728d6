"""A rename keeps to the kind of what is renamed: a type and a function, a field and a method may have the same name."""

from __future__ import annotations

import re

import pytest

from codeagent_lsp.direct.renaming import Rename, home_of
from codeagent_lsp.errors import EditRefused
from codeagent_lsp.tools.code.ast_edit import AstEdit, edited
from codeagent_lsp.tools.code.imports import ImportTargets
from codeagent_lsp.tools.code.rename import rename
from codeagent_lsp.tools.code.source import required
from tests.direct.renames import renamed

TEXTS = {
    "C, a struct and a function": (
        "a.c",
        "struct <T> { int x; };\nint <V>(struct <T> *p) { struct <T> q; return <V>(&q) + sizeof(struct <T>); }\n"
        "int (*h)(struct <T> *) = <V>;\n",
    ),
    "C, a union and a variable": ("a.c", "union <T> { int x; };\nint <V> = 1;\nint g(union <T> u) { return <V>; }\n"),
    "C, an enum and a function": (
        "a.c",
        "enum <T> { A };\nenum <T> <V>(void) { return A; }\nint h(void) { return <V>(); }\n",
    ),
    "C++, a struct and a function": (
        "a.cpp",
        "struct <T> { int x; };\nint <V>(struct <T> *p) { return <V>(nullptr); }\nint k = <V>(0);\nauto h = &<V>;\n",
    ),
    "C++, a class and a variable": ("a.cpp", "class <T> { };\nint <V> = 1;\nint g(class <T> *u) { return <V>; }\n"),
    "Java, a field and a method": (
        "A.java",
        "class A {\n  int <V>;\n  int <C>() { return <V>; }\n  int g() { return this.<V> + this.<C>() + <C>(); }\n"
        "  Object h() { this.<V> = 1; return (Runnable) this::<C>; }\n}\n",
    ),
    "Java, a class and a method": (
        "A.java",
        "class A {\n  class <T> {}\n  Object <C>() { return new <T>(); }\n  <T> g() { return (<T>) <C>(); }\n}\n",
    ),
    "TypeScript, an interface and a function": (
        "a.ts",
        "interface <T> { x: 1 }\nfunction <V>(p: <T>): <T> { return <V>(p) as <T>; }\nconst h: typeof <V> = <V>;\n",
    ),
    "TypeScript, a type and a constant": (
        "a.ts",
        "type <T> = 'a' | 'b';\nconst <V> = { a: 'a' };\nexport function g(x: <T>) { return <V>[x]; }\n",
    ),
    "TypeScript, an export of both": (
        "a.ts",
        "type <T> = 'a';\nconst <V> = 1;\nlet x: <T>;\nexport { <?> };\n",
    ),
    "TSX, a type and a component": (
        "a.tsx",
        "type <T> = { x: 1 };\nfunction <V>(p: <T>) { return null; }\nexport const g = (p: <T>) => <V>(p);\n",
    ),
    "Rust, a module and a function": ("a.rs", "mod <T> { pub fn k() {} }\nfn <V>() { <T>::k(); <V>() }\n"),
    "Rust, a struct and a function": ("a.rs", "struct <T> { x: i32 }\nfn <V>() -> <T> { <V>(); <T> { x: 1 } }\n"),
    "Rust, a macro and a function": ("a.rs", "macro_rules! <M> { () => {} }\nfn <V>() { <M>!(); <V>() }\n"),
    "PHP, a class and a function": (
        "a.php",
        "<?php\nclass <T> { const K = 1; }\nfunction <C>() { return new <T>(); }\n$x = <C>();\n$y = new <T>;\n",
    ),
    "PHP, a property and a method": (
        "a.php",
        "<?php\nclass A {\n  public $<V> = 1;\n  function <C>() { return $this-><V> + $this-><C>(); }\n}\n",
    ),
    "bash, a variable and a function": ("a.sh", "<V>=1\n<C>() { echo $<V>; }\n<C>\necho ${<V>}\n"),
}
ALIKE = {
    "C, a struct and its own name": (
        "a.c",
        "typedef struct <T> { struct <T> *next; } <T>;\n<T> *g(struct <T> *p) { return p; }\n",
    ),
    "C, a prototype": ("a.c", "int <T>(int);\nint <T>(int x) { return <T>(x); }\n"),
    "C++, a constructor": ("a.cpp", "struct <T> { <T>(int x); };\n<T> g() { return <T>(1); }\n"),
    "Java, overloads": (
        "A.java",
        "class A {\n  int <T>() { return <T>(1); }\n  int <T>(int x) { return this.<T>(); }\n}\n",
    ),
    "Java, a constructor": ("f.java", "class <T> {\n  <T>() {}\n  <T> g() { return new <T>(); }\n}\n"),
    "TypeScript, an interface that is merged": (
        "a.ts",
        "interface <T> { x: 1 }\ninterface <T> { y: 2 }\nlet z: <T>;\n",
    ),
    "TypeScript, a class": ("a.ts", "class <T> {}\nlet z: <T> = new <T>();\nexport { <T> };\n"),
    "Rust, a struct like a function": ("a.rs", "struct <T>(i32);\nfn g() -> <T> { <T>(1) }\n"),
    "PHP, a class": ("a.php", "<?php\nclass <T> {}\n$y = new <T>;\n$z = <T>::class;\n"),
    "Ruby, a class that is opened again": ("a.rb", "class F\n  def x; F.new; end\nend\n".replace("F", "<T>")),
}
ALIKE |= {
    "C++, a constant between angles": ("a.cpp", "const int <T> = 3;\nstd::array<int, <T>> a;\nA<<T>> b;\n"),
    "C++, a namespace": ("a.cpp", "namespace <T> { int k(); }\nint g() { return <T>::k(); }\n"),
    "Java, a variable and its method": (
        "A.java",
        "class A {\n  A <T>;\n  B g() { return (B) <T>::g; }\n}\n",
    ),
    "Java, a class that is made by name": (
        "A.java",
        "class <T> {}\nclass A {\n  B g() { return (B) <T>::new; }\n}\n",
    ),
    "Rust, a module in a path": ("a.rs", "mod a {\n  pub mod <T> { pub fn x() {} }\n}\nfn g() { a::<T>::x(); }\n"),
    "Rust, an enum": ("a.rs", "enum <T> { A }\nfn g(x: <T>) -> bool { matches!(x, <T>::A) || <T>::A == x }\n"),
    "Rust, a constant": ("a.rs", "const <T>: usize = 1;\nfn g() -> [u8; <T>] { [0; <T>] }\n"),
    "TypeScript, an enum": ("a.ts", "enum <T> { A }\nlet x: <T> = <T>.A;\nexport default <T>;\n"),
    "TypeScript, a namespace": ("a.ts", "namespace <T> { export type X = 1; }\nlet x: <T>.X;\n"),
    "PHP, a type of a parameter": ("a.php", "<?php\nclass <T> {}\nfunction g(<T> $x) { return $x instanceof <T>; }\n"),
}
_PLACE = re.compile(r"<(\w|\?)>")
_NAMES = ("f", "Fee")


def written(text: str, name: str, kind: str = "", new: str = "") -> str:
    return _PLACE.sub(lambda found: new if found[1] == kind else name, text)


def kinds_of(text: str) -> list[str]:
    return list(dict.fromkeys(each for each in _PLACE.findall(text) if each != "?"))


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize(("path", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_only_one_kind_is_renamed(path: str, text: str, name: str) -> None:
    before = written(text, name)
    with pytest.raises(EditRefused, match="means 2 definitions"):
        edited(path, before, [AstEdit(name, "rename", "other")])
    kinds = kinds_of(text)
    assert len(kinds) == 2
    order = sorted(kinds, key=lambda kind: text.index(f"<{kind}>"))
    for number, kind in enumerate(order, 1):
        done = edited(path, before, [AstEdit(f"{name}#{number}", "rename", "other")])
        assert done.text == written(text, name, kind, "other")


@pytest.mark.parametrize(("path", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_a_task_that_does_not_say_which_is_left_to_the_model(path: str, text: str) -> None:
    sources = {path: required(path, written(text, "f"))}
    assert home_of(Rename("f", "other"), sources, [path]) is None


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize(("path", "text"), ALIKE.values(), ids=ALIKE.keys())
def test_what_is_one_thing_is_renamed_together(path: str, text: str, name: str) -> None:
    name = "Fee" if path.endswith(".rb") else name
    assert edited(path, written(text, name), [AstEdit(name, "rename", "Other")]).text == written(text, "", "T", "Other")


ELSEWHERE = {
    "C": (
        "f.h",
        "struct <T> { int x; };\n",
        "b.c",
        '#include "f.h"\nint k(struct <T> *p) { int <V> = 1; return <V>; }\n',
    ),
    "C, a function": ("f.h", "int <T>(int);\n", "b.c", '#include "f.h"\nint k(struct <V> *p) { return <T>(1); }\n'),
    "TypeScript": ("f.ts", "export interface <T> { x: 1 }\n", "b.ts", "import { <T> } from './f';\nlet x: <T>;\n"),
}


@pytest.mark.parametrize(("home", "text", "path", "other"), ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_other_files_keep_to_the_kind(home: str, text: str, path: str, other: str) -> None:
    sources = {home: required(home, written(text, "f")), path: required(path, written(other, "f"))}
    asked = Rename("f", "other")
    found = home_of(asked, sources, [home])
    assert found is not None
    done = renamed(asked, found, sources, ImportTargets(frozenset(sources)))
    assert done == {home: written(text, "f", "T", "other"), path: written(other, "f", "T", "other")}


def test_a_name_of_two_kinds_in_two_files_is_left_to_the_model() -> None:
    texts = {"a.h": "struct f { int x; };\n", "b.h": "int f(int);\n", "c.c": '#include "a.h"\n#include "b.h"\nint x;\n'}
    sources = {path: required(path, text) for path, text in texts.items()}
    assert home_of(Rename("f", "other"), sources, ["a.h"]) is None


PLACES = {
    "a method in a macro": (
        "a.rs",
        'struct S;\nimpl S {\n    fn load(&self) { println!("{}", self.load()); }\n}\n',
        "load",
        2,
        (),
    ),
    "a function in macros": ("a.rs", "fn load() {}\nfn g() { vec![load()]; assert_eq!(load(), ()); }\n", "load", 3, ()),
    "a constant of a class": (
        "a.php",
        "<?php\nclass A { const LIMIT = 3; function f() { return self::LIMIT; } }\n",
        "LIMIT",
        2,
        (),
    ),
    "a member in a pattern": (
        "a.py",
        "class C:\n    RED = 1\n\ndef f(x):\n    match x:\n        case C.RED:\n            x = 1\n",
        "RED",
        2,
        (),
    ),
    "an exported function": ("a.sh", "load() { :; }\nexport -f load\nload\n", "load", 3, ()),
    "a trap": ("a.sh", "load() { :; }\ntrap load EXIT\nload\n", "load", 2, (2,)),
    "a line of the preprocessor": ("a.c", "int load(int y) { return y; }\n#define CALL(y) load(y)\n", "load", 1, (2,)),
    "symbols": (
        "a.rb",
        "class A\n  def load\n    1\n  end\n  private :load\n  X = method(:load)\nend\n",
        "load",
        1,
        (5, 6),
    ),
    "words in texts": ("a.ts", "function load() {}\n// load it\nconst s = `load ${load()}`;\n", "load", 2, ()),
}


@pytest.mark.parametrize(("path", "text", "name", "splices", "doubtful"), PLACES.values(), ids=PLACES.keys())
def test_where_the_syntax_does_not_show_it_all(
    path: str, text: str, name: str, splices: int, doubtful: tuple[int, ...]
) -> None:
    """What is sure is renamed, and nothing in code is passed over in silence."""
    source = required(path, text)
    done = rename(source, [each for each in source.definitions if each.symbol.name == name], "renamed")
    assert (len(done.splices), done.doubtful) == (splices, doubtful)
