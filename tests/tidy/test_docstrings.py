"""Every module, public class and public function says what it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.source import Function, Module, modules, test_modules

SHORT_ENOUGH = 12  # characters a docstring has at least, or it says nothing


def test_every_module_of_the_package_and_of_the_tests_says_what_it_is() -> None:
    bad = [
        str(module.path)
        for module in (*modules(), *test_modules())
        if module.tree.body and len(ast.get_docstring(module.tree) or "") < SHORT_ENOUGH
    ]
    assert not bad, "\n".join(bad)


def test_what_is_public_is_documented() -> None:
    bad = [
        f"{module.where(node)} {node.name}"
        for module in modules()
        for node in public_definitions(module)
        if not ast.get_docstring(node)
    ]
    assert not bad, "\n".join(bad)


def public_definitions(module: Module) -> Iterator[ast.ClassDef | Function]:
    """Public functions, classes and methods. A stub of a port (`...`) is told in its class, what is marked `@override`
    where it was declared.
    """
    yield from _public(module.tree.body)


def _public(body: list[ast.stmt]) -> Iterator[ast.ClassDef | Function]:
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node
            yield from _public(node.body)
        elif isinstance(node, Function) and not node.name.startswith("_") and not _told_elsewhere(node):
            yield node


def _told_elsewhere(node: Function) -> bool:
    return ast.unparse(node.body[-1]) == "..." or "override" in map(ast.unparse, node.decorator_list)
