"""The id of a hunk means the same hunk, or none, whatever was decided about others."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange, hunk_ids
from codeagent_lsp.workspace.changes.reviewed import after_discarding, numbers_now
from codeagent_lsp.workspace.edits import merge

LINES = st.lists(st.sampled_from(["", "x", "y", "return", "  pass"]), min_size=0, max_size=40)


@given(LINES, LINES, st.data())
def test_an_id_never_means_a_hunk_of_other_text(before: list[str], after: list[str], data: st.DataObject) -> None:
    base, text = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    ids = hunk_ids(base, text)
    assert len({*ids}) == len(ids)
    assert not any(each.isdecimal() for each in ids)
    decided = frozenset(data.draw(st.sets(st.sampled_from(range(len(ids)))))) if ids else frozenset[int]()
    change = FileChange("/a", base, text)
    applied = FileChange("/a", merge.select_hunks(base, text, decided), text)
    discarded = after_discarding(Changeset((change,)), None, {"/a": decided}).get("/a") if decided else change
    for left in (applied, discarded):
        now = {} if left is None else dict(zip(left.hunk_ids(), contents(left), strict=True))
        shown = dict(zip(ids, contents(change), strict=True))
        assert all(shown[each] == content for each, content in now.items() if each in shown)
        assert not {ids[number] for number in decided} & now.keys() or len({*map(str, shown.values())}) < len(ids)


@pytest.mark.slow
def test_ids_of_text_as_it_is_written_outlast_all_decisions() -> None:
    """60 changes of a text with repeated lines, each decided about in parts, in any order."""
    chance = random.Random(5)
    for _ in range(60):
        before = [f"    value_{number} = {number}\n" if number % 3 else "\n" for number in range(120)]
        after = list(before)
        for place in sorted(chance.sample(range(5, 110, 9), 5), reverse=True):
            end = place + chance.randint(0, 2)
            after[place:end] = [f"    new_{place}()\n", "\n", "    pass\n"][: chance.randint(end == place, 3)]
        present = Changeset((FileChange("/a", "".join(before), "".join(after)),))
        ids = present.files[0].hunk_ids()
        for each in chance.sample(ids, len(ids)):
            numbers = numbers_now(None, present, None, {"/a": frozenset({each})})
            assert numbers is not None
            if chance.random() < 0.5:
                present = present.split(None, numbers)[1]
            else:
                present = after_discarding(present, None, numbers)
        assert not present


@pytest.mark.parametrize("between", [1, 2, 3])
def test_changes_next_to_each_other_are_decided_each_by_itself(between: int) -> None:
    lines = [f"line {number}\n" for number in range(30)]
    places = range(4, 24, between + 1)
    text = "".join(f"new {line}" if number in places else line for number, line in enumerate(lines))
    present = Changeset((FileChange("/a", "".join(lines), text),))
    ids = present.files[0].hunk_ids()
    assert len(ids) == len(places)
    for number, each in enumerate(ids):
        numbers = numbers_now(None, present, None, {"/a": frozenset({each})})
        assert numbers is not None
        if number % 2:
            present = after_discarding(present, None, numbers)
        else:
            accepted, present = present.split(None, numbers)
            assert accepted.files[0].hunk_ids() == (each,)
    assert not present


def contents(change: FileChange) -> list[object]:
    old, new = (text.splitlines() for text in (change.base or "", change.text or ""))
    return [(old[run.old_start : run.old_end], new[run.new_start : run.new_end]) for run in change.hunks()]
