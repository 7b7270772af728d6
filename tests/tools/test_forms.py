"""Other spellings of calls: each becomes the tool's own, on the way from a model and in the executor alike."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp.call_forms import translate_arguments
from codeagent_lsp.errors import WrongArguments
from codeagent_lsp.llm.calls.bare_calls import check
from codeagent_lsp.llm.calls.toolcalls import parse
from codeagent_lsp.messages import ToolCall, without_forms
from codeagent_lsp.tools.catalogue import BUILTIN
from codeagent_lsp.tools.composition import Aggregate, Filter, Transformation, arguments_for, at, transform
from codeagent_lsp.tools.executor import understood
from codeagent_lsp.tools.tool import Tool
from tests.tools.fakes import Bench

TOOLS: Mapping[str, Tool[Any]] = {cls.traits.name: cls() for cls in BUILTIN}
SPECS = tuple(tool.spec() for tool in TOOLS.values())
BARE = "@@ -1 +1 @@\n-a\n+b\n"
EDIT = {"path": "a.py", "old_str": "a", "new_str": "b"}
FOREIGN_EDIT = {"file_path": "a.py", "old_str": "a", "new_str": "b"}

ROWS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("AskUser", {"questions": ["Which key?", "Which framework?"]}, "AskUser",
     {"questions": [{"text": "Which key?"}, {"text": "Which framework?"}]}),
    ("AskUser", {"questions": "Which key?"}, "AskUser", {"questions": [{"text": "Which key?"}]}),
    ("plan_enter", {"conversation_id": "c", "title": "Taxes", "description": "Why"}, "plan_enter",
     {"title": "Taxes", "description": "Why"}),
    ("plan_update", {"plan_id": "r1", "content": "x", "mode": "section", "section_name": "Steps",
                     "explored_files": ["a.py"], "critical_files": [{"path": "a.py", "type": "modify"}]},
     "plan_update", {"plan_id": "r1", "content": "x", "action": "section", "section": "Steps",
                     "explored_files": ["a.py"], "critical_files": [{"path": "a.py", "type": "modify"}]}),
    ("plan_update", {"content": "x"}, "plan_update", {"action": "append", "content": "x"}),
    ("plan_update", {"content": "x", "section_name": "Steps"}, "plan_update",
     {"action": "section", "content": "x", "section": "Steps"}),
    ("plan_exit", {"conversation_id": "c", "plan_id": "r1", "approve": True, "summary": "Done"}, "plan_exit",
     {"plan_id": "r1", "summary": "Done"}),
    ("todoread", {"session_id": "s", "status": "pending"}, "todoread", {"status": "pending"}),
    ("todowrite", {"session_id": "s", "action": "add", "todos": [{"content": "one"}, "two"]}, "todowrite",
     {"action": "add", "todos": [{"content": "one"}, {"content": "two"}]}),
    ("todowrite", {"action": "update", "todo_id": "2", "todos": [{"status": "completed"}]}, "todowrite",
     {"action": "update", "todos": [{"id": "2", "status": "completed"}]}),
    ("todowrite", {"todo_id": 2, "status": "completed"}, "todowrite",
     {"action": "update", "todos": [{"id": "2", "status": "completed"}]}),
    ("desktop", {"action": "start", "resolution": "1280x720", "display": ":1", "port": 6080}, "desktop",
     {"action": "start", "resolution": "1280x720", "display": 1, "port": 6080}),
    ("read_file", {"path": "a.py", "start_line": 0, "end_line": 3}, "read_file",
     {"path": "a.py", "start_line": 1, "end_line": 3}),
    ("shell_exec", {"command": "ls"}, "run_cmd", {"command": "ls"}),
    ("Bash", {"command": "ls", "timeout": 300}, "run_cmd", {"command": "ls", "timeout": 300}),
    ("file_read", {"file_path": "a.py"}, "read_file", {"path": "a.py"}),
    ("file_write", {"file_path": "a.py", "content": "x"}, "write_file", {"path": "a.py", "content": "x"}),
    ("create_plan", {"plan": {"goal": "g", "steps": [{"index": 1, "title": "t", "description": "d",
                                                       "expected_tools": ["grep"]}], "estimated_complexity": "low"}},
     "create_plan", {"goal": "g", "steps": [{"title": "t", "description": "d", "expected_tools": ["grep"]}],
                     "estimated_complexity": "low"}),
    ("create_plan", {"steps": [{"index": 2, "title": "b"}, {"index": 1, "title": "a"}]}, "create_plan",
     {"goal": "b; a", "steps": [{"title": "a"}, {"title": "b"}]}),
    ("create_plan", {"plan": ["a", "b"]}, "create_plan", {"goal": "a; b", "steps": [{"title": "a"}, {"title": "b"}]}),
    ("create_plan", {"plan": '{"goal": "g", "steps": ["a"]}'}, "create_plan", {"goal": "g", "steps": [{"title": "a"}]}),
    ("read", {"file_path": "a.py", "offset": 10, "limit": 20}, "read_file",
     {"path": "a.py", "start_line": 11, "end_line": 30}),
    ("read", {"file_path": "a.py", "limit": 2000}, "read_file", {"path": "a.py", "end_line": 2000}),
    ("read", {"file_path": "a.py", "offset": "0", "limit": "5"}, "read_file",
     {"path": "a.py", "start_line": 1, "end_line": 5}),
    ("write", {"file_path": "a.py", "content": ""}, "write_file", {"path": "a.py", "content": ""}),
    ("edit", FOREIGN_EDIT, "edit_file", EDIT),
    ("glob", {"pattern": "*.py"}, "glob_file_search", {"pattern": "*.py"}),
    ("grep", {"pattern": "x", "-i": True, "-n": True, "-C": 2}, "grep",
     {"pattern": "x", "case_insensitive": True, "context": 2}),
    ("list", {"path": "src", "recursive": True}, "list_dir", {"path": "src", "depth": 5}),
    ("list", {"path": "src", "recursive": "false"}, "list_dir", {"path": "src", "depth": 1}),
    ("patch", {"file_path": "a.py", "patch_content": BARE}, "apply_patch",
     {"patch": f"--- a/a.py\n+++ b/a.py\n{BARE}"}),
    ("patch", {"file_path": "./a.py", "patch_content": f"--- a/a.py\n+++ b/a.py\n{BARE}"}, "apply_patch",
     {"patch": f"--- a/a.py\n+++ b/a.py\n{BARE}"}),
    ("start", {}, "", {}),
    ("ast_parse", {"file_path": "a.py", "language": "python"}, "ast_parse", {"path": "a.py"}),
    ("ast_find_symbols", {"file_path": "a.py", "symbol_type": "class"}, "ast_find_symbols",
     {"path": "a.py", "kind": "class"}),
    ("ast_extract_function", {"file_path": "a.py", "function_name": "f"}, "ast_extract_function",
     {"path": "a.py", "function_name": "f"}),
    ("ast_get_imports", {"file_path": "a.py"}, "ast_get_imports", {"path": "a.py"}),
    ("code_index_build", {"path": "src", "languages": ["python"]}, "code_index_build", {"path": "src"}),
    ("dependency_graph", {"file_path": "a.py"}, "dependency_graph", {"path": "a.py"}),
    ("edit_by_ast", {"file_path": "a.py", "edits": [{"target": "f", "operation": "delete"}]}, "edit_by_ast",
     {"path": "a.py", "edits": [{"target": "f", "operation": "delete"}]}),
    ("batch_edit", {"edits": [FOREIGN_EDIT]}, "batch_edit", {"edits": [EDIT]}),
    ("preview_edit", FOREIGN_EDIT, "preview_edit", EDIT),
    ("generate_tests", {"file_path": "a.py", "function_name": "f"}, "generate_tests",
     {"path": "a.py", "function_name": "f"}),
    ("compose", {"steps": [{"tool_name": "grep", "parameters": {"pattern": "x"}},
                           {"target_tool": "read", "transformation": {"filter": {"kind": "x"}, "aggregate": "first"}}]},
     "compose", {"steps": [{"tool": "grep", "arguments": {"pattern": "x"}},
                           {"tool": "read", "take": {"filter": {"op": "has", "value": {"kind": "x"}},
                                                     "aggregate": {"function": "first"}}}]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "tool", "own"), ROWS)
def test_a_call_becomes_the_tools_own(name: str, given: dict[str, Any], tool: str, own: dict[str, Any]) -> None:
    call = check(name, given, SPECS)
    if not tool:
        assert isinstance(call, str) and "no tool 'start'" in call
        return
    assert isinstance(call, ToolCall), call
    assert call.name == tool
    assert translate_arguments(given, TOOLS[tool].forms).keys() == own.keys()
    assert understood(call, TOOLS[tool]).call == understood(ToolCall(tool, own), TOOLS[tool]).call
    assert understood(ToolCall(tool, given), TOOLS[tool]).call == understood(call, TOOLS[tool]).call


@pytest.mark.parametrize(("name", "given", "says"), [
    ("read_file", {"path": "a.py", "file_path": "b.py"}, "path and file_path mean the same parameter and differ"),
    ("todowrite", {"todo_id": "1", "todos": [{"id": "2"}]}, "differ"),
    ("todowrite", {"todo_id": "1", "todos": [{"id": "1"}, {"id": "2"}]}, "one todo"),
    ("apply_patch", {"file_path": "b.py", "patch": f"--- a/a.py\n+++ b/a.py\n{BARE}"}, "the patch names a.py"),
    ("compose", {"steps": [{"tool": "a", "tool_name": "b"}, {"tool": "c"}]}, "differ"),
])  # fmt: skip
def test_what_cannot_be_understood_is_said(name: str, given: dict[str, Any], says: str) -> None:
    said = check(name, given, SPECS)
    assert isinstance(said, str) and says in said
    with pytest.raises(WrongArguments, match=says):
        understood(ToolCall(name, given), TOOLS[name])


def test_the_same_value_twice_is_no_conflict() -> None:
    call = check("read_file", {"path": "a.py", "file_path": "a.py"}, SPECS)
    assert call == ToolCall("read_file", {"path": "a.py"})


def test_no_two_tools_have_one_name() -> None:
    names = [other.casefold() for tool in TOOLS.values() for other in tool.forms.names]
    assert len(set(names)) == len(names) and not set(names) & {name.casefold() for name in TOOLS}


def test_other_spellings_lead_to_parameters_that_exist() -> None:
    for name, tool in TOOLS.items():
        known = set(tool.parameters.model_fields)
        leads = {*tool.forms.parameters.values(), *tool.forms.values, *tool.forms.items, *tool.forms.plain}
        assert leads <= known, name
        assert not {*tool.forms.parameters, *tool.forms.ignored} & known, name


def test_a_model_is_not_told_of_them() -> None:
    assert all(set(without_forms(spec)) == {"name", "description", "parameters"} for spec in SPECS)


def test_a_call_in_a_text_is_understood() -> None:
    found = parse('shell_exec(command="ls -l")', SPECS)
    assert found == [ToolCall("run_cmd", {"command": "ls -l"})]


async def test_the_executor_knows_other_names(bench: Bench) -> None:
    bench.write("a.txt", "one\n")
    result = await bench.call("file_read", file_path="a.txt")
    assert (result.ok, result.text) == (True, "1|one")
    bench.rules(deny=("read_file(a.txt)",))
    assert (await bench.call("file_read", file_path="a.txt")).status == "denied"


async def test_an_error_tells_its_code_and_type(bench: Bench) -> None:
    result = await bench.call("read_file", path="none.py")
    assert result.told == f"{result.text}\n(NOT_FOUND, param_error)"


async def test_todos_get_numbers(bench: Bench) -> None:
    await bench.call("todowrite", action="add", todos=[{"content": "one"}, {"content": "two", "priority": "high"}])
    await bench.call("todowrite", action="add", todos=[{"content": "three"}])
    await bench.call("todowrite", action="update", todo_id="2", todos=[{"status": "completed"}])
    assert [(todo.id, todo.content, todo.status) for todo in bench.todos.items] == [
        ("1", "one", "pending"), ("2", "two", "completed"), ("3", "three", "pending")
    ]  # fmt: skip
    read = await bench.call("todoread", session_id="s", status="completed")
    assert [row["id"] for row in read.data] == ["2"]
    result = await bench.call("todowrite", action="update", todos=[{"status": "completed"}])
    assert (result.status, "needs its id" in result.text) == ("retry", True)


async def test_a_chain_in_other_forms(tmp_path: Path, bench: Bench) -> None:
    bench.write("shop/tax.py", "RATE = 19\n")
    result = await bench.call("compose", steps=[
        {"tool_name": "glob", "parameters": {"pattern": "**/tax.py"}},
        {"tool_name": "read", "transformation": {"aggregate": "first", "field_mapping": {"": "path"}}},
    ])  # fmt: skip
    assert result.ok and "1|RATE = 19" in result.text


@pytest.mark.parametrize(("path", "found"), [
    ("rows.0.name", "a"), ("results[0].url", "u"), ("count", 1), ("[0].url", "u"), ("results.0.url", "u"),
])  # fmt: skip
def test_paths_with_numbers_and_names_of_lists(path: str, found: Any) -> None:
    value: Any = {"rows": [{"name": "a"}]} if path.startswith("rows") else [{"url": "u"}]
    assert at(value, path) == found


def test_a_mapping_the_other_way_round() -> None:
    schema = {"properties": {"url": {"type": "string"}, "selector": {"type": "string"}}}
    for mapping in ({"link": "url"}, {"url": "link"}):
        assert arguments_for({"link": "L"}, schema, Transformation(field_mapping=mapping)) == {"url": "L"}
    same = Transformation(field_mapping={"url": "selector", "selector": "url"})
    assert arguments_for({"url": "1", "selector": "2"}, schema, same) == {"url": "2", "selector": "1"}


def test_a_filter_by_several_values() -> None:
    items = [{"kind": "x", "n": 1}, {"kind": "x", "n": 2}, {"kind": "y"}]
    wanted = Transformation(filter=Filter(op="has", value={"kind": "x", "n": 2}), aggregate=Aggregate(function="count"))
    assert transform(items, wanted) == 1
