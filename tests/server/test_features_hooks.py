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


def test_the_walk_of_a_hostile_repository(start: StartEditor, workspace: Path) -> None:
    """Denied, trusted, and asked about again when a script changes that its script sources; on the disk or in a tab."""
    (workspace / ".claude" / "hooks").mkdir(parents=True)
    (workspace / ".claude" / "hooks" / "check.sh").write_text('. "$(dirname "$0")/lib.sh"\n')
    lib = workspace / ".claude" / "hooks" / "lib.sh"
    lib.write_text("echo one >> ran.txt\n")
    command = 'sh "${CLAUDE_PROJECT_DIR:-.}/.claude/hooks/check.sh"'
    settings = {"hooks": {"PostToolUse": [{"matcher": "Write", "hooks": [{"type": "command", "command": command}]}]}}
    (workspace / ".claude" / "settings.json").write_text(json.dumps(settings))
    trusts = iter(["Deny", "Trust this content", "Deny", "Trust this content"])

    def answer(params: dict[str, Any]) -> str | None:
        return next(trusts) if "Run the hooks of" in params["message"] else "Apply"

    tasks = [reply for number in range(6) for reply in (write("a.py", f"x={number}\n"), say("Done."))]
    editor = start(*tasks, choose=answer)

    def ran() -> tuple[int, str]:
        before = len(editor.prompts)
        editor.run("codeagent.run", task="write a.py")
        asked = sum("Run the hooks of" in prompt["message"] for prompt in editor.prompts[before:])
        texts = [buffer.text for uri, buffer in editor.buffers.items() if uri.endswith("/ran.txt")]
        return asked, "".join(texts)

    assert ran() == (1, "")
    assert ran() == (0, ""), "who does not trust it is asked again in a new session"
    editor.command("codeagent.session.new")
    assert ran() == (1, "one\n")
    assert ran() == (0, "one\none\n")
    uri = editor.open(lib)
    editor.type(uri, (0, 5), (0, 8), "two")  # unsaved
    assert ran() == (1, "one\none\n")
    editor.command("codeagent.session.new")
    assert ran() == (1, "one\none\ntwo\n")
    assert editor.close() == 0
