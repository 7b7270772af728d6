"""Logins to MCP servers from the user's side: a question, then the page in the browser, opened by the editor.

The user's answer and each step of a login are in the audit log, without any secret. Not here: the login
(`tools/mcp/login.py`), what is kept of it (`tools/mcp/kept_login.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.mcp.logins import Step
from codeagent_lsp.tools.variables.variables import Vault, in_thread

if TYPE_CHECKING:
    from codeagent_lsp.server.client import Client
    from codeagent_lsp.session.inbox import Inbox
    from codeagent_lsp.session.redaction.redactor import Redactor


class McpLogins:
    """The `Logins` of a server. `open_vault` blocks; where it returns None, logins last as long as this process."""

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        redactor: Redactor,
        open_vault: Callable[[], Vault | None],
    ) -> None:
        self._client = client
        self._inbox = inbox
        self._redactor = redactor
        self._open_vault = open_vault
        self._vault: Vault | None = None

    async def browse(self, server: str, where: str, url: str) -> bool:
        """Ask the user; then open the page in the browser, or show its address. Return whether the user agreed."""
        deny, opened = self.words("choice.deny"), self.words("mcp.login.open")
        title = self.words("mcp.login", name=server, where=where, host=urlsplit(url).hostname or "")
        question = Question("approval", title, (deny, opened), danger=True)
        if await self._inbox.ask("", question, self._redactor.observe) != (opened,):
            return False
        if not await self._client.show(url, external=True):
            self._client.tell(self.words("mcp.login.by_hand", name=server, url=url))
        return True

    async def vault(self) -> Vault:
        """Return the keyring, or a vault in memory where there is none."""
        if self._vault is None:
            try:
                opened = await in_thread(self._open_vault)
            except ToolFailed:  # the keyring did not answer
                opened = None
            if self._vault is None:  # another login may have asked at the same time
                self._vault = opened or Memory()
        return self._vault

    async def learn(self, secrets: Iterable[str]) -> None:
        """Mask these secrets from now on, for models, in records and wherever something is shown."""
        await self._redactor.learn(secrets)

    async def record(self, server: str, where: str, step: Step, reason: str = "") -> None:
        """Write a line to the audit log."""
        await self._redactor.note("login", server=server, where=where, step=step, reason=reason)

    def words(self, key: str, /, **values: object) -> str:
        """Return a sentence in the user's language."""
        return text(key, self._client.language, **values)


class Memory:
    """A vault in memory; its values are lost when the process ends."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        """Return a value, None when there is none."""
        return self._values.get(name)

    def set(self, name: str, value: str) -> None:
        """Store a value."""
        self._values[name] = value
