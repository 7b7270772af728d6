"""What the index hears of changed files: gathered for a moment, then handed on together; and how a client tells.

Not here: what is done about them (`index/service.py`). While the user types nothing is done: unsaved texts are looked
into when somebody asks (`index/overlay.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.errors import EditorError

if TYPE_CHECKING:
    from codeagent_lsp.server.server import CodeAgentServer

DELAY = 0.3
MANY = 500
REGISTER_SECONDS = 10.0

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


async def watch(server: CodeAgentServer) -> bool:
    """Ask the client to tell of changed files; whether it will."""
    options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(glob_pattern="**/*")])
    registration = types.Registration("codeagent-index", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
    try:
        params = types.RegistrationParams([registration])
        await server.request(types.CLIENT_REGISTER_CAPABILITY, params, REGISTER_SECONDS)
    except EditorError:
        return False
    return True
