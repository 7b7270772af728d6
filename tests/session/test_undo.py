"""Undo takes back each accepted part by itself: what the user typed between two of them stays."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from tests.session.fakes import World, reloaded, say, world

TEXT = "one\n2\n3\n4\nfive\nsix\n"


async def resting(folder: Path) -> tuple[World, Proposal]:
    """A world with a run at its end, to stage and apply by hand."""
    made = world(folder, say())
    return made, made.manager.runs.get((await made.run()).run_id).proposal


async def accepted(made: World, proposal: Proposal, **texts: str | None) -> None:
    """The run stages these texts, and the user accepts them."""
    proposal.staging.write({made.path(name): text for name, text in texts.items()})
    await proposal.apply()


async def moved(made: World, proposal: Proposal, old: str, new: str) -> None:
    proposal.staging.move(made.path(new), made.read(made.path(old)))
    await proposal.apply()


async def test_what_was_typed_between_two_parts_stays(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    made.open("a", TEXT)
    await accepted(made, proposal, a=TEXT.replace("one", "ONE"))
    typed = TEXT.replace("one", "ONE").replace("3\n", "3\nUSER TYPED\n")
    made.open("a", typed)
    await accepted(made, proposal, a=typed.replace("six", "SIX"))
    assert (await proposal.undo()).outcome == "full"
    assert made.text("a") == TEXT.replace("3\n", "3\nUSER TYPED\n")
    with pytest.raises(SessionError):
        await proposal.undo()


async def test_a_part_that_was_rewritten_since_is_a_conflict(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    made.open("a", TEXT)
    await accepted(made, proposal, a=TEXT.replace("one", "ONE"))
    await accepted(made, proposal, a=TEXT.replace("one", "ONE").replace("six", "SIX"))
    made.open("a", "mine\n2\n3\n4\nfive\nSIX\n")
    undone = await proposal.undo()
    assert (undone.outcome, made.text("a")) == ("partial", "mine\n2\n3\n4\nfive\nsix\n")
    told = [event for event in made.events if isinstance(event, events.ChangesApplied)][-1]
    assert (told.undo, told.conflicts) == (True, ("a:1",))


async def test_where_all_was_rewritten_nothing_is_undone_and_it_can_be_tried_again(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    made.open("a", "one\n")
    await accepted(made, proposal, a="ONE\n")
    made.open("a", "mine\n")
    assert (await proposal.undo()).outcome == "none"
    made.open("a", "ONE\n")
    assert (await proposal.undo()).outcome == "full"
    assert made.text("a") == "one\n"


async def test_a_new_file_that_was_moved_later(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    await accepted(made, proposal, a="new\n")
    await moved(made, proposal, "a", "b")
    assert (await proposal.undo()).outcome == "full"
    assert [(change.path, change.kind) for change in made.editor.applied[-1]] == [(made.path("b"), "delete")]
    assert (made.text("a"), made.text("b")) == (None, None)


async def test_a_file_that_was_moved_where_another_was_deleted(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    made.open("a", "first\n")
    made.open("b", "second\n")
    await accepted(made, proposal, a=None)
    proposal.staging.reset(Changeset((FileChange(made.path("a"), "second\n", "second\n", None, made.path("b")),)))
    await proposal.apply()
    assert (made.text("a"), made.text("b")) == ("second\n", None)
    assert (await proposal.undo()).outcome == "full"
    assert (made.text("a"), made.text("b")) == ("first\n", "second\n")


async def test_steps_are_undone_with_what_was_typed_between_them(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    made.open("a", TEXT)
    proposal.record.step_id = "1"
    await accepted(made, proposal, a=TEXT.replace("one", "ONE"))
    typed = TEXT.replace("one", "ONE").replace("3\n", "3\nUSER TYPED\n")
    made.open("a", typed)
    proposal.record.step_id = "2"
    await accepted(made, proposal, a=typed.replace("six", "SIX"))
    await proposal.undo(("1", "2"))
    assert made.text("a") == TEXT.replace("3\n", "3\nUSER TYPED\n")


async def test_one_file_is_undone_and_the_others_stay_until_they_are(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    for name in ("a", "b", "c"):
        made.open(name, TEXT)
    await accepted(made, proposal, a=TEXT.replace("one", "ONE"), b=TEXT.replace("one", "ONE"))
    await accepted(made, proposal, a=TEXT.replace("one", "ONE").replace("six", "SIX"), c=None)
    assert (await proposal.undo(files={made.path("a")})).outcome == "full"
    assert [made.text(name) for name in ("a", "b", "c")] == [TEXT, TEXT.replace("one", "ONE"), None]
    told = [event for event in made.events if isinstance(event, events.ChangesApplied)][-1]
    assert (told.undo, told.only) == (True, (made.path("a"),))
    with pytest.raises(SessionError):
        await proposal.undo(files={made.path("a")})
    session = made.manager.current()
    again = Session(session.session_id, made.store)
    replay(again, made.store.load(session.session_id))
    assert again.context.runs[proposal.record.run_id].applied == proposal.record.applied
    assert (await proposal.undo()).outcome == "full"
    assert {made.text(name) for name in ("a", "b", "c")} == {TEXT}
    assert proposal.record.applied == []


async def test_one_file_that_was_moved_is_undone_by_either_name(tmp_path: Path) -> None:
    for number, wanted in enumerate(("old", "new")):
        made, proposal = await resting(tmp_path / str(number))
        made.open("old", TEXT)
        made.open("other", TEXT)
        await accepted(made, proposal, old=TEXT.replace("one", "ONE"), other="x\n")
        await moved(made, proposal, "old", "new")
        assert (await proposal.undo(files={made.path(wanted)})).outcome == "full"
        assert (made.text("old"), made.text("new"), made.text("other")) == (TEXT, None, "x\n")


async def test_lines_of_the_user_in_one_file_are_gone_over_there_alone(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    for name in ("a", "b"):
        made.open(name, "one\n")
    await accepted(made, proposal, a="ONE\n", b="ONE\n")
    made.open("a", "mine\n")
    assert (await proposal.undo(files={made.path("a")})).outcome == "none"
    assert (await proposal.undo(over=True)).outcome == "full"
    assert (made.text("a"), made.text("b")) == ("one\n", "ONE\n")
    assert (await proposal.undo()).outcome == "full"
    assert made.text("b") == "one\n"


@pytest.mark.parametrize(
    ("present", "left"),
    [("X = 1\nY = 2\n", "Y = 2\n"), ("# mine\nX = 1\n", "# mine\n"), ("X = 3\n", None), ("X = 1\n", None)],
)
async def test_of_a_file_that_the_run_made_the_users_own_lines_stay(
    tmp_path: Path, present: str, left: str | None
) -> None:
    made, proposal = await resting(tmp_path / "w")
    await accepted(made, proposal, new="X = 1\n")
    made.open("new", present)
    first = await proposal.undo()
    if first.outcome != "full":
        assert (first.outcome, made.text("new")) == ("none", present)
        assert (await proposal.undo(over=True)).outcome == "full"
    assert made.text("new") == left


async def test_a_moved_file_goes_back_over_the_users_lines(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    made.open("old", TEXT)
    proposal.staging.move(made.path("new"), made.read(made.path("old")))
    await accepted(made, proposal, new=TEXT.replace("one", "ONE"))
    made.open("new", "mine\n2\n3\n4\nfive\nsix\nseven\n")
    assert (await proposal.undo()).conflicts
    assert (await proposal.undo(over=True)).outcome == "full"
    assert (made.text("old"), made.text("new")) == (f"{TEXT}seven\n", None)


async def test_what_the_user_put_where_a_deleted_file_was_is_never_undone(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    made.open("a", TEXT)
    await accepted(made, proposal, a=None)
    made.open("a", "mine\n")
    assert (await proposal.undo()).outcome == "none"
    assert not proposal.can_go_over, "nobody is asked"
    with pytest.raises(SessionError):
        await proposal.undo(over=True)
    assert made.text("a") == "mine\n"


async def test_going_over_one_line_leaves_those_that_were_typed_elsewhere(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    made.open("a", "one\n2\n3\nfour\n")
    await accepted(made, proposal, a="ADDED\none\n2\n3\nFOUR\n")
    made.open("a", "ADDED\ntyped\none\n2\n3\nmine\n")
    assert [each.theirs for each in (await proposal.undo()).conflicts] == ["mine\n"]
    made.open("a", (made.text("a") or "").replace("2\n", "2\nlater\n"))  # while the question is open
    assert (await proposal.undo(over=True)).outcome == "full"
    assert made.text("a") == "typed\none\n2\nlater\n3\nfour\n"


async def test_what_stayed_is_tried_again_after_a_restart(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    made.open("a", TEXT)
    await accepted(made, proposal, a=TEXT.replace("one", "ONE").replace("six", "SIX"))
    made.open("a", TEXT.replace("one", "mine").replace("six", "SIX"))
    assert (await proposal.undo()).outcome == "partial"
    made, proposal = restarted(made, proposal)
    assert not proposal.can_go_over
    again = await proposal.undo()
    assert (again.outcome, [each.theirs for each in again.conflicts]) == ("none", ["mine\n"])
    assert (await proposal.undo(over=True)).outcome == "full"
    assert made.text("a") == TEXT
    for one in (made, restarted(made, proposal)[0]):
        with pytest.raises(SessionError):
            await one.manager.runs.get(proposal.record.run_id).proposal.undo()


async def test_what_is_accepted_while_the_question_is_open_can_be_undone(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    made.open("a", TEXT)
    await accepted(made, proposal, a=TEXT.replace("one", "ONE"))
    made.open("a", TEXT.replace("one", "mine"))
    assert (await proposal.undo()).outcome == "none"
    await asyncio.sleep(0.01)  # a person needs longer; events have milliseconds
    await accepted(made, proposal, b="new\n")
    assert (await proposal.undo(over=True)).outcome == "full"
    assert (made.text("a"), made.text("b")) == (TEXT, "new\n")
    made, proposal = restarted(made, proposal)
    assert (await proposal.undo()).outcome == "full"
    assert (made.text("a"), made.text("b")) == (TEXT, None)


async def test_an_undo_of_one_file_goes_over_no_lines_of_another(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    for name in ("a", "b"):
        made.open(name, TEXT)
    await accepted(made, proposal, a=TEXT.replace("one", "ONE"), b=TEXT.replace("one", "ONE"))
    for name in ("a", "b"):
        made.open(name, TEXT.replace("one", f"mine {name}"))
    assert (await proposal.undo()).outcome == "none"
    made, proposal = restarted(made, proposal)
    assert [each.path for each in (await proposal.undo(files={made.path("a")})).conflicts] == [made.path("a")]
    made.open("a", f"typed\n{made.text('a')}")
    assert (await proposal.undo(over=True)).outcome == "full"
    assert (made.text("a"), made.text("b")) == (f"typed\n{TEXT}", TEXT.replace("one", "mine b"))
    assert [each.path for each in (await proposal.undo()).conflicts] == [made.path("b")]


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 200, 50))
async def test_no_line_of_the_user_is_lost_but_where_they_agreed(tmp_path: Path, start: int) -> None:
    """Files are changed, made, deleted and moved by the run, and typed into, in any order; then it is all undone, by
    every second one of two servers, if one undo is not enough.
    """
    lost = []
    for seed in range(start, start + 50):
        made, proposal = await resting(tmp_path / str(seed))
        typed = await _history(made, proposal, random.Random(seed))
        typed = {line for line in typed if line in _lines(made)}
        try:
            first = await proposal.undo()
        except SessionError:
            continue  # nothing of the run was applied
        lost += [(seed, "undo", line) for line in typed - _lines(made)]
        stored = reloaded(made).context.runs[proposal.record.run_id]
        assert (stored.applied, stored.stayed) == (proposal.record.applied, proposal.record.stayed)
        if seed % 2 and proposal.record.stayed:
            made, proposal = restarted(made, proposal)
            first = await proposal.undo()
            lost += [(seed, "again", line) for line in typed - _lines(made)]
        if proposal.can_go_over:
            met = {line for each in first.conflicts for line in f"{each.ours}\n{each.theirs}".split()}
            assert (await proposal.undo(over=True)).conflicts == ()
            lost += [(seed, "over", line) for line in typed - met - _lines(made)]
    assert lost == []


def restarted(made: World, proposal: Proposal) -> tuple[World, Proposal]:
    """The same files and the same run in a server that comes after this one."""
    made.store.close()
    other = world(made.root, say(), state=made.root.parent / "sessions")
    other.buffers.documents.update(made.buffers.documents)
    other.manager.resume(made.manager.current().session_id)
    return other, other.manager.runs.get(proposal.record.run_id).proposal


NAMES = ("a", "b", "c", "d")


def _lines(made: World) -> set[str]:
    return {line for name in NAMES for line in (made.text(name) or "").split()}


async def _history(made: World, proposal: Proposal, chance: random.Random) -> set[str]:
    """Return the lines that were typed."""
    typed = set[str]()
    for name in NAMES[:2]:
        made.open(name, "".join(f"{name}{number}\n" for number in range(chance.randint(1, 8))))
    for number in range(chance.randint(2, 7)):
        name, what = chance.choice(NAMES[:3]), chance.random()
        text = made.text(name)
        if what < 0.35:
            typed.add(f"typed{number}")
            made.open(name, _changed(text or "", f"typed{number}\n", chance))
        elif what < 0.75 or text is None:
            await _accepted(made, proposal, name, _changed(text or "", f"made{number}\n", chance))
        elif what < 0.87:
            await _accepted(made, proposal, name, None)
        elif free := [other for other in NAMES if made.text(other) is None]:
            await moved(made, proposal, name, chance.choice(free))
    return typed


async def _accepted(made: World, proposal: Proposal, name: str, text: str | None) -> None:
    with contextlib.suppress(SessionError):  # it was the same text
        await accepted(made, proposal, **{name: text})


def _changed(text: str, line: str, chance: random.Random) -> str:
    """The text with a line put between others, or in the place of one."""
    lines = text.splitlines(keepends=True)
    place = chance.randint(0, len(lines))
    lines[place : place + chance.randint(0, 1)] = [line]
    return "".join(lines)
