"""The shape of the package: no cycles of imports, and one place that makes the context of tools."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from tests.tidy.source import (
    ROOT,
    Function,
    Module,
    code_lines,
    everything_imported,
    imported_by,
    importers,
    modules,
    mutual_folders,
)

TOGETHER = 350
"""Lines of code that one module may have when another joins it."""
MUTUAL_FOLDERS = 33
"""Pairs of a folder and one within it that import each other; there may only be fewer, and none of other folders."""


def test_no_module_imports_itself_in_a_circle_not_even_for_types() -> None:
    graph = {module.name: imported(module) - {module.name} for module in modules()}
    assert [" → ".join(circle) for circle in circles(graph)] == []


def test_a_circle_is_found() -> None:
    assert list(circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == [("a", "b", "c")]


def test_tools_get_their_context_from_one_place() -> None:
    makers = [
        module.name
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ToolContext"
    ]
    assert makers == ["codeagent_lsp.tools.context"]


@pytest.mark.slow
def test_a_module_with_one_user_joins_it_or_has_a_reason() -> None:
    listed = (ROOT / "tests/tidy/one_user.tsv").read_text().splitlines()
    reasons = {f"codeagent_lsp.{name}": why for name, _, why in (line.partition("\t") for line in listed)}
    alone = with_one_user()
    new = [f"{name} is used by {user} alone: join them" for name, user in alone.items() if not reasons.get(name)]
    old = [f"tests/tidy/one_user.tsv: {name} is gone or has more users" for name in reasons if name not in alone]
    assert new + old == []


def test_no_more_folders_import_each_other() -> None:
    pairs = list(mutual_folders(_all_imports()))
    assert [pair for pair in pairs if not pair[1].startswith(f"{pair[0]}.")] == []
    assert len(pairs) <= MUTUAL_FOLDERS, pairs


def with_one_user() -> dict[str, str]:
    """The modules that one other imports, at its top, and that would fit into it; tools and packages aside."""
    known = {module.name: module for module in modules()}
    users = importers(_all_imports())
    found = {}
    for name, module in known.items():
        user = next(iter(users[name])) if len(users.get(name, ())) == 1 else ""
        if user and "__init__.py" not in (module.path.name, known[user].path.name) and not name.endswith("_tools"):
            fits = len(module.lines) + len(known[user].lines) <= 2 * TOGETHER  # to count them takes longer
            if fits and name in imported(known[user]) and _size(module) + _size(known[user]) <= TOGETHER:
                found[name] = user
    return found


@cache
def _all_imports() -> Mapping[str, set[str]]:
    known = {module.name for module in modules()}
    return {module.name: everything_imported(module, known) for module in modules()}


@cache
def _size(module: Module) -> int:
    return len(code_lines(module))


def imported(module: Module) -> set[str]:
    """Modules of the package that a module imports, for types too, but not inside of a function."""
    return imported_by(_outside_functions(module.tree), {item.name for item in modules()})


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
