"""What the index hears of changed files: gathered for a moment, then handed on together.

Not here: what is done about them (`service.py`), who tells. While the user types nothing is done: unsaved texts are
looked into when somebody asks (`overlay.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

DELAY = 0.3
MANY = 500

Look = Callable[[tuple[str, ...] | None], Awaitable[object]]
"""Looks at these files, by absolute path; None: at everything."""


class Feed:
    """Changed paths on their way to `look`, which is called once at a time."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._waiting: dict[str, None] = {}
        self._now = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, paths: Iterable[str]) -> None:
        """These may have changed."""
        for path in paths:
            if len(self._waiting) <= MANY:  # with more than that everything is looked at
                self._waiting[path] = None
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._hand_on())

    async def settle(self, seconds: float) -> None:
        """Come back when everything that was added is looked at, or after so many seconds."""
        if self._task is not None and not self._task.done():
            self._now.set()
            await asyncio.wait([self._task], timeout=seconds)

    async def close(self) -> None:
        """Forget what waits."""
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
