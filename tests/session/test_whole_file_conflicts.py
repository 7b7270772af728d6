"""What the agent wants with a file that the user has deleted, rewritten or made meanwhile: both ways lead somewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codeagent_lsp.errors import SessionError
from codeagent_lsp.session.proposal import Proposal
from tests.session.fakes import World, say, world

Way = Callable[[World, Proposal], None]
TEXT = "".join(f"line {number}\n" for number in range(12))
OURS = TEXT.replace("line 3\n", "three\n")
MINE = TEXT.replace("line 3\n", "mine\n")


async def resting(folder: Path, *says: str) -> tuple[World, Proposal]:
    """A world with a run at its end, to stage and apply by hand, and an open file."""
    made = world(folder, say(), says=says)
    made.open("a", TEXT)
    return made, made.manager.runs.get((await made.run()).run_id).proposal


def deleted(made: World, proposal: Proposal) -> None:
    proposal.staging.write({made.path("a"): OURS})
    made.buffers.documents.pop(made.path("a"))


def rewritten_before_its_deletion(made: World, proposal: Proposal) -> None:
    proposal.staging.write({made.path("a"): None})
    made.open("a", MINE)


def made_by_both(made: World, proposal: Proposal) -> None:
    proposal.staging.write({made.path("b"): OURS})
    made.open("b", MINE)


def rewritten_before_its_move(made: World, proposal: Proposal) -> None:
    proposal.staging.move(made.path("b"), made.read(made.path("a")))
    proposal.staging.write({made.path("b"): OURS})
    made.open("a", MINE)


WAYS: dict[Way, tuple[dict[str, str | None], dict[str, str | None]]] = {
    deleted: ({"a": None}, {"a": OURS}),
    rewritten_before_its_deletion: ({"a": MINE}, {"a": None}),
    made_by_both: ({"a": TEXT, "b": MINE}, {"a": TEXT, "b": OURS}),
    rewritten_before_its_move: ({"a": None, "b": MINE}, {"a": None, "b": OURS}),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("takes_theirs", [False, True])
async def test_either_version_is_to_be_had(tmp_path: Path, way: Way, takes_theirs: bool) -> None:
    made, proposal = await resting(tmp_path / "w")
    way(made, proposal)
    assert (await proposal.apply()).conflicts
    hunks = proposal.onto_present({each.path for each in proposal.conflicts()})
    assert all(hunks.values()) and hunks
    if takes_theirs:
        assert (await proposal.apply(hunks=hunks)).outcome == "full"
    else:
        proposal.discard(hunks=hunks)
    wanted = WAYS[way][takes_theirs]
    assert {name: made.text(name) for name in wanted} == wanted
    assert not proposal.changeset


async def test_who_gives_up_unsaved_text_gets_the_deletion_and_can_undo_it(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w", "Delete")
    rewritten_before_its_deletion(made, proposal)
    made.editor.unsaved.add(made.path("a"))
    assert (await proposal.apply()).outcome == "full"
    assert made.text("a") is None
    await proposal.undo()
    assert made.text("a") == MINE


async def test_where_the_file_is_gone_an_undo_cannot_go_over_anything(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    proposal.staging.write({made.path("a"): OURS})
    await proposal.apply()
    made.open("a", OURS.replace("three", "mine"))
    could = [bool((await proposal.undo()).conflicts) and proposal.can_go_over]
    made.buffers.documents.pop(made.path("a"))
    could += [bool((await proposal.undo()).conflicts) and proposal.can_go_over]
    assert could == [True, False]
    with pytest.raises(SessionError):
        await proposal.undo(over=True)
