"""The log of a server: its last line that says something, however it is cut."""

from __future__ import annotations

import asyncio

import pytest

from codeagent_lsp.lsp_client.connection import CHUNK, LINE, ServerLog


async def read(*chunks: bytes) -> ServerLog:
    stream, log = asyncio.StreamReader(), ServerLog()
    reading = asyncio.ensure_future(log.read(stream))
    for chunk in chunks:
        stream.feed_data(chunk)
        await asyncio.sleep(0)
    stream.feed_eof()
    await reading
    return log


@pytest.mark.parametrize(
    ("chunks", "last"),
    [
        ((), ""),
        ((b"one\ntwo\n",), "two"),
        ((b"one\n", b"no end"), "no end"),
        ((b"one\n  \n\n",), "one"),
        ((b"one\nt", b"w", b"o\nthree", b" four\n"), "three four"),
        ((b"o", b"ne\n", b"\n" * 30), ""),
        ((b"\xff\n",), "\N{REPLACEMENT CHARACTER}"),
    ],
)
async def test_the_last_line(chunks: tuple[bytes, ...], last: str) -> None:
    assert (await read(*chunks)).last_line == last


async def test_a_line_is_cut() -> None:
    assert (await read(b"x" * 200_000)).last_line == "x" * LINE


async def test_one_without_an_end_is_not_kept_whole() -> None:
    log = await read(*(b"x" * 60_000 for _ in range(10)))
    assert len(log._unended) <= CHUNK
    assert log.last_line == "x" * LINE
