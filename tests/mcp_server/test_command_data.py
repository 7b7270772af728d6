"""What a program gets of a command beside its text."""

from __future__ import annotations

import json

from codeagent_lsp.errors import ErrorCode
from codeagent_lsp.mcp_server.sandbox import MOST_DATA, answer_of
from codeagent_lsp.messages import ToolResult
from codeagent_lsp.shadow.shell import CommandResult, Finished
from tests.tools.shells import OVERLAY


def test_a_command_has_flat_fields() -> None:
    finished = Finished(3, "out\nerr\n", 8, seconds=0.25, streams={"stdout": "out\n", "stderr": "err\n"})
    answer = answer_of(ToolResult("ok", "out", CommandResult(finished, OVERLAY, (), ())))
    flat = {"exit_code": 3, "stdout": "out\n", "stderr": "err\n", "execution_time_ms": 250}
    assert answer.code is None and {key: answer.data[key] for key in flat} == flat
    assert answer.data["finished"]["output"] == "out\nerr\n"
    assert answer_of(ToolResult("ok", "x", {"a": 1})).data == {"a": 1}


def test_streams_that_cannot_be_told_apart_are_stdout() -> None:
    data = answer_of(ToolResult("ok", "out", CommandResult(Finished(0, "both\n"), OVERLAY))).data
    assert (data["stdout"], data["stderr"]) == ("both\n", "")


def test_a_command_out_of_time_has_a_code_and_what_it_said_until_then() -> None:
    answer = answer_of(ToolResult("ok", "out", CommandResult(Finished(137, "out\n", ending="timeout"), OVERLAY)))
    assert (answer.code, answer.data["stdout"]) == (ErrorCode.TIMEOUT_ERROR, "out\n")
    error = answer.error() or {}
    assert (error["type"], error["retry"], error["message"]) == ("execution_error", True, "out")


def test_a_long_output_keeps_its_end_in_flat_fields() -> None:
    finished = Finished(1, "y\n" * 200_000, streams={"stdout": "y\n" * 200_000, "stderr": "end\n"})
    data = answer_of(ToolResult("ok", "out", CommandResult(finished, OVERLAY))).data
    assert (data["exit_code"], data["stderr"]) == (1, "end\n") and "left out" in data["stdout"]
    assert len(json.dumps(data)) < MOST_DATA
