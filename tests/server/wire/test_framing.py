"""Cutting bytes into bodies: what is legal, what is refused, and how the next message is found."""

from __future__ import annotations

import random

import pytest

from codeagent_lsp.server.wire.framing import MAX_BODY, MAX_HEADERS, Body, Damage, Framer, find_header
from tests.server.rawclient import frame


def _frames(*chunks: bytes, max_body: int = MAX_BODY) -> list[Body | Damage]:
    framer, found = Framer(max_body), list[Body | Damage]()
    for chunk in chunks:
        framer.feed(chunk)
        while (part := framer.next()) is not None:
            found.append(part)
    return found


def _bodies(*chunks: bytes) -> list[bytes]:
    return [part.data for part in _frames(*chunks) if isinstance(part, Body)]


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 2\r\n\r\n",
        b"content-length: 2\r\n\r\n",
        b"CONTENT-LENGTH: 2\r\n\r\n",
        b"Content-Length:2\r\n\r\n",
        b"Content-Length :  2 \r\n\r\n",
        b"Content-Length: 2\n\n",
        b"Content-Length: 2\r\n\n",
        b"Content-Length: 0002\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 2\r\nContent-Type: application/json\r\nX-Other: y\r\n\r\n",
        b"Content-Length: 10\r\nContent-Length: 2\r\n\r\n",
        b"\r\n\r\nContent-Length: 2\r\n\r\n",
        b"X-Empty:\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_legal_headers(header: bytes) -> None:
    assert _frames(header + b"{}" + frame(b"[1]")) == [Body(b"{}"), Body(b"[1]")]


@pytest.mark.parametrize(
    "damage",
    [
        b"Content-Type: x\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: abc\r\n\r\n",
        b"Content-Length: +5\r\n\r\n",
        b"Content-Length: 0x10\r\n\r\n",
        b"Content-Length: 5 5\r\n\r\n",
        b"Content-Length:\r\n\r\n",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"Content-Length: 1000000000\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: x\r\n\r\n",
        b"no header at all\r\n",
        b"\x00\x00\x00\n\xff\xfe\n",
        b"X: " + b"a" * 65536,
        b"{}{}{}",
        b'"quoted": "Content-Length: "',
    ],
)
def test_damage_is_told_once_and_the_next_message_is_found(damage: bytes) -> None:
    found = _frames(damage, frame(b'{"ok":1}'), frame(b"{}"))
    assert isinstance(found[0], Damage)
    assert found[1:] == [Body(b'{"ok":1}'), Body(b"{}")]


def test_too_many_headers_refuse_their_message_alone() -> None:
    flood = b"".join(b"X-%d: y\r\n" % n for n in range(1000))
    found = _frames(flood + frame(b"[1]") + frame(b"[2]"))
    assert [type(part) for part in found] == [Damage, Body]
    assert found[1] == Body(b"[2]")
    just = b"".join(b"X-%d: y\r\n" % n for n in range(MAX_HEADERS - 1))
    assert _frames(just + frame(b"[1]")) == [Body(b"[1]")]


def test_an_empty_message_is_no_message() -> None:
    assert _frames(b"Content-Length: 0\r\n\r\n" + frame(b"[1]")) == [Body(b"[1]")]


def test_the_size_limit() -> None:
    assert _frames(frame(b"x" * 100), max_body=100) == [Body(b"x" * 100)]
    found = _frames(frame(b"x" * 101), frame(b"{}"), max_body=100)
    assert isinstance(found[0], Damage)
    assert found[1:] == [Body(b"{}")]


def test_a_length_that_is_too_short_costs_one_message() -> None:
    body = b'{"a":"bcdef"}'
    found = _frames(b"Content-Length: %d\r\n\r\n%s" % (len(body) - 5, body), frame(b"{}"))
    assert [part for part in found if isinstance(part, Body)] == [Body(body[:-5]), Body(b"{}")]


def test_a_length_that_is_too_long_ends_at_the_next_header() -> None:
    body = b'{"a":1}'
    for extra in (200, 100_000, MAX_BODY - 100):
        damaged = b"Content-Length: %d\r\n\r\n%s" % (len(body) + extra, body)
        assert _bodies(damaged, frame(b"{}"), frame(b"[1]")) == [body, b"{}", b"[1]"]


def test_a_header_inside_a_string_is_text() -> None:
    body = b'{"a":"Content-Length: 5\\r\\n\\r\\nContent-Length: 7"}'
    for size in (1, 7, 1000):
        chunks = [frame(body)[place : place + size] for place in range(0, len(frame(body)), size)]
        assert _bodies(*chunks, frame(b"{}")) == [body, b"{}"]


def test_a_put_back_tail_belongs_to_the_next_message() -> None:
    framer = Framer()
    framer.feed(b"Content-Length: 4\r\n\r\n{}Cont")
    assert framer.next() == Body(b"{}Co")
    framer.unread(b"Co")
    framer.feed(b"ent-Length: 2\r\n\r\n[]")
    assert framer.next() == Body(b"[]")
    assert framer.next() is None


def test_any_cut_of_the_stream_gives_the_same() -> None:
    stream = frame(b'{"a":1}') + b"junk\r\n" + frame(b"{}") + b"Content-Length: x\r\n\r\n" + frame(b"[1]")
    whole = _frames(stream)
    assert _frames(*(stream[n : n + 1] for n in range(len(stream)))) == whole
    rng = random.Random(1)
    for _ in range(50):
        cuts = sorted(rng.sample(range(len(stream)), 5))
        parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        assert _frames(*parts) == whole


def test_memory_stays_small_while_nothing_is_found() -> None:
    framer = Framer()
    for _ in range(200):
        framer.feed(b"x" * 65536)
        framer.next()
    assert framer.skipped > 12_000_000
    assert len(framer._buffer) < 70_000


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"..Content-Length: 5\r\n", 2),
        (b"content-length:5\n", 0),
        (b"Content-Length: 5", -1),
        (b"Content-Length: x\r\nContent-Length: 1\r\n", 19),
        (b"", -1),
    ],
)
def test_finding_a_header(data: bytes, place: int) -> None:
    assert find_header(data) == place
