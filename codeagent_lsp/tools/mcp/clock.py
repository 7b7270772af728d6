"""Time limits that are suspended while the user is asked.

Not here: what is limited (`connection.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Clock:
    """The time limits of one connection; all of them are suspended while any pause lasts."""

    def __init__(self) -> None:
        self._left: dict[asyncio.Timeout, float] = {}
        self._pauses = 0

    @asynccontextmanager
    async def limited(self, seconds: float) -> AsyncGenerator[None, None]:
        """Limit the body to `seconds`, not counting pauses. TimeoutError if it takes longer."""
        async with asyncio.timeout(None if self._pauses else seconds) as scope:
            self._left[scope] = seconds
            try:
                yield
            finally:
                del self._left[scope]

    @asynccontextmanager
    async def paused(self) -> AsyncGenerator[None, None]:
        """Suspend all time limits during the body."""
        now = asyncio.get_running_loop().time
        self._pauses += 1
        if self._pauses == 1:
            for scope in self._running():
                ends = scope.when()
                self._left[scope] = 0.0 if ends is None else ends - now()
                scope.reschedule(None)
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                for scope in self._running():
                    scope.reschedule(now() + self._left[scope])

    def _running(self) -> list[asyncio.Timeout]:
        return [scope for scope in self._left if not scope.expired()]
