"""Who imports whom, and when: the contracts of `.importlinter`, no late import without a reason.

Not here: cycles (`test_structure.py`).
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.source import ROOT, Module, functions, modules


def test_the_contracts_hold() -> None:
    program = Path(sys.executable).with_name("lint-imports")  # in its own process: it switches off all loggers of ours
    done = subprocess.run(
        [program, "--config", str(ROOT / ".importlinter"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_late_import_has_its_reason_beside_it() -> None:
    bad = [
        f"{module.where(node)}: {ast.unparse(node)}"
        for module in modules()
        for node in _late_imports(module.tree)
        if not _has_reason(module, node)
    ]
    assert not bad, "\n".join(bad)


def test_the_rule_about_late_imports_can_fail() -> None:
    tree = ast.parse("def f():\n    import json\n    return json\n")
    assert len(list(_late_imports(tree))) == 1


def _late_imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    for function in functions(tree):
        yield from (node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom))


def _has_reason(module: Module, node: ast.Import | ast.ImportFrom) -> bool:
    """A comment in the line or above it, or a module docstring that speaks of when imports happen."""
    here, above = module.lines[node.lineno - 1], module.lines[node.lineno - 2].strip()
    said = ast.get_docstring(module.tree) or ""
    return "#" in here or above.startswith("#") or bool(re.search(r"\b(imports?|late)\b", said, re.IGNORECASE))
