"""What stays staged after a decision, for all that can happen to a file while it is carried out."""

from __future__ import annotations

import pytest

from codeagent_lsp.workspace.changes.changeset import Applied, Changeset, FileChange, HunkConflict
from codeagent_lsp.workspace.changes.reviewed import after_applying

EDIT = FileChange("a", "1\n", "2\n")
MOVE = FileChange("b", "1\n", "2\n", None, "a")
CREATE = FileChange("a", None, "2\n")
DELETE = FileChange("a", "1\n", None)
OTHER = FileChange("c", "x\n", "y\n")


@pytest.mark.parametrize(
    ("accepted", "present", "left"),
    [
        (EDIT, [EDIT], []),
        (EDIT, [EDIT, OTHER], [OTHER]),
        (EDIT, [], []),  # discarded meanwhile
        (EDIT, [FileChange("a", "1\n", "3\n")], [FileChange("a", "2\n", "3\n")]),
        (EDIT, [DELETE], [FileChange("a", "2\n", None)]),
        (EDIT, [FileChange("b", "1\n", "3\n", None, "a")], [FileChange("b", "2\n", "3\n", None, "a")]),
        (MOVE, [MOVE], []),
        (MOVE, [FileChange("b", "1\n", "3\n", None, "a")], [FileChange("b", "2\n", "3\n")]),
        (MOVE, [FileChange("d", "1\n", "2\n", None, "a")], [FileChange("d", "2\n", "2\n", None, "b")]),
        (CREATE, [FileChange("a", None, "3\n")], [FileChange("a", "2\n", "3\n")]),
        (DELETE, [FileChange("a", "1\n", "3\n")], [FileChange("a", None, "3\n")]),
    ],
)
def test_what_was_applied_is_the_base_of_what_is_left(
    accepted: FileChange, present: list[FileChange], left: list[FileChange]
) -> None:
    applied = Applied("full", Changeset((accepted,)))
    assert after_applying(Changeset(tuple(present)), Changeset((accepted,)), applied).files == tuple(left)


def test_what_did_not_arrive_stays_whole() -> None:
    conflict = Applied("none", left=Changeset((EDIT,)), conflicts=(HunkConflict("a", 1, "2\n", "mine\n"),))
    more = FileChange("a", "1\n", "3\n")
    assert after_applying(Changeset((EDIT,)), Changeset((EDIT,)), conflict).files == (EDIT,)
    assert after_applying(Changeset((more,)), Changeset((EDIT,)), conflict).files == (more,)
    assert after_applying(Changeset(), Changeset((EDIT,)), conflict).files == ()


def test_the_rest_of_a_move_stays_where_the_client_has_made_only_the_new_file() -> None:
    deletion = FileChange("a", "1\n", None)
    applied = Applied("partial", Changeset((FileChange("b", None, "2\n"),)), Changeset((deletion,)))
    assert after_applying(Changeset((MOVE,)), Changeset((MOVE,)), applied).files == (deletion,)
