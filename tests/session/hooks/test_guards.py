"""Guards of a project: no tool leads around one, and a question that a hook wants is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.texts import text
from tests.session.fakes import call, calls, say
from tests.session.hooks.test_hooks import DENY, NO_PRINT, ONCE, TRUST, Make, hook, make, put, told
from tests.shadow.rig import needs_overlay

__all__ = ["make"]

pytestmark = [pytest.mark.slow, needs_overlay]

ALWAYS = text("choice.always")


async def test_an_edit_by_the_syntax_tree_is_shown_to_the_guard(make: Make, tmp_path: Path) -> None:
    put(tmp_path / "w", ".claude/hooks/no_print.py", NO_PRINT)
    before = "def f():\n    return 2\n"
    body = {"target": "f", "operation": "replace_body", "code": "print(3)\nreturn 3"}
    command = 'python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/no_print.py'
    replies = [calls(call("edit_by_ast", path="c.py", edits=[body])), *[say("Done.")] * 5]
    made = make(*replies, hooks={"PreToolUse": hook(command, "Edit|Write")})
    made.open("c.py", before)
    done = await made.run("change c.py")
    assert made.text("c.py") == before
    assert "use logging, not print" in (done.summary or "") + told(made)


async def test_a_command_beside_another_is_shown_to_the_guard(make: Make) -> None:
    guard = """jq -e '.tool_input.command | test("forbidden") | not' >/dev/null || { echo not that >&2; exit 2; }"""
    made = make(
        calls(call("run_cmd", command="sleep 30", background=True)),
        calls(call("run_beside", command="echo forbidden-$((1+1))", id="bg1")),
        say("Done."),
        hooks={"PreToolUse": hook(guard, "Bash")},
        says=(TRUST, ONCE, ONCE, ONCE),
    )
    await made.run("run it")
    assert "A hook does not allow this: not that" in told(made)
    assert "forbidden-2" not in told(made)


async def test_a_next_edit_is_shown_to_the_guard(make: Make, tmp_path: Path) -> None:
    put(tmp_path / "w", ".claude/hooks/no_print.py", NO_PRINT)
    command = 'python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/no_print.py'
    made = make(hooks={"PreToolUse": hook(command, "Edit|Write")})
    file = made.read(made.open("c.py", "x = 1\n"))
    request = RunRequest("nextEdit.apply", "", "next", rewritten=((file, "print(1)\n"),))
    done = await made.finished(made.manager.start(request))
    assert (done.status, made.text("c.py")) == ("stopped", "x = 1\n")
    assert "use logging, not print" in str(done.summary)


async def test_a_hook_that_wants_a_question_gets_it_each_time(make: Make) -> None:
    asks = json.dumps({"hookSpecificOutput": {"permissionDecision": "ask"}})
    deploy = calls(call("run_cmd", command="echo deploy", allow_network=True))
    made = make(deploy, say("Done."), hooks={"PreToolUse": hook(f"echo '{asks}'", "Bash")}, says=(TRUST, ONCE))
    await made.run("deploy")
    assert ALWAYS not in made.user.shown[-1].question.choices
    count = len(made.user.shown)
    made.user.says[:] = [DENY]
    made.script(deploy, say("Done."))
    await made.run("deploy")
    assert len(made.user.shown) > count


async def test_no_command_of_the_model_changes_what_a_guard_runs(make: Make, tmp_path: Path) -> None:
    """The private home folder and ignored files of the commands are not those of the hooks."""
    put(tmp_path / "w", ".claude/hooks/no_print.py", NO_PRINT)
    put(tmp_path / "w", ".gitignore", "build/\n")
    put(tmp_path / "w", "build/guard.sh", 'python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/no_print.py')
    sly = (
        "echo exit 0 > build/guard.sh; "
        'place=$(python3 -c "import site; print(site.getusersitepackages())"); mkdir -p "$place"; '
        'echo "import os; os._exit(0)" > "$place/usercustomize.py"'
    )
    made = make(
        calls(call("run_cmd", command=sly)),
        calls(call("write_file", path="a.py", content="print(1)\n")),
        *[say("Done.")] * 5,
        hooks={"PreToolUse": hook("sh build/guard.sh", "Edit|Write")},
        says=(TRUST, ONCE),
    )
    await made.run("write a.py")
    assert "use logging, not print" in told(made)
    assert made.text("a.py") is None


LOCKED = """jq -e '.tool_input.file_path | test("locked") | not' >/dev/null || { echo it is locked >&2; exit 2; }"""


@pytest.mark.parametrize("command", [": > locked.py", "touch locked_new.py", "mv locked.py other.py", "rm locked.py"])
async def test_what_a_command_empties_makes_moves_or_deletes_is_shown_to_the_guard(make: Make, command: str) -> None:
    made = make(
        calls(call("run_cmd", command=command)), *[say("Done.")] * 5, hooks={"PreToolUse": hook(LOCKED, "Edit|Write")}
    )
    made.open("locked.py", "x = 1\n")
    done = await made.run("change it")
    assert done.status == "stopped" and "it is locked" in str(done.summary)
    assert (made.text("locked.py"), made.text("other.py")) == ("x = 1\n", None)


async def test_what_a_formatter_made_of_a_patch_is_still_shown_to_the_guard(make: Make, tmp_path: Path) -> None:
    """The guard was not told the content of the patch: that a hook wrote the file then makes it no hook's work."""
    put(tmp_path / "w", ".claude/hooks/no_print.py", NO_PRINT)
    command = 'python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/no_print.py'
    patch = "*** Begin Patch\n*** Update File: c.py\n@@\n-x=1\n+print(1)\n*** End Patch"
    made = make(
        calls(call("apply_patch", patch=patch)),
        *[say("Done.")] * 5,
        hooks={"PreToolUse": hook(command, "Write"), "PostToolUse": hook("echo '# formatted' >> c.py", "Edit")},
    )
    made.open("c.py", "x=1\n")
    done = await made.run("change it")
    assert (done.status, made.text("c.py")) == ("stopped", "x=1\n")
    assert "use logging, not print" in str(done.summary)


@pytest.mark.parametrize("apply", ["auto", "live"])
async def test_what_is_written_beside_while_hooks_judge_is_judged_too(make: Make, tmp_path: Path, apply: str) -> None:
    """The guard is slow about the first file, and the command in the background writes the second one meanwhile."""
    put(tmp_path / "w", ".claude/hooks/no_print.py", NO_PRINT)
    guard = 'python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/no_print.py'
    slow = "jq -r .tool_input.file_path | grep -q ok.py && sleep 3; true"
    made = make(
        calls(call("run_cmd", command="sleep 1; echo 'print(1)' > bad.py", background=True)),
        calls(call("run_cmd", command="echo 'x = 1' > ok.py")),
        *[say("Done.")] * 6,
        hooks={"PreToolUse": [*hook(slow, "Write"), *hook(guard, "Edit|Write")]},
        apply=apply,
    )
    await made.run("write ok.py")
    assert made.text("bad.py") is None
