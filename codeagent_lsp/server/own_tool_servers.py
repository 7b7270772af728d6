"""Builds the own tools of a language server, and asks its user about them. Not here: the tools (`tools/own`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from codeagent_lsp.server.announcer import Announcer
from codeagent_lsp.server.front import Front
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.session.redaction.redactor import Redactor
from codeagent_lsp.state import state_root
from codeagent_lsp.texts import text
from codeagent_lsp.tools.asking import Question
from codeagent_lsp.tools.mcp.errors import McpProblem
from codeagent_lsp.tools.mcp.pinning import Pins
from codeagent_lsp.tools.own.own_servers import OwnTools, OwnToolsPlace
from codeagent_lsp.tools.own.tool_sources import ToolSource
from codeagent_lsp.tools.skills.trust import Trust
from codeagent_lsp.workspace.text.visible import one_line, visible

if TYPE_CHECKING:
    from codeagent_lsp.tools.registry import ToolRegistry

MAX_NAME = 300


def own_tools(
    front: Front,
    registry: ToolRegistry,
    inbox: Inbox,
    redactor: Redactor,
    announcer: Announcer,
    state: Path,
    project_trust: Trust,
) -> OwnTools:
    """Return the user's own tools, none of them looked for yet. They go into `registry`."""
    settings = front.settings
    place = OwnToolsPlace(
        state_root(),
        front.folders,
        os.environ,
        lambda: float(settings().tools.timeout_seconds),
        lambda: settings().tools.disabled,
    )
    trust = Trust(state_root() / "trusted-tools.json")
    user = _EditorUser(front, inbox, redactor, announcer)
    return OwnTools(place, registry, Pins(state / "own-tools.json"), trust, project_trust, user)


class _EditorUser:
    """The user at the editor."""

    def __init__(self, front: Front, inbox: Inbox, redactor: Redactor, announcer: Announcer) -> None:
        self._front = front
        self._inbox = inbox
        self._redactor = redactor
        self._announcer = announcer

    async def trusts(self, source: ToolSource, *, changed: bool) -> bool | None:
        """Ask whether the source may run."""
        language = self._front.language()
        key = "own.trust_package" if source.place == "package" else "own.trust_changed" if changed else "own.trust"
        deny, trust = text("choice.deny", language), text("own.run", language)
        title = text(key, language, name=one_line(source.name, MAX_NAME))
        question = Question("approval", title, (deny, trust), detail=visible(source.code), danger=True)
        answer = await self._inbox.ask("", question, self._redactor.observe)
        return None if answer is None else answer == (trust,)

    def told(self, problem: McpProblem) -> None:
        """Show a warning."""
        words = self._redactor.hide(problem.localized(self._front.language()))
        self._announcer.tell(words, types.MessageType.Warning)
