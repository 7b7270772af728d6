"""Streams of one run become one event each, never those of two, and never without a bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from codeagent_lsp.records.trace import LONG, TOO_LONG, Pieces


def piece(content: Any, kind: str = "token", run: str = "r", session: str = "s") -> dict[str, Any]:
    return {"type": kind, "session_id": session, "run_id": run, "content": content}


def fed(*stream: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    pieces = Pieces()
    out = [event for given in stream for event in pieces.add(given)]
    return [*out, *pieces.rest()]


def test_pieces_in_a_row_are_one_event_with_the_first_ones_fields() -> None:
    first = {**piece("a"), "seq": 1}
    assert fed(first, piece("b"), piece("c")) == [{**first, "content": "abc"}]


def test_another_kind_ends_what_waits() -> None:
    stream = fed(piece("a"), piece("b"), {"type": "usage", "session_id": "s", "run_id": "r"}, piece("c"))
    assert [(event["type"], event.get("content")) for event in stream] == [
        ("token", "ab"),
        ("usage", None),
        ("token", "c"),
    ]


def test_two_streams_of_a_run_do_not_mix() -> None:
    stream = fed(piece("a", "stdout"), piece("b", "stderr"), piece("c", "stdout"))
    assert [(event["type"], event["content"]) for event in stream] == [
        ("stdout", "a"),
        ("stderr", "b"),
        ("stdout", "c"),
    ]


def test_runs_and_sessions_side_by_side_do_not_mix() -> None:
    ours = [piece(content, run=run) for content, run in (("a", "1"), ("b", "2"), ("c", "1"), ("e", "2"))]
    stream = fed(*ours[:3], piece("d", run="1", session="t"), ours[3])
    found = {(event["session_id"], event["run_id"]): event["content"] for event in stream}
    assert found == {("s", "1"): "ac", ("s", "2"): "be", ("t", "1"): "d"}


@pytest.mark.parametrize("content", [None, 5, ["a"], b"a"])
def test_what_is_no_text_passes_as_it_is(content: object) -> None:
    assert fed(piece(content)) == [piece(content)]


def test_long_streams_are_cut_after_a_line_and_nothing_is_lost() -> None:
    lines = [f"line {number} of the output\n" for number in range(12_000)]
    stream = fed(*(piece(line[at : at + 9]) for line in lines for at in range(0, len(line), 9)))
    assert "".join(event["content"] for event in stream) == "".join(lines)
    assert len(stream) > 2
    assert all(event["content"].endswith("\n") for event in stream[:-1])
    assert max(len(event["content"]) for event in stream) < LONG + 100


def test_a_stream_without_lines_is_cut_at_a_space_or_anywhere() -> None:
    for text in ("word " * 120_000, "x" * 600_000):
        stream = fed(*(piece(text[at : at + 1000]) for at in range(0, len(text), 1000)))
        assert "".join(event["content"] for event in stream) == text
        assert max(len(event["content"]) for event in stream) <= TOO_LONG + 1000
