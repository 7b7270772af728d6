"""Hooks of a project in the real shadow: what they write is staged, what they deny is denied, what they add is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from codeagent_lsp import events
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.session.request import RunRequest, Target
from codeagent_lsp.texts import text
from codeagent_lsp.tools.hooks import hooks as hooks_module
from tests.clock import sooner_than
from tests.session.fakes import World, call, calls, say, world, write
from tests.session.hooks.real_shadows import RealShadows
from tests.shadow.rig import needs_overlay
from tests.tools.shells import DIRECT, FakeEnvironments

pytestmark = needs_overlay

TRUST, DENY, ONCE, APPLY, DISCARD = (text(f"choice.{name}") for name in ("trust", "deny", "once", "apply", "discard"))
FORMAT = "jq -r .tool_input.file_path | xargs sed -i 's/ *= */ = /'"
"""A formatter as they are in many projects, but for its name."""

NO_PRINT = """import json, sys
event = json.load(sys.stdin)
if "print(" in str(event["tool_input"].get("new_string") or event["tool_input"].get("content")):
    print("use logging, not print", file=sys.stderr)
    sys.exit(2)
"""

Make = Callable[..., World]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes a world with these hooks in `.claude/settings.json`."""
    environments = RealShadows(tmp_path / "state")

    def made(
        *replies: ScriptedReply, hooks: dict[str, Any], says: tuple[str, ...] = (TRUST, APPLY), **more: Any
    ) -> World:
        folder = tmp_path / "w"
        put(folder, ".claude/settings.json", json.dumps({"hooks": hooks}))
        return world(folder, *replies, says=says, **{"environments": environments, **more})

    yield made
    await environments.close()


def put(folder: Path, name: str, content: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def hook(command: str, matcher: str = "") -> list[dict[str, Any]]:
    return [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]


def told(made: World) -> str:
    return "\n".join(message.content for message in made.manager.current().context.conversation)


def notes(made: World) -> list[str]:
    return [event.message for event in made.of(events.StatusChanged) if isinstance(event, events.StatusChanged)]


# --- staged, denied, added


async def test_what_a_formatter_writes_is_part_of_the_change(make: Make) -> None:
    made = make(write("a.py", "x=1\n"), say(), hooks={"PostToolUse": hook(FORMAT, "Edit|Write")})
    done = await made.run()
    assert done.status == "completed"
    assert made.text("a.py") == "x = 1\n"
    assert not (made.root / "a.py").exists(), "it is in the buffer, and the disk is the user's"
    assert "Changed by a hook afterwards: a.py" in told(made)


async def test_a_linter_denies_before_the_tool(make: Make, tmp_path: Path) -> None:
    put(tmp_path / "w", ".claude/hooks/no_print.py", NO_PRINT)
    command = 'python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/no_print.py'
    replies = (write("a.py", "print(1)\n"), write("a.py", "log(1)\n"), say())
    made = make(*replies, hooks={"PreToolUse": hook(command, "Edit|Write")})
    await made.run()
    assert made.text("a.py") == "log(1)\n"
    assert "A hook does not allow this: use logging, not print" in told(made)


async def test_a_script_adds_context_to_the_prompt(make: Make) -> None:
    made = make(say("4"), hooks={"UserPromptSubmit": hook("echo It is the branch $(jq -r .prompt | wc -w).")})
    await made.run("what is two and two")
    assert "It is the branch 5." in told(made)


async def test_a_prompt_is_denied(make: Make) -> None:
    made = make(say("never"), hooks={"UserPromptSubmit": hook("echo no tasks on Fridays >&2; exit 2")})
    done = await made.run()
    assert done.status == "failed"
    assert "A hook does not let this task pass: no tasks on Fridays" in str(done.error)
    assert "never" not in told(made)


async def test_a_hook_has_the_user_asked(make: Make) -> None:
    asks = json.dumps({"hookSpecificOutput": {"permissionDecision": "ask"}})
    made = make(
        calls(call("grep", pattern="x")),
        say(),
        hooks={"PreToolUse": hook(f"echo '{asks}'", "Grep")},
        says=(TRUST, ONCE),
    )
    await made.run()
    assert len(made.user.shown) == 2, notes(made)
    assert "grep" in made.user.shown[1].question.title


async def test_allow_allows_nothing(make: Make) -> None:
    """The rules ask about a file that can run code; that a hook has no objection changes nothing."""
    allow = json.dumps({"hookSpecificOutput": {"permissionDecision": "allow"}})
    replies = (write(".vscode/tasks.json", "{}\n"), say())
    made = make(*replies, hooks={"PreToolUse": hook(f"echo '{allow}'")}, says=(TRUST, DENY))
    await made.run()
    assert [shown.question.title[:9] for shown in made.user.shown][1:] != []
    assert made.text(".vscode/tasks.json") is None


async def test_an_objection_after_a_tool_is_told(make: Make) -> None:
    replies = (calls(call("grep", pattern="x")), say())
    made = make(*replies, hooks={"PostToolUse": hook("echo too slow >&2; exit 2")})
    await made.run()
    assert "A hook objects: too slow" in told(made)


async def test_a_hook_that_fails_denies_nothing_and_the_user_is_told(make: Make) -> None:
    made = make(write("a.py", "x=1\n"), say(), hooks={"PreToolUse": hook("no-such-program")})
    await made.run()
    assert made.text("a.py") == "x=1\n"
    assert any(line.startswith("The hook no-such-program failed: exit code 127") for line in notes(made)), notes(made)


# --- before the proposal, at the end


async def test_the_model_mends_what_a_hook_does_not_let_pass(make: Make) -> None:
    check = "if grep -q TODO a.py; then echo a.py has a TODO >&2; exit 2; fi"
    replies = (write("a.py", "# TODO\n"), say("Done."), write("a.py", "x = 1\n"), say("Now it is done."))
    made = make(*replies, hooks={"Stop": hook(check)})
    done = await made.run("write a.py")
    assert (done.status, done.summary) == ("completed", "Now it is done.")
    assert made.text("a.py") == "x = 1\n"
    assert "A hook of the project says: a.py has a TODO" in told(made)
    assert len(made.of(events.ChangesProposed)) == 1


async def test_what_is_denied_to_the_end_is_not_proposed(make: Make) -> None:
    replies = (write("a.py", "# TODO\n"), *[say("Done.")] * 6)
    made = make(*replies, hooks={"PreProposal": hook("echo never; exit 2")})
    done = await made.run("write a.py")
    assert done.status == "stopped"
    assert "Not proposed, because a hook does not let the changes pass: never" in done.summary
    assert made.text("a.py") is None
    assert not made.of(events.ChangesProposed)
    run = made.manager.current().context.runs[done.run_id]
    assert run.staged.paths == (made.path("a.py"),), "they can still be applied by the user's own command"


async def test_what_no_tool_call_has_written_is_given_to_the_hooks_too(make: Make) -> None:
    replies = (calls(call("run_cmd", command="echo y=2 > b.py")), say("Done."))
    made = make(*replies, hooks={"PostToolUse": hook(FORMAT, "Edit|Write")})
    await made.run("write b.py")
    assert made.text("b.py") == "y = 2\n"


@pytest.mark.parametrize("matcher", ["Edit|Write", "edit_file|write_file"])
async def test_no_edit_leads_around_a_formatter(make: Make, matcher: str) -> None:
    """Those of several files at once, of which a hook is told no path, and those by the syntax tree."""
    one = {"target": "f", "operation": "replace_body", "code": "y=3\nreturn y"}
    replies = (
        calls(
            call(
                "batch_edit",
                edits=[{"path": name, "old_str": "x = 1", "new_str": "x=2"} for name in ("a.py", "b.py")],
            )
        ),
        calls(call("edit_by_ast", path="c.py", edits=[one])),
        say(),
    )
    made = make(*replies, hooks={"PostToolUse": hook(FORMAT, matcher)})
    for name, content in (("a.py", "x = 1\n"), ("b.py", "x = 1\n"), ("c.py", "def f():\n    return 2\n")):
        put(made.root, name, content)
        made.open(name, content)
    await made.run("change them")
    texts = [made.text(name) for name in ("a.py", "b.py", "c.py")]
    assert texts == ["x = 2\n", "x = 2\n", "def f():\n    y = 3\n    return y\n"]


async def test_at_the_end_it_can_change_nothing(make: Make) -> None:
    made = make(write("a.py", "x = 1\n"), say(), hooks={"RunEnd": hook("cat > end.json; exit 2")}, says=(APPLY, TRUST))
    done = await made.run()
    assert done.status == "completed"
    assert made.text("end.json") is None
    assert not (made.root / "end.json").exists()


async def test_a_question_changes_nothing(make: Make) -> None:
    made = make(calls(call("grep", pattern="x")), say("4"), hooks={"PreToolUse": hook("echo hi > hi.txt")})
    done = await made.finished(made.manager.start(RunRequest("ask", "what", "what")))
    assert done.status == "completed"
    assert not made.manager.current().context.runs[done.run_id].staged


# --- trust


@pytest.mark.parametrize("says", [(DENY, APPLY), ()])
async def test_hooks_of_a_hostile_workspace_do_not_run_before_trust(make: Make, says: tuple[str, ...]) -> None:
    made = make(
        write("a.py", "x=1\n"),
        say(),
        hooks={"PreToolUse": hook(FORMAT), "Stop": hook("exit 2")},
        says=says,
        deadline=1.0,
    )
    await made.run()
    title = made.user.shown[0].question.title
    assert title.startswith("Run the hooks of .claude/settings.json, in the sandbox? PreToolUse: jq -r")
    assert not [line for line in notes(made) if line.startswith("Hook: ")]
    assert sum(".claude/settings.json" in shown.question.title for shown in made.user.shown) == 1, "asked once in a run"


async def test_trust_is_for_exactly_this_content(make: Make, tmp_path: Path) -> None:
    put(tmp_path / "w", "fmt.sh", "exit 0\n")
    hooks = {"PostToolUse": hook("sh fmt.sh")}
    made = make(
        *[reply for number in range(4) for reply in (write("a.py", f"x={number}\n"), say())],
        hooks=hooks,
        apply="auto",
    )

    async def asked() -> int:
        made.user.says[:] = [TRUST]
        before = len(made.user.shown)
        await made.run()
        return len(made.user.shown) - before

    assert await asked() == 1
    assert await asked() == 0
    made.open("fmt.sh", "exit 1\n")
    assert await asked() == 1, "a script that a hook names has changed"
    put(made.root, ".claude/settings.json", json.dumps({"hooks": {"PostToolUse": hook("sh fmt.sh && true")}}))
    assert await asked() == 1


@pytest.mark.parametrize("name", ["fmt.sh", ".claude/settings.json"])
async def test_what_changes_while_the_user_is_asked_is_not_trusted(make: Make, tmp_path: Path, name: str) -> None:
    put(tmp_path / "w", "fmt.sh", "exit 0\n")
    evil = {
        "fmt.sh": "echo evil > evil.txt\n",
        ".claude/settings.json": json.dumps({"hooks": {"PostToolUse": hook("echo evil > evil.txt")}}),
    }
    made = make(write("a.py", "x=1\n"), say(), hooks={"PostToolUse": hook("sh fmt.sh")}, says=(), deadline=30.0)
    show = made.user.show

    def shown(question: Any) -> None:
        if len(made.user.shown) == 0:
            put(made.root, name, evil[name])
        made.user.says[:] = [(TRUST, DENY, APPLY)[len(made.user.shown)]]
        show(question)

    made.user.show = shown  # type: ignore[method-assign]
    await made.run()
    titles = [each.question.title for each in made.user.shown]
    assert ["hooks of" in title for title in titles] == [True, True, False], "asked again about what it is now"
    assert made.text("a.py") == "x=1\n"
    assert made.text("evil.txt") is None


@pytest.mark.parametrize(
    "change",
    [
        ("sh .claude/check.sh", ".claude/lib.sh", '. "$(dirname "$0")/lib.sh"'),
        ('"$CLAUDE_PROJECT_DIR"/.claude/check.sh', "tools/lib.sh", '. "${CLAUDE_PROJECT_DIR:-.}/tools/lib.sh"'),
        ("sh .claude/link.sh", "tools/lib.sh", ""),
    ],
    ids=["sourced", "sourced by a variable", "a link"],
)
async def test_the_walk_of_a_hostile_repository(make: Make, tmp_path: Path, change: tuple[str, str, str]) -> None:
    """Denied: it does not run. Trusted: it does. Then what it runs changes: it does not run before it is trusted."""
    command, inner, text = change
    folder = tmp_path / "w"
    put(folder, ".claude/check.sh", f"#!/bin/sh\n{text}\n")
    (folder / ".claude/check.sh").chmod(0o755)
    put(folder, inner, "echo one >> ran.txt\n")
    (folder / ".claude/link.sh").symlink_to("../tools/lib.sh")
    tries = 5
    replies = [reply for number in range(tries) for reply in (write("a.py", f"x={number}\n"), say())]
    made = make(*replies, hooks={"PostToolUse": hook(command)}, apply="auto")

    async def ran(*says: str) -> tuple[int, str | None]:
        made.user.says[:] = says
        before = len(made.user.shown)
        await made.run()
        return len(made.user.shown) - before, made.text("ran.txt")

    assert await ran(DENY) == (1, None)
    assert await ran() == (0, None), "who does not trust it is not asked in every run"
    assert [line for line in notes(made) if "you did not trust them" in line]
    made.manager.new()
    assert await ran(TRUST) == (1, "one\n")
    put(folder, inner, "echo two >> ran.txt\n")
    assert await ran(DENY) == (1, "one\n")
    made.manager.new()
    assert await ran(TRUST) == (1, "one\ntwo\n")


async def test_a_hook_that_fails_again_and_again_is_told_once(make: Make) -> None:
    made = make(
        write("a.py", "x=1\n"),
        write("b.py", "x=1\n"),
        say(),
        hooks={"PostToolUse": hook("echo bad >&2; exit 1", "Write")},
    )
    await made.run()
    assert len([line for line in notes(made) if "failed: exit code 1" in line]) == 1


async def test_who_trusts_them_in_another_session_has_them_everywhere(make: Make) -> None:
    guard = hook("case $(cat) in *c.py*) echo frozen >&2; exit 2;; esac", "Edit|Write")
    replies = (write("a.py", "1\n"), say(), write("b.py", "1\n"), say(), write("c.py", "1\n"), *[say()] * 4)
    made = make(*replies, hooks={"PreToolUse": guard}, says=(DENY, APPLY, TRUST, APPLY, APPLY))
    await made.run("write a")
    first = made.manager.current().session_id
    made.manager.new()
    await made.run("write b")
    await made.run("write c", first)
    assert (made.text("b.py"), made.text("c.py")) == ("1\n", None)


async def test_a_quick_action_without_words_is_no_prompt(make: Make) -> None:
    asks = hook("grep -q PROJ- || { echo no ticket number >&2; exit 2; }")
    made = make(*[say("It sets x.")] * 3, hooks={"UserPromptSubmit": asks})
    file = made.read(made.open("a.py", "x = 1\n"))
    done = await made.finished(made.manager.start(RunRequest("explain", "", "explain", Target(file, 0, 6))))
    assert (done.status, done.error) == ("completed", None)


@pytest.mark.volume
async def test_more_files_than_fifty_are_all_shown_to_the_guard(make: Make) -> None:
    guard = hook("jq -e '.tool_input.path != \"f53\"' > /dev/null || { echo no 53 >&2; exit 2; }", "Write")
    made = make(
        calls(call("run_cmd", command="for i in $(seq -w 55); do echo > f$i; done")),
        say(),
        say(),
        hooks={"PreToolUse": guard},
    )
    done = await made.run()
    assert "no 53" in told(made) + str(done.summary)
    assert made.text("f01") is None


async def test_they_do_not_run_where_commands_reach_the_users_files(make: Make) -> None:
    environments = FakeEnvironments(isolation=DIRECT)
    made = make(
        write("a.py", "x=1\n"), say(), hooks={"PostToolUse": hook(FORMAT)}, environments=environments, says=(APPLY,)
    )
    await made.run()
    assert not any(shell.commands for shell in environments.shells)
    assert sum(line.startswith("Hooks do not run here") for line in notes(made)) == 1


async def test_what_is_not_understood_is_told(make: Make) -> None:
    hooks = {"SessionStart": hook("x", "clear|compact"), "PreCompact": hook("x"), "PreToolUse": hook("true")}
    made = make(calls(call("grep", pattern="x")), say(), hooks=hooks)
    await made.run()
    assert [line for line in notes(made) if "left out" in line] == [
        "Not understood in .claude/settings.json, so left out: SessionStart, PreCompact"
    ]


# --- the beginning of a session


async def test_a_script_at_the_beginning_of_a_session_adds_to_its_first_request_only(make: Make) -> None:
    begins = hook("cat > start.json; echo Branch is $(jq -r .source start.json)-main.")
    made = make(hooks={"SessionStart": begins}, says=(TRUST, DISCARD, DISCARD, DISCARD))
    model = made.script(*[say("Hello.")] * 4)
    for _ in range(2):
        await made.run("hello")
    assert "Branch is startup-main." in str(model.requests[0].messages)
    assert told(made).count("Branch is") == 1
    made.manager.new()
    await made.run("hello again")
    assert told(made).count("Branch is startup-main.") == 1
    await made.manager.fork(None, None)
    await made.run("and now")
    assert told(made).count("Branch is resume-main.") == 1


async def test_by_json_too_and_only_for_what_it_is_for(make: Make) -> None:
    answer = json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "By JSON."}})
    begins = [
        *hook(f"echo '{answer}'", "startup"),
        *hook("echo Resumed.", "resume"),
        *hook("echo Both.", "startup|resume|clear"),
    ]
    made = make(say(), say(), hooks={"SessionStart": begins}, says=(TRUST,))
    await made.run("hello")
    assert "By JSON.\nBoth." in told(made) and "Resumed." not in told(made)
    await made.manager.fork(None, None)
    await made.run("hello")
    assert "Resumed.\nBoth." in told(made)


@pytest.mark.parametrize("answer", ["echo no >&2; exit 2", """echo '{"continue": false, "stopReason": "no"}'"""])
async def test_the_beginning_denies_nothing_and_the_next_hook_runs(make: Make, answer: str) -> None:
    begins = [*hook(answer), *hook("no-such-program"), *hook("echo Fine.")]
    made = make(say("Hello."), hooks={"SessionStart": begins}, says=(TRUST,))
    done = await made.run("hello")
    assert done.status == "completed"
    assert "Fine." in told(made)
    assert "A hook at the beginning of the session objects: no. The session goes on." in notes(made)


async def test_hooks_at_the_beginning_have_a_minute_together(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks_module, "START_SECONDS", 6.0)
    begins = [*hook("echo First."), *hook("sleep 60"), *hook("echo Third.")]
    made = make(say("Hello."), hooks={"SessionStart": begins}, says=(TRUST,))
    with sooner_than(30, "the second hook ends"):
        done = await made.run("hello")
    assert done.status == "completed"
    assert "First." in told(made) and "Third." not in told(made)
    assert [line for line in notes(made) if "sleep 60 failed: timeout" in line]
    assert [line for line in notes(made) if "echo Third. does not run" in line]


async def test_hooks_at_the_beginning_run_in_the_sandbox_and_only_with_trust(make: Make, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    begins = hook(f"echo x > {outside}; echo y > made.txt; echo Told.")
    made = make(say("Hello."), say("Hello."), hooks={"SessionStart": begins}, says=(DENY,))
    await made.run("hello")
    assert "Told." not in told(made)
    assert [shown.question.choices[0] for shown in made.user.shown] == [DENY]
    await made.run("hello")
    assert len(made.user.shown) == 1, "asked once in a session"
    made.manager.new()
    made.user.says[:] = [TRUST, APPLY]
    await made.run("hello")
    assert "Told." in told(made)
    assert not outside.exists() and not (made.root / "made.txt").exists()
    assert made.text("made.txt") == "y\n", "what it writes is proposed"


async def test_a_first_request_that_fails_takes_nothing_away_from_the_next(make: Make) -> None:
    refuses = hook("grep -q please || { echo say please >&2; exit 2; }")
    made = make(say("Hello."), hooks={"SessionStart": hook("echo Told."), "UserPromptSubmit": refuses}, says=(TRUST,))
    assert (await made.run("hello")).status == "failed"
    assert (await made.run("hello, please")).status == "completed"
    assert told(made).count("Told.") == 1


async def test_a_quick_rewrite_is_no_beginning(make: Make) -> None:
    made = make(say("```\nx = 2\n```"), say("Hello."), hooks={"SessionStart": hook("echo Told.")}, says=(APPLY, TRUST))
    file = made.read(made.open("a.py", "x = 1\n"))
    await made.finished(made.manager.start(RunRequest("edit", "make it 2", "t", Target(file, 0, 5))))
    assert len(made.user.shown) == 1
    await made.run("hello")
    assert "Told." in told(made)
