"""The client's side of a connection and of one call, as MCP servers may see it. Light to import, unlike the connection.

A call has the context for questions to the user, progress notes, and a time limit, which stands still while the user is
asked. Not here: sending it (`connection.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.tools.variables.variables import Vault
from codeagent_lsp.workspace.text.visible import one_line

if TYPE_CHECKING:
    from codeagent_lsp.tools.context import ToolContext


Step = Literal["started", "granted", "refused", "abandoned", "renewed"]
"""The steps of a login. `refused`: by the user or the authorization server, or too late; `abandoned`: the server was
stopped meanwhile; `renewed`: without the user, by a stored refresh token.
"""

NOTE_SECONDS = 0.5
NOTE = 160


class Logins(Protocol):
    """Port: what a login in the browser needs from the rest of the program: the user, the keyring, masking, the audit
    log.
    """

    async def browse(self, server: str, where: str, url: str) -> bool:
        """Ask whether the login page at `url` of a server at `where` may be opened, and open it; False if not."""

    async def vault(self) -> Vault:
        """Return the vault for tokens. Its methods block; they raise ToolFailed if the keyring fails."""

    async def learn(self, secrets: Iterable[str]) -> None:
        """Have these secrets masked in all texts that are shown or stored from now on."""

    async def record(self, server: str, where: str, step: Step, reason: str = "") -> None:
        """Write a step of a login at the address `where` to the audit log."""

    def words(self, key: str, /, **values: object) -> str:
        """Return a sentence in the user's language."""


@dataclass(frozen=True, slots=True)
class Host:
    """What servers may see of the client: the workspace's folders and the environment. `changed` is called when a list
    of tools changes, `waits` when waiting for the user begins (True) or ends; `logins` is None if no login is possible;
    `network` is how other machines are reached.
    """

    folders: Callable[[], Sequence[str]]
    environ: Mapping[str, str]
    changed: Callable[[], None]
    logins: Logins | None = None
    waits: Callable[[bool], None] = lambda waiting: None
    network: NetworkSettings = NetworkSettings()


@dataclass(slots=True)
class Calling:
    """One running call. `label` is the tool's full name, `seconds` its time limit; `forms` counts the elicitations;
    `over` is set once it has ended.
    """

    context: ToolContext
    label: str
    seconds: float
    forms: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)
    _told: float = field(default=-NOTE_SECONDS)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Show the server's progress, in units of its own, of `total` if it is known, as a status line of at most 160
        characters, twice a second at most; others are dropped.
        """
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
        """Suspend all time limits during the body; pauses may overlap."""
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
