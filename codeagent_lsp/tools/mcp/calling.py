"""One call at work: who can be asked, who hears of progress, and its clock, which stands while a person is asked.

Not here: sending it (`connection.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from codeagent_lsp.tools.base import ToolContext
from codeagent_lsp.workspace.visible import one_line

NOTE_SECONDS = 0.5
NOTE = 160


@dataclass(slots=True)
class Calling:
    """`label` is the tool's full name, `seconds` what the server may take; `forms` counts what it asked the user."""

    context: ToolContext
    label: str
    seconds: float
    forms: int = 0
    _scope: asyncio.Timeout | None = None
    _told: float = field(default=-NOTE_SECONDS)

    @asynccontextmanager
    async def limited(self) -> AsyncGenerator[None, None]:
        """TimeoutError when what is done within takes too long."""
        try:
            async with asyncio.timeout(self.seconds) as self._scope:
                yield
        finally:
            self._scope = None

    @asynccontextmanager
    async def paused(self) -> AsyncGenerator[None, None]:
        """The clock stands."""
        scope, now = self._scope, asyncio.get_running_loop().time
        if scope is None or (ends := scope.when()) is None:
            yield
            return
        left = ends - now()
        scope.reschedule(None)
        try:
            yield
        finally:
            if self._scope is scope and not scope.expired():
                scope.reschedule(now() + left)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """The server says how far it is; the user is told now and then."""
        now = time.monotonic()
        if now - self._told < NOTE_SECONDS:
            return
        self._told = now
        far = f"{progress:g}/{total:g}" if total else f"{progress:g}"
        self.context.note(one_line(f"{self.label}: {far} {message or ''}", NOTE))
