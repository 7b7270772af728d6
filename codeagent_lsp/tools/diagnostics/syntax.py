"""Syntax errors from the syntax tree, and of data files: simple, but without a program and for any text.

Not here: anything that needs types or other files. C and C++ are left out, as their macros look like errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from codeagent_lsp.index.enclosing import syntax_tree
from codeagent_lsp.index.grammars import grammar_of
from codeagent_lsp.tools.diagnostics.data_syntax import data_errors, is_data
from codeagent_lsp.tools.diagnostics.port import Diagnostic

if TYPE_CHECKING:
    from tree_sitter import Node

SOURCE = "syntax"
MAX_PER_FILE = 10
_MAX_NODES = 20_000
_MACROS = frozenset({"c", "cpp"})
_MAX_QUOTE = 40


def syntax_errors(path: str, text: str) -> tuple[Diagnostic, ...] | None:
    """Return the syntax errors of code or of a data file, at most `MAX_PER_FILE`; None if the language is not known."""
    if (data := data_errors(path, text)) is not None:
        return data
    if not is_for_syntax(path):
        return None
    tree = syntax_tree(path, text)
    if tree is None:
        return None
    source = text.encode("utf-8", "replace")
    found = [_diagnostic(path, source, node) for node in _faults(tree.root_node)]
    return tuple(found[:MAX_PER_FILE])


def is_for_syntax(name: str) -> bool:
    """Return whether the syntax of files of this name can be checked."""
    grammar = grammar_of(name)
    return is_data(name) or (grammar is not None and grammar.name not in _MACROS)


def _faults(root: Node) -> Iterator[Node]:
    """Yield the error and missing nodes in order, none inside another."""
    pending = [root]
    for _ in range(_MAX_NODES):
        if not pending:
            return
        node = pending.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            pending.extend(reversed(node.children))


def _diagnostic(path: str, source: bytes, node: Node) -> Diagnostic:
    start = node.start_byte
    line_start = source.rfind(b"\n", 0, start) + 1
    column = len(source[line_start:start].decode("utf-8", "replace")) + 1
    return Diagnostic(path, node.start_point.row + 1, column, "error", _message(source, node), SOURCE)


def _message(source: bytes, node: Node) -> str:
    if node.is_missing:
        return f"{node.type!r} is missing"
    quoted = source[node.start_byte : node.end_byte].decode("utf-8", "replace").strip()
    first = quoted.splitlines()[0] if quoted else ""
    return f"syntax error at {first[:_MAX_QUOTE]!r}" if first else "syntax error"
