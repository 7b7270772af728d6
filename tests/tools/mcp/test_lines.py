"""Lines of bounded length, whatever the pieces; the request that a line too long answers; noise."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codeagent_lsp.tools.mcp.stdio import MAX_NOISE, Health, Lines, TooLong, Unreadable


def fed(data: bytes, cuts: list[int], limit: int = 1000) -> list[bytes | TooLong]:
    lines, found, start = Lines(limit), list[bytes | TooLong](), 0
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        found += lines.feed(data[start:cut])
        start = cut
    return found


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b""))), st.lists(st.integers(0, 500)))
def test_pieces_change_nothing(lines: list[bytes], cuts: list[int]) -> None:
    assert fed(b"".join(line + b"\n" for line in lines), cuts) == lines


@given(st.integers(0, 3000), st.lists(st.integers(0, 6000), max_size=6))
def test_only_the_ends_of_a_long_line_are_kept(length: int, cuts: list[int]) -> None:
    line = bytes(65 + at % 26 for at in range(length))
    first, second = fed(line + b"\nnext\n", cuts)
    assert second == b"next"
    if length <= 1000:
        assert first == line
    else:
        assert isinstance(first, TooLong)
        assert (first.head, first.tail, first.size) == (line[:512], line[-512:], length)


def reply(shape: str, size: int = 3000) -> bytes:
    return shape.replace("BODY", json.dumps({"content": "x" * size})).encode() + b"\n"


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ('{"jsonrpc":"2.0","id":7,"result":BODY}', 7),
        ('{ "id" : 7, "jsonrpc":"2.0","result":BODY}', 7),
        ('{"result":BODY,"jsonrpc":"2.0","id":7}', 7),
        ('{"result":BODY,"id":"a-7","jsonrpc":"2.0"}', "a-7"),
        ('{"jsonrpc":"2.0","method":"x","params":BODY}', None),
        ('{"result":{"a":BODY,"id":9},"jsonrpc":"2.0"}', None),
        ("BODY", None),
    ],
)
def test_the_request_that_a_long_line_answers(shape: str, expected: object) -> None:
    (line,) = fed(reply(shape), [100, 900])
    assert isinstance(line, TooLong) and line.answers == expected


def test_a_line_that_never_ends_is_given_up_with_little_memory() -> None:
    lines = Lines(1 << 16, 1 << 24)
    tracemalloc.start()
    with pytest.raises(Unreadable, match="16 MiB"):
        for _ in range(400):
            lines.feed(b"x" * (1 << 16))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_noise_is_counted_until_a_message_comes() -> None:
    health = Health()
    for _ in range(MAX_NOISE - 1):
        health.garbage(b"DEBUG \x1b[1mx\x1b[0m\xff")
    health.good()
    health.garbage(b"  ")
    assert (health.noise, health.garbled, health.sample) == (1, MAX_NOISE, "DEBUG x\ufffd")
    with pytest.raises(Unreadable, match="100 lines"):
        for _ in range(MAX_NOISE):
            health.garbage(b"DEBUG")


def test_the_last_words() -> None:
    health = Health()
    health.printed(b"x" * 100_000 + b"\none\n\n\x1b[31mtwo\x1b[0m\nthree\n")
    assert len(health.stderr) <= 4096
    assert health.last_words.endswith("one | two | three")
