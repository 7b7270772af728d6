"""Waiting for the first of several: it ends the wait, the others end with it, and nothing is left."""

from __future__ import annotations

import asyncio

import pytest

from codeagent_lsp.background_tasks import until_first


class Way:
    """One of several: `ends` lets it end, `seen` says how it went."""

    def __init__(self) -> None:
        self.ends = asyncio.Event()
        self.seen = ""

    async def go(self) -> None:
        self.seen = "began"
        try:
            await self.ends.wait()
            self.seen = "ended"
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # what is cancelled may have to tidy up
            self.seen = "cancelled"
            raise


async def test_the_first_ends_the_others() -> None:
    ways = [Way(), Way(), Way()]
    waiting = asyncio.ensure_future(until_first(*(way.go() for way in ways)))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    ways[1].ends.set()
    await waiting
    assert [way.seen for way in ways] == ["cancelled", "ended", "cancelled"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_one_that_fails_is_an_end_too() -> None:
    async def fails() -> None:
        raise ValueError("no")

    other = Way()
    await until_first(fails(), other.go())
    assert other.seen == "cancelled"


async def test_cancelled_it_leaves_nothing() -> None:
    ways = [Way(), Way()]
    waiting = asyncio.ensure_future(until_first(*(way.go() for way in ways)))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert [way.seen for way in ways] == ["cancelled", "cancelled"]
    assert asyncio.all_tasks() == {asyncio.current_task()}
