"""Calls of other agents' tools as their models write them, the call of ours that each becomes, and what it does.

`{root}` stands for the workspace's folder. The workspace is `FILES`. Used by `test_foreign_calls.py`.
"""

# ruff: noqa: E501 - a row is a line

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CART = "class Cart:\n    def total(self):\n        return 0\n\n\ndef tax(rate):\n    return rate\n"
NOTES = "".join(f"line {number}\n" for number in range(1, 21))
FILES = {"shop/cart.py": CART, "notes.md": NOTES, "docs/a.md": "# A\nTODO one\n", "page.html": "<h1>\nTODO\n</h1>\n"}
PATCH = "*** Begin Patch\n*** Update File: shop/cart.py\n@@\n-        return 0\n+        return 1\n*** End Patch"
ONE = {"shop/cart.py": CART.replace("return 0", "return 1")}
NEW = {"new.py": "x = 1\n"}
TOP = {"shop/cart.py": f"import os\n{CART}"}
SECOND = {"shop/cart.py": CART.replace("class Cart:\n", "class Cart:\n    # sum\n")}
BOTH = {"shop/cart.py": CART.replace("return 0", "return 1").replace("tax", "vat")}
EDITS = [("        return 0", "        return 1"), ("def tax", "def vat")]


@dataclass(frozen=True)
class Row:
    """One call. `shows` are parts of the text that it answers, exactly these lines of a file if `lines` is given;
    `staged` are the texts that it stages, None for a deleted file; `ran` is the command that it ran, with the time
    limit in seconds. A row without any of these cannot run in the test's workspace: its arguments are only validated.
    """

    name: str
    given: Mapping[str, Any]
    tool: str
    own: Mapping[str, Any]
    shows: tuple[str, ...] = ()
    lines: tuple[int, int] | None = None
    hides: tuple[str, ...] = ()
    staged: Mapping[str, str | None] | None = None
    ran: tuple[str, float | None] | None = None


def _edit(name: str, given: Mapping[str, Any], own: Mapping[str, Any] | None = None) -> Row:
    """Return a call that changes one line of the cart."""
    wanted = own or {"path": "shop/cart.py", "old_str": "return 0", "new_str": "return 1"}
    return Row(name, given, "edit_file", wanted, staged=ONE)


def _batch(name: str, given: Mapping[str, Any], ends: str = "") -> Row:
    """Return a call that changes two places of the cart."""
    edits = [{"path": "shop/cart.py", "old_str": f"{old}{ends}", "new_str": f"{new}{ends}"} for old, new in EDITS]
    return Row(name, given, "batch_edit", {"edits": edits}, staged=BOTH)


def _file(name: str, given: Mapping[str, Any]) -> Row:
    """Return a call that writes a new file."""
    return Row(name, given, "write_file", {"path": "new.py", "content": "x = 1\n"}, staged=NEW)


def _runs(name: str, given: Mapping[str, Any], limit: float | None = None, command: str = "ls -l", **own: Any) -> Row:
    """Return a call that runs a command."""
    wanted = {"command": command, **({"timeout": limit} if limit else {}), **own}
    return Row(name, given, "run_cmd", wanted, ran=(command, limit))


def _only(name: str, given: Mapping[str, Any], tool: str, **own: Any) -> Row:
    """Return a call that cannot run in the test's workspace."""
    return Row(name, given, tool, own)


_CLAUDE_EDIT = {"file_path": "{root}/shop/cart.py", "old_string": "return 0", "new_string": "return 1"}
_ABSOLUTE = {"path": "{root}/shop/cart.py", "old_str": "return 0", "new_str": "return 1"}
_EMPTY = {"file_path": "new.py", "old_string": "", "new_string": "x = 1\n"}
_CAMEL = {"filePath": "shop/cart.py", "oldString": "return 0", "newString": "return 1"}
_SEARCH = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"
_CLINE = "------- SEARCH\n{}\n=======\n{}\n+++++++ REPLACE\n"
_ROO = "<<<<<<< SEARCH\n:start_line:3\n-------\n{}\n=======\n{}\n>>>>>>> REPLACE\n"
_WHOLE_LINES = [("        return 0", "        return 1"), ("def tax(rate):", "def vat(rate):")]

READING = (
    Row("Read", {"file_path": "{root}/notes.md", "offset": 10, "limit": 5}, "read_file", {"path": "{root}/notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("Read", {"file_path": "notes.md"}, "read_file", {"path": "notes.md"}, lines=(1, 20)),
    Row("Read", {"file_path": "notes.md", "offset": 0, "limit": 2000}, "read_file", {"path": "notes.md", "end_line": 2000}, lines=(1, 20)),
    Row("Read", {"path": "notes.md", "offset": "3", "limit": "2"}, "read_file", {"path": "notes.md", "start_line": 3, "end_line": 4}, lines=(3, 4)),
    Row("read", {"filePath": "{root}/notes.md", "offset": 10, "limit": 5}, "read_file", {"path": "{root}/notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("read", {"path": "notes.md", "offset": 10, "limit": 5}, "read_file", {"path": "notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("read", {"file_path": "notes.md", "offset": 10, "limit": 5}, "read_file", {"path": "notes.md", "start_line": 11, "end_line": 15}, lines=(11, 15)),
    Row("read_file", {"file_path": "{root}/notes.md", "offset": 10, "limit": 5, "mode": "slice"}, "read_file", {"path": "{root}/notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("read_file", {"path": "notes.md", "offset": 10, "limit": 5, "mode": "indentation", "indentation": {"anchor_line": 10}}, "read_file", {"path": "notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("read_file", {"filePath": "notes.md", "startLine": 10, "endLine": 14}, "read_file", {"path": "notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("read_file", {"target_file": "notes.md", "offset": 10, "limit": 5}, "read_file", {"path": "notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("read_file", {"target_file": "notes.md", "should_read_entire_file": False, "start_line_one_indexed": 10, "end_line_one_indexed_inclusive": 14, "explanation": "why"}, "read_file", {"path": "notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("read_file", {"target_file": "notes.md", "should_read_entire_file": True, "start_line_one_indexed": 1, "end_line_one_indexed_inclusive": 2}, "read_file", {"path": "notes.md"}, lines=(1, 20)),
    Row("read_file", {"absolute_path": "{root}/notes.md", "offset": 10, "limit": 5}, "read_file", {"path": "{root}/notes.md", "start_line": 11, "end_line": 15}, lines=(11, 15)),
    Row("read_file", {"file_path": "notes.md", "start_line": 10, "end_line": 14}, "read_file", {"path": "notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("view_image", {"path": "notes.md"}, "read_file", {"path": "notes.md"}, lines=(1, 20)),
    Row("view_file", {"AbsolutePath": "{root}/notes.md", "StartLine": 10, "EndLine": 14}, "read_file", {"path": "{root}/notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("view_file", {"path": "notes.md", "view_range": [10, 14]}, "read_file", {"path": "notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("view", {"path": "{root}/notes.md", "view_range": [10, 14]}, "read_file", {"path": "{root}/notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("view", {"path": "{root}"}, "read_file", {"path": "{root}"}, shows=("shop/cart.py", "notes.md")),
    Row("read_command_output", {"artifact_id": "notes.md", "offset": 0, "limit": 40960}, "read_file", {"path": "notes.md"}, lines=(1, 20)),
    Row("read_command_output", {"artifact_id": "notes.md", "search": "line 7"}, "grep", {"path": "notes.md", "pattern": "line 7"}, shows=("notes.md:7:line 7",)),
    Row("NotebookRead", {"notebook_path": "notes.md"}, "read_file", {"path": "notes.md"}, lines=(1, 20)),
    Row("str_replace_editor", {"command": "view", "path": "{root}/notes.md", "view_range": [10, 14]}, "read_file", {"path": "{root}/notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("str_replace_editor", {"command": "view", "path": "{root}/notes.md", "view_range": [18, -1], "security_risk": "LOW"}, "read_file", {"path": "{root}/notes.md", "start_line": 18}, lines=(18, 20)),
    Row("str_replace_based_edit_tool", {"command": "view", "path": "{root}"}, "read_file", {"path": "{root}"}, shows=("shop/", "shop/cart.py")),
    Row("file_editor", {"command": "view", "path": "notes.md"}, "read_file", {"path": "notes.md"}, lines=(1, 20)),
    Row("text_editor", {"command": "view", "path": "notes.md", "view_range": "[10, 14]"}, "read_file", {"path": "notes.md", "start_line": 10, "end_line": 14}, lines=(10, 14)),
    Row("read_many_files", {"include": ["docs/*.md", "page.html"], "exclude": ["b/**"]}, "read_files", {"files": [{"path": "docs/*.md"}, {"path": "page.html"}]}, shows=("== docs/a.md ==\n1|# A", "== page.html ==\n1|<h1>")),
    Row("read_files", {"paths": ["docs/a.md", "page.html"]}, "read_files", {"files": [{"path": "docs/a.md"}, {"path": "page.html"}]}, shows=("2|TODO one", "3|</h1>")),
    Row("read_files", {"files": [{"path": "notes.md", "start_line": 10, "end_line": 11}, {"path": "none.md"}]}, "read_files", {"files": [{"path": "notes.md", "start_line": 10, "end_line": 11}, {"path": "none.md"}]}, shows=("10|line 10\n11|line 11", "none.md does not exist"), hides=("12|",)),
    Row("read_file", {"args": {"file": [{"path": "notes.md", "line_range": "10-11"}, {"path": "docs/a.md"}]}}, "read_files", {"files": [{"path": "notes.md", "start_line": 10, "end_line": 11}, {"path": "docs/a.md"}]}, shows=("10|line 10\n11|line 11", "1|# A"), hides=("12|",)),
    Row("read_file", {"files": [{"path": "notes.md", "line_ranges": [[3, 4], [7, 7]]}]}, "read_files", {"files": [{"path": "notes.md", "start_line": 3, "end_line": 4}, {"path": "notes.md", "start_line": 7, "end_line": 7}]}, shows=("3|line 3\n4|line 4", "7|line 7"), hides=("5|",)),
    Row("LS", {"path": "{root}/shop", "ignore": ["*.pyc"]}, "list_dir", {"path": "{root}/shop"}, shows=("shop/cart.py",)),
    Row("LS", {"target_directory": "shop", "ignore_globs": []}, "list_dir", {"path": "shop"}, shows=("shop/cart.py",)),
    Row("ls", {"path": "shop", "limit": 500}, "list_dir", {"path": "shop"}, shows=("shop/cart.py",)),
    Row("list", {"path": "{root}/shop"}, "list_dir", {"path": "{root}/shop"}, shows=("shop/cart.py",)),
    Row("list_dir", {"dir_path": "{root}", "offset": 1, "limit": 25, "depth": 9}, "list_dir", {"path": "{root}", "depth": 5}, shows=("shop/cart.py",)),
    Row("list_dir", {"target_directory": "shop"}, "list_dir", {"path": "shop"}, shows=("shop/cart.py",)),
    Row("list_dir", {"relative_workspace_path": "shop", "explanation": "why"}, "list_dir", {"path": "shop"}, shows=("shop/cart.py",)),
    Row("list_directory", {"dir_path": "shop", "ignore": []}, "list_dir", {"path": "shop"}, shows=("shop/cart.py",)),
    Row("list_directory", {"path": "shop"}, "list_dir", {"path": "shop"}, shows=("shop/cart.py",)),
    Row("list_files", {"path": ".", "recursive": True}, "list_dir", {"path": ".", "depth": 5}, shows=("shop/cart.py",)),
    Row("list_files", {"path": ".", "recursive": "false"}, "list_dir", {"path": ".", "depth": 1}, shows=("shop/",), hides=("cart.py",)),
    Row("read_project_structure", {}, "list_dir", {"depth": 3}, shows=("shop/cart.py",)),
    Row("Glob", {"pattern": "**/*.py", "path": "{root}"}, "glob_file_search", {"pattern": "**/*.py", "path": "{root}"}, shows=("shop/cart.py",), hides=("notes",)),
    Row("Glob", {"glob_pattern": "*.py", "target_directory": "shop"}, "glob_file_search", {"pattern": "*.py", "path": "shop"}, shows=("shop/cart.py",)),
    Row("Glob", {"pattern": "{root}/shop/*.py"}, "glob_file_search", {"pattern": "{root}/shop/*.py"}, shows=("shop/cart.py",)),
    Row("glob", {"pattern": "*.py", "dir_path": "shop", "case_sensitive": False}, "glob_file_search", {"pattern": "*.py", "path": "shop"}, shows=("shop/cart.py",)),
    Row("find", {"pattern": "*.py", "path": "shop", "limit": 1000}, "glob_file_search", {"pattern": "*.py", "path": "shop"}, shows=("shop/cart.py",)),
    Row("find_path", {"glob": "**/*.py", "offset": 0}, "glob_file_search", {"pattern": "**/*.py"}, shows=("shop/cart.py",)),
    Row("file_search", {"query": "**/*.py", "maxResults": 20}, "glob_file_search", {"pattern": "**/*.py"}, shows=("shop/cart.py",)),
    Row("file_search", {"query": "cart", "explanation": "why"}, "glob_file_search", {"pattern": "**/*cart*"}, shows=("shop/cart.py",)),
    Row("file_search", {"query": "shop/cart.py"}, "glob_file_search", {"pattern": "**/shop/cart.py*"}, shows=("shop/cart.py",)),
    Row("glob_file_search", {"target_directory": "shop", "glob_pattern": "*.py"}, "glob_file_search", {"pattern": "*.py", "path": "shop"}, shows=("shop/cart.py",)),
)  # fmt: skip

SEARCHING = (
    Row("Grep", {"pattern": "TODO"}, "grep", {"pattern": "TODO", "output": "files"}, shows=("docs/a.md\npage.html",), hides=(":",)),
    Row("Grep", {"pattern": "TODO", "output_mode": "files_with_matches", "head_limit": 1}, "grep", {"pattern": "TODO", "output": "files", "max_results": 1}, shows=("docs/a.md\n(and 1 more files)",)),
    Row("Grep", {"pattern": "line 1", "output_mode": "count", "path": "{root}"}, "grep", {"pattern": "line 1", "output": "count", "path": "{root}"}, shows=("notes.md:11",)),
    Row("Grep", {"pattern": "todo", "output_mode": "content", "-n": True, "-i": True}, "grep", {"pattern": "todo", "case_insensitive": True}, shows=("docs/a.md:2:TODO one", "page.html:2:TODO")),
    Row("Grep", {"pattern": "line 9", "output_mode": "content", "-A": 2, "-B": 1}, "grep", {"pattern": "line 9", "context": 2}, shows=("notes.md:9:line 9", "notes.md-8-line 8", "notes.md-11-line 11")),
    Row("Grep", {"pattern": "line 9", "output_mode": "content", "-C": 50}, "grep", {"pattern": "line 9", "context": 10}, shows=("notes.md-19-line 19",)),
    Row("Grep", {"pattern": "return", "type": "py", "output_mode": "content"}, "grep", {"pattern": "return", "glob": "*.{py,pyi}"}, shows=("shop/cart.py:3:        return 0",)),
    Row("Grep", {"pattern": "TODO", "glob": "*.{html,htm}"}, "grep", {"pattern": "TODO", "output": "files", "glob": "*.{html,htm}"}, shows=("page.html",), hides=("docs",)),
    Row("Grep", {"pattern": "TODO", "type": "html"}, "grep", {"pattern": "TODO", "output": "files", "glob": "*.{html,htm}"}, shows=("page.html",), hides=("docs",)),
    Row("Grep", {"pattern": "<h1>.*</h1>", "multiline": True, "output_mode": "content"}, "grep", {"pattern": "(?s)<h1>.*</h1>"}, shows=("page.html:1:<h1>\npage.html:2:TODO\npage.html:3:</h1>",)),
    Row("Grep", {"pattern": "class Cart:\\n\\s+def", "multiline": True}, "grep", {"pattern": "(?s)class Cart:\\n\\s+def", "output": "files"}, shows=("shop/cart.py",)),
    Row("Grep", {"pattern": "line", "output_mode": "content", "head_limit": 2, "offset": 2}, "grep", {"pattern": "line", "max_results": 4}, shows=("notes.md:4:line 4",), hides=("line 5",)),
    Row("grep", {"pattern": "TODO", "include": "*.md", "path": "{root}"}, "grep", {"pattern": "TODO", "glob": "*.md", "path": "{root}"}, shows=("docs/a.md:2:TODO one",), hides=("page",)),
    Row("grep", {"regex": "todo", "include_pattern": "**/*.md", "offset": 0}, "grep", {"pattern": "todo", "glob": "**/*.md", "case_insensitive": True}, shows=("docs/a.md:2:TODO one",)),
    Row("grep", {"regex": "todo", "case_sensitive": True}, "grep", {"pattern": "todo", "case_insensitive": False}, shows=("No match",)),
    Row("grep", {"pattern": "tax(", "literal": True, "ignoreCase": True, "limit": 100}, "grep", {"pattern": "tax\\(", "case_insensitive": True, "max_results": 100}, shows=("shop/cart.py:6:def tax(rate):",)),
    Row("grep", {"pattern": "TODO", "output_mode": "files_with_matches", "-i": False}, "grep", {"pattern": "TODO", "output": "files", "case_insensitive": False}, shows=("docs/a.md\npage.html",)),
    Row("grep_files", {"pattern": "TODO", "include": "*.md", "path": "{root}", "limit": 100}, "grep", {"pattern": "TODO", "output": "files", "glob": "*.md", "path": "{root}", "max_results": 100}, shows=("docs/a.md",), hides=(":2",)),
    Row("search_file_content", {"pattern": "todo", "dir_path": "docs", "include": "*.md"}, "grep", {"pattern": "todo", "path": "docs", "glob": "*.md", "case_insensitive": True}, shows=("docs/a.md:2:TODO one",)),
    Row("grep_search", {"pattern": "todo", "dir_path": "docs", "include_pattern": "*.md", "names_only": True, "total_max_matches": 50}, "grep", {"pattern": "todo", "path": "docs", "glob": "*.md", "case_insensitive": True, "output": "files", "max_results": 50}, shows=("docs/a.md",), hides=(":2",)),
    Row("grep_search", {"pattern": "tax(rate)", "fixed_strings": True, "case_sensitive": True, "before": 1, "after": 2}, "grep", {"pattern": "tax\\(rate\\)", "case_insensitive": False, "context": 2}, shows=("shop/cart.py:6:def tax(rate):", "shop/cart.py-7-    return rate")),
    Row("grep_search", {"query": "Todo|tax", "isRegexp": True, "includePattern": "**/*.md", "maxResults": 20}, "grep", {"pattern": "Todo|tax", "glob": "**/*.md", "case_insensitive": True, "max_results": 20}, shows=("docs/a.md:2:TODO one",)),
    Row("grep_search", {"query": "tax(rate)", "isRegexp": False}, "grep", {"pattern": "tax\\(rate\\)", "case_insensitive": True}, shows=("shop/cart.py:6:def tax(rate):",)),
    Row("grep_search", {"query": "TODO", "include_pattern": "*.md", "explanation": "why"}, "grep", {"pattern": "TODO", "glob": "*.md"}, shows=("docs/a.md:2:TODO one",), hides=("page",)),
    Row("search_files", {"path": ".", "regex": "TODO", "file_pattern": "*.md"}, "grep", {"path": ".", "pattern": "TODO", "glob": "*.md"}, shows=("docs/a.md:2:TODO one",), hides=("page",)),
    Row("search_files", {"path": ".", "regex": "TODO", "file_pattern": None}, "grep", {"path": ".", "pattern": "TODO"}, shows=("docs/a.md:2:TODO one", "page.html:2")),
    Row("search_codebase", {"queries": ["TODO", "def tax"]}, "grep", {"pattern": "(?:TODO)|(?:def tax)"}, shows=("docs/a.md:2", "shop/cart.py:6")),
)  # fmt: skip

EDITING = (
    _edit("Edit", {**_CLAUDE_EDIT, "replace_all": False}, {**_ABSOLUTE, "replace_all": False}),
    _edit("edit", {**_CAMEL, "replaceAll": False}, {"path": "shop/cart.py", "old_str": "return 0", "new_str": "return 1", "replace_all": False}),
    _edit("edit", {"path": "shop/cart.py", "oldText": "return 0", "newText": "return 1"}),
    _edit("replace", {**_CLAUDE_EDIT, "instruction": "why", "expected_replacements": 1}, {**_ABSOLUTE, "replace_all": False}),
    Row("replace", {"file_path": "shop/cart.py", "instruction": "why", "old_string": "rate", "new_string": "share", "allow_multiple": True}, "edit_file", {"path": "shop/cart.py", "old_str": "rate", "new_str": "share", "replace_all": True}, staged={"shop/cart.py": CART.replace("rate", "share")}),
    _edit("edit_file", {**_CLAUDE_EDIT, "expected_replacements": 1}, {**_ABSOLUTE, "replace_all": False}),
    _edit("search_replace", _CLAUDE_EDIT, _ABSOLUTE),
    _edit("StrReplace", {"path": "shop/cart.py", "old_string": "return 0", "new_string": "return 1"}),
    _edit("replace_string_in_file", _CAMEL),
    Row("search_and_replace", {"path": "shop/cart.py", "search": "rate", "replace": "share"}, "edit_file", {"path": "shop/cart.py", "old_str": "rate", "new_str": "share", "replace_all": True}, staged={"shop/cart.py": CART.replace("rate", "share")}),
    _edit("search_and_replace", _CLAUDE_EDIT, _ABSOLUTE),
    _edit("editor", {"path": "shop/cart.py", "old_text": "return 0", "new_text": "return 1"}),
    _edit("str_replace_editor", {"command": "str_replace", **_ABSOLUTE, "security_risk": "LOW"}, _ABSOLUTE),
    Row("str_replace_editor", {"command": "str_replace", "path": "shop/cart.py", "old_str": "        return 0\n"}, "edit_file", {"path": "shop/cart.py", "old_str": "        return 0\n", "new_str": ""}, staged={"shop/cart.py": CART.replace("        return 0\n", "")}),
    _edit("str_replace_based_edit_tool", {"command": "str_replace", **_ABSOLUTE}, _ABSOLUTE),
    _edit("file_editor", {"command": "str_replace", **_ABSOLUTE}, _ABSOLUTE),
    _edit("text_editor", {"command": "str_replace", **_ABSOLUTE}, _ABSOLUTE),
    _file("Write", {"file_path": "new.py", "content": "x = 1\n"}),
    _file("Write", {"path": "new.py", "contents": "x = 1\n"}),
    _file("write", {"filePath": "new.py", "content": "x = 1\n"}),
    _file("write", {"file_path": "new.py", "contents": "x = 1\n"}),
    _file("write_to_file", {"path": "new.py", "content": "x = 1\n"}),
    _file("write_to_file", {"TargetFile": "new.py", "CodeContent": "x = 1\n", "EmptyFile": False}),
    _file("create_file", {"filePath": "new.py", "content": "x = 1\n"}),
    _file("write_file", {"file_path": "new.py", "content": "x = 1\n"}),
    _file("write_file", {"explanation": "why", "files": [{"path": "new.py", "content": "x = 1\n"}]}),
    Row("write_file", {"explanation": "why", "files": [{"path": "new.py", "content": "x = 1\n"}, {"path": "b.py", "content": "y = 2"}]}, "apply_patch", {"patch": "*** Begin Patch\n*** Add File: new.py\n+x = 1\n*** Add File: b.py\n+y = 2\n*** End Patch\n"}, staged={**NEW, "b.py": "y = 2\n"}),
    _file("edit_file", {"path": "new.py", "mode": "create", "display_description": "why", "content": "x = 1\n"}),
    _file("editor", {"path": "new.py", "new_text": "x = 1\n"}),
    _file("str_replace_editor", {"command": "create", "path": "new.py", "file_text": "x = 1\n"}),
    _file("str_replace_based_edit_tool", {"command": "create", "path": "new.py", "file_text": "x = 1\n"}),
    _file("file_editor", {"command": "create", "path": "new.py", "file_text": "x = 1\n"}),
    _file("text_editor", {"command": "create", "path": "new.py", "file_text": "x = 1\n"}),
    _file("Edit", _EMPTY),
    _file("edit", {"filePath": "new.py", "oldString": "", "newString": "x = 1\n"}),
    _file("edit_file", {**_EMPTY, "expected_replacements": 1}),
    _file("replace", {**_EMPTY, "instruction": "why"}),
    _file("search_replace", _EMPTY),
    _file("replace_string_in_file", {"filePath": "new.py", "oldString": "", "newString": "x = 1\n"}),
    _file("replace_in_file", {"path": "new.py", "diff": "------- SEARCH\n=======\nx = 1\n+++++++ REPLACE\n"}),
    _batch("MultiEdit", {"file_path": "shop/cart.py", "edits": [{"old_string": old, "new_string": new} for old, new in EDITS]}),
    _batch("multiedit", {"filePath": "shop/cart.py", "edits": [{"filePath": "shop/cart.py", "oldString": old, "newString": new} for old, new in EDITS]}),
    _batch("Edit", {"file_path": "shop/cart.py", "edits": [{"old_string": old, "new_string": new} for old, new in EDITS]}),
    _batch("edit", {"path": "shop/cart.py", "edits": [{"oldText": old, "newText": new} for old, new in EDITS]}),
    _batch("edit_file", {"path": "shop/cart.py", "mode": "edit", "edits": [{"old_text": old, "new_text": new} for old, new in EDITS]}),
    _batch("multi_replace_string_in_file", {"explanation": "why", "replacements": [{"filePath": "shop/cart.py", "oldString": old, "newString": new, "explanation": "why"} for old, new in EDITS]}),
    _batch("search_and_replace", {"path": "shop/cart.py", "operations": [{"search": old, "replace": new} for old, new in EDITS]}),
    Row("replace_in_file", {"path": "shop/cart.py", "diff": "".join(_CLINE.format(*pair) for pair in _WHOLE_LINES)}, "batch_edit", {"edits": [{"path": "shop/cart.py", "old_str": f"{old}\n", "new_str": f"{new}\n"} for old, new in _WHOLE_LINES]}, staged=BOTH),
    Row("replace_in_file", {"absolutePath": "{root}/shop/cart.py", "diff": _SEARCH.format("        return 0", "        return 1")}, "batch_edit", {"edits": [{"path": "{root}/shop/cart.py", "old_str": "        return 0\n", "new_str": "        return 1\n"}]}, staged=ONE),
    Row("apply_diff", {"path": "shop/cart.py", "diff": _ROO.format("        return 0", "        return 1")}, "batch_edit", {"edits": [{"path": "shop/cart.py", "old_str": "        return 0\n", "new_str": "        return 1\n"}]}, staged=ONE),
    Row("apply_diff", {"path": "shop/cart.py", "diff": "<<<<<<< SEARCH\n:start_line:3\n-------\n        return 0\n=======\n>>>>>>> REPLACE"}, "batch_edit", {"edits": [{"path": "shop/cart.py", "old_str": "        return 0\n", "new_str": ""}]}, staged={"shop/cart.py": CART.replace("        return 0\n", "")}),
    Row("replace_lines", {"explanation": "why", "edits": [{"path": "shop/cart.py", "original_lines": ["        return 0"], "updated_lines": ["        return 1"]}]}, "batch_edit", {"edits": [{"path": "shop/cart.py", "old_str": "        return 0\n", "new_str": "        return 1\n"}]}, staged=ONE),
    Row("str_replace_editor", {"command": "insert", "path": "shop/cart.py", "insert_line": 1, "new_str": "    # sum"}, "insert_text", {"path": "shop/cart.py", "line": 1, "text": "    # sum"}, staged=SECOND),
    Row("str_replace_based_edit_tool", {"command": "insert", "path": "shop/cart.py", "insert_line": 0, "insert_text": "import os\n"}, "insert_text", {"path": "shop/cart.py", "line": 0, "text": "import os\n"}, staged=TOP),
    Row("file_editor", {"command": "insert", "path": "shop/cart.py", "insert_line": 0, "new_str": "import os"}, "insert_text", {"path": "shop/cart.py", "line": 0, "text": "import os"}, staged=TOP),
    Row("text_editor", {"command": "insert", "path": "shop/cart.py", "insert_line": "1", "new_str": "    # sum\n"}, "insert_text", {"path": "shop/cart.py", "line": 1, "text": "    # sum\n"}, staged=SECOND),
    Row("insert_content", {"path": "shop/cart.py", "line": 2, "content": "    # sum"}, "insert_text", {"path": "shop/cart.py", "line": 1, "text": "    # sum"}, staged=SECOND),
    Row("insert_content", {"path": "shop/cart.py", "line": 0, "content": "# end"}, "insert_text", {"path": "shop/cart.py", "text": "# end"}, staged={"shop/cart.py": f"{CART}# end\n"}),
    Row("editor", {"path": "shop/cart.py", "insert_line": 2, "new_text": "    # sum"}, "insert_text", {"path": "shop/cart.py", "line": 1, "text": "    # sum"}, staged=SECOND),
    Row("apply_patch", {"input": PATCH, "explanation": "why"}, "apply_patch", {"patch": PATCH}, staged=ONE),
    Row("apply_patch", {"patchText": PATCH}, "apply_patch", {"patch": PATCH}, staged=ONE),
    Row("patch", {"patchText": PATCH}, "apply_patch", {"patch": PATCH}, staged=ONE),
    Row("shell", {"command": ["apply_patch", PATCH]}, "apply_patch", {"patch": PATCH}, staged=ONE),
    Row("shell", {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF\n"], "workdir": "{root}"}, "apply_patch", {"patch": PATCH.replace("shop/", "{root}/shop/")}, staged=ONE),
    Row("shell_command", {"command": f"cd shop && apply_patch <<'EOF'\n{PATCH.replace('shop/', '')}\nEOF"}, "apply_patch", {"patch": PATCH}, staged=ONE),
    Row("exec_command", {"cmd": f"apply_patch <<'PATCH'\n{PATCH}\nPATCH", "yield_time_ms": 1000}, "apply_patch", {"patch": PATCH}, staged=ONE),
    Row("local_shell", {"command": ["applypatch", PATCH]}, "apply_patch", {"patch": PATCH}, staged=ONE),
    Row("container.exec", {"command": ["apply_patch", PATCH]}, "apply_patch", {"patch": PATCH}, staged=ONE),
    Row("move_path", {"source_path": "notes.md", "destination_path": "docs/notes.md"}, "move_file", {"path": "notes.md", "new_path": "docs/notes.md"}, staged={"docs/notes.md": NOTES}),
    Row("Delete", {"path": "notes.md"}, "delete_file", {"path": "notes.md"}, staged={"notes.md": None}),
    Row("delete_file", {"target_file": "notes.md", "explanation": "why"}, "delete_file", {"path": "notes.md"}, staged={"notes.md": None}),
    Row("delete_path", {"path": "notes.md"}, "delete_file", {"path": "notes.md"}, staged={"notes.md": None}),
    *(Row(name, {"command": "undo_edit", "path": "shop/cart.py"}, "undo_patch", {}, shows=("Taken back",), staged={}) for name in ("str_replace_editor", "str_replace_based_edit_tool", "file_editor", "text_editor")),
)  # fmt: skip

COMMANDS = (
    _runs("Bash", {"command": "ls -l", "description": "List", "timeout": 120000}, 120),
    _runs("Bash", {"command": "ls -l", "timeout": 900000, "dangerouslyDisableSandbox": False}, 600),
    _runs("bash", {"command": "ls -l", "timeout": 60000, "workdir": "{root}/shop", "description": "List"}, 60, working_dir="{root}/shop"),
    _runs("bash", {"command": "ls -l", "timeout": 30}, 30),
    _runs("shell", {"command": ["bash", "-lc", "ls -l"], "workdir": "{root}", "timeout_ms": 10000, "justification": "why"}, 10, working_dir="{root}"),
    _runs("shell", {"command": ["git", "commit", "-m", "two words"]}, None, "git commit -m 'two words'"),
    _runs("shell_command", {"command": "ls -l", "workdir": "shop", "timeout_ms": 10000, "login": True}, 10, working_dir="shop"),
    _runs("exec_command", {"cmd": "ls -l", "workdir": "shop", "yield_time_ms": 1000, "max_output_tokens": 6000}, None, working_dir="shop"),
    _runs("local_shell", {"command": ["ls", "-l"]}),
    _runs("container.exec", {"cmd": ["bash", "-lc", "ls -l"], "workdir": "{root}"}, None, working_dir="{root}"),
    _runs("execute_bash", {"command": "ls -l", "is_input": "false", "timeout": 90, "security_risk": "LOW"}, 90),
    _runs("terminal", {"command": "ls -l", "is_input": False, "timeout": 90.0}, 90),
    _runs("terminal", {"command": "ls -l", "cd": "shop", "timeout_ms": 5000}, 5, working_dir="shop"),
    _runs("execute_command", {"command": "ls -l", "requires_approval": False}),
    _runs("execute_command", {"command": "ls -l", "cwd": "shop", "timeout": 120}, 120, working_dir="shop"),
    _runs("run_commands", {"commands": ["ls -l", {"command": "echo", "args": ["a b"]}]}, None, "ls -l\necho 'a b'"),
    _runs("run_shell_command", {"command": "ls -l", "description": "List", "dir_path": "shop"}, None, working_dir="shop"),
    _runs("run_in_terminal", {"command": "ls -l", "explanation": "List", "goal": "List", "isBackground": False, "timeout": 30000}, 30, background=False),
    _runs("run_terminal_cmd", {"command": "ls -l", "is_background": False, "explanation": "why"}, None, background=False),
    _runs("Shell", {"command": "ls -l", "working_directory": "shop", "block_until_ms": 30000, "description": "List"}, 30, working_dir="shop"),
    _runs("run_command", {"CommandLine": "ls -l", "Cwd": "shop", "Blocking": True}, None, working_dir="shop"),
    _runs("execute_ipython_cell", {"code": "print(1)\n"}, None, "python - <<'END_OF_PYTHON'\nprint(1)\nEND_OF_PYTHON"),
    _only("Bash", {"command": "npm start", "run_in_background": True}, "run_cmd", command="npm start", background=True),
    _only("run_shell_command", {"command": "npm start", "is_background": True}, "run_cmd", command="npm start", background=True),
    _only("BashOutput", {"bash_id": "bg1", "filter": "ready"}, "command_output", id="bg1"),
    _only("TaskOutput", {"task_id": "bg1", "block": True, "timeout": 30000}, "command_output", id="bg1", wait=30),
    _only("TaskOutput", {"task_id": "bg1", "block": False}, "command_output", id="bg1", wait=0),
    _only("write_stdin", {"session_id": 1, "chars": "", "yield_time_ms": 5000}, "command_output", id="1", wait=5),
    _only("get_terminal_output", {"id": "bg1"}, "command_output", id="bg1"),
    _only("KillShell", {"shell_id": "bg1"}, "stop_command", id="bg1"),
    _only("KillBash", {"shell_id": "bg1"}, "stop_command", id="bg1"),
    _only("TaskStop", {"task_id": "bg1"}, "stop_command", id="bg1"),
    _only("kill_terminal", {"id": "bg1"}, "stop_command", id="bg1"),
    _only("runTests", {"files": ["{root}/tests/test_a.py"], "testNames": ["test_one"], "mode": "run"}, "run_tests", path="{root}/tests/test_a.py", pattern="test_one"),
    _only("runTests", {"files": ["tests/test_a.py", "tests/test_b.py"]}, "run_tests", path="tests"),
    _only("runTests", {}, "run_tests"),
)  # fmt: skip

_TODOS = (
    {"content": "look", "status": "completed"},
    {"content": "fix", "status": "in_progress"},
    {"content": "test", "status": "pending"},
)
_TODO_LIST = "[x] 1: look (medium)\n[>] 2: fix (medium)\n[ ] 3: test (medium)"


def _todos(name: str, given: Mapping[str, Any], **own: Any) -> Row:
    """Return a call that writes three todos."""
    numbered = bool(own.pop("numbered", False))
    todos = [{**todo, "id": str(number)} if numbered else todo for number, todo in enumerate(_TODOS, 1)]
    return Row(name, given, "todowrite", {"todos": todos, **own}, shows=(_TODO_LIST,))


PLANNING = (
    _todos("TodoWrite", {"todos": [{**todo, "activeForm": "Doing"} for todo in _TODOS]}),
    _todos("TodoWrite", {"merge": False, "todos": [{**todo, "id": str(number)} for number, todo in enumerate(_TODOS, 1)]}, action="replace", numbered=True),
    _todos("todo_write", {"merge": True, "todos": [{**todo, "id": str(number)} for number, todo in enumerate(_TODOS, 1)]}, action="add", numbered=True),
    _todos("todowrite", {"todos": [{**todo, "id": str(number)} for number, todo in enumerate(_TODOS, 1)]}, numbered=True),
    _todos("update_plan", {"explanation": "why", "plan": [{"step": todo["content"], "status": todo["status"]} for todo in _TODOS]}),
    _todos("write_todos", {"todos": [{"description": todo["content"], "status": todo["status"]} for todo in _TODOS]}),
    _todos("manage_todo_list", {"operation": "write", "todoList": [{"id": 1, "title": "look", "description": "d", "status": "completed"}, {"id": 2, "title": "fix", "status": "in-progress"}, {"id": 3, "title": "test", "status": "not-started"}]}, numbered=True),
    _todos("update_todo_list", {"todos": "[x] look\n[-] fix\n[ ] test"}),
    _todos("task_tracker", {"command": "plan", "task_list": [{"title": "look", "status": "done"}, {"title": "fix", "status": "in_progress", "notes": "n"}, {"title": "test", "status": "todo"}]}),
    Row("TaskCreate", {"subject": "look", "description": "Look at it", "activeForm": "Looking"}, "todowrite", {"action": "add", "todos": [{"content": "look"}]}, shows=("[ ] 2: look (medium)",)),
    Row("TaskUpdate", {"taskId": "1", "status": "in_progress", "owner": "me"}, "todowrite", {"action": "update", "todos": [{"id": "1", "status": "in_progress"}]}, shows=("[>] 1: known (medium)",)),
    *(Row(name, given, "todoread", {}, shows=("[ ] 1: known (medium)",)) for name, given in (
        ("TodoRead", {}), ("TaskList", {}), ("TaskGet", {"taskId": "1"}), ("manage_todo_list", {"operation": "read"}), ("task_tracker", {"command": "view"}),
    )),
    Row("think", {"thought": "Hm."}, "think", {"thought": "Hm."}, shows=("ok",)),
    Row("think", {"content": "Hm."}, "think", {"thought": "Hm."}, shows=("ok",)),
    Row("thinking", {"content": "Hm."}, "think", {"thought": "Hm."}, shows=("ok",)),
    Row("act_mode_respond", {"response": "I look.", "task_progress": "- [ ] a"}, "think", {"thought": "I look."}, shows=("ok",)),
    Row("update_topic", {"title": "Taxes", "summary": "s", "strategic_intent": "i"}, "think", {"thought": "s"}, shows=("ok",)),
    Row("create_directory", {"dirPath": "src/new"}, "think", {"thought": "src/new"}, shows=("ok",)),
    Row("create_directory", {"path": "src/new"}, "think", {"thought": "src/new"}, shows=("ok",)),
    Row("bash", {"restart": True}, "think", {}, shows=("ok",)),
    Row("EnterPlanMode", {}, "plan_enter", {"title": "Plan"}, shows=("entered Plan",)),
    Row("enter_plan_mode", {"reason": "It is risky."}, "plan_enter", {"title": "Plan", "description": "It is risky."}, shows=("entered Plan",)),
    Row("ExitPlanMode", {"plan": "1. Look"}, "plan_exit", {"plan": "1. Look"}, shows=("approved 1. Look",)),
    Row("exit_plan_mode", {"plan_filename": "plan.md"}, "plan_exit", {}, shows=("approved",)),
    *(Row(name, {"prompt": "Look.", **more}, "delegate", {"agent": agent, "task": "Look."}, shows=(f"{agent}: Look.",)) for name, more, agent in (
        ("Task", {"description": "Look", "subagent_type": "Explore"}, "planner"),
        ("Task", {"description": "Look", "subagent_type": "my-agent", "model": "haiku"}, "my-agent"),
        ("Agent", {"description": "Look", "subagent_type": "general-purpose"}, "coder"),
        ("Agent", {"description": "Look"}, "coder"),
        ("task", {"description": "Look", "subagent_type": "general"}, "coder"),
        ("runSubagent", {"description": "Look", "agentName": "Plan"}, "planner"),
    )),
    Row("search_subagent", {"query": "Look.", "description": "d", "details": "x"}, "delegate", {"agent": "planner", "task": "Look."}, shows=("planner: Look.",)),
    Row("new_task", {"mode": "architect", "message": "Look.", "todos": None}, "delegate", {"agent": "planner", "task": "Look."}, shows=("planner: Look.",)),
    Row("spawn_agent", {"message": "Look.", "agent_type": "worker"}, "delegate", {"agent": "coder", "task": "Look."}, shows=("coder: Look.",)),
)  # fmt: skip

_LABELS = [{"label": "7", "description": "reduced"}, {"label": "19", "description": ""}]
_ASKED = {"questions": [{"text": "Which rate? (7: reduced)", "options": ["7", "19"]}]}
_ANSWERED = ("A: 19",)

ASKING = (
    Row("AskUserQuestion", {"questions": [{"question": "Which rate?", "header": "Rate", "multiSelect": False, "options": _LABELS}]}, "AskUser", _ASKED, shows=_ANSWERED),
    Row("AskUserQuestion", {"questions": [{"question": "Which rates?", "header": "Rate", "multiSelect": True, "options": [{"label": "7"}, {"label": "19"}]}]}, "AskUser", {"questions": [{"text": "Which rates?", "options": ["7", "19"]}], "format": "multi"}, shows=_ANSWERED),
    Row("ask_user", {"questions": [{"question": "Which rate?", "header": "Rate", "type": "choice", "options": _LABELS}]}, "AskUser", _ASKED, shows=_ANSWERED),
    Row("question", {"questions": [{"question": "Which rate?", "header": "Rate", "options": _LABELS, "multiple": False}]}, "AskUser", _ASKED, shows=_ANSWERED),
    Row("request_user_input", {"questions": [{"id": "r", "header": "Rate", "question": "Which rate?", "options": _LABELS}]}, "AskUser", _ASKED, shows=_ANSWERED),
    Row("vscode_askQuestions", {"questions": [{"header": "Rate", "question": "Which rate?", "options": _LABELS, "allowFreeformInput": True}]}, "AskUser", _ASKED, shows=_ANSWERED),
    Row("AskQuestion", {"title": "Rate", "questions": [{"id": "r", "prompt": "Which rate?", "options": [{"id": "a", "label": "7"}, {"id": "b", "label": "19"}]}]}, "AskUser", {"questions": [{"text": "Which rate?", "options": ["7", "19"]}]}, shows=_ANSWERED),
    Row("ask_followup_question", {"question": "Which rate?", "options": "[\"7\", \"19\"]"}, "AskUser", {"questions": [{"text": "Which rate?", "options": ["7", "19"]}]}, shows=_ANSWERED),
    Row("ask_followup_question", {"question": "Which rate?", "follow_up": [{"text": "7", "mode": None}, {"text": "19", "mode": "code"}]}, "AskUser", {"questions": [{"text": "Which rate?", "options": ["7", "19"]}]}, shows=_ANSWERED),
    _only("WebSearch", {"query": "tax", "allowed_domains": ["a.org"], "blocked_domains": ["b.org"]}, "web_search", query="tax", include_domains=["a.org"], exclude_domains=["b.org"]),
    _only("websearch", {"query": "tax", "numResults": 8, "livecrawl": "fallback"}, "web_search", query="tax", max_results=8),
    _only("google_web_search", {"query": "tax"}, "web_search", query="tax"),
    _only("web_search", {"search_term": "tax", "explanation": "why"}, "web_search", query="tax"),
    _only("WebFetch", {"url": "https://example.org/a", "prompt": "What is it?"}, "web_scrape", url="https://example.org/a"),
    _only("webfetch", {"url": "https://example.org/a", "format": "markdown", "timeout": 30}, "web_scrape", url="https://example.org/a"),
    _only("web_fetch", {"prompt": "Summarize https://example.org/a."}, "web_scrape", url="https://example.org/a"),
    _only("web_fetch", {"url": "https://example.org/a", "prompt": "as in https://example.org/b"}, "web_scrape", url="https://example.org/a"),
    _only("fetch", {"url": "https://example.org/a"}, "web_scrape", url="https://example.org/a"),
    _only("fetch_webpage", {"urls": ["https://example.org/a"], "query": "tax"}, "web_scrape", url="https://example.org/a"),
    _only("fetch_web_content", {"requests": [{"url": "https://example.org/a", "prompt": "What?"}]}, "web_scrape", url="https://example.org/a"),
    _only("Skill", {"skill": "release", "args": "x"}, "skill_loader", skill_name="release"),
    _only("skill", {"name": "release"}, "skill_loader", skill_name="release"),
    _only("skills", {"skill": "release", "args": None}, "skill_loader", skill_name="release"),
    _only("use_skill", {"skill_name": "release"}, "skill_loader", skill_name="release"),
    _only("activate_skill", {"name": "release"}, "skill_loader", skill_name="release"),
)  # fmt: skip

_AT = {"filePath": "{root}/shop/cart.py", "line": 6, "character": 5}
_PLACE = {"path": "{root}/shop/cart.py", "symbol": "6:5"}
_CALLED = {"path": "{root}/shop/cart.py", "function_name": "6:5"}

CODE = (
    _only("semantic_search", {"query": "where the tax is added"}, "search_semantic", query="where the tax is added"),
    _only("codebase_search", {"query": "where?", "target_directories": ["shop"], "explanation": "why"}, "search_semantic", query="where?"),
    _only("codebase_search", {"query": "where?", "path": None}, "search_semantic", query="where?"),
    _only("SemanticSearch", {"query": "where?", "target_directories": []}, "search_semantic", query="where?"),
    Row("list_code_definition_names", {"path": "shop/cart.py"}, "ast_find_symbols", {"path": "shop/cart.py"}, shows=("shop/cart.py:1-3 class class Cart", "tax")),
    Row("list_code_definition_names", {"path": "shop"}, "ast_find_symbols", {"path": "shop"}, shows=("tax",)),
    Row("search_workspace_symbols", {"symbolName": "tax"}, "ast_find_symbols", {"name": "tax"}, shows=("shop/cart.py:6-7",)),
    *(row for name in ("LSP", "lsp") for row in (
        Row(name, {"operation": "documentSymbol", **_AT}, "ast_parse", {"path": "{root}/shop/cart.py"}, shows=("shop/cart.py (python)", "6-7 function")),
        Row(name, {"operation": "workspaceSymbol", "query": "tax", **_AT}, "ast_find_symbols", {"name": "tax"}, shows=("shop/cart.py:6-7",)),
        Row(name, {"operation": "goToDefinition", **_AT}, "find_definition", _PLACE, shows=("shop/cart.py:6-7 function tax",)),
        Row(name, {"operation": "goToImplementation", **_AT}, "find_definition", _PLACE, shows=("shop/cart.py:6-7 function tax",)),
        Row(name, {"operation": "findReferences", **_AT}, "find_references", _PLACE, shows=("Definitions of tax: 1",)),
        Row(name, {"operation": "prepareCallHierarchy", **_AT}, "call_graph", _CALLED, shows=("(index, by name",)),
        Row(name, {"operation": "incomingCalls", **_AT}, "call_graph", _CALLED, shows=("(index, by name",)),
        Row(name, {"operation": "outgoingCalls", **_AT}, "call_graph", _CALLED, shows=("(index, by name",)),
        _only(name, {"operation": "hover", **_AT}, "hover", **_PLACE),
    )),
    Row("list_code_usages", {"symbolName": "tax", "filePaths": ["shop/cart.py"]}, "find_references", {"symbol": "tax"}, shows=("Definitions of tax: 1",)),
    Row("vscode_listCodeUsages", {"symbol": "tax", "filePath": "shop/cart.py", "lineContent": "def tax(rate):"}, "find_references", {"symbol": "tax", "path": "shop/cart.py"}, shows=("Definitions of tax: 1",)),
    _only("vscode_renameSymbol", {"symbol": "tax", "newName": "vat", "filePath": "shop/cart.py", "lineContent": "def tax(rate):"}, "rename_symbol", symbol="tax", new_name="vat", path="shop/cart.py"),
    Row("get_errors", {"filePaths": ["{root}/shop/cart.py"]}, "get_diagnostics", {"path": "{root}/shop/cart.py"}, shows=("No problems found in shop/cart.py",)),
    Row("get_errors", {"filePaths": ["shop/cart.py", "shop/b.py"]}, "get_diagnostics", {"path": "shop"}, shows=("No problems found in shop",)),
    Row("get_errors", {}, "get_diagnostics", {}, shows=("No problems found",)),
    Row("read_lints", {"paths": ["shop/cart.py"]}, "get_diagnostics", {"path": "shop/cart.py"}, shows=("No problems found",)),
    Row("ReadLints", {"paths": ["shop/cart.py"]}, "get_diagnostics", {"path": "shop/cart.py"}, shows=("No problems found",)),
    Row("getDiagnostics", {"uri": "file://{root}/shop/cart.py"}, "get_diagnostics", {"path": "file://{root}/shop/cart.py"}, shows=("No problems found",)),
    Row("diagnostics", {"path": "shop/cart.py"}, "get_diagnostics", {"path": "shop/cart.py"}, shows=("No problems found",)),
    _only("get_changed_files", {"repositoryPath": "{root}", "sourceControlState": ["unstaged"]}, "git_diff", path="{root}"),
)  # fmt: skip

ROWS = (*READING, *SEARCHING, *EDITING, *COMMANDS, *PLANNING, *ASKING, *CODE)
