"""The state of one MCP call: the context for questions to the user, progress notes, and the time limit.

Not here: sending it (`connection.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codeagent_lsp.workspace.text.visible import one_line

if TYPE_CHECKING:
    from codeagent_lsp.tools.context import ToolContext

NOTE_SECONDS = 0.5
NOTE = 160


@dataclass(slots=True)
class Calling:
    """One running call. `label` is the tool's full name, `seconds` its time limit; `forms` counts the elicitations."""

    context: ToolContext
    label: str
    seconds: float
    forms: int = 0
    _told: float = field(default=-NOTE_SECONDS)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Show the server's progress as a status line, at most every NOTE_SECONDS."""
        now = time.monotonic()
        if now - self._told < NOTE_SECONDS:
            return
        self._told = now
        far = f"{progress:g}/{total:g}" if total else f"{progress:g}"
        self.context.note(one_line(f"{self.label}: {far} {message or ''}", NOTE))


# Time limits that are suspended while the user is asked.


class Clock:
    """The time limits of one connection; all of them are suspended while any pause lasts."""

    def __init__(self) -> None:
        self._left: dict[asyncio.Timeout, float] = {}
        self._pauses = 0

    @asynccontextmanager
    async def limited(self, seconds: float) -> AsyncGenerator[None, None]:
        """Limit the body to `seconds`, not counting pauses. TimeoutError if it takes longer."""
        # Begun during a pause, it has all its seconds left when that ends.
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
        # asyncio refuses to move a limit that has passed.
        return [scope for scope in self._left if not scope.expired()]
