"""Trying again: what is, what is not, how long is waited, and that cancelling is never swallowed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest

from codeagent_lsp.errors import ModelBusy, ModelError, ModelRejected, ModelStreamBroken, ModelUnreachable
from codeagent_lsp.llm.base import Reply, StreamItem, TextChunk
from codeagent_lsp.llm.failures import retry_after, server_message
from codeagent_lsp.llm.retry import RetryPolicy, Source, answered, patient

QUICK = RetryPolicy(first_wait=0.01, longest_wait=0.5, jitter=0.01, total=5)
DOWN = ModelUnreachable("model.unreachable", url="u", reason="r")
CUT = ModelStreamBroken("model.stream_cut", url="u")
DNS = ModelUnreachable("model.dns", url="u", reason="r")
NO = ModelRejected("model.rejected", url="u", status=400, reason="r")
NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Takes:
    """A source whose n-th opening plays the n-th take: items, and an error at the end or none."""

    def __init__(self, *takes: list[StreamItem | Exception]) -> None:
        self.opened = 0
        self.closed = 0
        self._takes = takes

    async def __call__(self) -> AsyncGenerator[StreamItem, None]:
        take = self._takes[min(self.opened, len(self._takes) - 1)]
        self.opened += 1
        try:
            for item in take:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed += 1


async def play(source: Source) -> list[StreamItem]:
    return [item async for item in source()]


OK: list[StreamItem | Exception] = [TextChunk("a"), Reply("a")]


@pytest.mark.parametrize("error", [DOWN, CUT, ModelBusy("model.busy", url="u", reason="r")])
async def test_passing_failures_are_tried_three_times(error: ModelError) -> None:
    takes = Takes([error], [error], OK)
    assert await play(lambda: patient(takes, QUICK)) == OK
    assert (takes.opened, takes.closed) == (3, 3)
    takes = Takes([error])
    with pytest.raises(type(error)):
        await play(lambda: patient(takes, QUICK))
    assert takes.opened == 3


@pytest.mark.parametrize("error", [DNS, NO, ValueError("a bug")])
async def test_other_failures_are_not_tried_again(error: Exception) -> None:
    takes = Takes([error], OK)
    with pytest.raises(type(error)):
        await play(lambda: patient(takes, QUICK))
    assert takes.opened == 1


async def test_nothing_is_tried_again_once_something_was_shown() -> None:
    takes = Takes([TextChunk("a"), CUT], OK)
    with pytest.raises(ModelStreamBroken):
        await play(lambda: patient(takes, QUICK))
    assert (takes.opened, takes.closed) == (1, 1)


async def test_the_servers_wait_is_kept_to_and_a_long_one_told() -> None:
    takes = Takes([ModelBusy("model.busy", url="u", reason="r", retry_after=0.2)], OK)
    begun = time.monotonic()
    await play(lambda: patient(takes, QUICK))
    assert 0.2 <= time.monotonic() - begun < 0.5
    takes = Takes([ModelBusy("model.busy", url="u", reason="r", retry_after=60)], OK)
    with pytest.raises(ModelBusy, match="60 s"):
        await play(lambda: patient(takes, QUICK))
    assert takes.opened == 1


async def test_closing_early_closes_the_source() -> None:
    takes = Takes([TextChunk("a"), TextChunk("b"), Reply("ab")])
    items = answered(lambda: patient(takes, QUICK), "m")
    assert await anext(items) == TextChunk("a")
    await items.aclose()
    assert takes.closed == 1


async def test_cancelling_while_waiting_is_not_swallowed() -> None:
    takes = Takes([ModelBusy("model.busy", url="u", reason="r", retry_after=0.4)])
    task = asyncio.create_task(play(lambda: patient(takes, QUICK)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert takes.opened == takes.closed == 1


async def test_cancelling_while_the_source_opens_is_not_swallowed() -> None:
    async def slow() -> AsyncGenerator[StreamItem, None]:
        await asyncio.sleep(30)
        yield Reply("late")

    task = asyncio.create_task(play(lambda: patient(slow, QUICK)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Tue, 01 Jan 2030 00:00:05 GMT"}, 5.0),
        ({"retry-after": "Tue, 01 Jan 2020 00:00:05 GMT"}, 0.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b'{"error": {"message": "m", "type": "t"}}', "application/json", "m"),
        (b'{"error": "m"}', "application/json", "m"),
        (b'{"message": "m"}', "application/json", "m"),
        (b'{"detail": [{"msg": "m"}]}', "application/json", "m"),
        (b'[{"error": {"message": "m"}}]', "application/json", "m"),
        (b"plain", "text/plain", "plain"),
        (b"<html><title>Bad Gateway</title>", "text/html", "an HTML page (Bad Gateway)"),
        (b"", "", ""),
        (b"[" * 100_000, "application/json", "[" * 100_000),
    ],
)
def test_the_servers_own_words(body: bytes, kind: str, message: str) -> None:
    assert server_message(body, kind) == message
