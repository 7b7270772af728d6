"""Three-way merge, hunks and unified diffs, on every kind of line end."""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.workspace.changes.changeset import hunk_ids
from codeagent_lsp.workspace.edits import line_matching, merge
from codeagent_lsp.workspace.edits.line_matching import LineMatcher
from codeagent_lsp.workspace.edits.patch import apply_patch
from codeagent_lsp.workspace.text.position import split_lines

WORDS = st.sampled_from(
    ["a", "b", "c", "", "  x", "- dash", "+ plus", "\\ no", "@@ -1 +1 @@", "f\x0cf", "u\u2028u", "é\U0001f600"]
)
ENDS = st.sampled_from(["\n", "\n", "\r\n", "\r"])


@st.composite
def texts(draw: st.DrawFn, ends: st.SearchStrategy[str] = ENDS) -> str:
    lines = draw(st.lists(st.tuples(WORDS, ends), max_size=12))
    last = draw(st.sampled_from(["", "", "end", "a"]))
    return "".join(word + end for word, end in lines) + last


LF_TEXTS = texts(st.just("\n"))


def longest_common(before: list[str], after: list[str]) -> int:
    row = [0] * (len(after) + 1)
    for line in before:
        previous = row
        row = [0]
        for j, other in enumerate(after):
            row.append(previous[j] + 1 if line == other else max(previous[j + 1], row[j]))
    return row[-1]


# --- merging


@given(texts(), texts())
def test_one_side_without_changes_gives_the_other(base: str, other: str) -> None:
    assert merge.merge(base, other, base) == merge.Merged(other, ())
    assert merge.merge(base, base, other) == merge.Merged(other, ())
    assert merge.merge(base, other, other) == merge.Merged(other, ())


@given(texts(), texts(), texts())
def test_beside_differs_only_where_there_would_be_a_conflict_and_loses_nothing(
    base: str, ours: str, theirs: str
) -> None:
    plain, beside = (merge.merge(base, ours, theirs, beside=allowed) for allowed in (False, True))
    assert len(beside.conflicts) <= len(plain.conflicts)
    if not plain.conflicts:
        assert beside == plain
    typed = Counter(split_lines(theirs)) - Counter(split_lines(base))
    assert typed <= Counter(split_lines(beside.text))


@given(st.lists(st.tuples(st.sampled_from(["ours", "theirs", ""]), st.sampled_from(["", "X{}\n", "X{}\nY{}\n"]))))
def test_lines_that_one_side_changes_are_no_conflict_beside_the_others(chosen: list[tuple[str, str]]) -> None:
    base = [f"{number}\n" for number in range(len(chosen))]

    def changed(*sides: str) -> str:
        return "".join(
            words.replace("{}", f" {line.strip()}") if side in sides else line
            for line, (side, words) in zip(base, chosen, strict=True)
        )

    merged = merge.merge("".join(base), changed("ours"), changed("theirs"), beside=True)
    assert merged == merge.Merged(changed("ours", "theirs"), ())


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("a\nB\nc\n", "a\nb\nc\n", "a\ntyped\nB\nc\n", "a\ntyped\nb\nc\n"),
        ("a\nB\nc\n", "a\nb\nc\n", "a\nB\ntyped\nc\n", "a\nb\ntyped\nc\n"),
        ("a\nnew\n", "a\n", "a\nnew\n  typed\n", None),  # it goes on with what would be taken away
        ("go\n", "go\n", "go\nelse\n", "go\nelse\n"),
        ("if\n  go\n", "go\n", "if\n  go\nelse\n", None),
        ("new\na\n", "a\n", "typed\nnew\na\n", "typed\na\n"),
        ("a\nnew\nb\n", "a\nb\n", "a\nnew\nb typed\n", "a\nb typed\n"),
        ("a\nnew 1\nnew 2\n", "a\n", "a\nnew 1\ntyped\nnew 2\n", None),  # in the midst of it
        ("a\nB\n", "a\nb\n", "a\nB typed\n", None),
        ("a\nB\n", "a\nb\n", "a\n", None),
        ("a\nB\n", "a\nB\nx\n", "a\nB\ny\n", None),  # which comes first?
        ("a\nB\n", "a\nb", "a\nB\ny\n", None),  # they would be one line
    ],
)
def test_what_is_beside_and_what_is_not(base: str, ours: str, theirs: str, merged: str | None) -> None:
    found = merge.merge(base, ours, theirs, beside=True)
    assert (found.text, bool(found.conflicts)) == ((theirs, True) if merged is None else (merged, False))


@given(texts(), texts(), texts())
def test_every_merge_is_theirs_with_our_changes_or_tells_the_conflict(base: str, ours: str, theirs: str) -> None:
    merged = merge.merge(base, ours, theirs)
    lines = split_lines(merged.text)
    for conflict in merged.conflicts:
        kept = split_lines(conflict.theirs)
        assert lines[conflict.line : conflict.line + len(kept)] == kept
        assert conflict.ours != conflict.theirs
    known = {*split_lines(base), *split_lines(ours), *split_lines(theirs)}
    assert set(lines) <= known


@given(st.lists(st.sampled_from("nkot"), min_size=1, max_size=30), st.data())
def test_changes_that_do_not_touch_are_all_kept(kinds: list[str], data: st.DataObject) -> None:
    """Each block is left alone, or changed by one side; a line that nobody touches stands between blocks."""
    base, ours, theirs, both = [], [], [], []
    for number, kind in enumerate(kinds):
        block = [f"block {number}\n"]
        changed = data.draw(st.sampled_from([[], [f"new {number}\n"], [f"new {number}\n", "more\n"]]))
        base += block
        ours += changed if kind == "o" else block
        theirs += changed if kind == "t" else block
        both += changed if kind in "ot" else block
        for side in (base, ours, theirs, both):
            side.append(f"between {number}\n")
    merged = merge.merge("".join(base), "".join(ours), "".join(theirs))
    assert merged == merge.Merged("".join(both), ())


def test_a_conflict_keeps_the_users_lines_and_the_rest_of_ours() -> None:
    merged = merge.merge("1\n2\n3\n4\n5\n", "1\nours\n3\n4\nfive\n", "0\n1\ntheirs\n3\n4\n5\n")
    assert merged.text == "0\n1\ntheirs\n3\n4\nfive\n"
    assert merged.conflicts == (merge.Conflict(2, "ours\n", "theirs\n"),)


def test_the_same_change_on_both_sides_is_taken_once() -> None:
    assert merge.merge("a\nb\n", "a\nx\nb\nours\n", "top\na\nx\nb\n").text == "top\na\nx\nb\nours\n"


@given(LF_TEXTS, LF_TEXTS, st.sampled_from(["\r\n", "\r"]), st.sampled_from(["", "typed"]))
def test_other_ends_of_all_lines_are_no_conflict(base: str, ours: str, ends: str, typed: str) -> None:
    """An editor that is told to write CRLF has changed no line of ours; ours gets the ends that all others have."""
    top = f"{typed}\nstays\n" if typed else "stays\n"  # a line between what both sides have changed
    theirs = (top + base).replace("\n", ends)
    done = merge.merge(f"stays\n{base}", f"stays\n{ours}", theirs)
    assert (done.text, done.conflicts) == ((top + ours).replace("\n", ends), ())


def test_typing_elsewhere_in_a_crlf_file_without_a_final_newline() -> None:
    merged = merge.merge("a\r\nb\r\nc", "a\r\nB\r\nc", "top\r\na\r\nb\r\nc")
    assert merged == merge.Merged("top\r\na\r\nB\r\nc", ())


def test_two_different_ends_of_a_file_conflict_and_never_glue_lines() -> None:
    merged = merge.merge("a\nb", "a\nb\nours", "a\nb\ntheirs")
    assert merged.text == "a\nb\ntheirs"
    assert merged.conflicts == (merge.Conflict(1, "b\nours", "b\ntheirs"),)


# --- hunks


@given(texts(), texts())
def test_runs_are_ordered_apart_and_cover_every_difference(old: str, new: str) -> None:
    before, after = split_lines(old), split_lines(new)
    i = j = 0
    for number, run in enumerate(merge.runs(old, new)):
        assert run.old_start - i == run.new_start - j
        assert number == 0 or run.old_start > i
        assert before[i : run.old_start] == after[j : run.new_start]
        assert before[run.old_start : run.old_end] != after[run.new_start : run.new_end]
        i, j = run.old_end, run.new_end
    assert before[i:] == after[j:]


@given(texts(), texts())
def test_all_hunks_give_the_new_text_and_none_the_old(old: str, new: str) -> None:
    everything = frozenset(range(len(merge.runs(old, new))))
    assert merge.select_hunks(old, new, everything) == new
    assert merge.select_hunks(old, new, frozenset()) == old
    assert merge.select_hunks(old, new, frozenset({99})) == old


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.data())
def test_a_part_and_then_the_rest_is_the_whole(changed: list[bool], data: st.DataObject) -> None:
    old = [f"{number}\n" for number in range(len(changed) * 10)]
    new = [f"new {line}" if int(line) % 10 == 0 and changed[int(line) // 10] else line for line in old]
    before, after = "".join(old), "".join(new)
    count = len(merge.runs(before, after))
    assert count == sum(changed)
    chosen = data.draw(st.frozensets(st.integers(0, max(0, count - 1))))
    part = merge.select_hunks(before, after, chosen)
    rest = merge.select_hunks(before, after, frozenset(range(count)) - chosen)
    assert merge.merge(before, part, rest) == merge.Merged(after, ())
    assert merge.select_hunks(part, after, frozenset(range(len(merge.runs(part, after))))) == after


@pytest.mark.parametrize("between", range(9))
def test_each_changed_place_is_a_hunk_of_its_own_or_near_ones_are_shown_together(between: int) -> None:
    lines = [f"{number}\n" for number in range(20)]
    edited = [f"new {line}" if number in (5, 6 + between) else line for number, line in enumerate(lines)]
    old, new = "".join(lines), "".join(edited)
    together, apart = (merge.unified_diff(old, new, "a/x", "b/x", apart=each) for each in (False, True))
    assert together.count("\n@@ ") == (1 if between <= 2 * merge.CONTEXT else 2)
    assert apart.count("\n@@ ") == (1 if between == 0 else 2)
    assert apply_patch({"x": old}, apart) == {"x": new}


@pytest.mark.parametrize("between", range(1, 8))
def test_git_applies_a_diff_of_near_hunks_and_each_of_them_alone(between: int, tmp_path: Path) -> None:
    lines = [f"{number}\n" for number in range(20)]
    edited = [f"new {line}" if number in (5, 6 + between) else line for number, line in enumerate(lines)]
    head, *hunks = re.split(
        r"^(?=@@ )", merge.unified_diff("".join(lines), "".join(edited), "a/x", "b/x", apart=True), flags=re.M
    )
    for chosen in (hunks, hunks[:1], hunks[1:]):
        (tmp_path / "x").write_text("".join(lines))
        subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=head + "".join(chosen), text=True, check=True)
        came = (tmp_path / "x").read_text().count("new")
        assert came == len(chosen)


def test_form_feeds_and_unicode_separators_are_no_line_ends() -> None:
    old = "a\x0cb\u2028c\x85d\ne\n"
    assert merge.runs(old, old.replace("e", "E")) == (merge.Run(1, 2, 1, 2),)
    assert merge.unified_diff(old, old + "f\n", "a/x", "b/x").count("\n") == 6


# --- diffs


@given(LF_TEXTS, LF_TEXTS)
def test_a_diff_reads_back_as_the_new_text(old: str, new: str) -> None:
    diff = merge.unified_diff(old, new, "a/x.py", "b/x.py", [f"x.py#{each}" for each in hunk_ids(old, new)], apart=True)
    if old == new:
        assert diff == ""
    elif old and new:
        assert apply_patch({"x.py": old}, diff) == {"x.py": new}


@given(
    st.lists(st.text("ab\u2028\x0c", max_size=3), min_size=2, max_size=8, unique=True), st.sampled_from(["\r\n", "\r"])
)
def test_a_diff_of_crlf_or_cr_text_reads_back(words: list[str], end: str) -> None:
    old = "".join(f"{number}{word}{end}" for number, word in enumerate(words))
    new = "".join(f"{number}{word}{end}" for number, word in enumerate(reversed(words)))
    diff = merge.unified_diff(old, new, "a/x", "b/x")
    if diff:
        assert apply_patch({"x": old}, diff) == {"x": new}


@given(texts(), texts())
def test_every_row_of_a_diff_ends_with_a_line_feed_and_its_counts_are_right(old: str, new: str) -> None:
    diff = merge.unified_diff(old, new, "a/x", "b/x")
    rows = diff.split("\n")
    assert rows.pop() == ""
    counted = [row[:1] for row in rows[2:] if not row.startswith(("@@ -", "\\ No newline"))]
    assert set(counted) <= {" ", "-", "+"}
    runs = merge.runs(old, new)
    assert counted.count("+") == sum(run.new_end - run.new_start for run in runs)
    assert counted.count("-") == sum(run.old_end - run.old_start for run in runs)


def test_the_headers_of_creations_and_deletions_and_labels() -> None:
    assert merge.unified_diff("", "a\n", "/dev/null", "b/x") == "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n"
    assert merge.unified_diff("a", "", "a/x", "/dev/null").endswith("@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n")
    assert "@@ -1 +1 @@ x#1\n" in merge.unified_diff("a\n", "b\n", "a/x", "b/x", ["x#1"])


# --- line ends


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a\r\nb\r\n", "a\nB\n", "a\r\nB\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nX\nc\n", "a\r\nb\nX\r\nc\r\n"),
        ("a\nb\n", "a\r\nb\r\nc\r\n", "a\nb\nc\n"),
        ("a\r\nb", "a\nb\n", "a\r\nb\r\n"),
        ("a\r\nb\r\n", "a\nb", "a\r\nb"),
        ("a\rb\r", "a\nx\n", "a\rx\r"),
        ("", "a\r\nb\n", "a\nb\n"),
        ("a\r\n\n", "", ""),
    ],
)
def test_lines_that_stay_keep_their_ends(old: str, new: str, expected: str) -> None:
    assert merge.with_line_ends_of(old, new) == expected


@given(texts(), LF_TEXTS)
def test_giving_line_ends_changes_nothing_else(old: str, new: str) -> None:
    done = merge.with_line_ends_of(old, new)
    assert [line.rstrip("\r\n") for line in split_lines(done)] == [line.rstrip("\r\n") for line in split_lines(new)]
    assert done.replace("\r\n", "\n").replace("\r", "\n") == new


@given(texts())
def test_the_same_lines_come_back_as_they_were(old: str) -> None:
    plain = old.replace("\r\n", "\n").replace("\r", "\n")
    done = merge.with_line_ends_of(old, plain)
    assert done == old or "\r" in old.replace("\r\n", "")


# --- the search for common lines


@given(st.lists(st.sampled_from("abcd"), max_size=25), st.lists(st.sampled_from("abcd"), max_size=25))
def test_blocks_are_real_matches_in_order(before: list[str], after: list[str]) -> None:
    blocks = LineMatcher(None, before, after).get_matching_blocks()
    assert blocks[-1] == (len(before), len(after), 0)
    for (i, j, size), (next_i, next_j, _) in pairwise(blocks):
        assert size > 0
        assert before[i : i + size] == after[j : j + size]
        assert next_i >= i + size and next_j >= j + size
        assert (next_i, next_j) != (i + size, j + size) or (next_i, next_j) == (len(before), len(after))
    assert sum(size for _, _, size in blocks) <= longest_common(before, after)


@given(st.lists(st.integers(0, 300), unique=True, max_size=60), st.data())
def test_deleting_and_inserting_unique_lines_is_found_exactly(lines: list[int], data: st.DataObject) -> None:
    kept = [line for line in lines if data.draw(st.booleans())]
    blocks = LineMatcher(None, [*map(str, lines)], [*map(str, kept)]).get_matching_blocks()
    assert sum(size for _, _, size in blocks) == len(kept)


@pytest.mark.slow
def test_where_nothing_is_unique_the_way_with_the_fewest_differences_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as it looks; beyond, it goes on from the furthest point, and what it finds are matches still."""
    chance = random.Random(1)
    monkeypatch.setattr(line_matching, "CHEAP", -1)
    for number in range(4000):
        letters = chance.choice(["ab", "abc", "abcdef"])
        before = [chance.choice(letters) for _ in range(chance.randrange(14))]
        after = list(before) if number % 2 else [chance.choice(letters) for _ in range(chance.randrange(14))]
        for place in (chance.randrange(len(after) + 1) for _ in range(chance.randrange(4))):
            after[place : place + chance.randrange(2)] = chance.choice([[], [chance.choice(letters)]])
        far = chance.choice([1, 2, 3, 40])
        monkeypatch.setattr(line_matching, "FAR", far)
        blocks = LineMatcher(None, [*before, *before], [*after, *after]).get_matching_blocks()
        for (i, j, size), (next_i, next_j, _) in pairwise(blocks):
            assert size > 0 and next_i >= i + size and next_j >= j + size
            assert [*before, *before][i : i + size] == [*after, *after][j : j + size]
        if far == 40:  # twice each line: nothing is unique
            assert sum(size for _, _, size in blocks) == longest_common([*before, *before], [*after, *after])


def test_a_few_edits_in_a_table_of_repeated_lines_are_small_runs() -> None:
    """Every line stands there some 750 times; the last run was 5,000 lines long once."""
    chance = random.Random(3)
    lines = [f"{chance.randrange(8)},0\n" for _ in range(6000)]
    edited = list(lines)
    edited[100], edited[900], edited[5500] = "a\n", "b\n", "c\n"
    edited[2000:2000] = ["new\n"]
    del edited[4001]
    assert [(run.old_start, run.old_end) for run in merge.runs("".join(lines), "".join(edited))] == [
        (100, 101),
        (900, 901),
        (2000, 2000),
        (4000, 4001),
        (5500, 5501),
    ]


def big(kind: str) -> tuple[str, str]:
    chance, count = random.Random(7), 20_000
    plain = [f"line {number}\n" for number in range(count)]
    code = [f"x{number}\n" if number % 3 else "\n" for number in range(count)]
    pairs = {
        "all different": (plain, [f"other {number}\n" for number in range(count)]),
        "few lines, repeated": ([f"{n % 50}\n" for n in range(count)], [f"{n * 7 % 53}\n" for n in range(count)]),
        "shuffled": (plain, chance.sample(plain, count)),
        "blocks shuffled": (
            code,
            [line for at in chance.sample(range(0, count, 90), 223) for line in code[at : at + 90]],
        ),
        "edited everywhere": (code, ["z" + line if n % 7 == 0 else line for n, line in enumerate(code)]),
        "one line, often": (["x\n"] * count, ["y\n" if n % 5 == 0 else "x\n" for n in range(count)]),
        "random small alphabet": (
            [f"{chance.randrange(60)}\n" for _ in plain],
            [f"{chance.randrange(60)}\n" for _ in plain],
        ),
    }
    before, after = pairs[kind]
    return "".join(before), "".join(after)


@pytest.mark.slow
def test_lines_that_occur_once_are_anchors_only_as_far_as_they_ascend() -> None:
    old, new = map(split_lines, big("blocks shuffled"))
    blocks = LineMatcher(None, old, new).get_matching_blocks()
    assert all(old[i : i + size] == new[j : j + size] for i, j, size in blocks)
    assert all(one[0] + one[2] <= two[0] and one[1] + one[2] <= two[1] for one, two in pairwise(blocks))
    assert sum(size for _, _, size in blocks) > 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "all different",
        "few lines, repeated",
        "shuffled",
        "blocks shuffled",
        "edited everywhere",
        "one line, often",
        "random small alphabet",
    ],
)
def test_huge_texts_are_compared_in_bounded_time(kind: str) -> None:
    old, new = big(kind)
    started = time.process_time()
    found = merge.runs(old, new)
    merged = merge.merge(old, new, old.replace("1\n", "1!\n", 1))
    assert time.process_time() - started < 4
    assert merge.select_hunks(old, new, frozenset(range(len(found)))) == new
    assert merged.text


def test_a_huge_file_with_distant_edits_keeps_small_hunks() -> None:
    lines = [f"x{number}\n" if number % 3 else "\n" for number in range(20_000)]
    edited = list(lines)
    edited[5], edited[10_000], edited[-9] = "a\n", "b\n", "c\n"
    assert [run.old_end - run.old_start for run in merge.runs("".join(lines), "".join(edited))] == [1, 1, 1]
