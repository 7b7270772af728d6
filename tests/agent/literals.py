"""Functions with literals over several lines, in every language that is indexed and some that are not, whose contents
no change of the code around them may touch.
"""

from __future__ import annotations

import random
from typing import NamedTuple

CONTENTS = (
    ("SELECT 1", "FROM t"),
    ("all:", "\tcc -o a a.c", "  # blanks", "\t  both"),
    ("services:", "  port: 80", "", "    deep: 1"),
    ("", "   ", "\t", "x  "),
    ("        as deep as the code", "    less"),
    ("if (a) {", "\treturn;", "}"),
)


class Written(NamedTuple):
    """A language: the file name, what opens and closes a type, a function and a literal in it, and a plain statement;
    `{0}` in the statement is a number. `closing_alone`: the literal closes at the beginning of a line.
    """

    path: str
    outer: tuple[str, str]
    function: tuple[str, str]
    literal: tuple[str, str]
    statement: str
    unit: str = "    "


LANGUAGES = {
    "python": Written("a.py", ("class A:", ""), ("def f(self):", ""), ('q = """', '"""'), "x = {0}"),
    "python, single quotes": Written("a.py", ("class A:", ""), ("def f(self):", ""), ("q = r'''", "'''"), "x = {0}"),
    "javascript": Written("a.js", ("class A {", "}"), ("f() {", "}"), ("const q = `", "`;"), "let x = {0};", "  "),
    "typescript": Written("a.ts", ("class A {", "}"), ("f(): void {", "}"), ("const q = `", "`;"), "let x = {0};"),
    "tsx": Written("a.tsx", ("class A {", "}"), ("f() {", "}"), ("const q = `", "`;"), "let x = {0};", "\t"),
    "go": Written("a.go", ("package a", ""), ("func f() {", "}"), ("q := `", "`"), "x := {0}", "\t"),
    "rust": Written("a.rs", ("impl A {", "}"), ("fn f() {", "}"), ('let q = r#"', '"#;'), "let x = {0};"),
    "java": Written("A.java", ("class A {", "}"), ("void f() {", "}"), ('var q = """', '""";'), "int x = {0};"),
    "c++": Written("a.cpp", ("struct A {", "};"), ("void f() {", "}"), ('auto q = R"(', ')";'), "int x = {0};"),
    "c#": Written("a.cs", ("class A {", "}"), ("void F() {", "}"), ('var q = @"', '";'), "int x = {0};"),
    "ruby": Written("a.rb", ("class A", "end"), ("def f", "end"), ("q = <<EOS", "EOS"), "x = {0}", "  "),
    "php": Written("a.php", ("<?php\nclass A {", "}"), ("function f() {", "}"), ("$q = <<<EOT", "EOT;"), "$x = {0};"),
    "bash": Written("a.sh", ("x() {", "}"), ("f() {", "}"), ("cat <<EOF", "EOF"), "x={0}", "  "),
    "kotlin": Written("a.kt", ("class A {", "}"), ("fun f() {", "}"), ('val q = """', '"""'), "val x = {0}"),
    "lua": Written("a.lua", ("do", "end"), ("local function f()", "end"), ("local q = [[", "]]"), "local x = {0}"),
    "perl": Written("a.pl", ("{", "}"), ("sub f {", "}"), ("print <<EOF;", "EOF"), "my $x = {0};"),
}


class Case(NamedTuple):
    """A file, the lines of a function in it (`start:end`), and the function after a change of its statements."""

    path: str
    text: str
    start: int
    end: int
    changed: str
    unit: str


def case(written: Written, chance: random.Random) -> Case:
    """Return a case by chance: what the literal holds, how deep the function stands, what is around it."""
    unit, content = written.unit, chance.choice(CONTENTS)
    depth = 0 if written.path.endswith(".go") else 1
    head = "".join(f"{line}\n" for line in written.outer[0].split("\n"))

    def function(number: int) -> str:
        inner = unit * (depth + 1)
        lines = [
            unit * depth + written.function[0],
            inner + written.statement.format(number),
            inner + written.literal[0],
            *content,
            written.literal[1],
            inner + written.statement.replace("x", "y").format(number + 1),
            *([unit * depth + written.function[1]] if written.function[1] else []),
        ]
        return "".join(f"{line}\n" for line in lines)

    foot = f"{written.outer[1]}\n" if written.outer[1] else ""
    before = head + ("\n" if chance.random() < 0.5 else "")
    old, new = function(1), function(7)
    return Case(written.path, before + old + foot, len(before), len(before) + len(old), new, unit)


def moved(code: str, case: Case, way: str) -> str:
    """Return the lines of a function as a model gives them back: `way` says what it has done to their blanks."""
    lines = code.split("\n")
    opened = next(number for number, line in enumerate(lines) if line.endswith(OPENINGS))
    closed = next(number for number in range(opened + 1, len(lines)) if _closes(lines[number]))
    inside = range(opened + 1, closed + 1)
    depth = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    match way:
        case "same":
            return code
        case "dedented":
            lines = [line if at in inside else line.removeprefix(depth) for at, line in enumerate(lines)]
        case "deeper":
            lines = [line if at in inside or not line else case.unit + line for at, line in enumerate(lines)]
        case "other blanks":
            one, other = ("\t", "    ") if case.unit == "\t" else (case.unit, "\t")
            lines = [line if at in inside else _swapped(line, one, other) for at, line in enumerate(lines)]
    return "\n".join(lines)


OPENINGS = tuple(written.literal[0] for written in LANGUAGES.values())
_CLOSINGS = frozenset(written.literal[1] for written in LANGUAGES.values())


def _closes(line: str) -> bool:
    return line in _CLOSINGS


def _swapped(line: str, one: str, other: str) -> str:
    rest = line
    count = 0
    while rest.startswith(one):
        rest, count = rest[len(one) :], count + 1
    return other * count + rest
