"""The repairs of callers, text by text: each case is what the user changed, and callers before and after.

Whether a place is concerned is the language server's word; here every place is taken to be.
"""

from __future__ import annotations

from textwrap import dedent

import pytest

from codeagent_lsp.inline.finish_change.finishing import affected_places, changed_declarations
from codeagent_lsp.inline.finish_change.sites import apply_edits


def repaired(old: dict[str, str], new: dict[str, str], path: str, caller: str) -> str:
    """Return the text of a caller after all repairs that are plain."""
    found = affected_places(changed_declarations(old, new), {path: caller})
    return apply_edits(caller, [edit for site in found.get(path, ()) for edit in site.edits or ()])


def text(lines: str) -> str:
    return dedent(lines).lstrip("\n")


PYTHON = [
    (
        "a parameter added, in scope at one caller",
        "def load(name): ...\n",
        "def load(name, folder): ...\n",
        """
        def one(folder):
            return load(1) + load(name=2)
        def two():
            return load(3)
        def three():
            folder = 4
            return [load(x) for x in load(5)]
        """,
        """
        def one(folder):
            return load(1, folder) + load(name=2, folder=folder)
        def two():
            return load(3)
        def three():
            folder = 4
            return [load(x, folder) for x in load(5, folder)]
        """,
    ),
    (
        "a parameter in front",
        "def load(name): ...\n",
        "def load(folder: str | None, name): ...\n",
        "load(1)\nload(name=1)\n",
        "load(None, 1)\nload(name=1, folder=None)\n",
    ),
    (
        "an optional parameter needs nothing",
        "def load(name): ...\n",
        "def load(name, folder=None): ...\n",
        "load(1)\n",
        "load(1)\n",
    ),
    (
        "a parameter removed; what may have effects stays",
        "def load(name, folder, more=None): ...\n",
        "def load(name, more=None): ...\n",
        "load(1, 2)\nload(1, folder=2)\nload(1, 2, 3)\nload(1, make())\nload(\n    1,\n    2,\n)\n"
        "load(load(1, 2), 3)\nload(1, Box(2))\nload(1, Box(make()))\n",
        "load(1)\nload(1)\nload(1, 3)\nload(1, make())\nload(\n    1,\n)\nload(load(1))\n"
        "load(1)\nload(1, Box(make()))\n",
    ),
    (
        "all of them removed",
        "def load(name): ...\n",
        "def load(): ...\n",
        "load(1)\nload(\n    1,\n)\n",
        "load()\nload()\n",
    ),
    (
        "parameters in another order",
        "def load(name, folder): ...\n",
        "def load(folder, name): ...\n",
        "load(1, 2)\nload(1, folder=2)\nload(name=1, folder=2)\nload(*all)\nload(one(), two())\n",
        "load(2, 1)\nload(name=1, folder=2)\nload(name=1, folder=2)\nload(*all)\nload(one(), two())\n",
    ),
    (
        "a parameter by another name",
        "def load(name: str):\n    return name\n",
        "def load(title: str):\n    return title\n",
        "load(1)\nload(name=name)\nother(name=1)\n",
        "load(1)\nload(title=name)\nother(name=1)\n",
    ),
    (
        "by name only now",
        "def load(name, folder): ...\n",
        "def load(name, *, folder): ...\n",
        "load(1, 2)\n",
        "load(1, folder=2)\n",
    ),
    (
        "a constructor, and one that is inherited",
        "class Box:\n    def __init__(self, width, height): ...\n",
        "class Box:\n    def __init__(self, width): ...\n",
        """
        class Small(Box):
            pass
        class Own(Box):
            def __init__(self):
                super().__init__(1, 2)
        Box(1, 2), Small(1, height=2), Own(1, 2)
        """,
        """
        class Small(Box):
            pass
        class Own(Box):
            def __init__(self):
                super().__init__(1)
        Box(1), Small(1), Own(1, 2)
        """,
    ),
    (
        "a field of a data class",
        "@dataclass\nclass Box:\n    width: int\n    height: int = 0\n",
        "@dataclass\nclass Box:\n    breadth: int\n    height: int = 0\n",
        "box = Box(width=1)\n",
        "box = Box(breadth=1)\n",
    ),
    (
        "a method, on an object and on its class",
        "class Box:\n    def grow(self, by, much): ...\n",
        "class Box:\n    def grow(self, by): ...\n",
        "box.grow(1, 2)\nBox.grow(box, 1, 2)\ngrow(1, 2)\n",
        "box.grow(1)\nBox.grow(box, 1, 2)\ngrow(1, 2)\n",
    ),
    (
        "a function by another name",
        "def load(name):\n    return open(name).read()\n",
        "def read(name):\n    return open(name).read()\n",
        """
        from lib import load, other
        @load
        def one(x: load):
            return load(1), [load], x.load
        def two(load):
            return load
        """,
        """
        from lib import read, other
        @read
        def one(x: read):
            return read(1), [read], x.read
        def two(load):
            return load
        """,
    ),
    (
        "by another name, imported under one of its own",
        "def load(name):\n    return open(name).read()\n",
        "def read(name):\n    return open(name).read()\n",
        "from lib import load as take\ntake(1)\n",
        "from lib import read as take\ntake(1)\n",
    ),
    (
        "an attribute by another name",
        "class Box:\n    width: int = 0\n    height: int = 0\n",
        "class Box:\n    breadth: int = 0\n    height: int = 0\n",
        "box.width = 1\nbox.height = 2\n",
        "box.breadth = 1\nbox.height = 2\n",
    ),
    (
        "characters of more than a byte",
        "def load(name): ...\n",
        "def load(name, folder: str | None): ...\n",
        "load('äöü 你好')  # ✓\nload('ß', )\n",
        "load('äöü 你好', None)  # ✓\nload('ß', None, )\n",
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "caller", "after"), [each[1:] for each in PYTHON], ids=[each[0] for each in PYTHON]
)
def test_callers_in_python(old: str, new: str, caller: str, after: str) -> None:
    assert repaired({"lib.py": old}, {"lib.py": new}, "use.py", text(caller)) == text(after)


TYPESCRIPT = [
    (
        "a parameter added",
        "export function load(name: string) {}\n",
        "export function load(name: string, folder: string | undefined) {}\n",
        "load('a');\nfunction f(folder: string) { return load('b'); }\n",
        "load('a', undefined);\nfunction f(folder: string) { return load('b', folder); }\n",
    ),
    (
        "a parameter removed in the middle, and one of an arrow",
        "export const load = (name: string, folder: string, more?: number) => name;\n",
        "export const load = (name: string, more?: number) => name;\n",
        "load('a', 'b');\nlib.load('a', 'b', 3);\nload(\n  'a',\n  'b',\n);\n",
        "load('a');\nlib.load('a', 3);\nload(\n  'a',\n);\n",
    ),
    (
        "a constructor in another order",
        "class Box { constructor(width: number, title: string) {} }\n",
        "class Box { constructor(title: string, width: number) {} }\n",
        "const box = new Box(1, 'a');\nBox(1, 'a');\n",
        "const box = new Box('a', 1);\nBox('a', 1);\n",
    ),
    (
        "a member by another name",
        "interface Box { width: number; height: number }\n",
        "interface Box { breadth: number; height: number }\n",
        "const box: Box = { width: 1, height: 2 };\nconst { width } = box;\n"
        "const other: Box = { width };\nbox.width;\n",
        "const box: Box = { breadth: 1, height: 2 };\nconst { breadth: width } = box;\n"
        "const other: Box = { breadth: width };\nbox.breadth;\n",
    ),
    (
        "a function by another name",
        "export function load(name: string) { return open(name).read(); }\n",
        "export function read(name: string) { return open(name).read(); }\n",
        'import { load } from "./lib";\nload("a");\nconst all = { load };\n',
        'import { read } from "./lib";\nread("a");\nconst all = { load: read };\n',
    ),
]


@pytest.mark.parametrize("ending", ["ts", "tsx"])
@pytest.mark.parametrize(
    ("old", "new", "caller", "after"), [each[1:] for each in TYPESCRIPT], ids=[each[0] for each in TYPESCRIPT]
)
def test_callers_in_typescript(old: str, new: str, caller: str, after: str, ending: str) -> None:
    assert repaired({f"lib.{ending}": old}, {f"lib.{ending}": new}, f"use.{ending}", caller) == after


def test_callers_in_javascript() -> None:
    old, new = "export function load(name, folder) { return name }\n", "export function load(name) { return name }\n"
    assert repaired({"lib.js": old}, {"lib.js": new}, "use.js", "load(1, 2)\n") == "load(1)\n"


def test_callers_in_go() -> None:
    old = "package a\n\nfunc Load(name string, deep bool) error { return nil }\n"
    new = "package a\n\nfunc Load(ctx context.Context, name string) error { return nil }\n"
    caller = "package b\n\nfunc f(ctx context.Context) error {\n\treturn a.Load(name, true)\n}\n"
    assert repaired({"a.go": old}, {"a.go": new}, "b.go", caller) == caller, "one may be for the other"
    new = "package a\n\nfunc Load(ctx context.Context, name string, deep bool) error { return nil }\n"
    after = caller.replace("a.Load(name", "a.Load(ctx, name")
    assert repaired({"a.go": old}, {"a.go": new}, "b.go", caller) == after
    new = "package a\n\nfunc Read(name string, deep bool) error { return nil }\n"
    assert repaired({"a.go": old}, {"a.go": new}, "b.go", caller) == caller.replace("Load", "Read")


MOVED = "def load(name):\n    return open(name).read()\n"


@pytest.mark.parametrize(
    ("caller", "after"),
    [
        ("from pkg.lib import load\n", "from pkg.inner.new import load\n"),
        (
            "from pkg.lib import load as take, other\n",
            "from pkg.lib import other\nfrom pkg.inner.new import load as take\n",
        ),
        ("from .lib import other, load\n", "from .lib import other\nfrom .inner.new import load\n"),
        (
            "def f():\n    from pkg.lib import (\n        load,\n        other,\n    )\n",
            "def f():\n    from pkg.lib import (\n        other,\n    )\n    from pkg.inner.new import load\n",
        ),
        ("from elsewhere import load\n", "from elsewhere import load\n"),
    ],
)
def test_imports_in_python_of_what_has_moved(caller: str, after: str) -> None:
    old = {"/w/pkg/lib.py": f"{MOVED}\n\nother = 1\n", "/w/pkg/inner/new.py": ""}
    new = {"/w/pkg/lib.py": "other = 1\n", "/w/pkg/inner/new.py": MOVED}
    assert repaired(old, new, "/w/pkg/use.py", caller) == after


@pytest.mark.parametrize(
    ("caller", "after"),
    [
        ('import { load } from "./lib";\n', 'import { load } from "./inner/fresh";\n'),
        ("import { load } from './lib.js'\n", "import { load } from './inner/fresh.js'\n"),
        (
            'import { load, other } from "./lib";\n',
            'import { other } from "./lib";\nimport { load } from "./inner/fresh";\n',
        ),
        ('import { load } from "lib";\n', 'import { load } from "lib";\n'),
    ],
)
def test_imports_in_typescript_of_what_has_moved(caller: str, after: str) -> None:
    moved = "export function load(name: string) { return open(name).read(); }\n"
    old = {"/w/lib.ts": moved, "/w/inner/fresh.ts": ""}
    new = {"/w/lib.ts": "", "/w/inner/fresh.ts": moved}
    assert repaired(old, new, "/w/use.ts", caller) == after


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("def f(a): ...\n", "def f(a, b: ...\n", "the user is in the middle of it"),
        ("def f(a): ...\n", "def f(a):\n    return 1\n", "only the body is another"),
        ("def f(a): ...\n", "def f(a):\n    ...\n\n\ndef g(b): ...\n", "it is only new"),
        (
            "class A:\n    x: int\n    y: int\n",
            "class A:\n    n: int\n    m: int\n",
            "nobody knows which is which",
        ),
    ],
)
def test_what_is_no_change_for_callers(old: str, new: str, why: str) -> None:
    assert changed_declarations({"a.py": old}, {"a.py": new}) == (), why
