"""What the model edits while a command runs beside it is never taken back by what the command wrote."""

from __future__ import annotations

from pathlib import Path

from codeagent_lsp.shadow.collect import Collected, collect
from codeagent_lsp.shadow.shell import Writings, Written
from codeagent_lsp.shadow.wanted import UnsavedState, unsaved_state
from codeagent_lsp.shadow.workspace import merge_own_edits
from tests.shadow.fakes import Desk, desk, gone, text

LINES = "one\ntwo\nthree\nfour\nfive\n"


def end(ws: Desk, seen: UnsavedState, *written: Written) -> Collected:
    """The command has ended: what is to be staged of what it wrote."""
    return merge_own_edits(collect(Writings(written), ws.view, seen), seen, ws.staging.lookup, ws.view.base)


def begin(ws: Desk) -> tuple[str, UnsavedState]:
    path = ws.write("a.txt", LINES)
    ws.open("a.txt", LINES)
    return path, unsaved_state(ws.view)


def test_edits_of_other_lines_come_together(tmp_path: Path) -> None:
    ws = desk(tmp_path)
    path, seen = begin(ws)
    ws.stage("a.txt", LINES.replace("one", "ONE"))
    found = end(ws, seen, text(path, LINES.replace("five", "FIVE")))
    assert found.texts == {path: "ONE\ntwo\nthree\nfour\nFIVE\n"} and found.left_out == ()


def test_edits_of_the_same_lines_stay_and_are_told(tmp_path: Path) -> None:
    ws = desk(tmp_path)
    path, seen = begin(ws)
    ws.stage("a.txt", LINES.replace("one", "ONE"))
    found = end(ws, seen, text(path, LINES.replace("one", "1")), text(ws.path("b.txt"), "new\n"))
    assert found.texts == {ws.path("b.txt"): "new\n"}
    assert [where for where, _ in found.left_out] == [path] and "differently" in found.left_out[0][1]


def test_what_was_staged_before_the_command_is_its_base(tmp_path: Path) -> None:
    ws = desk(tmp_path)
    path, _ = begin(ws)
    ws.stage("a.txt", "staged\n")
    ws.stage("gone.txt", None)
    seen = unsaved_state(ws.view)
    found = end(ws, seen, text(path, ""), text(ws.path("gone.txt"), "again\n"))
    assert found.texts == {path: "", ws.path("gone.txt"): "again\n"} and found.left_out == ()


def test_deletions_and_new_files_of_both(tmp_path: Path) -> None:
    ws = desk(tmp_path)
    path, seen = begin(ws)
    ws.stage("a.txt", LINES + "six\n")
    ws.stage("new.txt", "the model's\n")
    ws.stage("same.txt", "same\n")
    new, same = ws.path("new.txt"), ws.path("same.txt")
    found = end(ws, seen, gone(path), text(new, "the command's\n"), text(same, "same\n"))
    assert found.texts == {same: "same\n"}
    assert [where for where, _ in found.left_out] == [path, new]
    assert ws.changes["new.txt"] == "the model's\n"


def test_a_file_that_was_edited_is_not_moved(tmp_path: Path) -> None:
    ws = desk(tmp_path)
    path, seen = begin(ws)
    ws.stage("a.txt", LINES + "six\n")
    found = end(ws, seen, gone(path), text(ws.path("b.txt"), LINES))
    assert found.moves == () and found.texts == {}
    assert {where for where, _ in found.left_out} == {path, ws.path("b.txt")}


def test_what_was_taken_back_meanwhile_does_not_come_again(tmp_path: Path) -> None:
    ws = desk(tmp_path)
    path, _ = begin(ws)
    ws.stage("a.txt", LINES.replace("one", "ONE"))
    seen = unsaved_state(ws.view)
    ws.staging.undo()
    found = end(ws, seen, text(path, LINES.replace("one", "ONE").replace("five", "FIVE")))
    assert found.texts == {path: LINES.replace("five", "FIVE")}
    assert found.read[path].text == LINES
    assert end(ws, seen, text(path, LINES.replace("one", "ONE!"))).left_out[0][0] == path


def test_a_new_file_that_was_taken_back_stays_gone(tmp_path: Path) -> None:
    ws = desk(tmp_path)
    ws.stage("new.txt", LINES)
    ws.write("old.txt", LINES)
    ws.stage("old.txt", None)
    seen = unsaved_state(ws.view)
    ws.staging.undo()
    ws.staging.undo()
    found = end(ws, seen, text(ws.path("new.txt"), LINES + "six\n"), text(ws.path("old.txt"), "other\n"))
    assert found.texts == {} and len(found.left_out) == 2


def test_what_was_applied_meanwhile_is_the_base(tmp_path: Path) -> None:
    ws = desk(tmp_path)
    path, _ = begin(ws)
    ws.stage("a.txt", LINES + "six\n")
    seen = unsaved_state(ws.view)
    ws.staging.undo()
    ws.type("a.txt", "five\n", "five\nsix\n")
    assert end(ws, seen, text(path, LINES + "six\nseven\n")).texts == {path: LINES + "six\nseven\n"}
    ws.type("a.txt", "one", "typed")
    assert end(ws, seen, text(path, LINES + "six\nseven\n")).texts == {
        path: LINES.replace("one", "typed") + "six\nseven\n"
    }
