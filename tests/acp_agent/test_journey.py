"""`codeagent-lsp acp` as an editor sees it: a whole task, from the handshake to the written file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from acp import schema

from tests.acp_agent.editor import Editor
from tests.terminal.scripts import call

pytestmark = pytest.mark.slow

CALC = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"
FIX: list[dict[str, Any]] = [
    call("read_file", path="calc.py"),
    call("edit_file", path="calc.py", old_str="a - b", new_str="a + b"),
    {"text": "The **sign** was wrong.", "chunks": 4, "delay": 0.01},
]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "calc.py").write_text(CALC)
    return folder


async def test_a_change_is_shown_and_then_written(workspace: Path, tmp_path: Path) -> None:
    async with Editor(workspace, tmp_path / "state", FIX) as editor:
        session_id = await editor.new()
        end = await editor.prompt(session_id, "Fix the sign in calc.py")
    assert end.stop_reason == "end_turn"
    assert "The **sign** was wrong." in editor.said()
    assert (workspace / "calc.py").read_text() == FIXED
    [asked] = editor.permissions
    [diff] = [each for each in asked.tool_call.content or () if isinstance(each, schema.FileEditToolCallContent)]
    assert (diff.path, diff.old_text, diff.new_text) == (str(workspace / "calc.py"), CALC, FIXED)
    assert editor.written == [workspace / "calc.py"]
    assert editor.state_of(asked.tool_call.tool_call_id) == "completed"
