"""The shape of the package: no cycles, few imports, small bags, and no name that says nothing because all have it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields

import pytest

from codeagent_lsp.session.run_parts import RunParts
from codeagent_lsp.session.services import Services
from codeagent_lsp.tools.context import ToolContext
from tests.tidy.source import Function, Module, modules

MOST_IMPORTS = 25
MOST_FIELDS = 10
MOST_MODULES_OF_A_CLASS_NAME = 2
MOST_FOLDERS_OF_A_MODULE_NAME = 2


def test_no_module_imports_itself_in_a_circle_not_even_for_types() -> None:
    graph = {module.name: imported(module) - {module.name} for module in modules()}
    assert [" → ".join(circle) for circle in circles(graph)] == []


def test_a_circle_is_found() -> None:
    assert list(circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == [("a", "b", "c")]


def test_no_module_imports_too_much() -> None:
    counts = {module.name: len(imported(module)) for module in modules()}
    assert {name: count for name, count in counts.items() if count > MOST_IMPORTS} == {}


@pytest.mark.parametrize("bag", [ToolContext, Services, RunParts], ids=lambda bag: bag.__name__)
def test_what_is_handed_around_stays_small(bag: type) -> None:
    assert len(fields(bag)) <= MOST_FIELDS


def test_tools_get_their_context_from_one_place() -> None:
    makers = [
        module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ToolContext"
    ]
    assert makers == ["codeagent_lsp.tools.context"]


def test_a_class_name_belongs_to_few_modules() -> None:
    found = defaultdict(list)
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module.name)
    assert {name: where for name, where in found.items() if len(where) > MOST_MODULES_OF_A_CLASS_NAME} == {}


def test_a_module_name_belongs_to_few_folders() -> None:
    found = defaultdict(list)
    for module in modules():
        if module.path.name != "__init__.py":
            found[module.path.name].append(str(module.path.parent))
    assert {name: where for name, where in found.items() if len(where) > MOST_FOLDERS_OF_A_MODULE_NAME} == {}


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
