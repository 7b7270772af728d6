"""Syntax errors by the tree, and diagnostics as lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.tools.diagnostics.difference import MAX_SHOWN, Diagnostic, Severity, show, sort_diagnostics
from codeagent_lsp.tools.diagnostics.syntax import MAX_PER_FILE, is_for_syntax, syntax_errors

GOOD = {
    "a.py": "def f(x: int) -> int:\n    return x\n",
    "a.ts": "const a: number = 1;\n",
    "a.tsx": "const a = <b>{1}</b>;\n",
    "a.js": "const f = async () => { await 1; };\n",
    "a.go": "package a\n\nfunc f() int { return 1 }\n",
    "a.rs": "fn f() -> i32 { 1 }\n",
    "a.java": "class A { int f() { return 1; } }\n",
    "a.rb": "def f\n  1\nend\n",
    "a.sh": "if true; then echo 1; fi\n",
    "a.cs": "class A { int F() { return 1; } }\n",
    "a.php": "<?php function f() { return 1; }\n",
}


@pytest.mark.parametrize("name", GOOD)
def test_good_and_cut_texts(name: str) -> None:
    assert syntax_errors(f"/w/{name}", GOOD[name]) == ()
    text = GOOD[name].replace("1", "((", 1) if name != "a.py" else GOOD[name].replace("int)", "(", 1)
    errors = syntax_errors(f"/w/{name}", text)
    assert errors and errors[0].severity == "error" and errors[0].path == f"/w/{name}"


def test_the_place_counts_characters() -> None:
    errors = syntax_errors("/w/a.py", "x = 1\nf('ünï😀', $)\n")
    assert errors is not None
    assert (errors[0].line, errors[0].column) == (2, 11)
    assert errors[0].message == "syntax error at '$'"


def test_a_missing_token_is_named() -> None:
    errors = syntax_errors("/w/a.js", "f(1;\n")
    assert errors is not None and "')' is missing" in [error.message for error in errors]


@pytest.mark.parametrize("name", ["/w/a.txt", "/w/Makefile", "/w/a.c", "/w/a.hpp"])
def test_what_is_not_known(name: str) -> None:
    assert syntax_errors(name, "int x = ;") is None and not is_for_syntax(name)


def test_too_long_a_text() -> None:
    assert syntax_errors("/w/a.py", "x" * 1_000_001) is None


@given(st.sampled_from(sorted(GOOD)), st.text())
def test_any_text(name: str, text: str) -> None:
    errors = syntax_errors(f"/w/{name}", text)
    assert errors is not None and len(errors) <= MAX_PER_FILE
    lines = text.split("\n")
    assert all(1 <= error.line <= len(lines) and error.column >= 1 for error in errors)


def made(line: int, severity: Severity = "warning", **more: str) -> Diagnostic:
    return Diagnostic("/w/a.py", line, 1, severity, **{"message": "m", "source": "s", "code": "C", **more})


def test_errors_come_first_and_doubles_go() -> None:
    found = sort_diagnostics([made(3), made(1, "hint"), made(2, "error"), made(3), made(1)])
    assert [(item.severity, item.line) for item in found] == [
        ("error", 2),
        ("warning", 1),
        ("warning", 3),
        ("hint", 1),
    ]


def test_lines() -> None:
    assert show((made(3),), lambda path: path[3:]) == "a.py:3:1 warning C m (s)"
    assert show((made(3, code="", source=""),), str) == "/w/a.py:3:1 warning m"
    odd = show((made(1, message="two\nlines\x1b[2J " + "x" * 400),), str)
    assert "\n" not in odd and "\x1b" not in odd and 300 < len(odd) < 340 and odd.endswith("… (s)")


def test_many() -> None:
    found = sort_diagnostics([made(line, "error" if line > 70 else "warning") for line in range(1, 81)])
    lines = show(found, str).splitlines()
    assert len(lines) == MAX_SHOWN + 1
    assert lines[0].startswith("/w/a.py:71:") and lines[-1] == "(and 30 more; 10 errors in all)"
    assert show((), str) == ""
