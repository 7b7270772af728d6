"""The language servers of all sessions of one server process: made on demand, ended when idle.

Not here: the servers of one session (`session_servers.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from codeagent_lsp.language_servers.known import KnownServer

if TYPE_CHECKING:  # what an idle server does without
    from codeagent_lsp.language_servers.running_servers import OpenCopy
    from codeagent_lsp.language_servers.session_servers import SessionServers

IDLE_SECONDS = 300.0
MAX_SESSIONS = 2
MEMORY = 3 << 30


class LanguageServerPool:
    """The language servers of all sessions of one server process; none is started before a run needs one. Those of a
    session that is idle for 300 s are stopped, and of at most 2 sessions some are running.
    """

    def __init__(
        self,
        open_copy: OpenCopy,
        known: Callable[[], tuple[KnownServer, ...]],
        *,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._open_copy = open_copy
        self._known = known
        self._idle_seconds = idle_seconds
        self._sessions: dict[str, SessionServers] = {}
        self._watching: asyncio.Task[None] | None = None

    def of(self, session_id: str) -> SessionServers:
        """Return the servers of a session, made anew if it has none; none is started by this. The pool closes them."""
        servers = self._sessions.pop(session_id, None) or self._make()
        self._sessions[session_id] = servers  # the one used last stands last
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        return servers

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all servers that run or are being started, one for each session and project."""
        return tuple(name for servers in self._sessions.values() for name in servers.names)

    @property
    def warm(self) -> tuple[SessionServers, ...]:
        """The servers of those sessions that have one running or being started, the ones used last first."""
        return tuple(servers for servers in reversed(self._sessions.values()) if servers.names)

    async def close(self, session_id: str | None = None) -> None:
        """Stop the servers of a session and forget them, or those of all sessions for None, and wait for their end; an
        unknown session is ignored.
        """
        ending = list(self._sessions) if session_id is None else [session_id]
        if session_id is None and self._watching is not None:
            self._watching.cancel()
        made = [servers for name in ending if (servers := self._sessions.pop(name, None))]
        await asyncio.gather(*(servers.close() for servers in made))

    def _make(self) -> SessionServers:
        from codeagent_lsp.language_servers.session_servers import SessionServers  # late: an idle server has none

        return SessionServers(self._open_copy, self._known, MEMORY)

    async def _watch(self) -> None:
        """End the servers of sessions that are idle, or of the oldest ones if there are too many."""
        while self._sessions:
            await asyncio.sleep(min(self._idle_seconds / 4, 15.0))
            now = time.monotonic()
            running = [servers for servers in self._sessions.values() if servers.names]
            # The oldest first, by the order of their last use.
            free = [servers for servers in running if not servers.busy]
            too_many = len(running) - MAX_SESSIONS
            for number, servers in enumerate(free):
                if number < too_many or now - servers.used > self._idle_seconds:
                    await servers.rest()  # a run that has it may ask again
