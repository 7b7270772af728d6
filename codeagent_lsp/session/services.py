"""What a run needs from the outside, in one place; `app` fills it, tests fill it with fakes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from codeagent_lsp.agent.forms.known import KnownForms
from codeagent_lsp.agent.prompt import Environment
from codeagent_lsp.config import Settings
from codeagent_lsp.index.port import Indexing
from codeagent_lsp.llm.model import Model
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.session.memory.knowledge import Knowledge
from codeagent_lsp.session.redaction.redactor import Redactor
from codeagent_lsp.session.screens import SessionScreens
from codeagent_lsp.shadow.shell import Approve, Shell
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.diagnostics.port import Diagnostics
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.permissions.approvals import StandingApprovals
from codeagent_lsp.tools.permissions.decision import Mode
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.variables.variables import Variables
from codeagent_lsp.workspace.changes.editor import Editor
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView, StagedView


class Shadows(Protocol):
    """The shadow workspaces of a server, one per session."""

    async def shell(self, session_id: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        """What runs the commands of one run. ToolFailed when nothing can run here, with the reason."""

    async def close(self, session_id: str | None = None) -> None:
        """Remove the shadow of a session, or all."""


@dataclass(frozen=True, slots=True)
class Services:
    """Ports and shared parts of a server.

    `view` makes a file view over a staged state; `show_review` and `show_plan` open a run's diff and plan for the user;
    `mode`, `settings` and `language` are asked when needed, so that a change takes effect at once;
    `outputs`, `artifacts` and `variables` are those of a session by its id; without `answer_forms` all models are
    taken to be good at tool calls.
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
    show_plan: Callable[[str], Awaitable[None]]
    shadows: Shadows
    standing: StandingApprovals
    outputs: Callable[[str], OutputStore]
    artifacts: Callable[[str], ArtifactStore]
    knowledge: Knowledge
    open_named: Callable[[str], Awaitable[Model]] | None = None
    diagnostics: Diagnostics | None = None
    redactor: Redactor | None = None
    variables: Callable[[str], Variables] = lambda session_id: Variables()
    indexing: Indexing | None = None
    screens: SessionScreens | None = None
    answer_forms: KnownForms | None = None
