"""Tasks that run beside the code that starts them, and coroutines of which the first to end ends all.

asyncio itself keeps only weak references to tasks. Not here: their errors, which each task handles itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundTasks:
    """The running background tasks of one object, which are referenced until they end; the object closes them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a coroutine in the running loop and return its task. Nobody else need keep the task; its errors are the
        coroutine's own to handle.
        """
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def cancel(self) -> None:
        """Request the cancellation of all present tasks, and return without waiting for their end; those started later
        run.
        """
        for task in tuple(self._tasks):
            task.cancel()

    async def end(self) -> None:
        """Cancel all present tasks and wait for their end, without a time limit; their errors are not raised."""
        self.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self, seconds: float | None) -> None:
        """Wait at most `seconds` (None: without limit) for the end of all present tasks, then cancel those that still
        run, without waiting for them.
        """
        if self._tasks:
            _, late = await asyncio.wait(tuple(self._tasks), timeout=seconds)
            for task in late:
                task.cancel()


async def until_first(*ways: Coroutine[Any, Any, Any]) -> None:
    """Wait until the first coroutine ends, then cancel the others and wait for them. Errors of any of them are not
    raised.
    """
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
