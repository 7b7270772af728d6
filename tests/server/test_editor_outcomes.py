"""How the outcome of an apply is judged: by the texts that are there, whatever the client says."""

from __future__ import annotations

import pytest

from codeagent_lsp.server.text_edits import Said, Try, holds, report, same_text, without_stray_returns
from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange, HunkConflict
from codeagent_lsp.workspace.changes.reviewed import after_applying

BASE = "".join(f"line {number}\n" for number in range(30))
NEW = BASE.replace("line 2\n", "two\n").replace("line 27\n", "27!\n")
CHANGE = FileChange("/a", BASE, NEW, 4)


def one(now: str | None, *, said: Said = "yes", change: FileChange = CHANGE, before: str | None = BASE) -> Try:
    arrived = now is not None and change.text is not None and holds(change.base, change.text, now)
    return Try(change, arrived, before, now, said, "" if said == "yes" else "because")


def test_everything_there_is_full_even_when_the_client_said_no() -> None:
    for said in ("yes", "no", "nothing"):
        applied = report(Changeset((CHANGE,)), [one(NEW, said=said)], [])
        assert applied.outcome == "full"
        assert applied.done.paths == ("/a",)
        assert not applied.left


def test_nothing_there_is_none_even_when_the_client_said_yes() -> None:
    applied = report(Changeset((CHANGE,)), [one(BASE)], [])
    assert (applied.outcome, applied.left.paths) == ("none", ("/a",))


def test_a_client_that_stays_silent_leaves_it_unknown() -> None:
    applied = report(Changeset((CHANGE,)), [one(BASE, said="nothing")], [])
    assert (applied.outcome, applied.reason) == ("unknown", "because")


@pytest.mark.parametrize(("said", "late"), [("yes", True), ("nothing", True), ("no", False)])
def test_what_was_not_refused_may_come_late(said: Said, late: bool) -> None:
    applied = report(Changeset((CHANGE,)), [one(BASE, said=said)], [])
    assert bool(applied.late) == late
    assert not report(Changeset((CHANGE,)), [one(NEW, said=said)], []).late


def test_something_else_there_is_unknown() -> None:
    assert report(Changeset((CHANGE,)), [one("garbled")], []).outcome == "unknown"


def test_one_hunk_of_two_is_partial_and_the_other_is_left() -> None:
    applied = report(Changeset((CHANGE,)), [one(BASE.replace("line 2\n", "two\n"))], [])
    assert applied.outcome == "partial"
    assert [change.text for change in applied.done] == [BASE.replace("line 2\n", "two\n")]
    assert [(change.base, change.text) for change in applied.left] == [(BASE.replace("line 2\n", "two\n"), NEW)]


def test_one_file_of_two_is_partial() -> None:
    other = FileChange("/b", "x\n", "y\n")
    tries = [one(NEW), one("x\n", change=other, before="x\n")]
    applied = report(Changeset((CHANGE, other)), tries, [])
    assert (applied.outcome, applied.done.paths, applied.left.paths) == ("partial", ("/a",), ("/b",))


def test_what_conflicts_stays_as_it_was_wanted() -> None:
    conflict = HunkConflict("/a", 3, "two\n", "zwei\n")
    applied = report(Changeset((CHANGE,)), [], [conflict])
    assert (applied.outcome, list(applied.left)) == ("none", [CHANGE])


def test_nothing_left_to_do_is_full() -> None:
    assert report(Changeset((CHANGE,)), [], []).outcome == "full"


def test_what_the_user_typed_after_the_edit_is_no_part_of_what_was_done() -> None:
    """Otherwise an undo would take the user's typing away."""
    now = NEW.replace("line 0\n", "line 0\ntyped\n")
    applied = report(Changeset((CHANGE,)), [one(now)], [])
    assert applied.outcome == "full"
    assert [change.text for change in applied.done] == [NEW]


def test_line_ends_of_the_editor_are_part_of_what_was_done() -> None:
    created = FileChange("/a", None, "x\ny\n")
    applied = report(Changeset((created,)), [one("x\r\ny\r\n", change=created, before=None)], [])
    assert [change.text for change in applied.done] == ["x\r\ny\r\n"]


@pytest.mark.parametrize(
    ("base", "text", "now", "there"),
    [
        ("a\n", "b\n", "b\n", True),
        ("a\n", "b\n", "a\n", False),
        ("a\n", "b\n", "b", True),
        ("a\nb\n", "a\nc\n", "a\r\nc\r\n", True),
        ("a\n\n\nb\n", "a\n\n\nc\n", "new\na\n\n\nc\n", True),
        ("a\n\n\nb\n", "a\n\n\nc\n", "new\na\n\n\nb\n", False),
        ("a\r\nb\r\n", "a\nb\n", "a\r\nb\r\n", False),
        ("a\r\nb\r\n", "a\nb\n", "a\nb\n", True),
        ("a\n", "a", "a\n", False),
        ("", "x\n", "x\n", True),
        ("", "x\n", "", False),
        (None, "", "", True),
        (None, "x\n", "y\n", False),
        ("x\n", "", "", True),
        ("x\n", "", "x\n", False),
    ],
)
def test_a_change_is_there_when_merging_it_again_changes_nothing(
    base: str | None, text: str, now: str, *, there: bool
) -> None:
    assert holds(base, text, now) is there


def test_same_text_knows_absent_from_empty() -> None:
    assert same_text(None, None)
    assert not same_text(None, "")
    assert not same_text("", None)
    assert same_text("a\r\nb", "a\nb\n")


@pytest.mark.parametrize(
    ("base", "text", "now", "corrected"),
    [
        ("a\r\nb\r\n", "a\r\nnew\r\nb\r\n", "a\nnew\r\nb\n", "a\nnew\nb\n"),
        ("a\r\nb\r\n", "a\r\nb\r\nnew\r\n", "a\nb\r\nnew\n", "a\nb\nnew\n"),
        ("é🎉\r\nb\r\n", "1\r\né🎉!\r\n2\r\n", "1\r\né🎉!\r\n2\n", "1\né🎉!\n2\n"),
        ("a\r\nb\r\n", "a\r\nnew\r\nb\r\n", "a\r\nnew\r\nb\r\n", None),  # an editor that keeps CRLF
        ("a\r\nb\r\n", "a\r\nnew\r\nb\r\n", "a\nnew\nb\n", None),  # one that inserts them as its own
        ("a\r\nb\r\n", "a\r\nnew\r\nb\r\n", "a\r\nnew\nb\r\n", None),  # one that takes LF into CRLF
        ("a\r\nb\r\n", "a\r\nnew\r\nb\r\n", "typed\na\nnew\r\nb\n", None),
        ("a\r\nb\n", "a\r\nnew\r\nb\n", "a\nnew\r\nb\n", None),  # mixed before
        ("a\nb\n", "a\nnew\r\nb\n", "a\nnew\r\nb\n", None),  # wanted so
        (None, "a\r\nb\r\n", "a\r\nb\r\n", None),
        ("a\r\nb", "x\r\ny\r\n", "x\r\ny\r\n", None),
    ],
)
def test_crs_are_strays_only_where_the_editor_shows_the_other_lines_with_lf(
    base: str | None, text: str, now: str, corrected: str | None
) -> None:
    assert without_stray_returns(FileChange("/a", base, text), now) == corrected


def test_the_base_of_what_was_done_has_the_line_ends_of_the_editor() -> None:
    """Otherwise an undo would bring a CR into every line of a buffer that shows CRLF as LF."""
    edited = FileChange("/a", "a\r\nb\r\n", "a\r\n")
    shown = report(Changeset((edited,)), [one("a\n", change=edited, before=edited.base)], [])
    assert list(shown.done) == [FileChange("/a", "a\nb\n", "a\n")]
    kept = report(Changeset((edited,)), [one("a\r\n", change=edited, before=edited.base)], [])
    assert list(kept.done) == [edited]


def test_what_conflicts_in_a_file_that_has_moved_waits_for_the_file_at_its_new_place() -> None:
    move = FileChange("/b", BASE, NEW, moved_from="/a")
    sent = FileChange("/b", BASE, NEW.replace("27!", "mine"), moved_from="/a")
    applied = report(Changeset((move,)), [one(sent.text, change=sent)], [HunkConflict("/b", 28, "27!\n", "mine\n")])
    rest = FileChange("/b", BASE.replace("line 2\n", "two\n"), NEW)
    assert (applied.outcome, list(applied.left)) == ("partial", [rest])
    more = FileChange("/b", BASE, NEW + "more\n", moved_from="/a")
    assert list(after_applying(Changeset((move,)), Changeset((move,)), applied)) == [rest]
    left = after_applying(Changeset((more,)), Changeset((move,)), applied)
    assert list(left) == [FileChange("/b", BASE, NEW + "more\n")]


def test_beside_a_conflict_only_what_has_not_come_waits() -> None:
    mine = BASE.replace("line 27\n", "mine\n")
    sent = FileChange("/a", mine, mine.replace("line 2\n", "two\n"), 4)
    conflict = HunkConflict("/a", 28, "27!\n", "mine\n")
    applied = report(Changeset((CHANGE,)), [one(sent.text, change=sent, before=mine)], [conflict])
    assert [(each.base, each.text) for each in applied.left] == [(BASE.replace("line 2\n", "two\n"), NEW)]
