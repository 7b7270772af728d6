"""What the user saw in a review is found among what is staged now, or refused."""

from __future__ import annotations

import random

import pytest

from codeagent_lsp.workspace.changes.changeset import Changeset, FileChange
from codeagent_lsp.workspace.changes.reviewed import after_discarding, numbers_now, review_digest

PATH = "/w/a.py"


def changed(*numbers: int, lines: int = 60, to: str = "new {}\n") -> Changeset:
    base = "".join(f"line {number}\n" for number in range(lines))
    text = "".join(to.format(n) if n in numbers else f"line {n}\n" for n in range(lines))
    return Changeset((FileChange(PATH, base, text),))


def test_the_same_changes_have_the_same_numbers() -> None:
    seen = changed(3, 20, 40)
    assert numbers_now(seen, seen, None, {PATH: frozenset({2})}) == {PATH: frozenset({2})}
    assert numbers_now(seen, seen, None, None) is None
    assert review_digest(seen) == review_digest(changed(3, 20, 40)) != review_digest(changed(3, 20))


def test_a_hunk_is_found_again_after_another_was_decided() -> None:
    seen = changed(3, 20, 40)
    _, applied = seen.split(None, {PATH: frozenset({0})})
    discarded = after_discarding(seen, None, {PATH: frozenset({0})})
    for present in (applied, discarded):
        assert numbers_now(seen, present, None, {PATH: frozenset({1, 2})}) == {PATH: frozenset({0, 1})}
        with pytest.raises(LookupError):
            numbers_now(seen, present, None, {PATH: frozenset({0})})


def test_a_file_with_more_in_it_than_was_seen_is_refused() -> None:
    seen, present = changed(3, 20), changed(3, 20, 40)
    assert numbers_now(seen, present, None, {PATH: frozenset({1})}) == {PATH: frozenset({1})}
    for files in (frozenset({PATH}), None):
        with pytest.raises(LookupError):
            numbers_now(seen, present, files, None)
    with pytest.raises(LookupError):
        numbers_now(Changeset(), present, None, None)


def test_what_the_user_typed_elsewhere_makes_no_other_change() -> None:
    seen, change = changed(3, 20), changed(3, 20).files[0]
    typed = FileChange(PATH, f"typed\n{change.base}", f"typed\n{change.text}", version=7)
    present = Changeset((typed,))
    assert numbers_now(seen, present, frozenset({PATH}), None) is None
    assert numbers_now(seen, present, None, {PATH: frozenset({1})}) == {PATH: frozenset({1})}


def test_equal_hunks_of_which_one_is_gone_are_not_guessed() -> None:
    base = "".join("same\n" if n in (3, 20, 40) else f"line {n}\n" for n in range(60))
    seen = Changeset((FileChange(PATH, base, base.replace("same", "other")),))
    _, present = seen.split(None, {PATH: frozenset({1})})
    with pytest.raises(LookupError):
        numbers_now(seen, present, None, {PATH: frozenset({2})})


@pytest.mark.parametrize("kind", ["create", "delete"])
def test_files_that_come_or_go_are_decided_whole(kind: str) -> None:
    change = FileChange(PATH, None, "a\n") if kind == "create" else FileChange(PATH, "a\n", None)
    seen, edited = Changeset((change,)), Changeset((FileChange(PATH, "a\n", "b\n"),))
    assert numbers_now(seen, seen, None, {PATH: frozenset({0})}) == {PATH: frozenset({0})}
    with pytest.raises(LookupError):
        numbers_now(seen, edited, None, {PATH: frozenset({0})})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_never_another_hunk(seed: int) -> None:
    """Whatever was decided before, a number stands for the lines that it stood for, or for none."""
    draw = random.Random(seed)
    seen = present = changed(*sorted(draw.sample(range(100), draw.randint(1, 8))), lines=100)
    lines = _hunk_lines(seen)
    for _ in range(draw.randint(1, 3)):
        count = len(present.files[0].hunks()) if present else 0
        if not count:
            break
        chosen = {PATH: frozenset({draw.randrange(count)})}
        present = draw.choice([present.split(None, chosen)[1], after_discarding(present, None, chosen)])
    for number, text in enumerate(lines):
        try:
            found = numbers_now(seen, present, None, {PATH: frozenset({number})})
        except LookupError:
            assert text not in _hunk_lines(present)
            continue
        assert found is not None
        assert [_hunk_lines(present)[place] for place in found[PATH]] == [text]


def _hunk_lines(changeset: Changeset) -> list[str]:
    if not changeset:
        return []
    change = changeset.files[0]
    new = (change.text or "").splitlines()
    return ["\n".join(new[hunk.new_start : hunk.new_end]) for hunk in change.hunks()]
