"""What a program gets of a command beside its text."""

from __future__ import annotations

from codeagent_lsp.mcp_server.sandbox import answer_of
from codeagent_lsp.messages import ToolResult
from codeagent_lsp.shadow.shell import CommandResult, Finished
from tests.tools.shells import OVERLAY


def test_a_command_has_flat_fields() -> None:
    finished = Finished(3, "out\n", 4, seconds=0.25)
    data = answer_of(ToolResult("ok", "out", CommandResult(finished, OVERLAY, (), ()))).data
    flat = {"exit_code": 3, "stdout": "out\n", "stderr": "", "execution_time_ms": 250}
    assert {key: data[key] for key in flat} == flat
    assert data["finished"]["output"] == "out\n"
    assert answer_of(ToolResult("ok", "x", {"a": 1})).data == {"a": 1}
