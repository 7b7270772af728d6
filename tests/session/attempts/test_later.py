"""Attempts after their run: known as such after a restart, gone back to before with their run, gone on with alone."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codeagent_lsp.errors import SessionError
from codeagent_lsp.llm.providers.scripted import ScriptedReply
from codeagent_lsp.server.commands.session_commands import RewindCommands
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.rewind.rewinding import load_attempts, undo_rewind
from codeagent_lsp.session.run import Run
from codeagent_lsp.session.store import SessionStore
from codeagent_lsp.texts import text
from tests.session.attempts.test_attempts import Make, make, others, tried
from tests.session.fakes import World, call, calls, say, until, world, write
from tests.session.hooks.test_hooks import hook
from tests.session.rewind.test_rewinding import again, rewound
from tests.shadow.rig import needs_overlay

__all__ = ["make"]

pytestmark = needs_overlay


async def two(make: Make) -> tuple[World, Run]:
    """A run with two attempts, and one of them."""
    made = make((write("a.py", "a = 1\n"), say("Done.")), (write("b.py", "b = 1\n"), say("Done.")))
    await tried(made, 2, "write a file")
    return made, next(run for run in made.manager.runs.all() if run.record.attempt_of)


@pytest.mark.slow
async def test_after_a_restart(make: Make, tmp_path: Path) -> None:
    """It is none of the runs whose changes wait; its session can be gone on with."""
    made, attempt = await two(make)
    session_id = attempt.session.session_id
    await made.manager.close()
    other = world(tmp_path / "w", say("Hello."), state=tmp_path / "sessions")
    (record,) = other.manager.resume(session_id).context.runs.values()
    assert (record.attempt_of, record.attempt) == (attempt.record.attempt_of, 1)
    assert (await other.run("go on")).session_id == session_id


@pytest.mark.slow
async def test_going_back_to_before_one_is_to_before_its_run(make: Make) -> None:
    made, attempt = await two(make)

    async def ready() -> None:
        """Wait for nothing."""

    backend: Any = SimpleNamespace(ready=ready, manager=made.manager, front=SimpleNamespace(language=lambda: "en"))
    answer = await RewindCommands(backend).table()["codeagent.session.rewind"]({"runId": attempt.record.run_id})
    assert answer["runs"][0] == attempt.record.attempt_of
    assert (await made.finished(answer["runId"])).status == "completed"


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True])
async def test_what_was_taken_from_another_goes_and_comes_back_with_its_run(
    make: Make, tmp_path: Path, restarts: bool
) -> None:
    middle = "".join(f"{number}\n" for number in range(1, 20))
    before, best = f"a\n{middle}b\n", f"A\n{middle}b\n"
    other = before.replace("3\n4", "3\n!\n4").replace("b\n", "B\n")
    made = make([write("a.py", best), say("Done.")], [write("a.py", other), say("Done.")])
    made.open("a.py", before)
    run_id = (await tried(made, 2, "write a file")).run_id
    second = others(made, run_id)[1].record.run_id
    await made.manager.runs.get(second).proposal.apply(hunks={made.path("a.py"): frozenset({1})})
    taken = best.replace("b\n", "B\n")
    assert made.text("a.py") == taken
    if restarts:
        made = await restarted(made, tmp_path)
    rewind_id = await rewound(made, run_id, "changes")
    assert made.text("a.py") == before
    attempt = made.manager.runs.get(second)
    assert (attempt.record.applied, attempt.proposal.changeset.paths) == ([], ())
    if restarts:
        made = await restarted(made, tmp_path)
    await undo_rewind(made.manager.runs.get(rewind_id), made.manager.runs)
    assert made.text("a.py") == taken
    attempt = made.manager.runs.get(second)
    assert attempt.proposal.changeset.paths == (made.path("a.py"),), "what is left of it is staged again"
    await attempt.proposal.undo()
    assert made.text("a.py") == best


async def restarted(made: World, folder: Path) -> World:
    """The same session in a new process, over the same buffers."""
    await made.manager.close()
    other = again(made, folder)
    session = other.manager.current()
    load_attempts(session, session.context.runs, other.manager.resume)
    return other


@pytest.mark.slow
@pytest.mark.parametrize("cancelled", [False, True])
async def test_undo_of_what_was_taken_before_all_have_ended(make: Make, cancelled: bool) -> None:
    """It is computed on what the user has now, not on what they had when the attempts began."""
    slow = ScriptedReply("", (call("list_dir"),), delay=30)
    made = make([write("a.py", "ONE\ntwo\n"), say("Done.")], [slow], says=())
    made.open("a.py", "one\ntwo\n")
    run_id = made.manager.start(RunRequest("run", "write a file", "the task", attempts=2))
    await until(lambda: len(others(made, run_id)) == 2 and len(made.manager.runs.active()) == 2)
    if cancelled:
        made.manager.runs.cancel(run_id)
        await until(lambda: not made.manager.runs.active())
    made.open("a.py", "one\ntwo\ntyped\n")
    first = others(made, run_id)[0]
    await first.proposal.apply()
    assert made.text("a.py") == "ONE\ntwo\ntyped\n"
    await first.proposal.undo()
    assert made.text("a.py") == "one\ntwo\ntyped\n"
    await made.manager.close()


@pytest.mark.slow
async def test_what_comes_back_with_an_undone_rewind_is_as_old_as_it_was(make: Make, tmp_path: Path) -> None:
    """A later run changed the same line: its change is taken back first, also after a restart."""
    replies = [write("a.py", "2\n"), say("Done.")], [write("a.py", "TWO\n"), say("Done.")], [write("a.py", "THREE\n")]
    made = make(*replies, says=(), deadline=0.05)
    made.open("a.py", "one\n")
    run_id = (await tried(made, 2, "write a file")).run_id
    await next(run for run in others(made, run_id) if run.proposal.changeset).proposal.apply()
    await made.manager.runs.get((await made.run("write it")).run_id).proposal.apply()
    assert made.text("a.py") == "THREE\n"
    rewind_id = await rewound(made, run_id, "changes")
    assert made.text("a.py") == "one\n"
    await undo_rewind(made.manager.runs.get(rewind_id), made.manager.runs)
    assert made.text("a.py") == "THREE\n"
    made = await restarted(made, tmp_path)
    await rewound(made, run_id, "changes")
    assert made.text("a.py") == "one\n"


async def test_words_to_a_run_with_attempts_are_one_task_after_a_restart(make: Make, tmp_path: Path) -> None:
    slow = ScriptedReply("", (call("list_dir"),), delay=30)
    made = make([slow], [slow])
    run_id = made.manager.start(RunRequest("run", "what is here?", "what", attempts=2))
    await until(lambda: len(made.manager.runs.active()) == 3)
    made.manager.queue.say(made.manager.runs.get(run_id), "and delete b.py")
    made = await restarted(made, tmp_path)
    await until(lambda: made.inbox.open() != ())
    assert ["and delete b.py" in asked.question.title for asked in made.inbox.open()] == [True]
    await made.manager.close()


@pytest.mark.slow
async def test_an_attempt_that_another_window_works_with_holds_up_what_needs_it(make: Make, tmp_path: Path) -> None:
    made, attempt = await two(make)
    session_id = made.manager.current().session_id
    await made.manager.close()
    window = SessionStore(tmp_path / "sessions")
    window.claim(attempt.session.session_id)
    other = world(tmp_path / "w", state=tmp_path / "sessions")
    session = other.manager.resume(session_id)
    with pytest.raises(SessionError, match="another"):
        load_attempts(session, session.context.runs, other.manager.resume)
    window.close()
    load_attempts(session, session.context.runs, other.manager.resume)
    assert len(other.manager.runs.all()) == 3
    await other.manager.close()


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["once", "trust"])
async def test_hooks_that_the_user_allows_hold_for_every_attempt(make: Make, answer: str) -> None:
    guard = """jq -e '.tool_input.command | test("forbidden") | not' >/dev/null || { echo not that >&2; exit 2; }"""
    bad = calls(call("run_cmd", command="echo forbidden > out.txt"))
    made = make([bad, say("Done.")], [bad, say("Done.")], says=(text(f"choice.{answer}"),))
    (made.root / ".claude").mkdir()
    (made.root / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": hook(guard, "Bash")}}))
    await tried(made, 2, "run it")
    assert len(made.user.shown) == 1
    assert made.text("out.txt") is None
    denied = [run for run in made.manager.runs.all() if "not that" in str(run.record.messages)]
    assert len(denied) == 2
