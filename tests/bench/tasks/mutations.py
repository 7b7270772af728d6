"""Small faults put into one function of a Python text, each an exact replacement of a range. No judging here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

OPERATORS = {
    ast.Lt: ("<", ("<=", ">")), ast.LtE: ("<=", ("<",)), ast.Gt: (">", (">=", "<")), ast.GtE: (">=", (">",)),
    ast.Eq: ("==", ("!=",)), ast.NotEq: ("!=", ("==",)), ast.Is: ("is", ("is not",)), ast.In: ("in", ("not in",)),
    ast.IsNot: ("is not", ("is",)), ast.NotIn: ("not in", ("in",)),
    ast.Add: ("+", ("-",)), ast.Sub: ("-", ("+",)), ast.Mult: ("*", ("+",)), ast.FloorDiv: ("//", ("%",)),
    ast.Mod: ("%", ("//",)), ast.Div: ("/", ("*",)), ast.LShift: ("<<", (">>",)), ast.RShift: (">>", ("<<",)),
    ast.BitAnd: ("&", ("|",)), ast.BitOr: ("|", ("&",)), ast.And: ("and", ("or",)), ast.Or: ("or", ("and",)),
}  # fmt: skip
OPPOSITES = (
    ("min", "max"), ("any", "all"), ("lstrip", "rstrip"), ("startswith", "endswith"), ("find", "rfind"),
    ("index", "rindex"), ("partition", "rpartition"), ("split", "rsplit"), ("lower", "upper"), ("append", "extend"),
    ("ljust", "rjust"), ("bisect_left", "bisect_right"), ("sorted", "list"), ("True", "False"),
)  # fmt: skip
SWAPS = {**dict(OPPOSITES), **{second: first for first, second in OPPOSITES}}
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod)
SIMPLER = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant)  # have faults of their own
NEXT_INTEGER = 100  # larger constants are tables and masks, not counts


@dataclass(frozen=True, slots=True)
class Mutation:
    """Replace `text[start:end]` by `replacement`; `sort` is the kind of fault."""

    sort: str
    start: int
    end: int
    replacement: str

    def applied(self, text: str) -> str:
        """The text with the fault in it."""
        return text[: self.start] + self.replacement + text[self.end :]


def mutations(text: str, qualname: str) -> list[Mutation]:
    """Every fault that can be put into the function of this name and still compiles, in the order of the text."""
    found = find_function(ast.parse(text), qualname)
    if found is None:
        return []
    every = {fault: None for fault in _Places(text).of(found) if text[fault.start : fault.end] != fault.replacement}
    lines = text.splitlines(keepends=True)
    start, end = len("".join(lines[: found.lineno - 1])), len("".join(lines[found.end_lineno :]))
    good = (fault for fault in every if _compiles(fault.applied(text)[start : len(text) + _grown(fault) - end]))
    return sorted(good, key=lambda fault: fault.start)


def find_function(tree: ast.Module, qualname: str) -> ast.FunctionDef | None:
    """A function, or a method as Class.method, defined at the top of a module."""
    body: list[ast.stmt] = tree.body
    *classes, name = qualname.split(".")
    for owner in classes:
        body = next((node.body for node in body if isinstance(node, ast.ClassDef) and node.name == owner), [])
    return next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _grown(fault: Mutation) -> int:
    return len(fault.replacement) - (fault.end - fault.start)


def _compiles(function: str) -> bool:
    """Whether a function's lines, perhaps those of a method, are Python."""
    try:
        compile(f"if True:\n{function}" if function[:1].isspace() else function, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


class _Places:
    """Positions of nodes in a text, and the faults that fit each node."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = text.splitlines(keepends=True)
        self._begins = [0]
        for line in self._lines:
            self._begins.append(self._begins[-1] + len(line))

    def of(self, function: ast.FunctionDef) -> Iterator[Mutation]:
        """Faults in the body and the defaults of a function; formatted strings and docstrings are left alone."""
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        if not body:
            return
        for root in (*body, *function.args.defaults):
            for node in _walk(root):
                yield from self._at(node)
        for block in _blocks(function):
            yield from self._missing(block)

    def _at(self, node: ast.AST) -> Iterator[Mutation]:
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                yield from self._operator("comparison", operator, left, right)
            case ast.BoolOp(op=operator, values=values):
                for left, right in pairwise(values):
                    yield from self._operator("boolean operator", operator, left, right)
            case ast.BinOp(left=left, op=operator, right=right):
                yield from self._operator("arithmetic", operator, left, right)
                if isinstance(operator, ORDERED) and not isinstance(left, ast.Constant | ast.JoinedStr):
                    yield from self._swapped("operands", left, right)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield self._put("dropped not", node, self._of(operand))
            case ast.Constant(value=int(value)) if not isinstance(value, bool) and abs(value) < NEXT_INTEGER:
                yield self._put("constant", node, str(value + 1))
                if value > 0:
                    yield self._put("constant", node, str(value - 1))
            case ast.Constant(value=bool(value)):
                yield self._put("constant", node, str(not value))
            case ast.Call(args=[first, second, *_]) if not isinstance(second, ast.Starred):
                yield from self._swapped("arguments", first, second)
            case ast.Subscript(slice=ast.Slice() as bounds):
                yield from self._slice(bounds)
            case _:
                yield from self._at_more(node)

    def _at_more(self, node: ast.AST) -> Iterator[Mutation]:
        match node:
            case ast.Name(id=name) if name in SWAPS:
                yield self._put("opposite", node, SWAPS[name])
            case ast.Attribute(attr=name, value=value) if name in SWAPS:
                yield self._put("opposite", node, f"{self._of(value)}.{SWAPS[name]}")
            case ast.If(test=test) | ast.While(test=test) if not isinstance(test, SIMPLER):
                yield self._put("condition", test, f"not ({self._of(test)})")
            case ast.IfExp(body=first, orelse=second):
                yield from self._swapped("branches", first, second)
            case ast.Return(value=ast.Tuple(elts=[first, second, *_])):
                yield from self._swapped("return value", first, second)
            case ast.AugAssign(target=target, op=operator, value=value) if type(operator) in OPERATORS:
                old, others = OPERATORS[type(operator)]
                new = f"{self._of(target)} {others[0]}= {self._of(value)}"
                yield self._put(f"arithmetic {old}=", node, new)
                yield self._put("plain assignment", node, f"{self._of(target)} = {self._of(value)}")
            case ast.Break():
                yield self._put("loop", node, "continue")
            case ast.Continue():
                yield self._put("loop", node, "break")

    def _operator(self, sort: str, operator: ast.AST, left: ast.expr, right: ast.expr) -> Iterator[Mutation]:
        start, end = self._range(left)[1], self._range(right)[0]
        gap = self._text[start:end]
        old, others = OPERATORS.get(type(operator), ("", ()))
        pattern = rf"(?<!\w){re.escape(old)}(?!\w)".replace(r"\ ", r"\s+")
        for new in others:
            if len(re.findall(pattern, gap)) == 1 and "#" not in gap:
                yield Mutation(sort, start, end, re.sub(pattern, new.replace("\\", r"\\"), gap))

    def _swapped(self, sort: str, first: ast.expr, second: ast.expr) -> Iterator[Mutation]:
        (start, middle), (other, end) = self._range(first), self._range(second)
        if middle <= other and not isinstance(first, ast.Starred):
            text = self._text
            swapped = text[other:end] + text[middle:other] + text[start:middle]
            yield Mutation(f"swapped {sort}", start, end, swapped)

    def _slice(self, bounds: ast.Slice) -> Iterator[Mutation]:
        if bounds.lower is not None and bounds.upper is None and bounds.step is None:
            yield self._put("slice bound", bounds, ":")
        if bounds.upper is not None and bounds.step is None:
            yield self._put("slice bound", bounds.upper, f"{self._of(bounds.upper)} - 1")

    def _missing(self, block: list[ast.stmt]) -> Iterator[Mutation]:
        for statement in block:
            early = isinstance(statement, ast.If) and not statement.orelse and len(statement.body) == 1
            plain = isinstance(statement, ast.AugAssign | ast.Assign) or (
                isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
            )
            if len(block) > 1 and (early or plain) and statement.end_lineno is not None:
                begins = self._begins
                yield Mutation("missing statement", begins[statement.lineno - 1], begins[statement.end_lineno], "")

    def _put(self, sort: str, node: ast.AST, replacement: str) -> Mutation:
        start, end = self._range(node)
        return Mutation(sort, start, end, replacement)

    def _of(self, node: ast.AST) -> str:
        start, end = self._range(node)
        return self._text[start:end]

    def _range(self, node: ast.AST) -> tuple[int, int]:
        if not isinstance(node, ast.expr | ast.stmt) or node.end_lineno is None or node.end_col_offset is None:
            raise ValueError(f"no position in the text: {node!r}")
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        before = self._lines[line - 1].encode()[:column]
        return self._begins[line - 1] + len(before.decode())


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is in it, without formatted strings, whose positions are not exact before Python 3.12."""
    if isinstance(node, ast.JoinedStr):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _walk(child)


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield [statement for statement in block if isinstance(statement, ast.stmt)]
