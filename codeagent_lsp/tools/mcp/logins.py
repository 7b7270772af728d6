"""The port behind logins: a person who agrees to one, a browser that opens it, a place for what it gives.

Not here: the login itself (`login.py`, which is heavy), asking and opening (`server/mcp_logins.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol

from codeagent_lsp.tools.variables.variables import Vault

Step = Literal["started", "granted", "refused", "abandoned", "renewed"]
"""What a login has come to. `refused` by the user or by whom they log in with, or late; `abandoned` when the server was
stopped meanwhile; `renewed` without the user, by what an earlier login gave."""


class Logins(Protocol):
    """What a server's login needs of the outside."""

    async def browse(self, server: str, where: str, url: str) -> bool:
        """Ask whether the login page at `url` of a server at `where` may be opened, and open it; False for no."""

    async def vault(self) -> Vault:
        """Where tokens are kept. Its methods block; ToolFailed when it fails."""

    async def learn(self, secrets: Iterable[str]) -> None:
        """These are keys of ours from now on, which nobody may see."""

    async def record(self, server: str, where: str, step: Step, reason: str = "") -> None:
        """Write down what a login has come to."""

    def words(self, key: str, /, **values: object) -> str:
        """A sentence in the user's language."""
