"""Where hunks and files stand: in diffs as they are shown, and in code that the user goes on changing."""

from __future__ import annotations

from itertools import pairwise

import pytest

from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.changes.reviewed import HunkPlace, places_in_code, places_in_diff

LINES = "".join(f"line {number}\n" for number in range(1, 31))
NEW = LINES.replace("line 2\n", "LINE 2\n").replace("line 20\n", "").replace("line 29\n", "line 29\nmore\n")


def test_every_hunk_and_file_of_a_diff_is_found_whatever_its_lines_look_like() -> None:
    lookalikes = "-- a/x\n++ b/y\n@@ -1 +1 @@ a.py#00000000\n-- /dev/null\n"
    changes = Changeset(
        (
            FileChange("/w/a.py", LINES, NEW),
            FileChange("/w/new.py", None, "x = 1\ny = 2"),
            FileChange("/w/old.py", f"{lookalikes}kept\n", None),
            FileChange("/w/sql.py", f"{lookalikes}kept\n", f"{lookalikes.replace('a/x', 'a/z')}kept"),
            FileChange("/w/b.py", LINES, NEW, None, "/w/was.py"),
            FileChange("/w/d.py", "same\n", "same\n", None, "/w/c.py"),
        )
    )
    text = "# said before\n\n" + changes.diff(lambda path: path.removeprefix("/w/"))
    lines = text.splitlines()
    files = places_in_diff(lines)
    assert [file.name for file in files] == ["a.py", "new.py", "old.py", "sql.py", "b.py", "d.py"]
    assert [len(file.hunks) for file in files] == [3, 1, 1, 2, 3, 0]
    ids = [hunk.hunk for file in files for hunk in file.hunks]
    named = [f"{change.path[3:]}#{each}" for change in changes for each in change.hunk_ids()]
    assert [each for each in ids if each] == named
    for file in files:
        assert lines[file.first].startswith(("--- ", "diff --git "))
        for hunk in file.hunks:
            assert lines[hunk.first].startswith("@@ ")
            assert file.first < hunk.first < hunk.last <= file.last
    assert files[-1].last == len(lines) - 1
    assert all(one.last + 1 == two.first for one, two in pairwise(files))


@pytest.mark.parametrize(
    ("now", "places"),
    [
        (LINES, [(1, 1), (19, 19), (29, 29)]),
        ("# above\n" + LINES, [(2, 2), (20, 20), (30, 30)]),
        (LINES.replace("line 10\n", ""), [(1, 1), (18, 18), (28, 28)]),
        (LINES.replace("line 2\n", "mine\nand mine\n"), [(1, 1), (20, 20), (30, 30)]),
        ("", [(0, 0)] * 3),
    ],
)
def test_hunks_are_where_the_user_has_moved_their_lines(now: str, places: list[tuple[int, int]]) -> None:
    change = FileChange("/w/a.py", LINES, NEW)
    expected = [HunkPlace(each, *lines) for each, lines in zip(change.hunk_ids(), places, strict=True)]
    assert list(places_in_code(change, now)) == expected
