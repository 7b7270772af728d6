"""The port of logins: consent of the user, a browser, and storage.

Not here: the login itself (`login.py`, which is heavy), asking and opening (`server/mcp_servers.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

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
