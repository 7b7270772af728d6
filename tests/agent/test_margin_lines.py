"""Lines at the margin stay there, however the code around them is moved: directives, labels, old code in comments, the
ends of brackets. In quick actions, the tool edit_by_ast, and the form `function`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from codeagent_lsp.agent.replacement import replaced
from codeagent_lsp.direct.answer import Files, read_answer
from codeagent_lsp.tools.code.ast_edit import AstEdit, edited
from codeagent_lsp.workspace.text.position import margin_lines

LEVEL = "    "
AT_MARGIN = {
    "a.c": ("#ifdef X", "#endif", "out:"),
    "A.cs": ("#region a", "#endregion", "#if X", "#endif"),
    "a.cpp": ("#pragma omp parallel", "//    old();"),
    "a.py": ("#        old()", "# left"),
    "a.rb": ("#    old",),
    "a.js": ("//        old();", "/* old */"),
    "a.ts": ("// @ts-ignore",),
    "A.java": ("//        old();",),
    "a.php": ("//  old();", "#  old"),
    "a.rs": ("// old();", "#[allow(unused)]"),
}


@dataclass(frozen=True)
class Written:
    """A function between the lines around it; `name` is its dotted name, `head` and `foot` are its own lines."""

    name: str
    around: tuple[str, str]
    head: str
    foot: str


def _braces(head: str) -> Written:
    return Written("A.f", ("class A {\n", "}\n"), f"{head} {{", "}")


FUNCTIONS = {
    "a.c": Written("f", ("", ""), "int f(void) {", "}"),
    "A.cs": Written("A.F", ("class A {\n", "}\n"), "int F() {", "}"),
    "a.cpp": Written("A.f", ("struct A {\n", "};\n"), "int f() {", "}"),
    "a.py": Written("A.f", ("class A:\n", ""), "def f(self):", ""),
    "a.rb": Written("A.f", ("class A\n", "end\n"), "def f", "end"),
    "a.js": _braces("f()"),
    "a.ts": _braces("f()"),
    "A.java": _braces("int f()"),
    "a.php": Written("A.f", ("<?php\nclass A {\n", "}\n"), "function f() {", "}"),
    "a.rs": Written("A.f", ("impl A {\n", "}\n"), "fn f() -> i32 {", "}"),
}


def _lines(path: str, margin: tuple[str, ...], number: str) -> list[str]:
    """The lines of a function, with those at the margin between its own."""
    written = FUNCTIONS[path]
    outer = LEVEL if written.around[0] else ""
    ending = "" if path.endswith((".py", ".rb")) else ";"
    sign = "$" if path.endswith(".php") else "let " if path.endswith(".rs") else ""
    first, between = f"{outer}{LEVEL}{sign}value = {number}{ending}", f"{outer}{LEVEL}other(){ending}"
    body = [first, *itertools.chain.from_iterable((line, between) for line in margin), between]
    return [outer + written.head, *body, *([outer + written.foot] if written.foot else [])]


def _as_given(lines: list[str], way: str) -> list[str]:
    depth = len(lines[0]) - len(lines[0].lstrip())
    match way:
        case "cut":
            return [lines[0].lstrip(), *lines[1:]]
        case "dedented":
            return [line[depth:] if not line[:depth].strip() else line for line in lines]
        case "deeper":
            last = len(lines) - 1
            own = [line[:1].isspace() or number in (0, last) for number, line in enumerate(lines)]
            return [LEVEL + line if moves else line for line, moves in zip(lines, own, strict=True)]
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("way", ["same", "cut", "dedented", "deeper"])
@pytest.mark.parametrize("path", AT_MARGIN)
def test_lines_at_the_margin_stay(path: str, way: str) -> None:
    written = FUNCTIONS[path]
    for count in {1, len(AT_MARGIN[path])}:
        for margin in itertools.combinations(AT_MARGIN[path], count):
            old, new = _lines(path, margin, "1"), _lines(path, margin, "100")
            text = f"{written.around[0]}{chr(10).join(old)}\n{written.around[1]}"
            wanted = text.replace("= 1", "= 100")
            reply = "\n".join(_as_given(new, way))
            start = len(written.around[0])
            end = start + len("\n".join(old))
            # From the margin, and from the first word on, as people select.
            for begin in (start, start + len(old[0]) - len(old[0].lstrip())):
                assert replaced(text, begin, end, reply, path) == wanted
            assert edited(path, text, [AstEdit(written.name, "replace", reply)]).text == wanted
            body = new[1:-1] if written.foot else new[1:]
            inner = AstEdit(written.name, "replace_body", "\n".join(_as_given(body, way)))
            if (path, way) != ("a.py", "cut"):  # a first line that is less deep than the others is refused
                assert edited(path, text, [inner]).text == wanted
            answer = read_answer(f"```\n{reply}\n```", Files({path: text}), "function")
            assert answer.texts == {path: wanted}, answer.problem


def test_only_lines_that_were_at_the_margin_are_kept_there() -> None:
    before = "    a\n#endif\n    b\nx\n"
    assert margin_lines(["a", "#endif", "b", "x", "#else", " #endif"], before) == {1, 3, 4}
    assert margin_lines(["a", "#else"], "    a\n#old\n") == frozenset()
