"""The port behind logins: a person who agrees to one, a browser that opens it, a place for what it gives.

Not here: the login itself (`login.py`, which is heavy), asking and opening (`server/mcp_logins.py`).
"""

from __future__ import annotations

from typing import Protocol

from codeagent_lsp.tools.variables import Vault


class Logins(Protocol):
    """What a server's login needs of the outside."""

    async def browse(self, server: str, where: str, url: str) -> bool:
        """Ask whether the login page at `url` of a server at `where` may be opened, and open it; False for no."""

    async def vault(self) -> Vault:
        """Where tokens are kept. Its methods block; ToolFailed when it fails."""

    def words(self, key: str, /, **values: object) -> str:
        """A sentence in the user's language."""
