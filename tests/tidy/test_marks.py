"""A file that the inner loop does not import has no fast test: what is read in its text is so in its syntax tree."""

from __future__ import annotations

import ast

import pytest

from tests.conftest import WHOLLY_SLOW
from tests.tidy.source import Module, test_modules


def marks_all(tree: ast.Module) -> bool:
    """Whether a statement at the top gives the mark `slow` to each test of the file, whatever a condition says."""
    given = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["pytestmark"]
    ]
    marks = [mark for value in given for mark in (value.elts if isinstance(value, ast.List) else [value])]
    return len(given) == 1 and "pytest.mark.slow" in map(ast.unparse, marks)


@pytest.mark.parametrize("module", test_modules(), ids=lambda module: module.name)
def test_what_is_left_out_by_its_text_is_slow(module: Module) -> None:
    assert not WHOLLY_SLOW.search(module.text) or marks_all(module.tree)


@pytest.mark.parametrize(
    ("text", "slow"),
    [
        ("pytestmark = pytest.mark.slow", True),
        ("pytestmark = [\n    pytest.mark.slow,\n    pytest.mark.skipif(True, reason='')]", True),
        ("pytestmark = pytest.mark.slower", False),
        ("pytestmark = [pytest.mark.skipif(True, reason='pytest.mark.slow')]", False),
        ("if True:\n    pytestmark = pytest.mark.slow", False),
        ("@pytest.mark.slow\ndef test_one(): ...", False),
    ],
)
def test_the_mark_is_read_in_the_text(text: str, slow: bool) -> None:
    assert bool(WHOLLY_SLOW.search(text)) is marks_all(ast.parse(text)) is slow


@pytest.mark.parametrize(
    "text", ['"""\npytestmark = pytest.mark.slow\n"""', "pytestmark = pytest.mark.slow\npytestmark = []"]
)
def test_what_only_looks_so_is_found(text: str) -> None:
    assert WHOLLY_SLOW.search(text)
    assert not marks_all(ast.parse(text))
