"""The clock of a connection: it runs out, stands while somebody is asked, and goes on with what was left."""

from __future__ import annotations

import asyncio

import pytest

from codeagent_lsp.tools.mcp.host import Clock


async def test_it_runs_out() -> None:
    clock = Clock()
    with pytest.raises(TimeoutError):
        async with clock.limited(0.02):
            await asyncio.sleep(5)


async def test_it_stands_and_goes_on_with_what_was_left() -> None:
    clock = Clock()
    async with clock.limited(0.3), clock.paused():
        await asyncio.sleep(0.5)
    with pytest.raises(TimeoutError):
        async with clock.limited(0.05):
            async with clock.paused():
                await asyncio.sleep(0.1)
            await asyncio.sleep(5)


async def test_what_begins_while_it_stands_has_all_its_time_afterwards() -> None:
    clock, asked = Clock(), asyncio.Event()

    async def ask() -> None:
        async with clock.paused():
            await asked.wait()

    asking = asyncio.ensure_future(ask())
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with clock.limited(0.05):
            await asyncio.sleep(0.2)  # it stands
            asked.set()
            await asyncio.sleep(5)
    await asking


async def test_the_last_question_lets_it_go_on() -> None:
    clock = Clock()
    with pytest.raises(TimeoutError):
        async with clock.limited(0.05):
            async with clock.paused():
                async with clock.paused():
                    pass
                await asyncio.sleep(0.2)  # one is still open
            await asyncio.sleep(5)


async def test_what_ran_out_is_left_alone() -> None:
    clock = Clock()

    async def late() -> None:
        async with clock.limited(0.01):
            try:
                await asyncio.sleep(5)
            finally:
                async with clock.paused():
                    await asyncio.sleep(0.01)

    with pytest.raises(TimeoutError):
        await late()
