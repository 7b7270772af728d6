"""The light part of the server: client, settings, language, folders. Loaded at start-up.

Not here: the LSP handlers (`features.py`), and everything that may be loaded later (`backend.py`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from codeagent_lsp.errors import SettingError
from codeagent_lsp.protocol import TERMINAL_CLIENT
from codeagent_lsp.server.client import Client
from codeagent_lsp.server.clients import policy_of
from codeagent_lsp.server.server import CodeAgentServer, folders_of
from codeagent_lsp.server.settings import SettingsLink
from codeagent_lsp.texts import choose_language

if TYPE_CHECKING:
    from codeagent_lsp.config import Settings


class Front:
    """The connection to one client, as the other parts use it."""

    def __init__(self, server: CodeAgentServer) -> None:
        self.server = server
        self.settings_link = SettingsLink(self._bad_setting)
        self.client = Client(server, self.language)
        self._locale: str | None = None

    def settings(self) -> Settings:
        """Return the settings as they are now; they change while the server runs, so they are asked for at each use."""
        return self.settings_link.settings

    def language(self) -> str:
        """Return the user's language: the setting, or the client's locale."""
        return choose_language(self.settings().language, self._locale)

    def folders(self) -> list[str]:
        """Return the paths of the workspace folders."""
        return folders_of(self.server.workspace)

    def completes(self) -> bool:
        """Return whether completions by a model are wanted, and the client shows such."""
        shown = self.client.policy.inline or self.completes_plainly()
        return shown and self.settings().inline.enabled is not False

    def completes_plainly(self) -> bool:
        """Return whether such a completion is also an entry of the client's list: by default where it has no ghost
        text.
        """
        policy, wanted = self.client.policy, self.settings().inline.plain
        return policy.completion and (not policy.inline if wanted == "auto" else wanted)

    def interactive(self) -> bool:
        """Return whether a person works in an editor, so that one task follows the other in a session. The client of
        `codeagent-lsp run` and of batches does one.
        """
        return self.client.policy.name != TERMINAL_CLIENT

    def begin(self, params: types.InitializeParams) -> None:
        """Store what `initialize` says of the client."""
        self.client.policy = policy_of(params)
        self._locale = params.locale
        self.server.language = choose_language("auto", params.locale)
        self.settings_link.initialize(params.initialization_options)

    def describe_client(self) -> dict[str, Any]:
        """Return a row about this client for the doctor: what it supports and what it lacks."""
        policy = self.client.policy
        can = [name for name in policy.__slots__ if name != "name" and getattr(policy, name)]
        lacks = [name for name in policy.__slots__ if name != "name" and not getattr(policy, name)]
        detail = f"{policy.name or 'unnamed'}: {', '.join(can)}"
        return {"name": "client", "verdict": "ok", "detail": detail, "advice": f"not offered: {', '.join(lacks)}"}

    def _bad_setting(self, problem: SettingError) -> None:
        words = problem.localized(self.language())
        # Not at once: during `initialize`, LSP allows no message before the answer.
        asyncio.get_running_loop().call_soon(self._warn, words)

    def _warn(self, words: str) -> None:
        self.client.tell(words, types.MessageType.Warning)
