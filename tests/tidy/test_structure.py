"""The shape of the package: no cycles of imports, and one place that makes the context of tools."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tests.tidy.source import Function, Module, modules


def test_no_module_imports_itself_in_a_circle_not_even_for_types() -> None:
    graph = {module.name: imported(module) - {module.name} for module in modules()}
    assert [" → ".join(circle) for circle in circles(graph)] == []


def test_a_circle_is_found() -> None:
    assert list(circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == [("a", "b", "c")]


def test_tools_get_their_context_from_one_place() -> None:
    makers = [
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ToolContext"
    ]
    assert makers == ["codeagent_lsp.tools.context"]


def imported(module: Module) -> set[str]:
    """Modules of the package that a module imports, for types too, but not inside of a function."""
    known = {item.name for item in modules()}
    found = set()
    for node in _outside_functions(module.tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("codeagent_lsp"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in known else str(node.module) for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known}
    return found & known


def circles(graph: Mapping[str, set[str]]) -> Iterator[tuple[str, ...]]:
    """Groups of modules that reach each other (strongly connected components)."""
    reach = {name: _reachable(graph, name) for name in graph}
    done: set[str] = set()
    for name in sorted(graph):
        group = {other for other in reach[name] if name in reach.get(other, ())}
        if name not in done and len(group) > 1:
            done |= group
            yield tuple(sorted(group))


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    open_ = list(graph[start])
    while open_:
        name = open_.pop()
        if name not in seen:
            seen.add(name)
            open_.extend(graph.get(name, ()))
    return seen


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function):
            yield child
            yield from _outside_functions(child)
