"""Does several things side by side until one of them is done. Not here: what to do when it was the wrong one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def until_first(*ways: Coroutine[Any, Any, Any]) -> None:
    """Return when the first has ended, however it did; the others are cancelled, and over when this returns."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
