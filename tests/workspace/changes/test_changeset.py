"""Changesets as values: applied to a dictionary of files, in order, as an editor would."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.workspace.changes.changeset import Changeset, Current, FileChange, HunkConflict
from codeagent_lsp.workspace.edits.patch import apply_patch

Files = dict[str, str]


def applied(files: Files, changeset: Changeset) -> Files:
    """The files after the changes; a change that does not fit what is there is an error of the test."""
    result = dict(files)
    for change in changeset:
        source = change.moved_from or change.path
        assert result.pop(source, None) == change.base, f"{change.path} is not made on what is there"
        if change.moved_from is not None:
            assert change.path not in result
        if change.text is not None:
            result[change.path] = change.text
    return result


def same_effect(one: Changeset, other: Changeset) -> bool:
    return [replace(change, version=None) for change in one] == [replace(change, version=None) for change in other]


BODY = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "d\x0c\u2028\n", "e\n"]), max_size=30).map("".join)


@st.composite
def staged(draw: st.DrawFn) -> tuple[Files, Changeset]:
    """Files and a changeset over them with edits, creations, deletions and moves."""
    files: Files = {}
    changes: list[FileChange] = []
    for number in range(draw(st.integers(1, 5))):
        path, base, text = f"/w/{number}", draw(BODY), draw(BODY)
        version = draw(st.sampled_from([None, 0, 3]))
        kind = draw(st.sampled_from(["edit", "create", "delete", "move"]))
        if kind != "create":
            files[path] = base
        made = {
            "edit": FileChange(path, base, text, version),
            "create": FileChange(path, None, text),
            "delete": FileChange(path, base, None, version),
            "move": FileChange(f"{path}-moved", base, text, version, path),
        }[kind]
        changes.append(made)
    return files, Changeset(tuple(change for change in changes if not change.empty))


# --- one file


@pytest.mark.parametrize(
    ("change", "kind", "empty"),
    [
        (FileChange("/w/a", "x", "y"), "edit", False),
        (FileChange("/w/a", "x", "x"), "edit", True),
        (FileChange("/w/a", None, "y"), "create", False),
        (FileChange("/w/a", None, ""), "create", False),
        (FileChange("/w/a", "x", None), "delete", False),
        (FileChange("/w/a", "", None), "delete", False),
        (FileChange("/w/a", None, None), "create", True),
        (FileChange("/w/b", "x", "x", None, "/w/a"), "move", False),
    ],
)
def test_what_a_change_does(change: FileChange, kind: str, empty: bool) -> None:
    assert (change.kind, change.empty) == (kind, empty)


def test_counts() -> None:
    change = FileChange("/w/a", "1\n2\n3\n", "1\ntwo\nzwei\n3\n", 0)
    assert change.counts() == (2, 1)
    assert FileChange("/w/a", None, "x\ny\n").counts() == (2, 0)
    assert Changeset((change, FileChange("/w/b", "x\n", None))).counts() == (2, 2)


def test_diffs_name_creations_deletions_and_moves() -> None:
    name = str.lower
    assert FileChange("A", None, "").diff(name) == "--- /dev/null\n+++ b/a\n"
    assert FileChange("A", "x\n", None).diff(name) == "--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    assert FileChange("A", "x\n", "x\n").diff(name) == ""
    (known,) = FileChange("A", "x\n", "y\n").hunk_ids()
    assert FileChange("A", "x\n", "y\n").diff(name) == f"--- a/a\n+++ b/a\n@@ -1 +1 @@ a#{known}\n-x\n+y\n"
    moved = FileChange("B", "x\n", "x\n", None, "A").diff(name)
    assert moved == "diff --git a/a b/b\nrename from a\nrename to b\n"


def test_the_diff_of_a_changeset_applies_as_a_patch() -> None:
    files = {"edit": "1\n2\n3\n", "gone": "x\ny\n", "old": "a\nb\nc\n", "stays": "s\n"}
    changeset = Changeset(
        (
            FileChange("edit", files["edit"], "1\ntwo\n3"),
            FileChange("gone", files["gone"], None),
            FileChange("made", None, "m\n"),
            FileChange("new", files["old"], "a\nB\nc\n", None, "old"),
        )
    )
    patched = apply_patch(files, changeset.diff())
    assert {path: text for path, text in patched.items() if text is not None} == applied(files, changeset)


@given(staged())
def test_plain_data_gives_the_same_value_back(given_: tuple[Files, Changeset]) -> None:
    for change in given_[1]:
        assert FileChange.from_dict(json.loads(json.dumps(change.to_dict()))) == change


# --- the whole


def test_one_change_per_path_in_the_order_of_the_first() -> None:
    one, two = FileChange("/w/a", "x", "y"), FileChange("/w/b", None, "z")
    changeset = Changeset().with_change(one).with_change(two).with_change(replace(one, text="w"))
    assert changeset.paths == ("/w/a", "/w/b")
    assert changeset.get("/w/a") == replace(one, text="w")
    assert changeset.get("/w/c") is None
    assert changeset.with_change(replace(one, text="x")).paths == ("/w/b",)
    assert changeset.with_change(FileChange("/w/c", "same", "same")) is changeset
    assert list(changeset.without(["/w/a"])) == [two]
    assert changeset and not changeset.without(changeset.paths)


@given(staged(), st.data())
def test_a_part_and_then_the_rest_is_the_whole(given_: tuple[Files, Changeset], data: st.DataObject) -> None:
    files, changeset = given_
    whole: set[str] = set()
    hunks: dict[str, frozenset[int]] = {}
    for change in changeset:
        how = data.draw(st.sampled_from(["whole", "hunks", "neither"]))
        if how == "whole":
            whole.add(change.path)
        elif how == "hunks":
            hunks[change.path] = data.draw(st.frozensets(st.integers(0, 4)))
    taken, rest = changeset.split(whole, hunks)
    assert applied(applied(files, taken), rest) == applied(files, changeset)
    assert whole <= set(taken.paths)
    assert not whole & set(rest.paths)


@given(staged())
def test_choosing_all_none_or_unknown_hunks(given_: tuple[Files, Changeset]) -> None:
    _, changeset = given_
    assert changeset.split(None) == (changeset, Changeset())
    for nothing in (
        changeset.split(()),
        changeset.split(None, {}),
        changeset.split(["/elsewhere"], {"/elsewhere": frozenset({0})}),
        changeset.split(None, {path: frozenset() for path in changeset.paths}),
        changeset.split(None, {path: frozenset({77}) for path in changeset.paths}),
    ):
        assert nothing == (Changeset(), changeset)
    every = {change.path: frozenset(range(max(1, len(change.hunks())))) for change in changeset}
    taken, rest = changeset.split(None, every)
    assert (taken, rest) == (changeset, Changeset())


def test_a_hunk_of_a_move_takes_the_move_along_and_leaves_the_rest_at_the_new_place() -> None:
    base = "".join(f"{number}\n" for number in range(20))
    text = base.replace("1\n", "one\n", 1).replace("\n18\n", "\neighteen\n")
    changeset = Changeset((FileChange("/w/new", base, text, 4, "/w/old"),))
    taken, rest = changeset.split(None, {"/w/new": frozenset({1})})
    part = base.replace("\n18\n", "\neighteen\n")
    assert taken.files == (FileChange("/w/new", base, part, 4, "/w/old"),)
    assert rest.files == (FileChange("/w/new", part, text),)


@given(staged())
def test_the_inverse_undoes_exactly(given_: tuple[Files, Changeset]) -> None:
    files, changeset = given_
    after = applied(files, changeset)
    assert applied(after, changeset.inverse()) == files
    assert same_effect(changeset.inverse().inverse(), changeset)


def test_the_inverse_begins_with_the_last_change() -> None:
    changeset = Changeset((FileChange("/w/b", "x", "x", 1, "/w/a"), FileChange("/w/a", None, "new")))
    assert changeset.inverse().files == (FileChange("/w/a", "new", None), FileChange("/w/a", "x", "x", None, "/w/b"))


# --- rebasing


def current(files: Files, version: int | None = None) -> dict[str, Current]:
    return {path: Current(text, version) for path, text in files.items()}


@given(staged())
def test_rebasing_on_what_has_not_moved_only_takes_the_versions(given_: tuple[Files, Changeset]) -> None:
    files, changeset = given_
    rebased = changeset.rebase(current(files, 9))
    assert rebased.conflicts == ()
    assert same_effect(rebased.changeset, changeset)
    assert all(change.version == (None if change.kind == "create" else 9) for change in rebased.changeset)


@given(staged())
def test_rebasing_on_what_is_applied_already_leaves_nothing(given_: tuple[Files, Changeset]) -> None:
    files, changeset = given_
    changeset = Changeset(tuple(change for change in changeset if change.kind != "move"))
    rebased = changeset.rebase(current(applied({p: t for p, t in files.items() if p in changeset.paths}, changeset)))
    assert rebased.changeset == Changeset()
    assert rebased.conflicts == ()


@given(staged(), st.data())
def test_rebasing_never_loses_what_the_user_typed(given_: tuple[Files, Changeset], data: st.DataObject) -> None:
    files, changeset = given_
    typed = {path: f"typed by the user\n{text}" for path, text in files.items() if data.draw(st.booleans())}
    now = files | typed
    rebased = changeset.rebase(current(now))
    after = applied(now, rebased.changeset)
    for path in typed:
        moved = next((change.path for change in rebased.changeset if change.moved_from == path), path)
        conflicts = [item for item in rebased.conflicts if item.path in (path, f"{path}-moved")]
        assert "typed by the user\n" in after[moved]
        assert conflicts or after[moved].startswith("typed by the user\n")


def test_a_change_elsewhere_is_merged_and_the_base_moves() -> None:
    changeset = Changeset((FileChange("/w/a", "1\n2\n3\n", "1\n2\nthree\n", 4),))
    rebased = changeset.rebase({"/w/a": Current("zero\n1\n2\n3\n", 7)})
    assert rebased.conflicts == ()
    assert rebased.changeset.files == (FileChange("/w/a", "zero\n1\n2\n3\n", "zero\n1\n2\nthree\n", 7),)


def test_a_conflict_is_told_and_only_that_part_left_out() -> None:
    base = "1\n2\n3\n4\n5\n6\n7\n"
    changeset = Changeset((FileChange("/w/a", base, "1\nours\n3\n4\n5\n6\nseven\n"),))
    rebased = changeset.rebase({"/w/a": Current("1\ntheirs\n3\n4\n5\n6\n7\n")})
    assert rebased.conflicts == (HunkConflict("/w/a", 2, "ours\n", "theirs\n"),)
    assert [change.text for change in rebased.changeset] == ["1\ntheirs\n3\n4\n5\n6\nseven\n"]


@pytest.mark.parametrize(
    ("change", "now"),
    [
        (FileChange("/w/a", None, "ours\n"), "the user made it\n"),
        (FileChange("/w/a", "base\n", None), "typed\n"),
        (FileChange("/w/a", "base\n", "ours\n"), None),
        (FileChange("/w/b", "base\n", "base\n", None, "/w/a"), None),
    ],
)
def test_what_cannot_be_merged_is_a_conflict_and_left_out(change: FileChange, now: str | None) -> None:
    rebased = Changeset((change,)).rebase({"/w/a": Current(now)})
    assert rebased.changeset == Changeset()
    assert rebased.conflicts == (HunkConflict(change.path, 1, change.text or "", now or ""),)


def test_a_file_that_is_not_told_of_is_absent() -> None:
    changeset = Changeset((FileChange("/w/new", None, "x"), FileChange("/w/a", "x", "y")))
    rebased = changeset.rebase({})
    assert rebased.changeset.paths == ("/w/new",)
    assert [conflict.path for conflict in rebased.conflicts] == ["/w/a"]


def test_a_move_is_rebased_on_the_text_at_its_old_place() -> None:
    changeset = Changeset((FileChange("/w/new", "a\nb\nc\n", "a\nb\nC\n", 1, "/w/old"),))
    rebased = changeset.rebase({"/w/old": Current("A\na\nb\nc\n", 2), "/w/new": Current(None)})
    assert rebased.changeset.files == (FileChange("/w/new", "A\na\nb\nc\n", "A\na\nb\nC\n", 2, "/w/old"),)
