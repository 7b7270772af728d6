"""What a cancelled run has staged goes on in the next run of its session."""

from __future__ import annotations

from pathlib import Path

import pytest

from codeagent_lsp.agent.context.history import NOTE
from codeagent_lsp.llm.providers.scripted import ScriptedModel, ScriptedReply
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.run import Run
from codeagent_lsp.tools.permissions.policy import Mode
from tests.session.fakes import World, call, calls, say, until, world
from tests.session.rewind.test_rewinding import rewound
from tests.session.test_told_decisions import STRONG

ONE = calls(call("edit_file", path="a.py", old_str="one\n", new_str="ONE\n"))
TWO = calls(call("edit_file", path="a.py", old_str="ONE\ntwo\n", new_str="ONE\nTWO\n"))
ASK = calls(call("AskUser", questions=[{"text": "Which?", "options": ["red", "blue"]}]))


def scripted(made: World, *replies: ScriptedReply) -> ScriptedModel:
    made.models["model"] = model = ScriptedModel(list(replies), info=STRONG)
    return model


async def cancelled(folder: Path, mode: Mode = "ask") -> tuple[World, Run]:
    """A world in which a run was cancelled after it had changed the first line of a.py."""
    made = world(folder, mode=mode)
    made.open("a.py", "one\ntwo\nthree\n")
    scripted(made, ONE, ASK)
    run_id = made.manager.start(RunRequest("run", "Make it loud", "Make it loud"))
    await until(lambda: bool(made.inbox.open()))
    made.manager.runs.cancel(run_id)
    await until(lambda: not made.manager.runs.active())
    run = made.manager.runs.get(run_id)
    assert run.record.status == "cancelled" and run.proposal.changeset
    return made, run


@pytest.mark.parametrize(("replies", "waits"), [((ONE, ASK), True), ((ASK,), False)])
async def test_that_changes_wait_is_said_where_some_do(
    tmp_path: Path, replies: tuple[ScriptedReply, ...], waits: bool
) -> None:
    made = world(tmp_path / "w")
    made.open("a.py", "one\n")
    scripted(made, *replies)
    run_id = made.manager.start(RunRequest("run", "Make it loud", "Make it loud"))
    await until(lambda: bool(made.inbox.open()))
    made.manager.runs.cancel(run_id)
    assert ("waits for your decision" in (await made.finished(run_id)).summary) == waits


async def test_the_next_run_goes_on_from_it_and_asks_once(tmp_path: Path) -> None:
    made, run = await cancelled(tmp_path / "w")
    made.user.says = ["Apply"]
    scripted(made, TWO, say("Loud."))
    done = await made.run("go on")
    assert (done.status, made.text("a.py")) == ("completed", "ONE\nTWO\nthree\n")
    assert not run.proposal.changeset


async def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    made, run = await cancelled(tmp_path / "w")
    made.store.close()
    again = world(tmp_path / "w", says=["Apply"], state=tmp_path / "sessions")
    again.open("a.py", "one\ntwo\nthree\n")
    again.manager.resume(run.session.session_id)
    scripted(again, TWO, say("Loud."))
    assert (await again.run("go on")).status == "completed"
    assert again.text("a.py") == "ONE\nTWO\nthree\n"


async def test_lines_that_the_user_has_added_since_are_kept(tmp_path: Path) -> None:
    made, _ = await cancelled(tmp_path / "w")
    made.open("a.py", "one\ntwo\nthree\nfour\n")
    made.user.says = ["Apply"]
    scripted(made, TWO, say("Loud."))
    await made.run("go on")
    assert made.text("a.py") == "ONE\nTWO\nthree\nfour\n"


@pytest.mark.parametrize("now", ["1\ntwo\nthree\n", None], ids=["changed", "deleted"])
async def test_what_does_not_fit_any_more_waits_and_the_model_is_told(tmp_path: Path, now: str | None) -> None:
    made, run = await cancelled(tmp_path / "w")
    if now is None:
        made.buffers.documents.pop(made.path("a.py"))
    else:
        made.open("a.py", now)
    model = scripted(made, say("I see."))
    await made.run("Look")
    assert run.proposal.changeset
    notes = [message.content for message in model.requests[0].messages if message.name == NOTE]
    assert "- a.py: waiting for the user's decision, not in the file" in notes[-1]


async def test_a_question_leaves_it_where_it_is(tmp_path: Path) -> None:
    made, run = await cancelled(tmp_path / "w")
    model = scripted(made, say("Because."))
    await made.finished(made.manager.start(RunRequest("ask", "Why?", "Why?")))
    assert run.proposal.changeset
    notes = [message.content for message in model.requests[0].messages if message.name == NOTE]
    assert "- a.py: waiting for the user's decision, not in the file" in notes[-1]


async def test_where_nobody_is_asked_it_stays_where_it_is(tmp_path: Path) -> None:
    """Who stops a run may not want what it has made: that is not applied with the next task."""
    made, run = await cancelled(tmp_path / "w", "acceptEdits")
    scripted(made, calls(call("edit_file", path="a.py", old_str="three\n", new_str="3\n")), say("Done."))
    await made.run("Write three as a number")
    assert made.text("a.py") == "one\ntwo\n3\n"
    assert run.proposal.changeset


async def test_a_rewind_says_that_it_takes_back_what_was_taken_over(tmp_path: Path) -> None:
    made, run = await cancelled(tmp_path / "w")
    made.user.says = ["Apply"]
    scripted(made, TWO, say("Loud."))
    done = await made.run("go on")
    assert made.text("a.py") == "ONE\nTWO\nthree\n"
    made.store.close()
    again = world(tmp_path / "w", state=tmp_path / "sessions")
    again.open("a.py", "ONE\nTWO\nthree\n")
    again.manager.resume(run.session.session_id)
    back = await rewound(again, done.run_id)
    assert again.text("a.py") == "one\ntwo\nthree\n"
    assert "the cancelled task “Make it loud”" in again.completed(back).summary
