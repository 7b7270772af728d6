"""The official TypeScript library as the client: what it reads of our messages is what its schema has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.acp_agent.editor import COMMAND
from tests.server.warm import quick_starts
from tests.terminal.scripts import call

LIBRARY = Path(os.environ.get("CODEAGENT_ACP_SDK", "nowhere")) / "dist/v1/stable/acp.js"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("node") is None or not LIBRARY.exists(),
        reason="CODEAGENT_ACP_SDK is no library; scripts/get-acp-sdk.sh gets one",
    ),
]


def test_a_task_with_unsaved_text(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    file = tmp_path / "work" / "calc.py"
    file.write_text("def add(a, b):\n    return a - b\n")
    unsaved = file.read_text() + "# unsaved\n"
    script = tmp_path / "script.json"
    edit = call("edit_file", path="calc.py", old_str="a - b", new_str="a + b")
    script.write_text(json.dumps([call("read_file", path="calc.py"), edit, {"text": "Fixed."}]))
    agent = [*COMMAND, "--set", "model.provider=scripted", "--set", f"model.name={script}"]
    done = subprocess.run(
        ["node", str(Path(__file__).with_name("client.mjs")), str(LIBRARY), str(file), unsaved, "Fix the sign", *agent],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **quick_starts(), "CODEAGENT_STATE_DIR": str(tmp_path / "state"), "LANG": "C.UTF-8"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["end"]["stopReason"] == "end_turn"
    assert seen["said"] == "Fixed."
    assert seen["buffer"] == file.read_text() == unsaved.replace("a - b", "a + b")
    assert seen["asked"][0]["content"][0]["oldText"] == unsaved
    assert {"tool_call", "tool_call_update", "agent_message_chunk"} <= set(seen["kinds"])
    assert seen["hello"]["authMethods"][0]["id"] == "setup"
