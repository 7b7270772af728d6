"""The client's side of a connection, as MCP servers may see it. Light to import, unlike the connection itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from codeagent_lsp.config import NetworkSettings
from codeagent_lsp.tools.variables.variables import Vault

Step = Literal["started", "granted", "refused", "abandoned", "renewed"]
"""The steps of a login. `refused`: by the user or the authorization server, or too late; `abandoned`: the server was
stopped meanwhile; `renewed`: without the user, by a stored refresh token.
"""


class Logins(Protocol):
    """Port: the parts outside of this package that a login needs."""

    async def browse(self, server: str, where: str, url: str) -> bool:
        """Ask whether the login page at `url` of a server at `where` may be opened, and open it; False if not."""

    async def vault(self) -> Vault:
        """Return the vault for tokens. Its methods block; ToolFailed if it fails."""

    async def learn(self, secrets: Iterable[str]) -> None:
        """Mask these secrets everywhere from now on."""

    async def record(self, server: str, where: str, step: Step, reason: str = "") -> None:
        """Record a step of a login."""

    def words(self, key: str, /, **values: object) -> str:
        """Return a sentence in the user's language."""


@dataclass(frozen=True, slots=True)
class Host:
    """The client's side as servers may see it: the workspace's folders and the environment. `changed` is called when a
    list of tools changes, `waits` when waiting for the user begins (True) or ends; `logins` is None where no login is
    possible; `network` is how other machines are reached.
    """

    folders: Callable[[], Sequence[str]]
    environ: Mapping[str, str]
    changed: Callable[[], None]
    logins: Logins | None = None
    waits: Callable[[bool], None] = lambda waiting: None
    network: NetworkSettings = NetworkSettings()
