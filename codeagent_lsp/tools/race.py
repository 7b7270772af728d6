"""Concurrent execution of coroutines until the first is done. Not here: how the caller handles its result."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def until_first(*ways: Coroutine[Any, Any, Any]) -> None:
    """Wait until the first coroutine ends, with or without an error; cancel the others and wait for them."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
