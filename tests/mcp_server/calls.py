"""A workspace, and for each name of the sandbox a call that works and one that does not."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CART = """\
from shop.tax import with_tax


class Cart:
    def __init__(self, prices):
        self.prices = prices

    def total(self):
        return with_tax(sum(self.prices))


def empty():
    return Cart([])
"""
TAX = "RATE = 2\n\n\ndef with_tax(price):\n    return price * RATE\n"
TESTS = """\
import unittest

from shop.cart import Cart


class CartTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(Cart([1, 2]).total(), 6)
"""
WRITTEN = """\
import unittest

from shop.tax import with_tax


class TaxTest(unittest.TestCase):
    def test_doubles(self):
        self.assertEqual(with_tax(4), 8)
"""
PATCH = "--- a/shop/tax.py\n+++ b/shop/tax.py\n@@ -1 +1 @@\n-RATE = 2\n+RATE = 3 - 1\n"
EDIT = {"path": "shop/cart.py", "old_str": "Cart([])", "new_str": "Cart([0])"}


@dataclass(frozen=True, slots=True)
class Row:
    """Arguments that work with what the answer says; arguments that do not, with their code, '' for a tool that
    takes none: what it is given is passed over.
    """

    good: Mapping[str, Any]
    says: str
    bad: Mapping[str, Any]
    code: str = "VALIDATION_ERROR"


NOWHERE = {"path": "nowhere.py"}

ROWS: Mapping[str, Row] = {
    "list": Row({"path": "shop"}, "cart.py", {"depth": 99}),
    "read": Row({"path": "shop/tax.py"}, "RATE = 2", NOWHERE, "PARAMETER_ERROR"),
    "glob": Row({"pattern": "**/*.py"}, "shop/cart.py", {"pattern": 3}),
    "grep": Row({"pattern": "def total"}, "shop/cart.py", {"pattern": "("}, "PARAMETER_ERROR"),
    "write": Row(
        {"path": "new.py", "content": "x = 1\n"},
        "Created new.py",
        {"path": "/etc/x", "content": ""},
        "PERMISSION_ERROR",
    ),
    "edit": Row(EDIT, "shop/cart.py", {**EDIT, "old_str": "not there"}, "PARAMETER_ERROR"),
    "patch": Row({"patch": PATCH}, "shop/tax.py", {"patch": "no patch"}, "PARAMETER_ERROR"),
    "bash": Row(
        {"command": "cat shop/tax.py; echo made > made.txt"}, "3 - 1", {"command": "true", "allow_network": True}
    ),
    "export_artifact": Row(
        {"file_path": "shop/tax.py"}, "Exported tax.py", {"file_path": "nowhere.py"}, "PARAMETER_ERROR"
    ),
    "list_artifacts": Row({}, "tax.py", {"name": "tax.py"}, ""),
    "batch_export_artifacts": Row(
        {"file_paths": ["shop/cart.py", "made.txt"]},
        "Exported made.txt",
        {"file_paths": ["/etc/passwd"]},
        "PERMISSION_ERROR",
    ),
    "import_file": Row(
        {"source_url": "artifact:made.txt", "dest_path": "copied/made.txt"},
        "Created copied/made.txt",
        {"source_url": "https://example.com/", "dest_path": "page.html"},
        "PERMISSION_ERROR",
    ),
    "import_files_batch": Row(
        {"files": [{"source_url": "file:made.txt", "dest_path": "copied/again.txt"}]},
        "Created copied/again.txt",
        {"files": [{"source_url": "http://127.0.0.1/", "dest_path": "page.html"}]},
    ),
    "start_terminal": Row({}, "running at http://127.0.0.1:", {"port": 80}),
    "get_terminal_status": Row({}, "running at http://127.0.0.1:", {"port": 8000}),
    "restart_terminal": Row({}, "was stopped. Web terminal: running", {"action": "stop"}),
    "stop_terminal": Row({}, "was stopped", {"force": True}, ""),
    "start_desktop": Row({"resolution": "800x600"}, "running at http://127.0.0.1:", {"resolution": "large"}),
    "get_desktop_status": Row({}, "running at http://127.0.0.1:", {"display": 1}),
    "restart_desktop": Row({"display": 4}, "was stopped. Desktop: running", {"display": 100}),
    "stop_desktop": Row({}, "was stopped", {"port": 6080}),
    "ast_parse": Row({"path": "shop/cart.py"}, "Cart", {}),
    "ast_find_symbols": Row({"name": "total"}, "shop/cart.py", {"kind": "planet"}),
    "ast_extract_function": Row(
        {"path": "shop/cart.py", "function_name": "Cart.total"},
        "with_tax(sum",
        {"path": "shop/cart.py", "function_name": "nothing"},
        "PARAMETER_ERROR",
    ),
    "ast_get_imports": Row({"path": "shop/cart.py"}, "shop.tax", NOWHERE, "PARAMETER_ERROR"),
    "code_index_build": Row({}, "ready", {"path": "../.."}, "PERMISSION_ERROR"),
    "find_definition": Row({"symbol": "with_tax"}, "shop/tax.py", {"symbol": ""}),
    "find_references": Row({"symbol": "with_tax"}, "shop/cart.py", {}),
    "call_graph": Row({"function_name": "with_tax"}, "total", {"function_name": "nothing"}, "PARAMETER_ERROR"),
    "dependency_graph": Row({"path": "shop/cart.py"}, "shop/tax.py", {"path": "../.."}, "PERMISSION_ERROR"),
    "edit_by_ast": Row(
        {"path": "shop/cart.py", "edits": [{"target": "empty", "operation": "rename", "code": "nothing_in_it"}]},
        "shop/cart.py",
        {"path": "shop/cart.py", "edits": [{"target": "Cart", "operation": "explode"}]},
    ),
    "batch_edit": Row({"edits": [{"path": "new.py", "old_str": "x = 1", "new_str": "x = 2"}]}, "new.py", {"edits": []}),
    "preview_edit": Row(
        {"path": "new.py", "old_str": "x = 2", "new_str": "x = 3"},
        "+x = 3",
        {"path": "new.py", "old_str": "gone", "new_str": ""},
        "PARAMETER_ERROR",
    ),
    "git_diff": Row({}, "+RATE = 3 - 1", {"staged": "perhaps"}),
    "git_log": Row({"limit": 1}, "First", {"limit": -1}),
    "generate_commit": Row({}, "Double the rate", {"staged_only": True}, "PARAMETER_ERROR"),
    "generate_tests": Row(
        {"path": "shop/tax.py", "function_name": "with_tax"},
        "its tests pass",
        {"path": "tests/test_cart.py"},
        "PARAMETER_ERROR",
    ),
    "run_tests": Row({"path": "tests/test_cart.py"}, "1 passed", NOWHERE, "PARAMETER_ERROR"),
    "analyze_coverage": Row({}, "shop/cart.py", NOWHERE, "PARAMETER_ERROR"),
}


def make_workspace(folder: Path) -> Path:
    """A small project in a repository with one commit."""
    texts = {
        "shop/__init__.py": "",
        "shop/cart.py": CART,
        "shop/tax.py": TAX,
        "tests/__init__.py": "",
        "tests/test_cart.py": TESTS,
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "First")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def disk(folder: Path) -> dict[str, str]:
    """Every file of the workspace but git's."""
    files = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text() for path in files}
