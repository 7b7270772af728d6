"""Every name of the sandbox, called by the library's client over a real interface, well and badly."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp.shared.exceptions import MCPError

from codeagent_lsp.config import Settings
from codeagent_lsp.mcp_server.sandbox import Sandbox, sandbox_settings
from codeagent_lsp.mcp_server.serving import CHANGES
from codeagent_lsp.mcp_server.table import TABLE
from tests.mcp_server.calls import ROWS, disk, make_workspace
from tests.mcp_server.rig import Model, code_of, over_stdio, text_of
from tests.shadow.rig import needs_overlay

LACKING = "What measures coverage is not installed here"
SCREENS = ("start_terminal", "get_terminal_status", "restart_terminal", "stop_terminal")
DESKTOPS = ("start_desktop", "get_desktop_status", "restart_desktop", "stop_desktop")

pytestmark = [pytest.mark.slow, needs_overlay]  # a whole server, and commands that run


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_name_well_and_badly(workspace: Path, mode: Literal["auto", "legacy"]) -> None:
    before = disk(make_workspace(workspace))
    results = {}
    async with over_stdio(workspace, Model(), mode) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        for name, row in ROWS.items():
            good = await client.call_tool(name, dict(row.good))
            bad = await client.call_tool(name, dict(row.bad))
            results[name] = (code_of(good), row.says in text_of(good), code_of(bad), text_of(good), text_of(bad))
        changes = await client.read_resource(CHANGES)
    if LACKING in results["analyze_coverage"][3]:
        warnings.warn("analyze_coverage could only say that there is no coverage.py here", stacklevel=1)
        results["analyze_coverage"] = ("", True, *results["analyze_coverage"][2:])
    for names in (SCREENS, DESKTOPS):
        said = results[names[0]][3]
        if "is not installed here" in said:
            warnings.warn(f"{names[0]} could only say: {said}", stacklevel=1)
            results.update({name: ("", True, *results[name][2:]) for name in names})
    wrong = {name: result for name, result in results.items() if result[:3] != ("", True, ROWS[name].code)}
    assert wrong == {}
    assert listed == set(ROWS) == {entry.name for entry in TABLE}
    assert disk(workspace) == before
    assert "+RATE = 3 - 1" in str(changes.contents[0]) and "made.txt" in str(changes.contents[0])


async def test_what_is_not_there_is_an_error_of_the_protocol(workspace: Path) -> None:
    async with over_stdio(workspace) as client:
        with pytest.raises(MCPError, match="no tool 'start_engine'"):
            await client.call_tool("start_engine", {})
        with pytest.raises(MCPError, match="only the resource"):
            await client.read_resource("sandbox://other")


async def test_a_long_file_is_read_in_one_call(workspace: Path) -> None:
    make_workspace(workspace)
    (workspace / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 2001)))
    async with over_stdio(workspace) as client:
        read = text_of(await client.call_tool("read", {"path": "long.txt"}))
    assert "1|line 1\n" in read and "2000|line 2000" in read


async def test_a_command_has_both_streams_and_one_out_of_time_a_code(workspace: Path) -> None:
    async with over_stdio(workspace) as client:
        both = await client.call_tool("bash", {"command": "echo out; echo err >&2; exit 3"})
        late = await client.call_tool("bash", {"command": "echo begun; sleep 60", "timeout": 0.5})
    assert both.structured_content is not None and late.structured_content is not None
    data, cut = both.structured_content["data"], late.structured_content
    assert (data["exit_code"], data["stdout"], data["stderr"]) == (3, "out\n", "err\n")
    assert "out" in text_of(both) and "err" in text_of(both)
    assert code_of(late) == "TIMEOUT_ERROR" and cut["data"]["stdout"] == "begun\n"
    assert {"code", "type", "message"} <= set(cut["error"])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read", {"file_path": "{}"}),
        ("edit", {"file_path": "{}", "old_str": "a", "new_str": "b"}),
        ("patch", {"file_path": "{}", "patch_content": "@@ -1 +1 @@\n-a\n+b\n"}),
        ("export_artifact", {"file_path": "{}"}),
        ("batch_export_artifacts", {"file_paths": ["{}"]}),
        ("import_file", {"source_url": "file:{}", "dest_path": "copy.txt"}),
        ("ast_parse", {"file_path": "{}"}),
        ("grep", {"pattern": "x", "path": "{}"}),
        ("glob", {"pattern": "*", "path": "{}"}),
        ("list", {"path": "{}"}),
        ("run_tests", {"path": "{}"}),
    ],
)
async def test_what_is_missing_and_what_is_refused_have_their_codes(
    workspace: Path, state_dir: Path, name: str, arguments: Mapping[str, Any]
) -> None:
    (workspace / ".env").write_text("A=b\n")
    sandbox = Sandbox(str(workspace), sandbox_settings(Settings()))
    codes = {}
    for path in ("nowhere.py", "/etc/passwd", ".env"):
        answer = await sandbox.call(name, json.loads(json.dumps(arguments).replace("{}", path)))
        codes[path] = str(answer.code)
    await sandbox.close()
    assert codes == {"nowhere.py": "PARAMETER_ERROR", "/etc/passwd": "PERMISSION_ERROR", ".env": "PERMISSION_ERROR"}
