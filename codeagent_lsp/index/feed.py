"""Batching of notifications of changed files: gathered for 0.3 seconds, then passed on together.

Not here: updating the index (`service.py`), sources of the notifications. Unsaved texts are not fed; they are parsed
when a query comes (`overlay.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

DELAY = 0.3
MANY = 500

Look = Callable[[tuple[str, ...] | None], Awaitable[object]]
"""Processes these files, by absolute path; None: the whole workspace."""


class Feed:
    """Gathers changed paths and passes them to `look`, which never runs twice at the same time."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._waiting: dict[str, None] = {}
        self._now = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, paths: Iterable[str]) -> None:
        """Add paths that may have changed."""
        for path in paths:
            if len(self._waiting) <= MANY:  # with more than that the whole workspace is scanned
                self._waiting[path] = None
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._hand_on())

    async def settle(self, seconds: float) -> None:
        """Wait until everything that was added is processed, at most `seconds`."""
        if self._task is not None and not self._task.done():
            self._now.set()
            await asyncio.wait([self._task], timeout=seconds)

    async def close(self) -> None:
        """Drop the waiting paths and stop."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _hand_on(self) -> None:
        while self._waiting:
            try:
                async with asyncio.timeout(DELAY):
                    await self._now.wait()
            except TimeoutError:
                pass
            self._now.clear()
            paths, self._waiting = tuple(self._waiting), {}
            await self._look(paths if len(paths) <= MANY else None)
