"""Prints the shape of the package in figures, by `python -m tests.bench.house`.

Reads the source only. Not here: what is checked (`tests/tidy/test_structure.py`).
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from dataclasses import fields

from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.session.services import Services
from codeagent_lsp.tools.catalogue import BUILTIN, FEATURES
from codeagent_lsp.tools.context import ToolContext
from tests.tidy.source import Function, Module, classes, modules, test_modules
from tests.tidy.test_structure import circles, imported

MANY_METHODS = 15


def methods(node: ast.ClassDef) -> int:
    """Return the number of methods defined in a class body."""
    return sum(isinstance(item, Function) for item in node.body)


def main() -> None:
    """Print one figure a line."""
    package, tests = modules(), test_modules()
    graph = {module.name: imported(module) - {module.name} for module in package}
    bags = {bag.__name__: len(fields(bag)) for bag in (ToolContext, Services, RunParts)}
    most = max(graph, key=lambda name: len(graph[name]))
    large = [node.name for module in package for node in classes(module.tree) if methods(node) > MANY_METHODS]
    names = Counter(node.name for module in package for node in module.tree.body if isinstance(node, ast.ClassDef))
    own, tested = sum(map(code_lines, package)), sum(map(code_lines, tests))
    print(f"fields of the largest bags: {', '.join(f'{name} {count}' for name, count in bags.items())}")
    print(f"features of tools: {len(FEATURES)}, tools: {len(BUILTIN)}")
    print(f"most imports: {len(graph[most])} ({most}); of the backend {len(graph['codeagent_lsp.server.backend'])}")
    print(f"cycles, imports for types included: {len(list(circles(graph)))}")
    print(f"classes above {MANY_METHODS} methods: {len(large)} ({', '.join(sorted(large))})")
    print(f"class names in most modules: {names.most_common(3)}")
    print(f"lines of code without comments and docstrings: {own}; of the tests {tested}, ratio {tested / own:.2f}")


def code_lines(module: Module) -> int:
    """Return how many lines hold code: no comment, no docstring, not blank."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    strings: set[int] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, documented) and node.body and _is_string(node.body[0]):
            first = node.body[0]
            strings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - strings)


def _is_string(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


if __name__ == "__main__":
    main()
