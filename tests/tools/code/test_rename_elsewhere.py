"""Uses of a definition in other files: renamed where the imports show that it is meant, else reported by line."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.tools.code.imports import ImportTargets
from codeagent_lsp.tools.code.meaning import defined
from codeagent_lsp.tools.code.rename import rename_elsewhere
from codeagent_lsp.tools.code.source import required
from codeagent_lsp.tools.code.splices import applied


class Case(NamedTuple):
    """A definition in a file, and another file with `«»` around each use that must be renamed."""

    home: tuple[str, str]
    symbol: str
    path: str
    marked: str
    left: tuple[int, ...] = ()


PYTHON = ("a.py", "def size(x): ...\n")
SCRIPT = ("a.js", "export function push(x) {}\n")
CLASS = ("a.ts", "export class Cart { total() {} static make() {} }\n")
GO = ("p/a.go", "package p\nfunc Size() int { return 1 }\n")
JAVA = ("x/Old.java", "package x;\npublic class Old { public static int n() { return 1; } }\n")
RUST = ("src/a.rs", "pub fn size() {}\n")

CASES = {
    "an imported name, and a member of another object": Case(
        PYTHON,
        "size",
        "b.py",
        "from a import «size»\nimport numpy as np\nprint(«size»(np.zeros(3)), np.zeros(3).size)\n",
        (3,),
    ),
    "a name of an imported module": Case(PYTHON, "size", "b.py", "import a\nprint(a.«size»(1), b.size, size)\n", (2,)),
    "a module under another name": Case(PYTHON, "size", "b.py", "import a as q\nprint(q.«size»(1), a.size)\n", (2,)),
    "an imported name under another name": Case(
        ("size.py", "def size(x): ...\n"), "size", "b.py", "from size import «size» as s\nprint(s, size)\n", (1, 2)
    ),
    "a parameter of the same name": Case(
        PYTHON,
        "size",
        "b.py",
        "from a import (\n  x,\n  «size»,\n)\ndef f(size): return size\nprint(«size»)\n",
        (5,),
    ),
    "all names, and a module of a package": Case(
        ("p/a.py", "def size(x): ...\n"),
        "size",
        "p/b.py",
        "from . import a\nfrom .a import *\nprint(a.«size», «size»)\n",
    ),
    "a file with its own": Case(PYTHON, "size", "b.py", "from a import *\ndef size(): ...\nprint(size())\n", (2, 3)),
    "no import": Case(PYTHON, "size", "b.py", "print(size(1))\nx.size = 'size'  # size\n", (1, 2)),
    "another module's name": Case(PYTHON, "size", "b.py", "from other import size\nprint(size)\n", (1, 2)),
    "a script's import, a method, a property": Case(
        SCRIPT, "push", "b.js", "import { «push» } from './a'\nl.push(1); «push»(2); const o = { push: 1 }\n", (2,)
    ),
    "a namespace": Case(SCRIPT, "push", "b.js", "import * as a from './a'\nl.push(1); a.«push»(2)\n", (2,)),
    "a default import is another thing": Case(SCRIPT, "push", "b.js", "import push from './a'\npush(2)\n", (1, 2)),
    "an alias": Case(SCRIPT, "push", "b.js", "import { «push» as q } from './a'\npush(2); q()\n", (2,)),
    "a required module": Case(SCRIPT, "push", "b.js", "const a = require('./a')\na.«push»(2); push(1)\n", (2,)),
    "a static method by its class": Case(
        CLASS, "Cart.make", "b.ts", "import { Cart } from './a'\nCart.«make»(); new Cart().make(); x.make()\n", (2,)
    ),
    "a method of an object": Case(
        CLASS, "Cart.total", "b.ts", "import { Cart } from './a'\nconst c = new Cart(); c.total()\n", (2,)
    ),
    "a type": Case(CLASS, "Cart", "b.ts", "import { «Cart» } from './a'\nlet c: «Cart» = new «Cart»(); c.Cart\n", (2,)),
    "a package of Go": Case(
        GO, "Size", "p/b.go", "package p\nfunc f() { «Size»(); q.Size(); x := T{Size: 1}; _ = x.Size }\n", (2,)
    ),
    "another package of Go": Case(
        GO, "Size", "m/b.go", 'package m\nimport k "ex/p"\nfunc f() { k.«Size»(); p.Size() }\n', (3,)
    ),
    "another package of Go by its own name": Case(
        GO, "Size", "b.go", 'package m\nimport "ex/p"\nvar n = p.«Size»() + q.Size()\n', (3,)
    ),
    "a package of Java": Case(
        JAVA, "Old", "x/Use.java", "package x;\nclass Use { «Old» o = new «Old»(); int k = «Old».n(); }\n"
    ),
    "an import of Java, a static method": Case(
        JAVA, "Old.n", "y/Use.java", "package y;\nimport x.Old;\nclass Use { int k = Old.«n»() + o.n(); }\n", (3,)
    ),
    "another package of Java": Case(JAVA, "Old", "y/Use.java", "package y;\nclass Use { Old o; }\n", (2,)),
    "a use of Rust, methods": Case(
        RUST, "size", "src/main.rs", "use crate::a::«size»;\nfn main() { «size»(); q.size(); }\n", (2,)
    ),
    "an included function, and a field": Case(
        ("a.h", "int size(int x);\n"),
        "size",
        "b.c",
        '#include "a.h"\nint f(struct q *q) { int n = «size»(1); return q->size + n; }\n',
        (2,),
    ),
    "all names of another module above": Case(
        PYTHON, "size", "b.py", "from numpy import *\nfrom a import *\nprint(«size»)\n"
    ),
    "all names of another module below": Case(
        PYTHON, "size", "b.py", "from a import *\nfrom numpy import *\nprint(size)\n", (3,)
    ),
    "an imported name, and all names of another module below": Case(
        PYTHON, "size", "b.py", "from a import «size»\nfrom numpy import *\nprint(size)\n", (3,)
    ),
    "a type parameter of the same name": Case(
        CLASS, "Cart", "b.ts", "import { Cart } from './a'\nfunction f<Cart>(c: Cart) {}\n", (1, 2)
    ),
    "a method of an instance by its class": Case(
        CLASS, "Cart.total", "b.ts", "import { Cart } from './a'\nCart.total()\n", (2,)
    ),
    "an element of HTML": Case(
        SCRIPT, "push", "b.jsx", "import { «push» } from './a'\nconst x = <push>{«push»(1)}</push>\n", (2,)
    ),
    "arguments of a macro": Case(
        RUST, "size", "src/main.rs", "use crate::a::«size»;\nfn main() { query!(size = 1); «size»() }\n", (2,)
    ),
    "an inherited member": Case(
        ("a.h", "int size();\n"),
        "size",
        "b.cpp",
        '#include "a.h"\nstruct W : std::string { int g() { return size(); } };\nint n = «size»();\n',
        (2,),
    ),
    "a constant as a key of a map": Case(
        ("p/a.go", "package p\nconst Size = 1\n"),
        "Size",
        "p/b.go",
        "package p\nvar m = map[int]int{«Size»: 1}\nvar n = q.T{Size: 1}\n",
        (3,),
    ),
    "a whole name of PHP": Case(
        ("src/App/Old.php", "<?php\nnamespace App;\nclass Old {}\n"),
        "Old",
        "src/Use.php",
        "<?php\n$x = new \\App\\«Old»();\n$y = new \\Other\\Old();\n",
        (3,),
    ),
    "a class of PHP": Case(
        ("src/App/Old.php", "<?php\nnamespace App;\nclass Old {}\n"),
        "Old",
        "src/Use.php",
        "<?php\nuse App\\«Old»;\n$x = new «Old»();\n",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_is_sure_is_renamed_and_the_rest_is_told(case: Case) -> None:
    home = required(*case.home)
    source = required(case.path, case.marked.replace("«", "").replace("»", ""))
    files = ImportTargets(frozenset([case.home[0], case.path]), {"": "ex"})
    made = rename_elsewhere(source, home, defined(home, case.symbol), "Another", files)
    name = case.symbol.rpartition(".")[2]
    assert applied(source, made.splices) == case.marked.replace(f"«{name}»", "Another")
    assert made.left == case.left


@pytest.mark.parametrize(
    "rest", ["extent = 1\n", "def extent(): ...\n", "def f(extent):\n    return extent\n", "print(extent)\n"]
)
def test_a_name_that_is_taken_there_is_refused(rest: str) -> None:
    home, source = required(*PYTHON), required("b.py", f"from a import size\n\n{rest}print(size(1))\n")
    with pytest.raises(EditRefused, match="extent is a name in b"):
        rename_elsewhere(source, home, defined(home, "size"), "extent", ImportTargets(frozenset(["a.py", "b.py"])))
