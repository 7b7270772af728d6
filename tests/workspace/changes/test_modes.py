"""Whether a file can be executed, as a part of a change, and as patches say it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.errors import PatchRefused
from codeagent_lsp.workspace.changes.changeset import Changeset, Current, FileChange
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.edits.patch import apply_patch, modes_of
from codeagent_lsp.workspace.files.file_view import FileText

TEXTS = st.sampled_from(["", "a\n", "a\nb\n", "x\n"])
BITS = st.sampled_from([None, True, False])


@given(TEXTS, TEXTS, BITS, BITS)
def test_a_mode_is_stored_taken_back_and_kept_while_the_user_types(
    base: str, text: str, runs: bool | None, ran: bool | None
) -> None:
    change = FileChange("/w/a.sh", base, text, 3, None, runs, ran)
    assert FileChange.from_dict(change.to_dict()) == change
    back = Changeset((change,)).inverse().files[0]
    assert (back.runs, back.ran, back.base, back.text) == (ran, runs, text, base)
    assert change.empty is (base == text and runs is None)
    rebased = Changeset((change,)).rebase({"/w/a.sh": Current(f"typed\n{base}", 4)})
    assert [each.runs for each in rebased.changeset] in ([runs], []) and (not rebased.changeset) <= (
        change.empty or bool(rebased.conflicts)
    )
    if change.only_mode:
        assert not change.hunks() and "new mode 100" in change.diff(str)


@pytest.mark.parametrize(
    ("head", "modes"),
    [
        ("old mode 100644\nnew mode 100755\n", {"a.sh": True}),
        ("old mode 100755\nnew mode 100644\n", {"a.sh": False}),
        ("old mode 100644\nnew mode 100755\nindex 123..456\n", {"a.sh": True}),
        ("index 123..456 100755\n", {}),
        ("new mode 040000\n", {}),
        ("new mode nonsense\n", {}),
    ],
)
@pytest.mark.parametrize("hunk", ["", "--- a/a.sh\n+++ b/a.sh\n@@ -1 +1 @@\n-a\n+b\n"])
def test_modes_of_a_patch(head: str, modes: dict[str, bool], hunk: str) -> None:
    patch = f"diff --git a/a.sh b/a.sh\n{head}{hunk}"
    assert modes_of(patch) == modes
    if hunk or modes:
        assert apply_patch({"a.sh": "a\n"}, patch) == {"a.sh": "b\n" if hunk else "a\n"}
    else:
        with pytest.raises(PatchRefused, match="no hunk"):
            apply_patch({"a.sh": "a\n"}, patch)


@pytest.mark.parametrize(("mode", "modes"), [("100755", {"n.sh": True}), ("100644", {}), ("100664", {})])
def test_the_mode_of_a_new_file(mode: str, modes: dict[str, bool]) -> None:
    patch = f"diff --git a/n.sh b/n.sh\nnew file mode {mode}\n--- /dev/null\n+++ b/n.sh\n@@ -0,0 +1 @@\n+true\n"
    assert modes_of(patch) == modes
    assert apply_patch({"n.sh": None}, patch) == {"n.sh": "true\n"}


def test_a_renamed_file_has_its_mode_at_its_new_path() -> None:
    patch = "diff --git a/a b/b\nold mode 100644\nnew mode 100755\nsimilarity index 100%\nrename from a\nrename to b\n"
    assert modes_of(patch) == {"b": True}


@given(st.booleans(), st.lists(st.sampled_from(["write", "move", "mode"]), min_size=1, max_size=6))
def test_a_staged_mode_stays_whatever_is_done_with_the_file_then(is_new: bool, steps: list[str]) -> None:
    """A file that was made in the same run has no base, and its mode is staged all the same."""
    users = {} if is_new else {"/w/0.sh": "a\n"}
    staging = Staging(lambda path: FileText(path, users[path], "buffer", 1) if path in users else None)
    if is_new:
        staging.write({"/w/0.sh": "a\n"})
    path, text = "/w/0.sh", "a\n"
    for number, step in enumerate(steps, 1):
        change = staging.changeset.get(path)
        read = FileText(path, text, "buffer" if change is None else "staged", None)
        if step == "write":
            text = f"{text}{number}\n"
            staging.write({path: text}, [read])
        elif step == "move":
            path = f"/w/{number}.sh"
            staging.move(path, read)
        else:
            staging.stage({}, {}, [read], {path: True})
    (change,) = staging.changeset or (FileChange(path, text, text),)
    assert (change.path, change.text) == (path, text)
    assert change.runs is (True if "mode" in steps else None)
    back = Changeset((change,)).inverse().files[0]
    assert back.runs is (False if "mode" in steps and not is_new else None)
