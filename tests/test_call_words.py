"""A tool call in a few words for users."""

from __future__ import annotations

from typing import Any

import pytest

from codeagent_lsp.agent.loop import call_data
from codeagent_lsp.events.call_words import call_words
from codeagent_lsp.messages import ToolCall

CODEX = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Add File: b c.py\n+x"
UNIFIED = "--- a/a.py\n+++ b/a.py\n@@\n-x\n+y\n--- a/b.py\n+++ /dev/null"
TODOS = [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ({"name": "grep", "arguments": {"path": "src", "pattern": "x+"}}, "grep x+"),
        ({"name": "read_file", "arguments": {"start_line": 3, "path": "a.py"}}, "read_file a.py"),
        ({"name": "run_cmd", "arguments": {"working_dir": "src", "command": "make"}}, "run_cmd make"),
        ({"name": "search_semantic", "arguments": {"query": "where?", "limit": 5}}, "search_semantic where?"),
        ({"name": "rename_symbol", "arguments": {"path": "a", "symbol": "f", "new_name": "g"}}, "rename_symbol f → g"),
        ({"name": "read_files", "arguments": {"files": [{"path": n} for n in "abcd"]}}, "read_files a, b, c, … (4)"),
        ({"name": "batch_edit", "arguments": {"edits": [{"path": "a.py"}, {"path": "a.py"}]}}, "batch_edit a.py"),
        ({"name": "apply_patch", "arguments": {"patch": CODEX}}, "apply_patch a.py, b c.py"),
        ({"name": "apply_patch", "arguments": {"patch": UNIFIED}}, "apply_patch a.py"),
        ({"name": "delegate", "arguments": {"agent": "planner", "task": "long"}}, "delegate planner: long"),
        ({"name": "todowrite", "arguments": {"todos": TODOS}}, "todowrite 1/2 b"),
        ({"name": "AskUser", "arguments": {"questions": [{"text": "Which?"}]}}, "AskUser Which?"),
        ({"name": "odd", "arguments": {"files": "x", "edits": [1], "todos": None, "patch": 3}}, "odd"),
        ({"name": "todoread", "arguments": {}}, "todoread"),
        ({"name": "todoread", "arguments": None}, "todoread"),
        ({"name": "odd", "arguments": {"path": 7}}, "odd 7"),
        ({"arguments": {"path": "a"}}, "a"),
        ({}, ""),
    ],
)
def test_a_call_in_a_few_words(call: dict[str, Any], line: str) -> None:
    assert call_words(call) == line


def test_paths_in_the_workspace_are_told_from_there() -> None:
    name = {"/w/a.py": "a.py", "/w/b.py": "b.py"}.get
    for arguments in ({"path": "/w/a.py"}, {"edits": [{"path": "/w/a.py"}]}, {"patch": "*** Update File: /w/a.py"}):
        assert call_data(ToolCall("x", arguments), lambda path: name(path) or path)["subject"] == "a.py"
    assert call_words({"name": "x", "arguments": {"path": "/w/a.py"}, "subject": "a.py"}) == "x a.py"


def test_clients_are_told_what_a_call_is_about_in_one_line() -> None:
    call = ToolCall("run_cmd", {"command": "make\nall " + "x" * 500}, "c1")
    subject = str(call_data(call)["subject"])
    assert subject.startswith("make all x") and len(subject) <= 200
