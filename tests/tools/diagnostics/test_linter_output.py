"""What linters print: real shapes, and anything at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.tools.diagnostics import linters
from codeagent_lsp.tools.diagnostics.difference import Diagnostic

READERS = (
    linters.read_ruff,
    linters.read_python,
    linters.read_mypy,
    linters.read_pyright,
    linters.read_tsc,
    linters.read_eslint,
    linters.read_cargo,
    linters.read_go,
)


def test_ruff() -> None:
    rows = [
        {"code": "F401", "filename": "/w/a.py", "location": {"row": 1, "column": 8}, "message": "unused"},
        {"code": "F821", "filename": "/w/a.py", "location": {"row": 1, "column": 9}, "message": "undefined"},
        {"code": "E501", "filename": "/w/a.py", "location": {"row": 2, "column": 89}, "message": "long"},
        {"code": None, "filename": "/w/a.py", "location": {"row": 3, "column": 1}, "message": "SyntaxError: no"},
        {"code": "invalid-syntax", "filename": "/w/b.py", "location": {"row": 4, "column": 1}, "message": "no"},
        {"code": "X", "filename": None, "location": {"row": 4, "column": 1}, "message": "lost"},
    ]
    assert list(linters.read_ruff(json.dumps(rows))) == [
        Diagnostic("/w/a.py", 1, 8, "warning", "unused", "ruff", "F401"),
        Diagnostic("/w/a.py", 1, 9, "error", "undefined", "ruff", "F821"),
        Diagnostic("/w/a.py", 2, 89, "warning", "long", "ruff", "E501"),
        Diagnostic("/w/a.py", 3, 1, "error", "SyntaxError: no", "ruff", ""),
        Diagnostic("/w/b.py", 4, 1, "error", "no", "ruff", ""),
    ]


def test_mypy() -> None:
    output = """\
a b.py:1:5: error: Incompatible types: "x"  [assignment]
a b.py:2: error: No column
a b.py:2:1: note: See the documentation
pkg/m.py:3:1: warning: Odd
Found 2 errors in 1 file (checked 1 source file)
"""
    assert list(linters.read_mypy(output)) == [
        Diagnostic("a b.py", 1, 5, "error", 'Incompatible types: "x"', "mypy", "assignment"),
        Diagnostic("a b.py", 2, 1, "error", "No column", "mypy", ""),
        Diagnostic("pkg/m.py", 3, 1, "warning", "Odd", "mypy", ""),
    ]


def test_pyright() -> None:
    row = {
        "file": "/w/a.py",
        "severity": "information",
        "message": "m",
        "rule": "reportX",
        "range": {"start": {"line": 0, "character": 4}},
    }
    (found,) = linters.read_pyright(json.dumps({"generalDiagnostics": [row]}))
    assert found == Diagnostic("/w/a.py", 1, 5, "info", "m", "pyright", "reportX")


def test_tsc() -> None:
    output = "src/a (b).ts(3,14): error TS2322: Type 'a' is not 'b'.\n  more about it\nerror TS5023: Unknown option."
    (found,) = linters.read_tsc(output)
    assert found == Diagnostic("src/a (b).ts", 3, 14, "error", "Type 'a' is not 'b'.", "tsc", "TS2322")


def test_eslint() -> None:
    messages: list[dict[str, Any]] = [
        {"ruleId": "no-undef", "severity": 2, "message": "m", "line": 1, "column": 2},
        {"ruleId": None, "severity": 1, "message": "ignored file"},
    ]
    assert list(linters.read_eslint(json.dumps([{"filePath": "/w/a.js", "messages": messages}]))) == [
        Diagnostic("/w/a.js", 1, 2, "error", "m", "eslint", "no-undef"),
        Diagnostic("/w/a.js", 1, 1, "warning", "ignored file", "eslint", ""),
    ]


def test_cargo() -> None:
    span = {"file_name": "src/main.rs", "line_start": 2, "column_start": 5, "is_primary": True}
    message = {"level": "error", "message": "mismatched", "code": {"code": "E0308"}, "spans": [span]}
    rows = [
        {"reason": "compiler-artifact"},
        {"reason": "compiler-message", "message": message},
        {"reason": "compiler-message", "message": {**message, "level": "warning", "code": None}},
        {"reason": "compiler-message", "message": {**message, "spans": []}},
    ]
    assert list(linters.read_cargo("\n".join(map(json.dumps, rows)) + "\nnot json")) == [
        Diagnostic("src/main.rs", 2, 5, "error", "mismatched", "cargo", "E0308"),
        Diagnostic("src/main.rs", 2, 5, "warning", "mismatched", "cargo", ""),
    ]


def test_go() -> None:
    output = """\
# example.org/x
vet: ./b.go:3:2: undefined: y
# example.org/x
{
\t"example.org/x": {
\t\t"printf": [
\t\t\t{
\t\t\t\t"posn": "/w/a.go:6:2",
\t\t\t\t"message": "fmt.Printf format %d has arg of wrong type"
\t\t\t}
\t\t]
\t}
}
# example.org/y
{}
"""
    assert list(linters.read_go(output)) == [
        Diagnostic("./b.go", 3, 2, "error", "undefined: y", "go vet", ""),
        Diagnostic("/w/a.go", 6, 2, "warning", "fmt.Printf format %d has arg of wrong type", "go vet", "printf"),
    ]


def test_python() -> None:
    output = '["a.py", 1, 7, "invalid syntax"]\n["b.py", null, null, "null bytes"]\n["x"]\nTraceback'
    assert list(linters.read_python(output)) == [
        Diagnostic("a.py", 1, 7, "error", "invalid syntax", "python"),
        Diagnostic("b.py", 1, 1, "error", "null bytes", "python"),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["messages", "filename", "location", "row", "column", "message", "spans", "reason", "range",
                         "start", "generalDiagnostics", "filePath", "line", "posn", "x"]),
        inner,
        max_size=4,
    ),
)  # fmt: skip


@given(st.sampled_from(READERS), JSON)
def test_any_json_is_read_without_an_error(read: linters.Read, value: Any) -> None:
    for item in read(json.dumps(value)):
        assert item.line >= 1 and item.column >= 1


@given(st.sampled_from(READERS), st.text())
def test_any_text_is_read_without_an_error(read: linters.Read, text: str) -> None:
    list(read(text))


@pytest.mark.parametrize("read", READERS)
def test_deep_and_long_output_ends(read: linters.Read) -> None:
    assert list(read("[" * 100_000)) == []
    assert list(read("{" * 3_000 + "\n{" * 3_000)) == []
