"""Renames that the words of a task say plainly: read from them, and done by the syntax tree."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from codeagent_lsp.direct.renaming import Rename, home_of, rename_in, still_used
from codeagent_lsp.tools.code.imports import ImportTargets
from codeagent_lsp.tools.code.source import SourceFile, source_of
from tests.direct.renames import lines_after, renamed

STOCK = '''"""What is sold. The Obj is at the heart of it."""


class Obj:
    def more(self, count):
        """Another Obj with more of it. Obj is never changed."""
        return Obj(self.title, self.count + count)  # an Obj, not an Object


def both(first, second):
    Obj_count = {"Obj": 2}
    return [first, second]
'''
STORE = """from stock import Obj


def delivery(titles):
    Objs = [Obj(title, 1) for title in titles]
    return [f"one {each}: {Obj.__name__}" for each in Objs]


def other(obj):
    def Obj():
        return 1
    return Obj()
"""


def sources(**texts: str) -> dict[str, SourceFile]:
    found = {name.replace("__", "."): source_of(name.replace("__", "."), text) for name, text in texts.items()}
    return {name: source for name, source in found.items() if source is not None}


@pytest.mark.parametrize(
    ("words", "old", "new"),
    [
        ("Rename the class Obj in stock.py to Good, everywhere it is used.", "Obj", "Good"),
        ("Obj should be called Good. Please rename this class in the whole project; the tests do so.", "Obj", "Good"),
        ("Please rename Obj to Good in stock.py and in all files that use it. Nothing may be left.", "Obj", "Good"),
        ("请把 stock.py 中的 Obj 改名为 Good，所有用到它的文件也要一起改。", "Obj", "Good"),
        ("把`get_user`重命名为`load_user`", "get_user", "load_user"),
        ("重命名 fetchAll 为 loadAll。", "fetchAll", "loadAll"),
        ("rename `Loader.fetch` to `load`", "Loader.fetch", "load"),
        ("rename Loader.fetch() to Loader.load()", "Loader.fetch", "load"),
        ("Renaming the function named go → forward", "go", "forward"),
        ("Change the name of the constant MAX to MAX_TRIES", "MAX", "MAX_TRIES"),
        ("rename all uses of the error Bad to BadInput", "Bad", "BadInput"),
        ("The method `mv` must be renamed to `move`.", "mv", "move"),
    ],
)  # fmt: skip
def test_what_the_words_ask_for(words: str, old: str, new: str) -> None:
    assert rename_in(words) == Rename(old, new)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Rename it to something clearer.",
        "Rename the variables in stock.py to be consistent.",
        "Rename one to first and rename two to second.",
        "Fix the test, do not change any names.",
        "What should this be called?",
        "rename Obj to Obj",
        "Move Obj to stock.py",
    ],
)
def test_what_is_not_said_plainly_is_none(words: str) -> None:
    assert rename_in(words) is None


@pytest.mark.parametrize(
    "words",
    [
        "Rename one to first and two to second.",
        "Rename Obj to Good and add a method less.",
        "Rename Obj to Good. Then fix the test.",
        "Rename Obj to Good and update the README.",
        "Rename Obj to Good but keep an alias for old callers.",
        "Rename Obj to Good in stock.py only.",
        "Rename Obj to Good, don't touch the tests.",
        "把 Obj 改名为 Good，然后删除 store.py",
        "只在 stock.py 中把 Obj 改名为 Good",
        "Rename Obj to Good." + " " * 2000 + "It is late.",
    ],
)
def test_a_task_that_asks_for_more_is_not_only_a_rename(words: str) -> None:
    asked = rename_in(words)
    assert asked is not None and not asked.alone


def targets(files: Mapping[str, SourceFile]) -> ImportTargets:
    return ImportTargets(frozenset(files), {"": "shop"})


def test_the_definition_and_its_uses_but_no_word_in_a_comment_or_a_string() -> None:
    files = sources(stock__py=STOCK, store__py=STORE)
    asked = Rename("Obj", "Good")
    home = home_of(asked, files, ())
    assert home is not None and home.path == "stock.py"
    texts = renamed(asked, home, files, targets(files))
    assert texts["stock.py"] == STOCK.replace("class Obj", "class Good").replace("return Obj(", "return Good(")
    inner = STORE.index("    def Obj")
    assert texts["store.py"] == STORE[:inner].replace("Obj", "Good").replace("Goods", "Objs") + STORE[inner:]
    now = sources(stock__py=texts["stock.py"], store__py=texts["store.py"])
    assert still_used(asked, home, now, targets(files)) == ()
    assert still_used(asked, home, files, targets(files)) == ("stock.py", "store.py")
    assert still_used(asked, home, {**now, "store.py": files["store.py"]}, targets(files)) == ("store.py",)


def test_other_languages() -> None:
    used = 'import { fetchAll } from "./a";\nexport const all = { fetchAll, s: `${fetchAll(2)} fetchAll` };\n'
    files = sources(a__ts="export function fetchAll(n: number) { return n; }\n", b__ts=used)
    asked = Rename("fetchAll", "loadAll")
    home = home_of(asked, files, ())
    assert home is not None
    wanted = used.replace("{ fetchAll }", "{ loadAll }").replace("${fetchAll", "${loadAll")
    assert renamed(asked, home, files, targets(files)) == {
        "a.ts": "export function loadAll(n: number) { return n; }\n",
        "b.ts": wanted.replace("{ fetchAll, s", "{ fetchAll: loadAll, s"),
    }


MAYBE = {
    "a member of another object": (
        {"a.py": "def size(x): ...\n", "b.py": "import numpy as np\nfrom a import size\nsize(np.zeros(3).size)\n"},
        "size",
    ),
    "a method of JavaScript": ({"a.js": "export function push(x) {}\n", "b.js": "l.push(1);\n"}, "push"),
    "a method on an object": ({"a.py": "class A:\n    def go(self): ...\n", "b.py": "x.go()\n"}, "go"),
    "a field of C": ({"a.h": "int size(int x);\n", "b.c": '#include "a.h"\nint f(Q *q) { return q->size; }\n'}, "size"),
    "a member of TypeScript": (
        {"a.ts": "export const total = 1;\n", "b.ts": "import { total } from './a';\nf(total, cart.total);\n"},
        "total",
    ),
    "a field of Go": (
        {"p/a.go": "package p\nfunc Size() int { return 1 }\n", "p/b.go": "package p\nvar n = q.Size\n"},
        "Size",
    ),
    "a method of Rust": ({"src/a.rs": "pub fn size() {}\n", "src/b.rs": "fn g(q: Q) { q.size(); }\n"}, "size"),
    "a method of Java": (
        {
            "A.java": "class A { int size() { return 1; } }\n",
            "B.java": "class B { int n(List l) { return l.size(); } }\n",
        },
        "size",
    ),
    "an unresolved import": ({"a.py": "def go(): ...\n", "b.py": "from other import go\ngo()\n"}, "go"),
    "what a module exports": ({"a.py": "__all__ = ['go']\n\n\ndef go(): ...\n"}, "go"),
}


@pytest.mark.parametrize(("texts", "old"), MAYBE.values(), ids=MAYBE.keys())
def test_where_a_use_may_be_another_thing_nothing_is_renamed_by_machine(texts: dict[str, str], old: str) -> None:
    files = {path: source for path, text in texts.items() if (source := source_of(path, text))}
    home = home_of(Rename(old, "another"), files, ())
    assert home is not None
    assert renamed(Rename(old, "another"), home, files, targets(files)) == {}


SURE = {
    "a method of another class": (
        {"a.py": "def «size»(x): ...\n\n\nclass Box:\n    def size(self):\n        return self.size()\n"},
        "size",
    ),
    "a keyword and a parameter": (
        {
            "a.py": "def «size»(x): ...\n",
            "b.py": "from a import «size»\n\n\ndef other(size):\n    return size\n\n\nzeros(size=«size»(1))\n",
        },
        "size",
    ),
    "a property of an object that is made": (
        {
            "a.ts": "export const «total» = 1;\n",
            "b.ts": "import { «total» } from './a';\nconst o = { total: «total» };\n",
        },
        "total",
    ),
    "a package": (
        {
            "p/a.go": "package p\nfunc «Size»() {}\n",
            "b.go": 'package b\nimport "shop/p"\nvar n = p.«Size»\n',
        },
        "Size",
    ),
}


@pytest.mark.parametrize(("marked", "old"), SURE.values(), ids=SURE.keys())
def test_what_is_surely_another_thing_does_not_hinder(marked: dict[str, str], old: str) -> None:
    texts = {path: text.replace("«", "").replace("»", "") for path, text in marked.items()}
    files = {path: source for path, text in texts.items() if (source := source_of(path, text))}
    home = home_of(Rename(old, "Another"), files, ())
    assert home is not None
    wanted = {path: text.replace(f"«{old}»", "Another") for path, text in marked.items()}
    assert renamed(Rename(old, "Another"), home, files, targets(files)) == wanted


def test_what_cannot_be_told_apart_is_left_to_the_model() -> None:
    both = sources(a__py="def go():\n    pass\n", b__py="def go():\n    pass\n")
    asked = Rename("go", "forward")
    assert home_of(asked, both, ()) is None and home_of(asked, {}, ()) is None
    chosen = home_of(asked, both, ["b.py"])
    assert chosen is not None and chosen.path == "b.py"
    two = sources(a__py="class A:\n    def go(self): pass\nclass B:\n    def go(self): pass\n")
    assert home_of(asked, two, ()) is None
    one = home_of(Rename("A.go", "forward"), two, ())
    assert one is not None
    assert renamed(Rename("A.go", "forward"), one, two, targets(two))["a.py"].count("forward") == 1
    taken = sources(a__py="def go():\n    pass\n\n\ndef forward():\n    pass\n")
    home = home_of(asked, taken, ())
    assert home is not None and renamed(asked, home, taken, targets(taken)) == {}


@pytest.mark.parametrize(
    ("path", "text", "word"),
    [
        ("a.py", "def go():\n    pass\n\n\ngo()\n", "class"),
        ("a.js", "function go() {}\ngo();\n", "new"),
        ("a.ts", "export function go(): void {}\ngo();\n", "if"),
        ("a.go", "package a\n\nfunc go_() {}\n\nfunc main() { go_() }\n", "func"),
        ("a.rs", "fn go() {}\nfn main() { go(); }\n", "match"),
        ("A.java", "class A { void go() { go(); } }\n", "return"),
    ],
)
def test_a_word_of_the_language_is_no_name(path: str, text: str, word: str) -> None:
    old = "go_" if path == "a.go" else "go"
    assert lines_after(path, text, old, word) is None
    assert (lines_after(path, text, old, "forward") or "").count("forward") == 2
