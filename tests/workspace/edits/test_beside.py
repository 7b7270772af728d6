"""Changes of neighbouring lines are merged: as git would, or better, and never with a typed line lost."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from codeagent_lsp.workspace.edits import merge
from codeagent_lsp.workspace.text.position import split_lines
from tests.examples import examples, volume

CASES = 3000
GIT_CASES = volume(1500)


class Neighbours(NamedTuple):
    """Two sides that change different lines of a base, and the text that has both changes."""

    base: str
    ours: str
    theirs: str
    both: str


def neighbours(chance: random.Random) -> Neighbours:
    """Each line is left alone, changed or deleted by one side; at each place between two at most one side types."""
    texts: dict[str, list[str]] = {"base": [], "ours": [], "theirs": [], "both": []}

    def put(line: str, *names: str) -> None:
        for name in names:
            texts[name].append(line)

    for number in range(chance.randrange(2, 14)):
        typed = chance.choice(["", "", "", "ours", "theirs"])
        if typed:
            put(f"# {typed} above {number}\n", typed, "both")
        side = chance.choice(["", "", "ours", "theirs"])
        line = f"line {number}\n"
        if not side:
            put(line, *texts)
            continue
        put(line, "base", "theirs" if side == "ours" else "ours")
        for part in range(chance.choice([0, 1, 1, 2])):
            put(f"{side} {number}.{part}\n", side, "both")
    return Neighbours(*("".join(texts[name]) for name in ("base", "ours", "theirs", "both")))


def test_changes_of_different_lines_are_all_made() -> None:
    chance = random.Random(7)
    for _ in range(examples(CASES)):
        case = neighbours(chance)
        found = merge.merge(case.base, case.ours, case.theirs, beside=True)
        # where a side deletes or rewrites the lines between two insertions, these come to stand at one place
        if found.conflicts:
            assert _one_place(case), case
            continue
        assert Counter(split_lines(found.text)) == Counter(split_lines(case.both)), case
        if not _one_place(case):
            assert found.text == case.both, case


def test_what_is_merged_is_merged_again_without_a_change() -> None:
    """A change that was made and is sent again, as after a refused request, finds itself there."""
    chance = random.Random(8)
    for _ in range(examples(CASES)):
        case = neighbours(chance)
        once = merge.merge(case.base, case.ours, case.theirs, beside=True)
        if not once.conflicts and not _one_place(case):
            assert merge.merge(case.base, case.ours, once.text, beside=True) == once, case


def _one_place(case: Neighbours) -> bool:
    """Return whether both sides put lines right beside each other's: there the order of the two is open."""
    names = ["ours" if "ours" in line else "theirs" if "theirs" in line else "" for line in split_lines(case.both)]
    return any({one, other} == {"ours", "theirs"} for one, other in pairwise(names)) or _gone(case)


def _gone(case: Neighbours) -> bool:
    """Return whether a line is deleted: what both sides put on its two sides would stand at one place."""
    kept = set(split_lines(case.both))
    return any(
        line not in kept and not any(f" {line.split()[1]}." in each for each in kept) for line in split_lines(case.base)
    )


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        # the report: a comment typed above the line that a waiting hunk is about
        ("a\nold\nc\n", "a\nnew\nc\n", "a\n# typed\nold\nc\n", "a\n# typed\nnew\nc\n"),
        ("a\nold\nc\n", "a\nnew\nc\n", "a\nold\n# typed\nc\n", "a\nnew\n# typed\nc\n"),
        ("a\nold\nc\n", "a\nnew\nc\n", "A\nold\nC\n", "A\nnew\nC\n"),
        ("a\nold\nc\n", "a\nc\n", "a\n# typed\nold\nc\n", "a\n# typed\nc\n"),
        ("a\nold\nc\n", "a\nc\n", "a\nold\n# typed\nc\n", "a\n# typed\nc\n"),
        ("a\nc\n", "a\nnew\nc\n", "a typed\nc typed\n", "a typed\nnew\nc typed\n"),
        # a part conflicts, and what stands beside it does not
        ("1\n2\n3\n4\n", "one\n2\n3!\n4\n", "eins\nzwei\n3\n4\n", None),
        # made already, and typed beside since
        ("a\nold\nc\n", "a\nnew\nc\n", "A\nnew\nc\n", "A\nnew\nc\n"),
        ("a\nc\n", "a\nnew\nc\n", "a\nnew\n# typed\nc\n", "a\nnew\n# typed\nc\n"),
        ("a\nold\nc\n", "a\nnew\nmore\nc\n", "a\nnew\nc\n", "a\nnew\nmore\nc\n"),
        # the same place, in an order that nobody knows
        ("a\nc\n", "a\nours\nc\n", "a\ntheirs\nc\n", None),
        # what only looks alike is not the same change
        ("a\nold\nc\n", "a\n\nc\n", "a\nmine\n\nc\n", None),
    ],
)
def test_what_stands_beside_and_what_does_not(base: str, ours: str, theirs: str, merged: str | None) -> None:
    found = merge.merge(base, ours, theirs, beside=True)
    assert bool(found.conflicts) is (merged is None)
    assert found.text == (merged if merged is not None else found.text)


def test_a_conflict_is_as_small_as_its_lines_and_the_rest_is_merged() -> None:
    found = merge.merge("1\n2\n3\n4\n", "one\n2\n3\nfour\n", "1!\n2!\n3!\n4\n", beside=True)
    assert found.text == "1!\n2!\n3!\nfour\n"
    assert found.conflicts == (merge.Conflict(0, "one\n", "1!\n"),)
    assert found.conflicts[0].base == "1\n"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_what_git_merges_is_merged_to_the_same_text(tmp_path: Path) -> None:
    chance = random.Random(9)
    better = 0
    for number in range(GIT_CASES):
        case = neighbours(chance) if number % 2 else _scrambled(chance)
        text, conflicts = _by_git(tmp_path, case)
        found = merge.merge(case.base, case.ours, case.theirs, beside=True)
        if not conflicts:
            assert not found.conflicts, case
            assert found.text == text, case
        better += conflicts and not found.conflicts
        typed = Counter(split_lines(case.theirs)) - Counter(split_lines(case.base))
        assert typed <= Counter(split_lines(found.text)), case
    print(f"{GIT_CASES} cases, {better} of them merged here and a conflict for git")
    assert better > GIT_CASES / 10


def _scrambled(chance: random.Random) -> Neighbours:
    """Two sides that change whatever they like; lines are told apart, so that there is one way to align them."""
    base = [f"line {number}\n" for number in range(chance.randrange(3, 20))]

    def changed(side: str) -> str:
        lines: list[str] = []
        for number, line in enumerate(base):
            lines += [f"# {side} {number}\n"] if chance.random() < 0.1 else []
            lines += [line] if chance.random() < 0.8 else [f"{side} {number}\n"] * chance.randrange(2)
        return "".join(lines)

    return Neighbours("".join(base), changed("ours"), changed("theirs"), "")


def _by_git(folder: Path, case: Neighbours) -> tuple[str, bool]:
    """Return what `git merge-file` makes of it, and whether it sees a conflict."""
    for name in ("base", "ours", "theirs"):
        (folder / name).write_text(getattr(case, name))
    names = [str(folder / name) for name in ("theirs", "base", "ours")]
    done = subprocess.run(["git", "merge-file", "-p", *names], capture_output=True, text=True, check=False)
    assert done.returncode >= 0, done.stderr
    return done.stdout, done.returncode > 0
