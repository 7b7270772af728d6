"""Decisions that take time: what the run stages and the user decides meanwhile is neither lost nor undone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.direct.checks import Brief
from codeagent_lsp.direct.gathering import Subject
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.request import RunRequest
from codeagent_lsp.session.solving.solver_workspace import TaskWorkspace
from codeagent_lsp.texts import text
from codeagent_lsp.workspace.changes.changeset import Applied, Changeset
from tests.session.fakes import World, say, until, world, write

APPLY, DELETE = text("choice.apply", "en"), text("choice.delete", "en")


async def proposed(folder: Path, says: tuple[str, ...] = (), **texts: str | None) -> tuple[World, Proposal]:
    """A run at its end with these texts staged; its world has files `a` and `b`."""
    made = world(folder, say(), says=says)
    made.open("a", "one\ntwo\n")
    made.open("b", "one\n")
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    stage(made, proposal, **texts)
    return made, proposal


def stage(made: World, proposal: Proposal, **texts: str | None) -> None:
    proposal.staging.write({made.path(name): content for name, content in texts.items()})


def staged(made: World, proposal: Proposal) -> dict[str, str | None]:
    return {Path(change.path).name: change.text for change in proposal.changeset}


def files(made: World, *names: str) -> frozenset[str]:
    return frozenset(map(made.path, names))


def meanwhile(made: World, happens: Callable[[], object]) -> None:
    """Let something happen while the editor works on its next request."""
    apply = made.editor.apply

    async def slow(changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        made.editor.apply = apply  # type: ignore[method-assign]
        applied = await apply(changeset, label, may_lose)
        happens()
        return applied

    made.editor.apply = slow  # type: ignore[method-assign]


# --- while the editor works


async def test_what_the_run_stages_meanwhile_stays_staged(tmp_path: Path) -> None:
    made, proposal = await proposed(tmp_path / "w", a="ONE\ntwo\n")
    meanwhile(made, lambda: stage(made, proposal, c="new\n"))
    await proposal.apply(files(made, "a"))
    assert staged(made, proposal) == {"c": "new\n"}


async def test_what_the_run_adds_to_the_same_file_stays_staged(tmp_path: Path) -> None:
    made, proposal = await proposed(tmp_path / "w", a="ONE\ntwo\n")
    meanwhile(made, lambda: stage(made, proposal, a="ONE more\nTWO\n"))
    await proposal.apply()
    assert made.text("a") == "ONE\ntwo\n"
    assert [(change.base, change.text) for change in proposal.changeset] == [("ONE\ntwo\n", "ONE more\nTWO\n")]
    await proposal.apply()
    assert (made.text("a"), staged(made, proposal)) == ("ONE more\nTWO\n", {})


async def test_what_the_user_discards_meanwhile_stays_discarded(tmp_path: Path) -> None:
    made, proposal = await proposed(tmp_path / "w", a="ONE\ntwo\n", b="ONE\n")
    meanwhile(made, lambda: proposal.discard(files(made, "b")))
    await proposal.apply(files(made, "a"))
    assert staged(made, proposal) == {}
    assert made.text("b") == "one\n"


async def test_a_discarded_part_of_a_file_is_told_as_a_part(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say())
    made.open("a", "one\n" + 9 * "-\n" + "two\n")
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    stage(made, proposal, a="ONE\n" + 9 * "-\n" + "TWO\n")
    proposal.discard(None, {made.path("a"): frozenset({0})})
    proposal.discard(files(made, "a"))
    told = [event for event in made.events if isinstance(event, events.ChangesDiscarded)]
    assert [event.partly for event in told] == [(made.path("a"),), None]


# --- while the user is asked about unsaved text


async def test_what_is_discarded_during_the_question_is_not_applied(tmp_path: Path) -> None:
    made, proposal = await proposed(tmp_path / "w", a=None, b="ONE\n")
    made.editor.unsaved.add(made.path("a"))
    applying = asyncio.create_task(proposal.apply())
    await until(made.inbox.open)
    proposal.discard(files(made, "b"))
    stage(made, proposal, c="new\n")
    made.inbox.respond(made.inbox.open()[0].request_id, (DELETE,))
    assert (await applying).outcome == "full"
    assert (made.text("a"), made.text("b")) == (None, "one\n")
    assert staged(made, proposal) == {"c": "new\n"}


async def test_where_all_is_discarded_during_the_question_nothing_is_applied(tmp_path: Path) -> None:
    made, proposal = await proposed(tmp_path / "w", a=None)
    made.editor.unsaved.add(made.path("a"))
    applying = asyncio.create_task(proposal.apply())
    await until(made.inbox.open)
    proposal.discard()
    made.inbox.respond(made.inbox.open()[0].request_id, (DELETE,))
    with pytest.raises(SessionError):
        await applying
    assert (made.text("a"), made.editor.applied) == ("one\ntwo\n", [])


# --- two decisions at once


@pytest.mark.parametrize(
    ("first", "status", "outcome"), [("apply", "completed", "full"), ("discard", "rejected", "none")]
)
async def test_the_answer_to_what_was_decided_elsewhere_ends_the_run_well(
    tmp_path: Path, first: str, status: str, outcome: str
) -> None:
    made = world(tmp_path / "w", write("c.py", "x\n"), say())
    run_id = made.manager.start(RunRequest("run", "t", "t"))
    await until(made.inbox.open)
    proposal, question = made.manager.runs.get(run_id).proposal, made.inbox.open()[0].request_id
    if first == "apply":
        meanwhile(made, lambda: made.inbox.respond(question, (APPLY,)))
        await proposal.apply()
    else:
        await proposal._applying.acquire()  # another decision is being carried out
        made.inbox.respond(question, (APPLY,))
        await until(lambda: proposal._applying._waiters)
        proposal.discard()
        proposal._applying.release()
    done = await made.finished(run_id)
    assert (done.status, done.outcome, done.error) == (status, outcome, None)


async def test_a_hunk_that_is_not_there_any_more_is_refused_with_all_others(tmp_path: Path) -> None:
    made, proposal = await proposed(tmp_path / "w")
    lines = [f"{number}\n" for number in range(30)]
    path = made.open("a", "".join(lines))
    stage(made, proposal, a="".join(["first\n", *lines[1:15], "middle\n", *lines[16:29], "last\n"]))
    await proposal.apply(None, {path: frozenset((0,))})
    gone = {path: frozenset((1, 2))}  # as they were shown before; by now the third is the second
    with pytest.raises(SessionError):
        await proposal.apply(None, gone)
    with pytest.raises(SessionError):
        proposal.discard(None, gone)
    assert len(proposal.changeset.files[0].hunks()) == 2
    assert made.text("a") == "".join(["first\n", *lines[1:]])


# --- while the direct path works


async def test_an_earlier_state_comes_back_without_what_was_decided_since(tmp_path: Path) -> None:
    made, proposal = await proposed(tmp_path / "w", a="ONE\ntwo\n", b="ONE\n", c="1\n")
    run = made.manager.runs.get(proposal.record.run_id)
    workspace = TaskWorkspace(run._parts, Subject(Brief("a task")), small=False)
    best = workspace.staged()
    stage(made, proposal, c="2\n")
    proposal.discard(files(made, "b"))
    await proposal.apply(files(made, "a"))
    workspace.restore(best)
    assert staged(made, proposal) == {"c": "1\n"}


async def test_what_the_editor_has_not_taken_at_all_is_not_done(tmp_path: Path) -> None:
    made = world(tmp_path / "w", write("a.py", "1\n"), say("Done."), says=("Apply",))
    made.editor.forced = "none"
    done = await made.run()
    assert (done.status, done.outcome) == ("stopped", "none")
    assert made.manager.runs.all()[0].proposal.changeset, "it waits"
