"""Builds the own tools of a language server, and asks its user about them. Not here: the tools (`tools/own`)."""

from __future__ import annotations

import os
from functools import partial
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
from codeagent_lsp.tools.skills.desk import Brings, among_all
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
    brings: Brings,
) -> OwnTools:
    """Return the user's own tools, none of them looked for yet. They go into `registry`; `brings` returns what else of
    the workspace needs the user's trust.
    """
    settings = front.settings
    place = OwnToolsPlace(
        state_root(),
        front.folders,
        os.environ,
        lambda: float(settings().tools.timeout_seconds),
        lambda: settings().tools.disabled,
    )
    trust = Trust(state_root() / "trusted-tools.json")
    user = _EditorUser(front, inbox, redactor, announcer, project_trust, brings)
    return OwnTools(place, registry, Pins(state / "own-tools.json"), trust, project_trust, user)


class _EditorUser:
    """The user at the editor."""

    def __init__(
        self,
        front: Front,
        inbox: Inbox,
        redactor: Redactor,
        announcer: Announcer,
        project_trust: Trust,
        brings: Brings,
    ) -> None:
        self._front = front
        self._inbox = inbox
        self._redactor = redactor
        self._announcer = announcer
        self._project_trust = project_trust
        self._brings = brings

    async def ask(self, question: Question) -> tuple[str, ...] | None:
        """Ask a question that belongs to no run."""
        return await self._inbox.ask("", question, self._redactor.observe)

    async def trusts(self, source: ToolSource, *, changed: bool) -> bool | None:
        """Ask whether the source may run; about one of the workspace together with what else it brings."""
        language = self._front.language()
        if source.place == "project":
            words = partial(_words, language)
            answer = await among_all(self._project_trust, source.approval, self, words, self._brings)
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
        words = self._redactor.hide(problem.localized(self._front.language()))
        self._announcer.tell(words, types.MessageType.Warning)


def _words(language: str, key: str, /, **values: object) -> str:
    return text(key, language, **values)
