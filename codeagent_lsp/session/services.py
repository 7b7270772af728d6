"""Groups the ports through which runs use the rest of the program; `app` creates them, tests use fakes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from codeagent_lsp.agent.prompt import Environment
from codeagent_lsp.config import Settings
from codeagent_lsp.direct.aptitude import KnownForms
from codeagent_lsp.index.port import Indexing
from codeagent_lsp.language_servers.answers import ServerAnswer
from codeagent_lsp.llm.model import Model
from codeagent_lsp.session.inbox import Inbox
from codeagent_lsp.session.memory.knowledge import Knowledge
from codeagent_lsp.session.redaction.redactor import Redactor
from codeagent_lsp.session.screens import SessionScreens
from codeagent_lsp.shadow.shell import Approve, Shell
from codeagent_lsp.tools.artifacts.artifact_store import ArtifactStore
from codeagent_lsp.tools.context import PresentTexts
from codeagent_lsp.tools.diagnostics.difference import Diagnostics
from codeagent_lsp.tools.outputs import OutputStore
from codeagent_lsp.tools.permissions.approvals import StandingApprovals
from codeagent_lsp.tools.permissions.policy import Mode
from codeagent_lsp.tools.plan.plan import StepEdit
from codeagent_lsp.tools.registry import ToolRegistry
from codeagent_lsp.tools.variables.variables import Variables
from codeagent_lsp.workspace.changes.changeset import Editor
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView, StagedView
from codeagent_lsp.workspace.text.position import Encoding

if TYPE_CHECKING:  # needed for annotations only
    from codeagent_lsp.language_servers.session_servers import SessionServers


class EditorServers(Protocol):
    """Port: the language servers of the user's editor, if it lets this server ask them."""

    @property
    def encoding(self) -> Encoding:
        """The encoding in which positions in questions to the editor are counted."""

    async def ask(self, uri: str, method: str, params: Mapping[str, Any]) -> tuple[ServerAnswer, ...]:
        """Send an LSP request about a document and return the answers; () if the editor lends no server or none
        answers. `params` are those of the LSP method, positions in `encoding`.
        """


class ServerPool(Protocol):
    """Port: our own language servers, one group per session, of which none runs before it is asked."""

    def of(self, session_id: str) -> SessionServers:
        """Return the language servers of a session, none of which is started by this."""

    async def close(self, session_id: str | None = None) -> None:
        """End the servers of a session, or all for None, and wait for that."""


class SessionEnvironments(Protocol):
    """Port: makes and removes the private views of the workspace in which commands run, one per session."""

    async def shell(self, session_id: str, view: FileView, staging: Staging, approve: Approve) -> Shell:
        """Return the shell for the commands of one run. ToolFailed with the reason if nothing can run here."""

    async def close(self, session_id: str | None = None) -> None:
        """End the commands in the shadow of a session, or in all for None, and remove it."""


class PlanPages(Protocol):
    """Port: the plans of runs, by their ids, as pages that the user reads and, if `writable`, edits."""

    @property
    def writable(self) -> bool:
        """Whether the user can edit the pages."""

    async def offer(self, run_id: str) -> None:
        """Open the page of a plan that has not begun, unless the client has a better place to change it."""

    async def show(self, run_id: str, *, take_focus: bool = False) -> bool:
        """Open the page of a plan; return whether it was opened; with `take_focus` it gets the keyboard."""

    def written(self, run_id: str) -> Sequence[StepEdit] | None:
        """Return the steps that have not begun as the user has written them into the page; None without a change."""


@dataclass(frozen=True, slots=True)
class UserPorts:
    """The ports to the user of a server. The functions are called whenever a value is needed, so that changes take
    effect at once; `show_review` opens the diff of a run, by its id, and returns whether it did.
    """

    settings: Callable[[], Settings]
    mode: Callable[[], Mode]
    language: Callable[[], str]
    inbox: Inbox
    show_review: Callable[[str], Awaitable[bool]]
    plans: PlanPages


@dataclass(frozen=True, slots=True)
class ModelPorts:
    """The models of a server. `open_named` opens another model of the same endpoint by its name; without `answer_forms`
    every model counts as good at tool calls.
    """

    open: Callable[[], Awaitable[Model]]
    open_named: Callable[[str], Awaitable[Model]] | None = None
    answer_forms: KnownForms | None = None


@dataclass(frozen=True, slots=True)
class WorkspacePorts:
    """The workspace as the client has it. `view` makes a file view over a staged state; `diagnostics` is None if the
    client shows none, `indexing` if there is no code index, `lent` if the editor lends no language servers, `servers`
    if there are none of our own.

    `present` makes views of the present text if `view` keeps that of an earlier moment; `texts` asks an editor that
    does not report open texts by itself for them.
    """

    environment: Callable[[], Environment]
    view: Callable[[StagedView], FileView]
    editor: Editor
    diagnostics: Diagnostics | None = None
    indexing: Indexing | None = None
    lent: EditorServers | None = None
    servers: ServerPool | None = None
    present: Callable[[StagedView], FileView] | None = None
    texts: PresentTexts | None = None


@dataclass(frozen=True, slots=True)
class Shells:
    """The places where commands of sessions run, and the terminals and desktops shown to the user; None for no such
    screens.
    """

    environments: SessionEnvironments
    screens: SessionScreens | None = None


@dataclass(frozen=True, slots=True)
class SessionStorage:
    """The stores beside the workspace for one session, by the session's id."""

    outputs: Callable[[str], OutputStore]
    artifacts: Callable[[str], ArtifactStore]
    variables: Callable[[str], Variables] = lambda session_id: Variables()


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that all runs of a server share: groups of ports, tools, standing approvals, knowledge, and the
    redactor (None: secrets are not masked). Lives as long as the server.
    """

    user: UserPorts
    models: ModelPorts
    workspace: WorkspacePorts
    shells: Shells
    kept: SessionStorage
    registry: ToolRegistry
    standing: StandingApprovals
    knowledge: Knowledge
    redactor: Redactor | None = None

    def hide(self, text: str) -> str:
        """Return a text with secrets masked; unchanged without a redactor, or before it is loaded."""
        return text if self.redactor is None else self.redactor.hide(text)
