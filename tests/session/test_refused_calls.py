"""Calls that cannot be carried out: unknown tools and servers, arguments that do not fit. Each has a code and a type in
its result, as any failed call has.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.llm.calls.toolcalling import ToolCallingModel
from codeagent_lsp.llm.model import ToolCalling
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.messages import ToolCall
from codeagent_lsp.tools.mcp.adapter import adapt_tool
from codeagent_lsp.tools.mcp.host import Calling
from codeagent_lsp.tools.mcp.listing import RemoteTool
from codeagent_lsp.tools.mcp.settings import ServerSettings
from tests.session.fakes import say, world

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "n": {"type": "object"}},
    "required": ["path"],
    "additionalProperties": False,
}
MISSING, UNFIT = ("MCP_NOT_FOUND", "execution_error"), ("MCP_PARAM_ERROR", "param_error")
CALLS: list[tuple[str, dict[str, Any], tuple[str, str]]] = [
    ("mcp.nosuch.look", {"path": "a"}, MISSING),
    ("mcp.s.nosuch", {"path": "a"}, MISSING),
    ("use_mcp_tool", {"server_name": "nosuch", "tool_name": "look", "arguments": {}}, MISSING),
    ("use_tool", {"name": "mcp.nosuch.look", "arguments": "{broken"}, MISSING),
    ("CallMcpTool", {"server": "s"}, MISSING),
    ("mcp.s.look", {}, UNFIT),
    ("mcp.s.look", {"path": "a", "n": 5}, UNFIT),
    ("use_mcp_tool", {"server_name": "s", "tool_name": "look", "arguments": {"n": {}}}, UNFIT),
    ("nosuch", {}, ("NOT_FOUND", "param_error")),
    ("read_file", {}, ("INVALID_PARAM", "param_error")),
]


class Silent:
    """A server that no call ever reaches."""

    settings = ServerSettings("s", "stdio", "x", auto_approve=("*",))

    async def call(self, tool: RemoteTool, arguments: dict[str, Any], calling: Calling) -> dict[str, Any]:
        raise AssertionError(arguments)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["native", "text"])
async def test_each_is_told_with_its_code_and_type(tmp_path: Path, mode: ToolCalling) -> None:
    made = world(tmp_path / "ws")
    remote = RemoteTool("look", "Looks.", SCHEMA)
    made.manager._services.registry.register(adapt_tool(Silent(), remote, changed=lambda: False, accept=lambda: None))
    for name, arguments, wanted in CALLS:
        if mode == "native":
            reply = ScriptedReply(tool_calls=(ToolCall(name, arguments, "c"),))
        else:
            reply = say(json.dumps({"tool": name, "args": arguments}))
        made.models["model"] = ToolCallingModel(ScriptedModel([reply, say("Done.")]), mode)
        made.events.clear()
        assert (await made.run("look")).status == "completed"
        [result] = [events.to_dict(event) for event in made.of(events.ToolFinished)]
        assert (result["error_code"], result["error_type"]) == wanted, (name, result)
        assert result["success"] is False and result["error"] and result["status"] != "ok"


@pytest.mark.parametrize("mode", ["native", "text"])
async def test_arguments_nested_beyond_reason_end_no_run(tmp_path: Path, mode: ToolCalling) -> None:
    made = world(tmp_path / "ws")
    deep: dict[str, Any] = {}
    for _ in range(900):
        deep = {"a": deep}
    made.models["model"] = ToolCallingModel(
        ScriptedModel([ScriptedReply(tool_calls=(ToolCall("todowrite", {"todos": deep}, "c"),)), say("Done.")]), mode
    )
    assert (await made.run("look")).status == "completed"
    [result] = [events.to_dict(event) for event in made.of(events.ToolFinished)]
    assert result["error_code"] == "INVALID_PARAM"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("undo_patch", {"change_id": "c{}"}),
        ("ast_parse", {"file_path": "a.unknown{}"}),
        ("edit_by_ast", {"path": "a.unknown{}", "edits": [{"target": "f", "operation": "delete"}]}),
        ("read_file", {"path": "nosuch{}.py"}),
        ("grep", {"pattern": "({}"}),
        ("apply_patch", {"patch": "garbage{}"}),
        ("skill_loader", {"skill_name": "nosuch{}"}),
        ("run_tests", {"path": "nosuch{}"}),
    ],
)
async def test_wrong_inputs_rest_no_tool(tmp_path: Path, tool: str, arguments: dict[str, Any]) -> None:
    made = world(tmp_path / "ws", deadline=0.05)
    for number in range(5):
        (made.root / f"a.unknown{number}").write_text("words\n")
    calls = [
        ScriptedReply(tool_calls=(ToolCall(tool, json.loads(json.dumps(arguments).replace("{}", str(number))), "c"),))
        for number in range(5)
    ]
    made.models["model"] = ScriptedModel([*calls, say("Done.")])
    await made.run("look")
    codes = {result.get("error_code") for event in made.of(events.ToolFinished) for result in [events.to_dict(event)]}
    assert codes and not codes & {"CIRCUIT_OPEN", "EXECUTION_ERROR", None}, codes
    assert not list(made.manager._services.registry.circuits.resting())
