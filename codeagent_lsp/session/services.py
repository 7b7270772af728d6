"""What a run needs from the outside, in one place; `app` fills it, tests fill it with fakes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from codeagent_lsp.agent.prompt import Environment
from codeagent_lsp.config import Settings
from codeagent_lsp.llm.base import Model
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.tools.permissions import Mode
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.workspace.editor import Editor
from codeagent_lsp.workspace.files import FileView, StagedView


@dataclass(frozen=True, slots=True)
class Services:
    """Ports and shared parts of a server.

    `view` makes a file view over a staged state; `show_review` opens a run's diff for the user; `mode`,
    `settings` and `language` are asked when needed, so that a change takes effect at once.
    """

    settings: Callable[[], Settings]
    mode: Callable[[], Mode]
    language: Callable[[], str]
    environment: Callable[[], Environment]
    open_model: Callable[[], Awaitable[Model]]
    view: Callable[[StagedView], FileView]
    editor: Editor
    inbox: Inbox
    registry: ToolRegistry
    show_review: Callable[[str], Awaitable[None]]
