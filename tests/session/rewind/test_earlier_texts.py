"""A file that the user renames while a run is at work: the change follows it, and so does its undoing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from codeagent_lsp import events
from codeagent_lsp.session.proposal import Proposal
from codeagent_lsp.session.rewind.earlier_texts import CLOCK_SECONDS, renamed_since
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


OTHER = "".join(f"other {number}\n" for number in range(9))


def on_disk(folder: Path, files: dict[str, str], before: float) -> None:
    """Write files that have been there since `before`; the time of their names cannot be set."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        os.utime(folder / name, (before, before))


WAYS = {
    "renamed": "mv a.py b.py",
    "renamed, and a new file at its place": "mv a.py b.py; cp o.txt a.py",
    "renamed and edited, and a new file at its place": "mv a.py b.py; echo more >> b.py; cp o.txt a.py",
    "into a folder, and a new file at its place": "mkdir x; mv a.py x/a.py; echo import x > a.py",
    "swapped": "mv a.py t; mv z.py a.py; mv t z.py",
    "by case only": "mv a.py A.py",
    "with its folder": "mv d e",
    "with a folder above it": "mv d deep; mv deep o",
    "with its folder, to which a file came first": "echo new > d/s/new.py; sleep 0.02; mv d/s d/t",
    "copied": "cp a.py b.py",
    "copied, and edited": "cp a.py b.py; echo more >> a.py",
    "deleted": "rm a.py",
    "moved where it is ignored": "mkdir build; mv a.py build/a.py",
    "its folder deleted": "rm -r d; echo new > twin/new.py",
}
FOLLOWED = {
    **{way: {"a.py": "b.py"} for way in list(WAYS)[:3]},
    "into a folder, and a new file at its place": {"a.py": "x/a.py"},
    "swapped": {"a.py": "z.py", "z.py": "a.py"},
    "by case only": {"a.py": "A.py"},
    "with its folder": {"d/s/f.py": "e/s/f.py"},
    "with a folder above it": {"d/s/f.py": "o/s/f.py"},
    "with its folder, to which a file came first": {"d/s/f.py": "d/t/f.py"},
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_a_file_is_followed_wherever_the_user_moves_it(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "w"
    made = world(folder, say())
    proposal = made.manager.runs.get((await made.run()).run_id).proposal
    twin = TEXT.replace("line", "twin")
    on_disk(folder, {
        "a.py": TEXT, "z.py": OTHER, "o.txt": OTHER.replace("other", "new"), "d/s/f.py": twin, "twin/f.py": twin,
        ".gitignore": "build\n",
    }, time.time() - 60)  # fmt: skip
    texts = {made.path(name): (folder / name).read_text() for name in ("a.py", "z.py", "d/s/f.py")}
    for name in ("d/s", "d", "twin"):
        os.utime(folder / name, (time.time() - 60,) * 2)
    await asyncio.sleep(0.1)
    since = time.time() + CLOCK_SECONDS - 0.05  # so that what was made above is older; times of files lag behind
    await asyncio.to_thread(subprocess.run, ["sh", "-c", WAYS[way]], cwd=folder, check=True)
    found = renamed_since(texts, proposal.view, since)
    short = proposal.view.roots.relative
    assert {short(old): short(new) for old, new in found.items()} == FOLLOWED.get(way, {})


async def test_a_change_follows_a_file_whose_place_was_taken(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    proposal.staging.write({made.path("a.py"): CHANGED})
    rename(made, "b.py")
    made.open("a.py", OTHER)
    assert (await proposal.apply()).outcome == "full"
    assert (made.text("b.py"), made.text("a.py")) == (CHANGED, OTHER)
    assert (await proposal.undo()).outcome == "full"
    assert (made.text("b.py"), made.text("a.py")) == (TEXT, OTHER)


async def test_a_new_file_that_was_renamed_is_undone_where_it_is(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    proposal.staging.write({made.path("new.py"): OTHER, made.path("short.py"): "x = 1\n"})
    await proposal.apply()
    for old, new in (("new.py", "mine.py"), ("short.py", "kept.py")):
        made.open(new, made.buffers.documents.pop(made.path(old)).text)
    assert (await proposal.undo()).outcome == "full"
    # A line or two may be the same by chance: a file of the user's own is never deleted for that.
    assert (made.text("mine.py"), made.text("kept.py")) == (None, "x = 1\n")


async def test_a_renamed_new_file_that_was_typed_in_stays_and_is_told(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    proposal.staging.write({made.path("new.py"): OTHER})
    await proposal.apply()
    made.buffers.documents.pop(made.path("new.py"))
    made.open("mine.py", f"{OTHER}typed\n")
    undone = await proposal.undo()
    assert [each.path for each in undone.conflicts] == [made.path("mine.py")]
    assert made.text("mine.py") == f"{OTHER}typed\n"


async def test_a_new_file_follows_its_folder(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    made.open("pkg/deep/b.py", OTHER)
    proposal.staging.write({
        made.path("pkg/deep/b.py"): OTHER.replace("other 3", "3"),
        made.path("pkg/deep/x/new.py"): "x = 1\n",
        made.path("else/new.py"): "y = 1\n",
    })  # fmt: skip
    made.buffers.documents.pop(made.path("pkg/deep/b.py"))
    made.open("lib/deep/b.py", OTHER)
    await proposal.apply()
    assert made.text("lib/deep/x/new.py") == "x = 1\n"
    assert made.text("pkg/deep/x/new.py") is None
    assert made.text("else/new.py") == "y = 1\n"
    told = [event for event in made.events if isinstance(event, events.ChangesApplied)][-1]
    assert told.renamed == {"pkg/deep/b.py": "lib/deep/b.py"}


async def test_a_line_that_was_typed_anew_is_not_looked_for_in_a_copy(tmp_path: Path) -> None:
    made, proposal = await resting(tmp_path / "w")
    (tmp_path / "w" / "VERSION").write_text("1.2.5\n")
    (tmp_path / "w" / "VERSION.bak").write_text("1.2.3\n")
    since = time.time() - 5
    assert renamed_since({made.path("VERSION"): "1.2.3\n"}, proposal.view, since) == {}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["in the editor", "told by it", "on disk"])
@pytest.mark.parametrize("taken", [False, True])
def test_in_a_stock_editor_while_the_question_is_open(tmp_path: Path, way: str, taken: bool) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    old, new = folder / "a.py", folder / "b.py"
    old.write_text(TEXT)

    def choose(params: object) -> str:
        if not new.exists():
            os.rename(old, new)  # noqa: PTH104
            if way != "on disk":
                uri = from_path(str(old))
                if way == "told by it":
                    files = [{"oldUri": uri, "newUri": from_path(str(new))}]
                    editor.client.notify("workspace/didRenameFiles", {"files": files})
                text = editor.buffers.pop(uri).text
                editor.client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
                editor.open(new, text)
            if taken:
                old.write_text(OTHER)
        return "Apply"

    script = [edit("a.py", "line 3\n", "three\n"), says("Done.")]
    with StockEditor(folder, tmp_path / "state", script=script, choose=choose) as editor:
        if way != "on disk":
            editor.open(old)
        run_id = editor.command("codeagent.run", task="change it")["runId"]
        editor.ended(run_id)
        assert editor.told("You have renamed a.py to b.py")
        assert editor.text(new) == CHANGED and (not taken or old.read_text() == OTHER)
        editor.command("codeagent.undo", runId=run_id)
        editor.wait_until(lambda: editor.text(new) == TEXT)
