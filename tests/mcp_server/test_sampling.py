"""Asking the client's model in both eras: corrections, answers that are none, and answers to nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest
from mcp.client.client import Client
from mcp.types import (
    CallToolResult,
    CreateMessageResult,
    ImageContent,
    InputRequiredResult,
    InputResponses,
    TextContent,
)

from codeagent_lsp.config import Settings
from codeagent_lsp.mcp_server.sandbox import Sandbox, sandbox_settings
from codeagent_lsp.mcp_server.serving import make_server
from tests.mcp_server.calls import WRITTEN, make_workspace
from tests.mcp_server.rig import Model, code_of, text_of
from tests.shadow.rig import needs_overlay

WRONG = WRITTEN.replace("8", "9")
TAX = {"path": "shop/tax.py"}


@needs_overlay
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_correction(workspace: Path, state_dir: Path, mode: Literal["auto", "legacy"]) -> None:
    sandbox = Sandbox(str(make_workspace(workspace)), sandbox_settings(Settings()))
    model = Model(WRONG, WRITTEN)
    async with Client(make_server(sandbox), sampling_callback=model, mode=mode) as client:
        result = await client.call_tool("generate_tests", TAX)
        changes = sandbox.changes()
    await sandbox.close()
    assert "after one correction" in text_of(result) and len(model.asked) == 2
    assert "+        self.assertEqual(with_tax(4), 8)" in changes and "9" not in changes


@needs_overlay
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_two_wrong_answers_leave_nothing(
    workspace: Path, state_dir: Path, mode: Literal["auto", "legacy"]
) -> None:
    sandbox = Sandbox(str(make_workspace(workspace)), sandbox_settings(Settings()))
    async with Client(make_server(sandbox), sampling_callback=Model(WRONG, WRONG + "\n#\n"), mode=mode) as client:
        result = await client.call_tool("generate_tests", TAX)
    assert code_of(result) == "EXECUTION_ERROR" and "8 != 9" in text_of(result)
    assert sandbox.changes() == ""
    await sandbox.close()


def answer(text: str) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", model="m", content=TextContent(type="text", text=text))


@pytest.mark.parametrize("state", ["no json", "[]", "3", json.dumps({"x": 1})])
async def test_a_state_that_is_none_of_ours(workspace: Path, state_dir: Path, state: str) -> None:
    sandbox = Sandbox(str(make_workspace(workspace)), sandbox_settings(Settings()))
    (workspace / "shop/tax.py").write_text("RATE = 4\n")
    async with Client(make_server(sandbox), sampling_callback=Model()) as client:
        responses: InputResponses = {"unasked": answer("words")}
        result = await client.session.call_tool(
            "generate_commit", {}, input_responses=responses, request_state=state, allow_input_required=True
        )
    await sandbox.close()
    assert isinstance(result, InputRequiredResult)  # it asks all the same
    assert list(result.input_requests or ()) == ["question-1"]


async def test_a_picture_is_no_answer(workspace: Path, state_dir: Path) -> None:
    sandbox = Sandbox(str(make_workspace(workspace)), sandbox_settings(Settings()))
    picture = ImageContent(type="image", data="", mime_type="image/png")
    responses: InputResponses = {"question-1": CreateMessageResult(role="assistant", model="m", content=picture)}
    async with Client(make_server(sandbox), sampling_callback=Model()) as client:
        result = await client.session.call_tool(
            "generate_commit", {}, input_responses=responses, allow_input_required=True
        )
    await sandbox.close()
    assert isinstance(result, CallToolResult)
    assert code_of(result) == "EXECUTION_ERROR" and "returned no text" in text_of(result)
