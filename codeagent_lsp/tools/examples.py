"""An example call of each built-in tool, and the error codes that are specific to it, for the page about the tools.

Not here: the page (`tools_page.py`), the tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from codeagent_lsp.errors import ErrorCode

EXAMPLES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "list_dir": {"path": "src", "depth": 2},
        "read_file": {"path": "src/cart.py", "start_line": 1, "end_line": 40},
        "glob_file_search": {"pattern": "**/*.py"},
        "grep": {"pattern": "def total", "glob": "*.py", "context": 2},
        "search_semantic": {"query": "where the tax is added", "limit": 5},
        "run_cmd": {"command": "python -m compileall -q src", "timeout": 60},
        "run_tests": {"path": "tests/test_cart.py", "pattern": "total"},
        "edit_file": {"path": "src/cart.py", "old_str": "return 0", "new_str": "return sum(items)"},
        "write_file": {"path": "src/tax.py", "content": "RATE = 19\n"},
        "apply_patch": {"patch": "--- a/src/tax.py\n+++ b/src/tax.py\n@@ -1 +1 @@\n-RATE = 19\n+RATE = 7\n"},
        "undo_patch": {"change_id": "c1"},
        "move_file": {"path": "src/tax.py", "new_path": "src/taxes.py"},
        "delete_file": {"path": "src/old.py"},
        "batch_edit": {"edits": [{"path": "src/tax.py", "old_str": "19", "new_str": "20"}]},
        "preview_edit": {"path": "src/tax.py", "old_str": "19", "new_str": "20"},
        "analyze_coverage": {"path": "src/cart.py"},
        "generate_tests": {"path": "src/cart.py", "function_name": "Cart.total"},
        "get_diagnostics": {"path": "src/cart.py"},
        "git_diff": {"path": "src"},
        "git_log": {"limit": 5},
        "generate_commit": {"staged_only": True},
        "AskUser": {"questions": [{"text": "Which rate?", "options": ["7", "19"]}]},
        "todoread": {"status": "pending"},
        "todowrite": {"action": "add", "todos": [{"id": "1", "content": "Add the tax", "status": "pending"}]},
        "create_plan": {"goal": "Add the tax", "steps": [{"title": "Write the function"}, {"title": "Test it"}]},
        "plan_enter": {"title": "Taxes"},
        "plan_update": {"action": "append", "content": "1. Write the function"},
        "plan_exit": {},
        "skill_loader": {"skill_name": "release"},
        "skill_installer": {"skill_source": "owner/repository", "skill_name": "release"},
        "delegate": {"agent": "reviewer", "task": "Look for mistakes in src/cart.py."},
        "enable_tools": {"group": "git"},
        "ask_clarification": {
            "question": "Which files?",
            "clarification_type": "scope",
            "options": [{"id": "src", "label": "Only src"}, {"id": "all", "label": "All"}],
        },
        "request_decision": {
            "question": "How shall it be merged?",
            "decision_type": "method",
            "options": [{"id": "merge", "label": "Merge"}, {"id": "rebase", "label": "Rebase", "risks": ["history"]}],
        },
        "request_env_var": {"name": "DATABASE_URL", "reason": "The tests need a database."},
        "get_env_var": {"name": "DATABASE_URL"},
        "check_env_vars": {"names": ["DATABASE_URL", "CI"]},
        "code_index_build": {"path": "src"},
        "ast_parse": {"path": "src/cart.py"},
        "ast_find_symbols": {"name": "total", "kind": "method"},
        "ast_extract_function": {"path": "src/cart.py", "function_name": "Cart.total"},
        "ast_get_imports": {"path": "src/cart.py"},
        "find_definition": {"symbol": "Cart.total"},
        "find_references": {"symbol": "Cart", "path": "src"},
        "call_graph": {"function_name": "Cart.total", "depth": 2},
        "dependency_graph": {"path": "src/cart.py"},
        "edit_by_ast": {
            "path": "src/cart.py",
            "edits": [{"target": "Cart.total", "operation": "replace_body", "code": "return sum(self.items)"}],
        },
        "web_search": {"query": "python decimal rounding", "max_results": 5},
        "web_scrape": {"url": "https://example.com/", "selector": "main"},
        "terminal": {"action": "start"},
        "desktop": {"action": "restart", "resolution": "1600x900"},
        "export_artifact": {"file_path": "dist/shop-1.0.tar.gz", "artifact_name": "shop.tar.gz"},
        "list_artifacts": {},
        "batch_export_artifacts": {"file_paths": ["dist/shop-1.0.tar.gz", "report.html"]},
        "import_file": {"source_url": "https://example.com/LICENSE.txt", "dest_path": "vendor/LICENSE.txt"},
        "import_files_batch": {
            "files": [{"source_url": "artifact:report.html", "dest_path": "docs/report.html"}],
        },
        "compose": {
            "steps": [
                {"tool": "glob_file_search", "arguments": {"pattern": "src/*.py"}},
                {"tool": "read_file", "take": {"extract_path": "[0]", "field_mapping": {"path": ""}}},
            ]
        },
    }
)
"""Valid arguments for each tool, by its name."""

_FILE = (ErrorCode.NOT_FOUND,)
_MODEL = (ErrorCode.EXECUTION_ERROR, ErrorCode.NETWORK_ERROR, ErrorCode.PARSE_ERROR, ErrorCode.TIMEOUT)

ERRORS: Mapping[str, tuple[ErrorCode, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("git_diff", "git_log", "call_graph", "search_semantic"), _FILE),
        "ast_extract_function": (ErrorCode.EDIT_REFUSED,),
        "generate_commit": (ErrorCode.NOT_FOUND, *_MODEL),
        "generate_tests": (ErrorCode.NOT_FOUND, *_MODEL),
        "delegate": _MODEL,
        "web_search": (ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR),
        "web_scrape": (ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR, ErrorCode.NOT_FOUND),
        **dict.fromkeys(("import_file", "import_files_batch"), (*_FILE, ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR)),
        **dict.fromkeys(("terminal", "desktop"), (*_FILE, ErrorCode.TIMEOUT)),
        "skill_loader": _FILE,
        "skill_installer": (ErrorCode.NETWORK_ERROR, ErrorCode.NOT_FOUND),
        "run_tests": _FILE,
        "analyze_coverage": _FILE,
    }
)
"""Error codes of single tools, in addition to those that follow from a tool's traits."""
