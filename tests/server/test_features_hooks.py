"""Hooks in a stock editor: asked about by a message, run in the sandbox, their writing proposed as any other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import StartEditor
from tests.server.replies import say, write
from tests.shadow.rig import needs_overlay

pytestmark = [pytest.mark.slow, needs_overlay]

FORMAT = "jq -r .tool_input.file_path | xargs sed -i 's/ *= */ = /'"


def hooks(workspace: Path, **events: str) -> None:
    (workspace / ".claude").mkdir()
    groups = {name: [{"hooks": [{"type": "command", "command": command}]}] for name, command in events.items()}
    (workspace / ".claude" / "settings.json").write_text(json.dumps({"hooks": groups}))


def choose(params: dict[str, Any]) -> str | None:
    return "Trust this content" if "Run the hooks of" in params["message"] else "Apply"


@pytest.mark.journey
def test_a_formatter_of_the_project_formats_what_is_proposed(start: StartEditor, workspace: Path) -> None:
    hooks(workspace, PostToolUse=FORMAT, UserPromptSubmit="echo Use four spaces.")
    (workspace / "a.py").write_text("x=0\n")
    first = {**write("a.py", "x=1\n"), "expect": "Use four spaces."}
    editor = start(first, say("Done."), say("Done."), choose=choose)
    uri = editor.open(workspace / "a.py")
    editor.run("codeagent.run", task="set x to one")
    asked = [prompt["message"] for prompt in editor.prompts]
    assert len([line for line in asked if "Run the hooks of .claude/settings.json, in the sandbox?" in line]) == 1
    assert "sed -i" in asked[0]
    assert editor.buffers[uri].text == "x = 1\n"
    assert (workspace / "a.py").read_text() == "x=0\n"
    editor.run("codeagent.run", task="once more")
    assert not [line for line in [each["message"] for each in editor.prompts][len(asked) :] if "hooks" in line]
    assert editor.close() == 0


def test_what_a_hook_does_not_let_pass_is_said(start: StartEditor, workspace: Path) -> None:
    hooks(workspace, Stop="echo not on main >&2; exit 2")
    editor = start(write("a.py", "x=1\n"), *[say("Done.")] * 6, choose=choose)
    editor.run("codeagent.run", task="write a.py")
    shown = json.dumps(list(editor.notifications("window/showMessage")))
    assert "a hook does not let the changes pass: not on main" in shown
    assert not (workspace / "a.py").exists()
    assert editor.close() == 0
