"""The table of the sandbox: its names are those that were promised; and what it confines."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp.client.client import Client
from mcp.types import CreateMessageRequestParams, CreateMessageResult

from codeagent_lsp.config import PermissionsSettings, Settings, ShellSettings
from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.mcp_server.sandbox import MAX_CALLS, Sandbox, sandbox_settings
from codeagent_lsp.mcp_server.serving import make_server
from codeagent_lsp.mcp_server.table import BY_NAME, TABLE, SandboxTool
from tests.mcp_server.calls import ROWS
from tests.mcp_server.rig import Model, code_of, text_of

PROMISED = (
    *("read", "write", "edit", "glob", "grep", "list", "patch", "bash"),
    *("export_artifact", "list_artifacts", "batch_export_artifacts", "import_file", "import_files_batch"),
    *("start_terminal", "stop_terminal", "get_terminal_status", "restart_terminal"),
    *("start_desktop", "stop_desktop", "get_desktop_status", "restart_desktop"),
    *("ast_parse", "ast_find_symbols", "ast_extract_function", "ast_get_imports"),
    *("code_index_build", "find_definition", "find_references", "call_graph", "dependency_graph"),
    *("edit_by_ast", "batch_edit", "preview_edit", "git_diff", "git_log", "generate_commit"),
    *("generate_tests", "run_tests", "analyze_coverage"),
)
DOCS = Path(__file__).parents[2] / "docs/sandbox.md"


@pytest.fixture
async def sandbox(workspace: Path, state_dir: Path) -> AsyncGenerator[Sandbox, None]:
    opened = Sandbox(str(workspace), sandbox_settings(Settings()))
    yield opened
    await opened.close()


def test_every_promised_name_is_served() -> None:
    assert len(PROMISED) == 39
    assert sorted(BY_NAME) == sorted(PROMISED)
    assert len(TABLE) == len(BY_NAME)


def test_the_page_names_all_of_them() -> None:
    page = DOCS.read_text()
    assert [name for name in PROMISED if f"`{name}`" not in page] == []


def test_no_description_speaks_of_a_tool_that_is_not_here() -> None:
    words = {"terminal", "desktop"}  # which are more than names
    inner = {entry.tool.traits.name for entry in TABLE} - set(BY_NAME) - words
    for entry in TABLE:
        assert not [name for name in inner if name in entry.description], entry.name


def test_every_name_has_calls() -> None:
    assert set(ROWS) == set(BY_NAME)


async def test_what_a_client_is_told(sandbox: Sandbox) -> None:
    async with Client(make_server(sandbox)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == [entry.name for entry in TABLE]
    bash = tools["bash"]
    assert set(bash.input_schema["properties"]) == {"command", "timeout", "working_dir"}
    assert bash.annotations is not None and bash.annotations.read_only_hint is False
    assert "sandbox://changes.diff" in str(tools["write"].description)
    read = tools["read"].annotations
    assert read is not None and read.read_only_hint is True


@pytest.mark.slow
@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.name)
def test_the_schema_refuses_no_spelling_that_is_understood(entry: SandboxTool) -> None:
    schema, forms, good = entry.schema(), entry.tool.forms, ROWS[entry.name].good
    jsonschema.Draft202012Validator.check_schema(schema)
    assert not {"anyOf", "oneOf", "allOf"} & set(schema), "model APIs refuse it there"
    jsonschema.validate(good, schema)
    jsonschema.validate({**good, "explanation": "passed over"}, schema)
    for other, own in forms.arguments.items():
        if own in good:
            jsonschema.validate({other if name == own else name: value for name, value in good.items()}, schema)
        assert other in schema["properties"] and other not in schema.get("required", ())
    # Those of other agents are too many to be listed, and understood as well.
    for other, own in forms.also.items():
        if own in good:
            jsonschema.validate({other if name == own else name: value for name, value in good.items()}, schema)
    assert not [name for name in (*entry.hidden, *entry.fixed) if name in schema["properties"]]


def test_what_is_wrong_in_every_spelling_is_still_refused_by_it() -> None:
    edit, batch, grep, read = (BY_NAME[name].schema() for name in ("edit", "batch_edit", "grep", "read"))
    for schema, given in (
        (edit, {"file_path": 3}),
        (batch, {"edits": [{"file_path": 3}]}),
        (batch, {}),
        (grep, {"pattern": 3}),
        (read, {"file_path": "a.py", "limit": 0}),
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(given, schema)
    assert "Needed, here or as file_path" in edit["properties"]["path"]["description"]


async def test_nothing_reaches_the_disk(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old\n")
    assert (await sandbox.call("write", {"path": "a.txt", "content": "new\n"})).code is None
    assert "new" in (await sandbox.call("read", {"path": "a.txt"})).text
    assert "-old\n+new" in sandbox.changes()
    assert (workspace / "a.txt").read_text() == "old\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read", {"path": "../outside"}),
        ("read", {"path": "/etc/passwd"}),
        ("read", {"path": ".env"}),
        ("write", {"path": ".git/hooks/pre-commit", "content": "boo"}),
        ("write", {"path": "/tmp/x", "content": ""}),
        ("list", {"path": ".."}),
    ],
)
async def test_what_leads_out_or_needs_a_question_is_refused(
    sandbox: Sandbox, workspace: Path, name: str, arguments: dict[str, str]
) -> None:
    (workspace / ".env").write_text("A=b\n")
    answer = await sandbox.call(name, arguments)
    assert answer.code == ErrorCode.PERMISSION_ERROR
    assert "A=b" not in answer.text


async def test_messages_use_the_names_here(sandbox: Sandbox) -> None:
    answer = await sandbox.call("read", {})
    assert answer.code == ErrorCode.VALIDATION_ERROR
    assert "Wrong arguments for read:" in answer.text
    error = answer.error()
    assert error == {
        "code": "VALIDATION_ERROR",
        "type": "param_error",
        "retry": False,
        "message": answer.text,
    }


async def test_what_is_hidden_is_not_taken(sandbox: Sandbox) -> None:
    answer = await sandbox.call("bash", {"command": "true", "allow_network": True})
    assert (answer.code, answer.text) == (ErrorCode.VALIDATION_ERROR, "bash has no parameter allow_network here.")


async def test_a_name_that_is_one_of_several_actions_has_no_action(sandbox: Sandbox) -> None:
    async with Client(make_server(sandbox)) as client:
        tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
    assert set(tools["start_desktop"]["properties"]) == {"port", "resolution", "display"}
    assert set(tools["restart_terminal"]["properties"]) == {"port"}
    assert tools["stop_desktop"]["properties"] == tools["get_terminal_status"]["properties"] == {}
    answer = await sandbox.call("get_terminal_status", {"action": "start"})
    assert (answer.code, answer.text) == (
        ErrorCode.VALIDATION_ERROR,
        "get_terminal_status has no parameter action here.",
    )
    answer = await sandbox.call("get_terminal_status", {})
    assert (answer.code, answer.data) == (None, {"running": False, "port": 7681})


async def test_the_end_of_a_sandbox_and_of_its_folder(sandbox: Sandbox, workspace: Path) -> None:
    workspace.rmdir()  # noqa: ASYNC240
    assert (await sandbox.call("list", {})).code == ErrorCode.SANDBOX_NOT_FOUND
    await sandbox.close()
    assert (await sandbox.call("list", {})).code == ErrorCode.SANDBOX_TERMINATED


async def test_too_many_calls(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_running", MAX_CALLS)
    assert (await sandbox.call("list", {})).code == ErrorCode.TIMEOUT_ERROR


def test_settings_that_open_something_are_not_taken() -> None:
    permissions = PermissionsSettings(mode="bypass", allow=("read",), deny=("grep",))
    given = replace(Settings(), permissions=permissions, shell=ShellSettings(allow_network=True, confirm="never"))
    taken = sandbox_settings(given)
    assert (taken.permissions.allow, taken.permissions.deny) == ((), ("grep",))
    assert (taken.shell.allow_network, taken.shell.confirm) == (False, "unisolated")


@pytest.mark.parametrize("rule", ["read_file(a.txt)", "read(a.txt)", "file_read(a.txt)"])
async def test_rules_name_tools_as_everywhere_or_as_here(workspace: Path, state_dir: Path, rule: str) -> None:
    for name in ("a.txt", "b.txt"):
        (workspace / name).write_text("x\n")
    settings = replace(Settings(), permissions=PermissionsSettings(deny=(rule,)))
    opened = Sandbox(str(workspace), sandbox_settings(settings))
    assert (await opened.call("read", {"path": "a.txt"})).code == ErrorCode.PERMISSION_ERROR
    assert (await opened.call("read", {"path": "b.txt"})).text == "1|x"
    await opened.close()


async def test_the_mode_bypass_opens_nothing(workspace: Path, state_dir: Path) -> None:
    (workspace / ".env").write_text("A=b\n")
    settings = replace(Settings(), permissions=PermissionsSettings(mode="bypass"))
    opened = Sandbox(str(workspace), sandbox_settings(settings))
    assert (await opened.call("read", {"path": ".env"})).code == ErrorCode.PERMISSION_ERROR
    await opened.close()


async def test_level_direct_runs_nothing(workspace: Path, state_dir: Path) -> None:
    settings = replace(Settings(), shell=ShellSettings(isolation="direct"))
    opened = Sandbox(str(workspace), sandbox_settings(settings))
    answer = await opened.call("bash", {"command": "touch made"})
    await opened.close()
    assert answer.code == ErrorCode.PERMISSION_ERROR and "isolation level direct" in answer.text
    assert list(workspace.iterdir()) == []  # noqa: ASYNC240


async def test_without_a_model_it_is_said(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "a.py").write_text("A = 1\n")
    async with Client(make_server(sandbox)) as client:
        result = await client.call_tool("generate_commit", {})
    assert code_of(result) == "EXECUTION_ERROR" and "No model can be asked" in text_of(result)


async def test_a_model_that_refuses(sandbox: Sandbox, workspace: Path) -> None:
    class Refusing(Model):
        async def __call__(self, context: Any, params: CreateMessageRequestParams) -> CreateMessageResult:
            raise ValueError("not today")

    (workspace / "a.py").write_text("A = 1\n")
    async with Client(make_server(sandbox), sampling_callback=Refusing(), mode="legacy") as client:
        result = await client.call_tool("generate_tests", {"path": "a.py"})
    assert code_of(result) in ("CONNECTION_ERROR", "EXECUTION_ERROR")
    assert "client's model cannot be asked" in text_of(result)


async def test_other_spellings_of_parameters(sandbox: Sandbox) -> None:
    made = await sandbox.call("write", {"file_path": "a.py", "content": "x = 1\n"})
    changed = await sandbox.call("patch", {"file_path": "a.py", "patch_content": "@@ -1 +1 @@\n-x = 1\n+x = 2\n"})
    read = await sandbox.call("read", {"file_path": "a.py", "offset": 0, "limit": 5})
    found = await sandbox.call("grep", {"pattern": "X =", "-i": True, "-n": True})
    assert [answer.code for answer in (made, changed, read, found)] == [None] * 4
    assert (read.text, "a.py:1:x = 2" in found.text) == ("1|x = 2", True)
    twice = await sandbox.call("read", {"file_path": "a.py", "path": "b.py"})
    assert (twice.code, "differ" in twice.text) == (ErrorCode.VALIDATION_ERROR, True)
