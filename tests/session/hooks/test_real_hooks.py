"""Hooks as projects have them in `.claude/settings.json`, with real programs: ruff, a linter, context from git."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.texts import text
from tests.session.fakes import World, call, calls, say, world, write
from tests.session.hooks.real_shadows import RealShadows
from tests.shadow.rig import needs_overlay
from tests.tools.git import repos

TRUST, APPLY = text("choice.trust"), text("choice.apply")
RUFF = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")

pytestmark = [
    pytest.mark.slow,
    needs_overlay,
    pytest.mark.skipif(RUFF is None or shutil.which("jq") is None, reason="no ruff or jq here"),
]

FORMAT = """f=$(jq -r '.tool_input.file_path // empty')
case "$f" in *.py) RUFF format -q "$f" && RUFF check -q --fix "$f" || true;; esac"""
CHECKED = (
    """jq -e '.tool_input.command | test("--no-verify") | not' >/dev/null || { echo 'Run the checks.' >&2; exit 2; }"""
)


def group(command: str, **more: str) -> dict[str, object]:
    return {**more, "hooks": [{"type": "command", "command": command, "timeout": 30}]}


SETTINGS = {
    "permissions": {"allow": ["Bash(npm run lint)"], "deny": ["Read(./.env)"]},
    "env": {"PYTHONDONTWRITEBYTECODE": "1"},
    "hooks": {
        "PreToolUse": [
            group('"$CLAUDE_PROJECT_DIR"/.claude/hooks/lint.py', matcher="Edit|MultiEdit|Write"),
            group(CHECKED, matcher="Bash"),
        ],
        "PostToolUse": [group(FORMAT.replace("RUFF", str(RUFF)), matcher="Edit|MultiEdit|Write")],
        "UserPromptSubmit": [group("python3 $CLAUDE_PROJECT_DIR/.claude/hooks/context.py")],
    },
}

LINT = '''#!/usr/bin/env python3
"""Denies prints in the package."""
import json
import os
import re
import sys

data = json.load(sys.stdin)
tool_input = data.get("tool_input", {})
path = os.path.relpath(tool_input.get("file_path", ""), os.environ["CLAUDE_PROJECT_DIR"])
new = tool_input.get("content") or tool_input.get("new_string") or ""
if data["tool_name"] not in ("Edit", "MultiEdit", "Write") or not path.startswith("shop/"):
    sys.exit(0)
for number, line in enumerate(new.splitlines(), 1):
    if re.match(r"\\s*print\\(", line):
        print(f"{path}:{number}: no print() in the package, use logging", file=sys.stderr)
        sys.exit(2)
'''

CONTEXT = """import json, subprocess, sys
data = json.load(sys.stdin)
branch = subprocess.run(["git", "branch", "--show-current"], capture_output=True, text=True).stdout.strip()
print(json.dumps({
    "hookSpecificOutput": {
        "hookEventName": "UserPromptSubmit",
        "additionalContext": f"On branch {branch}. {len(data['prompt'].split())} words were asked.",
    }
}))
"""


@pytest.fixture
async def environments(tmp_path: Path) -> AsyncIterator[RealShadows]:
    made = RealShadows(tmp_path / "state")
    yield made
    await made.close()


def project(folder: Path) -> None:
    for name, content in {
        ".claude/settings.json": json.dumps(SETTINGS, indent=2),
        ".claude/hooks/lint.py": LINT,
        ".claude/hooks/context.py": CONTEXT,
        "shop/cart.py": "TOTAL = 0\n",
        "pyproject.toml": "[tool.ruff.lint]\nselect = ['F', 'I']\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (folder / ".claude/hooks/lint.py").chmod(0o755)
    repos.start(folder)


def told(made: World) -> str:
    return "\n".join(message.content for message in made.manager.current().context.conversation)


async def test_the_hooks_of_a_python_project(tmp_path: Path, environments: RealShadows) -> None:
    """One run: context is added, a print is denied, a commit without checks too, and ruff formats what is written."""
    project(tmp_path / "w")
    made = world(
        tmp_path / "w",
        write("shop/cart.py", "print('hi')\n"),
        calls(call("run_cmd", command="git commit --no-verify -m x")),
        write("shop/cart.py", "import os,sys\nimport logging\nlogging.info( 'hi' )\nx={ 'a':sys.argv }\n"),
        say(),
        says=(TRUST, APPLY),
        environments=environments,
    )
    made.open("shop/cart.py", "TOTAL = 0\n")
    done = await made.run("log a greeting in the cart")
    notes = [event.message for event in made.of(events.StatusChanged) if isinstance(event, events.StatusChanged)]
    assert done.status == "completed"
    assert not [line for line in notes if " failed: " in line or "left out" in line], notes
    assert "On branch main. 6 words were asked." in told(made)
    assert "A hook does not allow this: shop/cart.py:1: no print() in the package, use logging" in told(made)
    assert "A hook does not allow this: Run the checks." in told(made)
    formatted = 'import logging\nimport sys\n\nlogging.info("hi")\nx = {"a": sys.argv}\n'
    assert made.text("shop/cart.py") == formatted
    assert "Changed by a hook afterwards: shop/cart.py" in told(made)
    assert (made.root / "shop/cart.py").read_text() == "TOTAL = 0\n"
    assert not (made.root / ".ruff_cache").exists()
    assert [each.question.title.startswith("Run the hooks of .claude") for each in made.user.shown] == [True, False]
