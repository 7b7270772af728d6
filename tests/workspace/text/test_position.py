"""Positions against a slow reference model, and the promises of clamping and speed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.workspace.text.position import (
    Encoding,
    LineIndex,
    Position,
    line_span,
    offset_at,
    offsets_of_range,
    position_at,
    units,
)
from tests.clock import processor_seconds
from tests.workspace import reference

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
_PIECE = st.sampled_from([*reference.LETTERS, *reference.SEPARATORS, "word", "  "])
_TEXT = st.lists(_PIECE, max_size=30).map("".join)


@given(text=_TEXT)
def test_lines_end_only_where_lsp_says(text: str) -> None:
    index = LineIndex.of(text)
    assert [line_span(text, index, n) for n in range(len(index))] == reference.lines(text)


@given(text=_TEXT, line=st.integers(0, 12), character=st.integers(0, 40), encoding=st.sampled_from(ENCODINGS))
def test_offsets_equal_the_reference(text: str, line: int, character: int, encoding: Encoding) -> None:
    found = offset_at(text, LineIndex.of(text), (line, character), encoding)
    assert found == reference.offset(text, line, character, encoding)


@given(text=_TEXT, data=st.data(), encoding=st.sampled_from(ENCODINGS))
def test_positions_equal_the_reference(text: str, data: st.DataObject, encoding: Encoding) -> None:
    place = data.draw(st.integers(0, len(text)))
    assert position_at(text, LineIndex.of(text), place, encoding) == reference.position(text, place, encoding)


@given(text=_TEXT, data=st.data(), encoding=st.sampled_from(ENCODINGS))
def test_a_position_leads_back_to_its_offset(text: str, data: st.DataObject, encoding: Encoding) -> None:
    index = LineIndex.of(text)
    place = data.draw(st.integers(0, len(text)))
    back = offset_at(text, index, position_at(text, index, place, encoding), encoding)
    inside_line_end = 0 < place < len(text) and text[place - 1 : place + 1] == "\r\n"
    assert back == (place - 1 if inside_line_end else place)


@given(text=_TEXT, new=_TEXT, data=st.data())
def test_a_spliced_index_equals_a_new_one(text: str, new: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    edited = text[:start] + new + text[end:]
    spliced = LineIndex.of(text).spliced(edited, start, end - start, len(new))
    assert spliced.starts.tolist() == LineIndex.of(edited).starts.tolist()


@pytest.mark.parametrize(
    ("before", "start", "end", "new"),
    [
        ("a\r\nb", 2, 2, "x"),  # splits a line end into two
        ("a\rxb", 2, 3, "\n"),  # makes one of two characters
        ("a\r\nb", 1, 2, ""),  # leaves the second half
        ("a\r\nb", 2, 3, ""),  # leaves the first half
        ("\n", 0, 0, "\r"),
        ("", 0, 0, "\r\n"),
        ("a\nb\n", 0, 4, ""),
    ],
)
def test_edits_at_line_ends(before: str, start: int, end: int, new: str) -> None:
    after = before[:start] + new + before[end:]
    spliced = LineIndex.of(before).spliced(after, start, end - start, len(new))
    assert spliced.starts.tolist() == [begin for begin, _ in reference.lines(after)]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("position", [(0, 0), (0, 9), (7, 0), (-1, 4), (0, -3)])
def test_an_empty_text_takes_any_position(encoding: Encoding, position: tuple[int, int]) -> None:
    index = LineIndex.of("")
    assert offset_at("", index, position, encoding) == 0
    assert position_at("", index, position[1], encoding) == Position(0, 0)


def test_clamping() -> None:
    text = "ab\r\ncd"
    index = LineIndex.of(text)
    assert offset_at(text, index, (0, 99), "utf-16") == 2
    assert offset_at(text, index, (1, 99), "utf-16") == 6
    assert offset_at(text, index, (9, 0), "utf-16") == 6
    assert position_at(text, index, 99, "utf-16") == Position(1, 2)
    assert position_at(text, index, -5, "utf-16") == Position(0, 0)


def test_inside_a_character_rounds_down() -> None:
    text = "a\U0001f600b"
    index = LineIndex.of(text)
    assert [offset_at(text, index, (0, n), "utf-16") for n in range(6)] == [0, 1, 1, 2, 3, 3]
    assert [offset_at(text, index, (0, n), "utf-8") for n in range(8)] == [0, 1, 1, 1, 1, 2, 3, 3]


def test_units() -> None:
    text = "aé\U0001f600"
    assert [units(text, 0, 3, encoding) for encoding in ENCODINGS] == [7, 4, 3]
    assert units("plain", 1, 4, "utf-8") == 3


def test_both_ends_of_a_range() -> None:
    text = "one\ntwo é\n"
    index = LineIndex.of(text)
    assert offsets_of_range(text, index, (0, 1), (1, 6), "utf-8") == (1, 9)
    assert offsets_of_range(text, index, (1, 2), (1, 2), "utf-8") == (6, 6)


@pytest.mark.slow
def test_many_random_positions_equal_the_reference() -> None:
    rng = random.Random(11)
    for _ in range(20_000):
        text = reference.random_text(rng, 25)
        index = LineIndex.of(text)
        encoding = rng.choice(ENCODINGS)
        line, character = rng.randint(0, 12), rng.randint(0, 40)
        assert offset_at(text, index, (line, character), encoding) == reference.offset(
            text, line, character, encoding
        ), (text, line, character, encoding)


@pytest.mark.slow
def test_a_hundred_thousand_lines_are_spliced_quickly() -> None:
    text = "a line of text\n" * 100_000
    index = LineIndex.of(text)
    edited = text[:700_000] + "x" + text[700_000:]
    with processor_seconds(0.05):
        index.spliced(edited, 700_000, 0, 1)
