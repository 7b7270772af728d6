"""What holds for every edit: nothing outside the matched lines changes, refusals change nothing, exact is literal."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.workspace.edits.match import plan, replace
from codeagent_lsp.workspace.text.position import dominant_newline, ending_of, split_lines
from tests.examples import examples

WORDS = st.sampled_from(["alpha", "beta(x)", "gamma = 1", "if delta:", "return", "\u201cquote\u201d", "", "  ", "\x0c"])
LINE = st.builds(lambda depth, word: "    " * depth + word, st.integers(0, 3), WORDS)
ENDING = st.sampled_from(["\n", "\n", "\r\n", "\r"])
TEXT = st.lists(st.tuples(LINE, ENDING), max_size=25).map(lambda rows: "".join(a + b for a, b in rows))
ANY = st.text(alphabet="ab \t\n\r\u2028\x85\x0c\"'\u201c", max_size=40)


@given(ANY, ANY, ANY)
@settings(max_examples=examples(400))
def test_never_fails_otherwise_than_by_refusing(text: str, old: str, new: str) -> None:
    try:
        assert replace(text, old, new).text != text
    except EditRefused as refused:
        assert refused.reason in ("not_found", "ambiguous", "already_applied", "empty")
        assert str(refused)


@given(TEXT, st.data())
@settings(max_examples=examples(300))
def test_only_the_matched_range_changes(text: str, data: st.DataObject) -> None:
    lines = split_lines(text)
    start = data.draw(st.integers(0, len(lines)))
    stop = data.draw(st.integers(start, len(lines)))
    block = [line.rstrip("\r\n").rstrip() for line in lines[start:stop]]
    changed = list(block)
    if changed:
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(LINE)
    old, new = "\n".join(block), "\n".join(changed)
    try:
        edit = plan(text, old, new)
    except EditRefused:
        return
    result = replace(text, old, new).text
    assert result == text[: edit.start] + edit.text + text[edit.stop :]
    outside = len(split_lines(text[: edit.start])), len(split_lines(text[edit.stop :]))
    assert edit.tier == "exact" or split_lines(text)[: outside[0]] == split_lines(result)[: outside[0]]


@given(st.lists(st.integers(0, 10**6), min_size=3, max_size=30, unique=True), st.data())
def test_whole_lines_are_replaced_literally(numbers: list[int], data: st.DataObject) -> None:
    lines = [f"value = {number};\n" for number in numbers]
    at = data.draw(st.integers(0, len(lines) - 2))
    old, new = "".join(lines[at : at + 2]), lines[at] + "other\n"
    text = "".join(lines)
    assert replace(text, old, new).text == text.replace(old, new)


@given(TEXT)
def test_splitting_loses_nothing(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(ending_of(line) in ("\n", "\r\n", "\r") for line in lines[:-1])
    assert dominant_newline(text) in ("\n", "\r\n", "\r")


@given(st.lists(ENDING, min_size=6, max_size=6), st.integers(0, 5))
def test_mixed_line_ends_survive(endings: list[str], at: int) -> None:
    lines = [f"line {chr(97 + i)} of it" for i in range(6)]
    text = "".join(a + b for a, b in zip(lines, endings, strict=True))
    changed = [*lines[:at], "something else", *lines[at + 1 :]]
    result = replace(text, "\n".join(lines), "\n".join(changed)).text
    assert result == "".join(a + b for a, b in zip(changed, endings, strict=True))
