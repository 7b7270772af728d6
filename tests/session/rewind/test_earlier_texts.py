"""A file that the user renames while a run is at work: the change follows it, and so does its undoing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.rewind.earlier_texts import renamed_since
from codeagent_lsp.workspace.files.uris import from_path
from tests.server.replies import edit
from tests.server.replies import say as says
from tests.server.stock_editor import StockEditor
from tests.session.fakes import World, say, world

TEXT = "".join(f"line {number}\n" for number in range(20))
CHANGED = TEXT.replace("line 3\n", "three\n")


async def resting(folder: Path) -> tuple[World, Proposal]:
    """A world with a run at its end, to stage and apply by hand, and an open file."""
    made = world(folder, say())
    made.open("a.py", TEXT)
    return made, made.manager.runs.get((await made.run()).run_id).proposal


def rename(made: World, new: str, text: str | None = None) -> None:
    """Rename the file in the editor."""
    known = made.buffers.documents.pop(made.path("a.py"))
    made.open(new, known.text if text is None else text)


@pytest.mark.parametrize("typed", ["", "typed\n"])
async def test_an_accepted_change_follows_and_so_does_its_undoing(tmp_path: Path, typed: str) -> None:
    made, proposal = await resting(tmp_path / "w")
    proposal.staging.write({made.path("a.py"): CHANGED})
    rename(made, "b.py", TEXT + typed)
    assert (await proposal.apply(frozenset({made.path("a.py")}))).outcome == "full"
    assert made.text("b.py") == CHANGED + typed
    told = [event for event in made.events if isinstance(event, events.ChangesApplied)][-1]
    assert (told.renamed, told.conflicts) == ({"a.py": "b.py"}, ())
    known = made.buffers.documents.pop(made.path("b.py"))
    made.open("sub/c.py", known.text)
    assert (await proposal.undo()).outcome == "full"
    assert made.text("sub/c.py") == TEXT + typed


async def test_a_chosen_hunk_follows(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    proposal.staging.write({made.path("a.py"): CHANGED.replace("line 18", "18")})
    rename(made, "b.py")
    await proposal.apply(hunks={made.path("a.py"): frozenset({0})}, seen=proposal.changeset)
    assert made.text("b.py") == CHANGED
    assert proposal.changeset.paths == (made.path("b.py"),)


async def test_a_file_that_is_only_gone_stays_a_conflict(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    proposal.staging.write({made.path("a.py"): CHANGED})
    made.buffers.documents.pop(made.path("a.py"))
    made.open("other.py", "something\nelse\n")
    assert (await proposal.apply()).conflicts
    assert made.text("other.py") == "something\nelse\n"


async def test_of_two_that_are_alike_none_is_taken_but_for_one_of_the_name(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    since = time.time()
    rename(made, "b.py")
    made.open("c.py", TEXT)
    view = proposal.view
    assert renamed_since({made.path("a.py"): TEXT}, view, since) == {}
    made.open("sub/a.py", TEXT)
    assert renamed_since({made.path("a.py"): TEXT}, view, since) == {made.path("a.py"): made.path("sub/a.py")}


async def test_a_copy_of_before_is_not_taken(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    made.buffers.documents.pop(made.path("a.py"))
    copy = tmp_path / "w" / "copy.py"
    copy.write_text(TEXT)
    wanted = {made.path("a.py"): TEXT}
    assert renamed_since(wanted, proposal.view, copy.stat().st_ctime + 10) == {}
    assert renamed_since(wanted, proposal.view, copy.stat().st_ctime) == {made.path("a.py"): made.path("copy.py")}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["in the editor", "told by it", "on disk"])
def test_in_a_stock_editor_while_the_question_is_open(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    old, new = folder / "a.py", folder / "b.py"
    old.write_text(TEXT)

    def choose(params: object) -> str:
        if old.exists():
            os.rename(old, new)  # noqa: PTH104
            if way != "on disk":
                uri = from_path(str(old))
                if way == "told by it":
                    files = [{"oldUri": uri, "newUri": from_path(str(new))}]
                    editor.client.notify("workspace/didRenameFiles", {"files": files})
                text = editor.buffers.pop(uri).text
                editor.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
                editor.open(new, text)
        return "Apply"

    script = [edit("a.py", "line 3\n", "three\n"), says("Done.")]
    with StockEditor(folder, tmp_path / "state", script=script, choose=choose) as editor:
        if way != "on disk":
            editor.open(old)
        run_id = editor.command("codeagent.run", task="change it")["runId"]
        editor.ended(run_id)
        assert editor.told("You have renamed a.py to b.py")
        assert editor.text(new) == CHANGED
        editor.command("codeagent.undo", runId=run_id)
        editor.wait_until(lambda: editor.text(new) == TEXT)
