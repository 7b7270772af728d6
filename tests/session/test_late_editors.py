"""An editor that makes an accepted change only after it was asked what had become of it: the change is known from
then on, can be undone, and does not wait any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from codeagent_lsp.errors import SessionError
from codeagent_lsp.session import proposal as proposal_module
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.replay import replay
from codeagent_lsp.session.session import Session
from codeagent_lsp.session.state import RunRecord
from codeagent_lsp.workspace.changes.changeset import Applied, ApplyOutcome, Changeset, Current
from tests.session.fakes import World, say, world

TEXT = "".join(f"line {number}\n" for number in range(12))
OURS = TEXT.replace("line 2\n", "two\n").replace("line 9\n", "nine\n")
OUTCOMES: tuple[ApplyOutcome, ...] = ("none", "unknown")


async def asked_for(
    folder: Path,
    outcome: ApplyOutcome,
    *,
    refused: bool = False,
    denied: bool = False,
    hunk: int | None = None,
    ours: str = OURS,
    base: str = TEXT,
) -> tuple[World, Proposal]:
    """Return a world in which the editor was asked for a change and has not made it yet."""
    made = world(folder, say())
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    made.open("a", base)

    async def later(changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        late, said_no = Changeset() if refused or denied else changeset, changeset if denied else Changeset()
        return Applied(outcome, left=changeset, late=late, denied=said_no)

    whole, made.editor.apply = made.editor.apply, later  # type: ignore[method-assign]
    proposal.staging.write({made.path("a"): ours})
    await proposal.apply(hunks=None if hunk is None else {made.path("a"): frozenset({hunk})})
    made.editor.apply = whole  # type: ignore[method-assign]
    return made, proposal


async def asked_for_files(
    folder: Path, before: Mapping[str, str | None], after: Mapping[str, str | None], *, denied: bool
) -> tuple[World, Proposal]:
    """Return a world in which the editor was asked to make, delete or move a file, and has not done it yet."""
    made = world(folder, say())
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    for name, content in before.items():
        if content is not None:
            made.open(name, content)

    async def later(changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        late, said_no = (Changeset(), changeset) if denied else (changeset, Changeset())
        return Applied("none", left=changeset, late=late, denied=said_no)

    made.editor.apply = later  # type: ignore[method-assign]
    if "b" in after:
        proposal.staging.move(made.path("b"), made.read(made.path("a")))
        proposal.staging.write({made.path("b"): after["b"]})
    else:
        proposal.staging.write({made.path(name): content for name, content in after.items()})
    await proposal.apply()
    return made, proposal


def restarted(made: World, proposal: Proposal) -> RunRecord:
    """Return the run as a new process finds it."""
    session = made.manager.current()
    again = Session(session.session_id, made.store)
    replay(again, made.store.load(session.session_id))
    return again.context.runs[proposal.record.run_id]


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("typed", ["", "typed\n"])
async def test_what_comes_late_is_undone(tmp_path: Path, outcome: ApplyOutcome, typed: str) -> None:
    made, proposal = await asked_for(tmp_path / "w", outcome)
    made.open("a", typed + OURS)
    assert made.manager.runs.last_applied().proposal is proposal
    assert (await proposal.undo()).outcome == "full"
    assert (made.text("a"), proposal.changeset.paths) == (typed + TEXT, ())


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_it_is_undone_after_a_restart(tmp_path: Path, outcome: ApplyOutcome) -> None:
    made, proposal = await asked_for(tmp_path / "w", outcome)
    made.open("a", OURS)
    kept = restarted(made, proposal)
    assert [(each.path, each.text) for each in kept.late] == [(made.path("a"), OURS)]
    assert kept.staged == proposal.changeset


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("denied", [False, True])
@pytest.mark.parametrize("came", ["", "one", "all"])
async def test_after_a_restart_the_same_is_expected(
    tmp_path: Path, outcome: ApplyOutcome, came: str, *, denied: bool
) -> None:
    made, proposal = await asked_for(tmp_path / "w", outcome, denied=denied)
    made.open("a", {"": TEXT, "one": TEXT.replace("line 2\n", "two\n"), "all": OURS}[came])
    assert bool(proposal.note_late()) == bool(came)
    kept, record = restarted(made, proposal), proposal.record
    assert (kept.late, kept.denied, kept.staged) == (record.late, record.denied, proposal.changeset)
    assert bool(kept.denied if denied else kept.late) == (came != "all")


async def test_a_hunk_that_comes_late_leaves_the_other_waiting(tmp_path: Path) -> None:
    made, proposal = await asked_for(tmp_path / "w", "none")
    made.open("a", TEXT.replace("line 2\n", "two\n"))
    assert [each.path for each in proposal.note_late()] == [made.path("a")]
    (waiting,) = proposal.changeset
    assert (waiting.base, waiting.text) == (TEXT.replace("line 2\n", "two\n"), OURS)
    await proposal.undo()
    assert made.text("a") == TEXT


async def test_who_discards_what_has_come_is_told(tmp_path: Path) -> None:
    made, proposal = await asked_for(tmp_path / "w", "none")
    made.open("a", OURS)
    with pytest.raises(SessionError, match="after all: a"):
        proposal.discard()
    await proposal.undo()
    assert made.text("a") == TEXT


async def test_what_was_discarded_before_it_came_can_be_undone(tmp_path: Path) -> None:
    made, proposal = await asked_for(tmp_path / "w", "unknown")
    proposal.discard()
    made.open("a", OURS)
    assert (await proposal.undo()).outcome == "full"
    assert made.text("a") == TEXT


async def test_what_the_user_types_long_after_a_discard_is_no_late_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, proposal = await asked_for(tmp_path / "w", "unknown")
    proposal.discard()
    monkeypatch.setattr(proposal_module, "LATE_SECONDS", 0.0)
    made.open("a", OURS)
    with pytest.raises(SessionError):
        made.manager.runs.last_applied()
    assert made.text("a") == OURS


async def test_what_the_editor_has_refused_does_not_come_late(tmp_path: Path) -> None:
    made, proposal = await asked_for(tmp_path / "w", "none", refused=True)
    made.open("a", OURS)
    assert not proposal.note_late()
    assert (await proposal.apply()).outcome == "full"


async def test_what_did_not_come_is_asked_for_again(tmp_path: Path) -> None:
    made, proposal = await asked_for(tmp_path / "w", "none")
    assert not proposal.note_late()
    with pytest.raises(SessionError):
        made.manager.runs.last_applied()
    assert (await proposal.apply()).outcome == "full"
    assert replace(made.editor.applied[-1].files[0], version=None).text == OURS


@pytest.mark.parametrize("said", ["yes", "no"])
async def test_what_waits_beside_a_late_hunk_leaves_the_users_lines_alone(tmp_path: Path, said: str) -> None:
    """What the editor was asked for has what the user had typed by then, and what is staged has not."""
    made = world(tmp_path / "w", say())
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    typed = TEXT.replace("line 9\n", "mine\n")
    made.open("a", TEXT)
    proposal.staging.write({made.path("a"): OURS})
    made.open("a", typed)

    async def later(changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        sent = changeset.rebase({made.path("a"): Current(typed)}).changeset
        return Applied("none", left=sent, late=sent) if said == "yes" else Applied("none", left=sent, denied=sent)

    whole, made.editor.apply = made.editor.apply, later  # type: ignore[method-assign]
    await proposal.apply(hunks={made.path("a"): frozenset({0})})
    made.editor.apply = whole  # type: ignore[method-assign]
    came = typed.replace("line 2\n", "two\n")
    made.open("a", came)
    assert proposal.note_late()
    (waiting,) = proposal.changeset
    assert (waiting.base, waiting.text) == (TEXT.replace("line 2\n", "two\n"), OURS)
    assert [each.line for each in (await proposal.apply()).conflicts] == [10]
    assert made.text("a") == came
    await proposal.undo()
    assert made.text("a") == typed


async def test_what_was_refused_and_came_all_the_same_is_known(tmp_path: Path) -> None:
    made, proposal = await asked_for(tmp_path / "w", "none", denied=True)
    made.open("a", OURS)
    with pytest.raises(SessionError, match="after all: a"):
        proposal.discard()
    await proposal.undo()
    assert made.text("a") == TEXT


async def test_a_later_request_forgets_no_late_change(tmp_path: Path) -> None:
    made, proposal = await asked_for(tmp_path / "w", "none")
    made.open("b", TEXT)
    proposal.staging.write({made.path("b"): OURS})
    await proposal.apply(files=frozenset({made.path("b")}))
    made.open("a", OURS)
    assert proposal.note_late().paths == (made.path("a"),)


async def test_a_late_change_is_known_under_the_name_that_its_file_got(tmp_path: Path) -> None:
    made, proposal = await asked_for(tmp_path / "w", "none")
    made.buffers.documents.pop(made.path("a"))
    made.open("renamed", OURS)
    made.open("b", TEXT)
    proposal.staging.write({made.path("b"): OURS})
    await proposal.apply(files=frozenset({made.path("b")}))
    assert proposal.changeset.paths == ()
    await proposal.undo()
    assert (made.text("renamed"), made.text("b")) == (TEXT, TEXT)


async def test_a_new_file_that_came_late_and_was_renamed_is_not_made_again(tmp_path: Path) -> None:
    made = world(tmp_path / "w", say())
    proposal = made.manager.runs.get((await made.run()).run_id).proposal

    async def later(changeset: Changeset, label: str, may_lose: frozenset[str] = frozenset()) -> Applied:
        return Applied("none", left=changeset, late=changeset)

    whole, made.editor.apply = made.editor.apply, later  # type: ignore[method-assign]
    proposal.staging.write({made.path("new"): OURS, made.path("other"): TEXT})
    await proposal.apply()
    made.editor.apply = whole  # type: ignore[method-assign]
    made.open("renamed", OURS)
    await proposal.apply()
    assert (made.text("new"), made.text("renamed"), made.text("other")) == (None, OURS, TEXT)
    await proposal.undo()
    assert (made.text("renamed"), made.text("other")) == (None, None)


@pytest.mark.parametrize("denied", [False, True])
async def test_hunks_may_come_one_after_the_other(tmp_path: Path, denied: bool) -> None:
    made, proposal = await asked_for(tmp_path / "w", "none", denied=denied)
    for now in (TEXT.replace("line 2\n", "two\n"), OURS):
        made.open("a", now)
        assert proposal.note_late()
    assert proposal.changeset.paths == ()
    await proposal.undo()
    assert made.text("a") == TEXT


@pytest.mark.parametrize("denied", [False, True])
async def test_a_request_for_one_hunk_forgets_no_other(tmp_path: Path, denied: bool) -> None:
    made, proposal = await asked_for(tmp_path / "w", "none", denied=denied, hunk=0)
    second = next(iter(proposal.changeset)).hunk_ids()[1]
    assert (await proposal.apply(hunks={made.path("a"): frozenset({second})})).outcome == "full"
    made.open("a", OURS)
    proposal.note_late()
    assert proposal.changeset.paths == ()
    await proposal.undo()
    assert made.text("a") == TEXT


@pytest.mark.parametrize("line", ["", "}", "x", "end"])
async def test_who_writes_on_in_a_line_that_is_to_go_has_not_applied_that(tmp_path: Path, line: str) -> None:
    base = f"one\n{line}\nthree\n"
    made, proposal = await asked_for(tmp_path / "w", "none", ours="one\nthree\n", base=base)
    made.open("a", f"one\n{line} else {{\nthree\n")
    assert not proposal.note_late()
    assert proposal.changeset.paths == (made.path("a"),)


WHOLE: dict[str, tuple[dict[str, str | None], dict[str, str | None]]] = {  # what was there, and what the editor makes
    "a new file": ({"a": None}, {"a": OURS}),
    "an empty new file": ({"a": None}, {"a": ""}),
    "a deleted file": ({"a": TEXT}, {"a": None}),
    "a moved file": ({"a": TEXT, "b": None}, {"a": None, "b": TEXT}),
    "a moved file with other text": ({"a": TEXT, "b": None}, {"a": None, "b": OURS}),
}


@pytest.mark.parametrize("denied", [False, True], ids=["silent", "denied"])
@pytest.mark.parametrize("whole", WHOLE)
@pytest.mark.parametrize("typed", ["", "typed\n"], ids=["", "typed"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
async def test_a_whole_file_comes_late(tmp_path: Path, whole: str, typed: str, newline: str, *, denied: bool) -> None:
    before, after = WHOLE[whole]
    made, proposal = await asked_for_files(tmp_path / "w", before, after, denied=denied)
    files: dict[str, str | None] = {
        name: content and (typed + content).replace("\n", newline)  # what is written in an empty file is the user's
        for name, content in after.items()
    }
    gone = [name for name, content in after.items() if content is None and before[name] is not None]
    for name, content in files.items():
        if content is not None:
            made.open(name, content)
        elif name in gone:
            del made.buffers.documents[made.path(name)]
    late = proposal.note_late()
    assert {*late.paths, *(each.moved_from for each in late if each.moved_from)} == {*map(made.path, after)}
    assert proposal.changeset.paths == ()
    assert not proposal.note_late()
    kept = restarted(made, proposal)
    assert (kept.late.paths, kept.denied.paths, kept.staged.paths) == ((), (), ())


@pytest.mark.parametrize("whole", WHOLE)
async def test_what_has_come_in_part_only_still_waits(tmp_path: Path, whole: str) -> None:
    before, after = WHOLE[whole]
    made, proposal = await asked_for_files(tmp_path / "w", before, after, denied=False)
    if "b" in after:  # copied, and not moved
        made.open("b", after["b"] or "")
    elif after["a"] is not None:
        made.open("a", "the user's own\n")
    assert not proposal.note_late()
    assert proposal.changeset.paths != ()
