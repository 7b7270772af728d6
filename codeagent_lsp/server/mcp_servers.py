"""Builds the servers of tools of a language server: MCP servers, and the workers of the user's own tools.

Not here: the servers (`tools/mcp`, `tools/own`), the commands about them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from lsprotocol import types

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.server.announcer import Announcer
from codeagent_lsp.server.front import Front
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.session.redaction.redactor import Redactor
from codeagent_lsp.state import state_root
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.tools.mcp.host import Step
from codeagent_lsp.tools.mcp.listing import Pins
from codeagent_lsp.tools.mcp.servers import McpServers
from codeagent_lsp.tools.own.own_servers import OwnTools, OwnToolsPlace
from codeagent_lsp.tools.own.tool_sources import ToolSource
from codeagent_lsp.tools.skills.trust import Trust, WorkspaceItem, among_all
from codeagent_lsp.tools.variables.variables import Vault, in_thread, open_keyring
from codeagent_lsp.workspace.text.visible import one_line, visible

if TYPE_CHECKING:
    from codeagent_lsp.server.front import Client
    from codeagent_lsp.session.memory.knowledge import Knowledge
    from codeagent_lsp.tools.registry import ToolRegistry

MAX_NAME = 300


class Parts(Protocol):
    """Port: the parts of a server that the servers of tools use."""

    front: Front
    state: Path
    registry: ToolRegistry
    inbox: Inbox
    redactor: Redactor
    announcer: Announcer
    knowledge: Knowledge

    def brought(self) -> tuple[WorkspaceItem, ...]:
        """Return what the workspace brings that needs the user's trust. Blocks."""


def mcp_servers(parts: Parts) -> McpServers:
    """Return the MCP servers that the settings name, none of them started. Their tools go into the registry."""
    front, redactor = parts.front, parts.redactor

    def tell(problem: McpProblem) -> None:
        language = front.language()
        words = text("mcp.off", language, problem=redactor.hide(problem.localized(language)))
        parts.announcer.tell(words, types.MessageType.Warning)

    return McpServers(
        lambda: front.settings().mcp.servers,
        parts.registry,
        Pins(parts.state / "mcp.json"),
        front.folders,
        os.environ,
        tell,
        lambda: front.settings().tools.disabled,
        McpLogins(front.client, parts.inbox, redactor, partial(open_keyring, ":".join(front.folders()))),
        lambda: front.settings().network,
    )


# Logins to MCP servers from the user's side: a question, then the page in the browser, opened by the editor.


class McpLogins:
    """The `Logins` port of one server. `open_vault` blocks; if it returns None, logins last as long as this process."""

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
        """Ask the user whether to log in to the server named `server`, at `where`; then open the page `url` in the
        browser, or show its address. Return whether the user agreed, False without an answer.
        """
        deny, opened = self.words("choice.deny"), self.words("mcp.login.open")
        title = self.words("mcp.login", name=server, where=where, host=urlsplit(url).hostname or "")
        question = Question("approval", title, (deny, opened), danger=True)
        if await self._inbox.ask("", question, self._redactor.observe) != (opened,):
            return False
        if not await self._client.show(url, external=True):
            self._client.tell(self.words("mcp.login.by_hand", name=server, url=url))
        return True

    async def vault(self) -> Vault:
        """Return the keyring, opened at the first call, or a vault in memory if there is none or it does not answer
        within 30 s; the same one from then on.
        """
        if self._vault is None:
            try:
                opened = await in_thread(self._open_vault)
            except ToolFailed:  # the keyring did not answer
                opened = None
            if self._vault is None:  # another login may have asked at the same time
                # Without a keyring a login lasts as long as this process.
                self._vault = opened or Memory()
        return self._vault

    async def learn(self, secrets: Iterable[str]) -> None:
        """Mask these secrets from now on, for models, in records and wherever something is shown. Waits until that is
        so.
        """
        await self._redactor.learn(secrets)

    async def record(self, server: str, where: str, step: Step, reason: str = "") -> None:
        """Write a step of a login to the audit log; `reason` is why it failed, '' if it did not."""
        await self._redactor.note("login", server=server, where=where, step=step, reason=reason)

    def words(self, key: str, /, **values: object) -> str:
        """Return a sentence of the text catalogue in the user's language. KeyError for an unknown key."""
        return text(key, self._client.language, **values)


class Memory:
    """A vault in memory, for machines without a keyring; its values are lost when the process ends."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        """Return a value, None when there is none."""
        return self._values.get(name)

    def set(self, name: str, value: str) -> None:
        """Keep a value in memory, in place of an earlier one."""
        self._values[name] = value


# Builds the own tools of a language server, and asks its user about them. Not here: the tools (`tools/own`).


def own_tools(parts: Parts) -> OwnTools:
    """Return the user's own tools, for which nothing was searched yet; found ones go into the registry."""
    settings = parts.front.settings
    place = OwnToolsPlace(
        state_root(),
        parts.front.folders,
        os.environ,
        lambda: float(settings().tools.timeout_seconds),
        lambda: settings().tools.disabled,
    )
    pins, trust = Pins(parts.state / "own-tools.json"), Trust(state_root() / "trusted-tools.json")
    return OwnTools(place, parts.registry, pins, trust, parts.knowledge.trust, _EditorUser(parts))


class _EditorUser:
    """The user at the editor."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        """Ask a question that belongs to no run."""
        return await self._parts.inbox.ask("", question, self._parts.redactor.observe)

    async def trusts(self, source: ToolSource, *, changed: bool) -> bool | None:
        """Ask whether the source may run; about one of the workspace together with what else it brings."""
        language = self._parts.front.language()
        if source.place == "project":
            words = partial(_words, language)
            answer = await among_all(self._parts.knowledge.trust, source.approval, self, words, self._parts.brought)
            if answer != "singly":
                return answer
        key = "own.trust_package" if source.place == "package" else "own.trust_changed" if changed else "own.trust"
        deny, trust = text("choice.deny", language), text("own.run", language)
        title = text(key, language, name=one_line(source.name, MAX_NAME))
        question = Question("approval", title, (deny, trust), detail=visible(source.code), danger=True)
        chosen = await self.ask(question)
        return None if chosen is None else chosen == (trust,)

    def told(self, problem: McpProblem) -> None:
        """Show a warning."""
        words = self._parts.redactor.hide(problem.localized(self._parts.front.language()))
        self._parts.announcer.tell(words, types.MessageType.Warning)


def _words(language: str, key: str, /, **values: object) -> str:
    return text(key, language, **values)
