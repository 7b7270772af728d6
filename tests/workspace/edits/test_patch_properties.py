"""A patch made from two texts turns the one into the other, in both formats, and a refused one changes nothing."""

from __future__ import annotations

import difflib

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from codeagent_lsp.errors import PatchRefused
from codeagent_lsp.workspace.edits.patch import apply_patch, parse_patch, paths_of
from codeagent_lsp.workspace.text.position import content_of, ending_of, split_lines
from tests.examples import examples

NUMBERS = st.integers(0, 400)
DISTINCT = st.lists(NUMBERS, max_size=40, unique=True).map(lambda ns: [f"{'    ' * (n % 3)}item {n}" for n in ns])
REPEATED = st.lists(st.sampled_from(["x", "y", "", "    x", "--- a", "+++ b"]), max_size=20)
NEWLINE = st.sampled_from(["\n", "\r\n"])


def text_of(lines: list[str], newline: str, final: bool) -> str:
    return newline.join(lines) + (newline if final and lines else "")


def unified(a: str, b: str) -> str:
    rows = []
    for row in difflib.unified_diff(_lf(a), _lf(b), "a/f.py", "b/f.py"):
        rows.append(row if row.endswith("\n") else row + "\n\\ No newline at end of file\n")
    return "".join(rows)


def begin(a: str, b: str) -> str:
    rows = ["*** Begin Patch\n", "*** Update File: f.py\n"]
    for row in list(difflib.unified_diff(_lf(a), _lf(b), n=3))[2:]:
        rows.append("@@\n" if row.startswith("@@ ") else row.removesuffix("\n") + "\n")
    return "".join([*rows, "*** End Patch\n"])


def _lf(text: str) -> list[str]:
    return [content_of(line) + "\n" * bool(ending_of(line)) for line in split_lines(text)]


@given(DISTINCT, DISTINCT, NEWLINE, st.booleans(), st.booleans())
@settings(max_examples=examples(200))
def test_unified_round_trip(a: list[str], b: list[str], newline: str, final_a: bool, final_b: bool) -> None:
    before, after = text_of(a, newline, final_a), text_of(b, newline, final_b)
    assume(before != after and (len(a) > 1 or newline == "\n"))
    assert apply_patch({"f.py": before}, unified(before, after)) == {"f.py": after}


@given(DISTINCT, DISTINCT, st.booleans())
@settings(max_examples=examples(200))
def test_begin_round_trip(a: list[str], b: list[str], final: bool) -> None:
    before, after = text_of(a, "\n", final), text_of(b, "\n", final)
    assume(a != b and a and b)
    assert apply_patch({"f.py": before}, begin(before, after)) == {"f.py": after}


@given(REPEATED, REPEATED, st.booleans())
@settings(max_examples=examples(300))
def test_repeated_lines_come_out_right_or_are_refused(a: list[str], b: list[str], final: bool) -> None:
    before, after = text_of(a, "\n", final), text_of(b, "\n", final)
    assume(before != after)
    files: dict[str, str | None] = {"f.py": before, "other": "kept"}
    try:
        assert apply_patch(files, unified(before, after)) == {"f.py": after, "other": "kept"}
    except PatchRefused:
        assert files == {"f.py": before, "other": "kept"}


@given(st.text(alphabet="*@+- abBegindPtchUpFl:/\n", max_size=120), st.booleans())
@settings(max_examples=examples(300))
def test_any_text_is_read_or_refused(noise: str, wrapped: bool) -> None:
    patch = f"*** Begin Patch\n*** Update File: f\n{noise}\n*** End Patch" if wrapped else f"--- a/f\n+++ b/f\n{noise}"
    try:
        assert set(paths_of(patch)) == {path for change in parse_patch(patch) for path in change.paths}
        apply_patch({"f": "a\nb\n"}, patch)
    except PatchRefused as refused:
        assert str(refused)
