"""Imports of a reply are added once, whatever statement of the file has them already."""

from __future__ import annotations

import pytest

from codeagent_lsp.direct.answer import Answer, Files, read_answer

CODE = {
    "a.ts": "export function f(p: number) {\n  return p;\n}\n",
    "a.go": "func f(p int) int {\n\treturn p\n}\n",
    "a.rs": "fn f(p: i32) -> i32 {\n    p\n}\n",
    "a.py": "def f(p):\n    return p\n",
}
TS, GO, RUST, PYTHON = CODE
CASES = {
    "ts, all of the old": (
        TS, 'import { a } from "./x";', "import { a, b } from './x';", "import { a, b } from './x';",
    ),
    "ts, less than the old": (
        TS, 'import { a, b } from "./x";', 'import { b } from "./x";', 'import { a, b } from "./x";',
    ),
    "ts, some of the old": (
        TS, 'import { a, b } from "./x";', 'import { b, c } from "./x";',
        'import { a, b } from "./x";\nimport { c } from "./x";',
    ),
    "ts, nothing of the old": (
        TS, 'import { a } from "./x";', 'import { b } from "./x";',
        'import { a } from "./x";\nimport { b } from "./x";',
    ),
    "ts, default": (TS, 'import x from "./x";', 'import x, { a } from "./x";', 'import x, { a } from "./x";'),
    "ts, type": (
        TS, 'import type { A } from "./x";', 'import type { A } from "./x"', 'import type { A } from "./x";',
    ),
    "ts, a value instead of its type": (
        TS, 'import type { A } from "./x";', 'import { A, b } from "./x";', 'import { A, b } from "./x";',
    ),
    "ts, the type of a value": (
        TS, 'import { A, b } from "./x";', 'import { type A, type C } from "./x";',
        'import { A, b } from "./x";\nimport type { C } from "./x";',
    ),
    "ts, space": (TS, 'import * as x from "./x";', "import * as x from './x'", 'import * as x from "./x";'),
    "go, a second block": (
        GO, 'import (\n\t"fmt"\n\t"os"\n)', 'import (\n\t"fmt"\n\t"sort"\n)',
        'import (\n\t"fmt"\n\t"os"\n)\nimport "sort"',
    ),
    "go, known": (GO, 'import (\n\t"fmt"\n\t"os"\n)', 'import "fmt"', 'import (\n\t"fmt"\n\t"os"\n)'),
    "go, all of the old": (
        GO, 'import "fmt"', 'import (\n\t"fmt"\n\tm "math"\n)', 'import (\n\t"fmt"\n\tm "math"\n)',
    ),
    "rust, all of the old": (
        RUST, "use std::collections::HashMap;", "use std::collections::{HashMap, HashSet};",
        "use std::collections::{HashMap, HashSet};",
    ),
    "rust, some of the old": (
        RUST, "use std::{fmt, io::{self, Read}};", "use std::io::{self, Write};",
        "use std::{fmt, io::{self, Read}};\nuse std::io::Write;",
    ),
    "rust, known": (
        RUST, "use std::{fmt, io::Read as R};", "use std::io::Read as R;", "use std::{fmt, io::Read as R};",
    ),
    "rust, under a condition": (
        RUST, "#[cfg(test)]\nuse a::b;", "use a::{b, c};", "#[cfg(test)]\nuse a::b;\nuse a::{b, c};",
    ),
    "python, all of the old": (PYTHON, "from a import b", "from a import b, c as d", "from a import b, c as d"),
    "python, some of the old": (
        PYTHON, "from a import (\n    b,\n    e,\n)", "from a import b, c",
        "from a import (\n    b,\n    e,\n)\nfrom a import c",
    ),
    "python, a comment": (
        PYTHON, "from a import b  # noqa: F401", "from a import b, c", "from a import b, c  # noqa: F401",
    ),
}  # fmt: skip
"""By what is there: the file, its imports, those of the reply, and what comes out."""

CLASHES = {
    "ts": (TS, 'import { a } from "./x";', 'import { a } from "./y";'),
    "ts, type and value": (TS, 'import type { A, B } from "./x";', 'import { A } from "./x";'),
    "go": (GO, 'import "text/template"', 'import "html/template"'),
    "rust": (RUST, "use std::fmt::Result;", "use std::io::Result;"),
}


def file(name: str, imports: str, body: str) -> str:
    head = "package a\n\n" if name == GO else ""
    return f"{head}{imports}\n\n{CODE[name].replace('return p', f'return {body}').replace('    p', f'    {body}')}"


def answered(name: str, old: str, new: str) -> Answer:
    other = CODE[name].replace("f(", "g(")
    return read_answer(
        f"{name}\n```\n{new}\n\n{CODE[name]}```\n", Files({name: file(name, old, "7") + other}), "function"
    )


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_imported_twice(case: str) -> None:
    name, old, new, wanted = CASES[case]
    other = CODE[name].replace("f(", "g(")
    assert answered(name, old, new).texts == {name: file(name, wanted, "p") + other}


@pytest.mark.parametrize("case", CLASHES)
def test_two_imports_of_one_name_are_refused(case: str) -> None:
    answer = answered(*CLASHES[case])
    assert not answer.texts
    assert "both are named" in answer.problem
