"""How large things may get: the limits that hold for everything, and today's largest, which may only shrink.

When a record fails because something became smaller, write the new number down. Never raise one.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from tests.tidy.source import Function, classes, functions, length, modules, test_modules

MODULE_LINES, FUNCTION_LINES, CLASS_METHODS = 500, 60, 15
TABLES = {"codeagent_lsp.texts"}  # one entry per sentence: as long as the product has things to say

# Today's largest of each kind.
LARGEST_MODULE = 383
LARGEST_FUNCTION = 40
MOST_METHODS = 15


def test_modules_of_the_package() -> None:
    sizes = {module.name: len(module.lines) for module in modules() if module.name not in TABLES}
    within(sizes, MODULE_LINES)
    assert max(sizes.values()) == LARGEST_MODULE


def test_functions_of_the_package() -> None:
    sizes = {module.where(node): length(node) for module in modules() for node in functions(module.tree)}
    within(sizes, FUNCTION_LINES)
    assert max(sizes.values()) == LARGEST_FUNCTION


def test_classes_of_the_package() -> None:
    sizes = {module.where(node): methods(node) for module in modules() for node in classes(module.tree)}
    within(sizes, CLASS_METHODS)
    assert max(sizes.values()) == MOST_METHODS


def test_the_tests_keep_the_limits_too() -> None:
    within({module.name: len(module.lines) for module in test_modules()}, MODULE_LINES)
    within(
        {module.where(node): length(node) for module in test_modules() for node in functions(module.tree)},
        FUNCTION_LINES,
    )


def test_a_size_above_its_limit_is_told() -> None:
    with pytest.raises(AssertionError, match=r"small\.py: 9 of at most 8"):
        within({"small.py": 9, "tiny.py": 3}, 8)


def within(sizes: Mapping[str, int], limit: int) -> None:
    """Assert that nothing is larger than `limit`."""
    over = [f"{name}: {size} of at most {limit}" for name, size in sizes.items() if size > limit]
    assert not over, "\n".join(over)


def methods(node: ast.ClassDef) -> int:
    """Methods defined in a class body."""
    return sum(isinstance(item, Function) for item in node.body)
