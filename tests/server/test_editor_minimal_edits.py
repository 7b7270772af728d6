"""Minimal edits: applied as a client applies them they give the new text, and they touch as little as possible."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from codeagent_lsp.server.text_edits import minimal_edits
from codeagent_lsp.workspace.text.document import Change, Document
from codeagent_lsp.workspace.text.position import Encoding
from tests.examples import examples

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
PIECES = st.sampled_from(
    ["a", "b", "  ", "ü", "e\u0301", "🎉", "👩\u200d💻", "\u2028", "\x0c", "\n", "\r\n", "\r", "\t", "x = 1\n", "}\n"]
)
TEXTS = st.lists(PIECES, max_size=14).map("".join)


def applied(old: str, edits: list[types.TextEdit], encoding: Encoding) -> str:
    document = Document("file:///a", old)
    for edit in reversed(edits):
        start, end = edit.range.start, edit.range.end
        change = Change(edit.new_text, (start.line, start.character), (end.line, end.character))
        document = document.apply(change, encoding)
    return document.text


@settings(max_examples=examples(250), deadline=None)
@given(TEXTS, TEXTS, st.sampled_from(ENCODINGS), st.booleans())
def test_the_edits_lead_from_old_to_new(old: str, new: str, encoding: Encoding, ended_lines: bool) -> None:
    edits = minimal_edits(old, new, encoding, ended_lines=ended_lines)
    assert applied(old, edits, encoding) == new
    assert bool(edits) == (old != new)


@settings(max_examples=examples(250), deadline=None)
@given(TEXTS, TEXTS)
def test_edits_are_in_order_apart_and_never_inside_a_line_end(old: str, new: str) -> None:
    edits = minimal_edits(old, new, "utf-32")
    document = Document("file:///a", old)
    last = -1
    for edit in edits:
        start = document.offset(edit.range.start.line, edit.range.start.character, "utf-32")
        end = document.offset(edit.range.end.line, edit.range.end.character, "utf-32")
        assert last < start <= end or (last, start) == (-1, 0)
        last = end
        for place in (start, end):
            assert old[max(0, place - 1) : place + 1] != "\r\n"


@settings(max_examples=examples(100), deadline=None)
@given(TEXTS, TEXTS, TEXTS)
def test_a_change_in_the_middle_leaves_the_rest_alone(before: str, middle: str, after: str) -> None:
    head, tail = before + "HEAD\n", "TAIL\n" + after
    edits = minimal_edits(head + "old\n" + tail, head + middle + "new\n" + tail, "utf-16")
    first = len(Document("u", head).lines) - 1
    last = first + 1
    assert all(first <= edit.range.start.line <= edit.range.end.line <= last for edit in edits)


@pytest.mark.parametrize(
    ("old", "new", "start", "end", "text"),
    [
        ("return 2\n", "return 3\n", (0, 7), (0, 8), "3"),
        ("a\nb\n", "a\n", (1, 0), (2, 0), ""),
        ("a\n", "a\nb\n", (0, 1), (0, 1), "\nb"),
        ("a\r\n", "a\r\nb\r\n", (0, 1), (0, 1), "\r\nb"),
        ("", "a\n", (0, 0), (0, 0), "a\n"),
        ("a", "a\n", (0, 1), (0, 1), "\n"),
        ("🎉1\n", "🎉2\n", (0, 2), (0, 3), "2"),
        ("a\r\nb", "a\nb", (0, 1), (1, 0), "\n"),
    ],
)
def test_how_small_they_are(old: str, new: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
    (edit,) = minimal_edits(old, new, "utf-16")
    assert (edit.range.start.line, edit.range.start.character) == start
    assert (edit.range.end.line, edit.range.end.character) == end
    assert edit.new_text == text


def test_where_all_lines_end_new_last_lines_reach_beyond_the_text() -> None:
    for old, new, start in (("", "a\n", (0, 0)), ("x", "x\na\n", (0, 1))):
        (edit,) = minimal_edits(old, new, "utf-16", ended_lines=True)
        assert (edit.range.start.line, edit.range.start.character) == start
        assert (edit.range.end.line, edit.range.end.character) == (1, 0)
    (edit,) = minimal_edits("x\n", "x\na\n", "utf-16", ended_lines=True)
    assert edit.range.end.line == 0


def test_a_large_file_takes_no_time() -> None:
    old = "".join(f"line {number}\n" for number in range(20_000))
    new = old.replace("line 5000\n", "LINE\n").replace("line 15000\n", "")
    assert len(minimal_edits(old, new, "utf-16")) == 2
