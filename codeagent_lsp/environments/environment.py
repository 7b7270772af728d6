"""The values and ports of environments: where commands of a session run, apart from everything else.

Not here: the two kinds (`local.py`, `container.py`), keeping track of them (`orchestrator.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.shadow.shell import Approve, Isolation, Shell
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView

if TYPE_CHECKING:
    from codeagent_lsp.shadow.workspace import BoundShell

EnvironmentKind = Literal["local", "container"]
Status = Literal["ready", "running"]
"""Whether a command runs in it now. One that was stopped is gone."""


class EnvironmentProblem(ToolFailed):
    """An environment that cannot be used, with the code that says what kind of problem it is."""

    def __init__(self, message: str, code: ErrorCode) -> None:
        super().__init__(message, code)


@dataclass(frozen=True, slots=True)
class Info:
    """What is known of an environment. `where` is the image of a container, '' for a local one."""

    name: str
    kind: EnvironmentKind
    status: Status
    isolation: Isolation
    folders: tuple[str, ...]
    where: str = ""


class Environment(Protocol):
    """A private view of the workspace in which commands run one at a time. It is opened by its first command."""

    @property
    def isolation(self) -> Isolation: ...

    def bind(self, view: FileView, staging: Staging, approve: Approve) -> Shell:
        """The commands of one run. They fail with an EnvironmentProblem where the environment does."""

    async def close(self) -> None:
        """Stop it, with all that runs in it; nothing of it is left. Also when this is cancelled."""


class PrivateView(Protocol):
    """A private view of its own, for one command that outlives the run that began it."""

    @property
    def isolation(self) -> Isolation: ...

    def bind(self, view: FileView, staging: Staging, approve: Approve) -> BoundShell:
        """What runs the command; what comes of it can be handed over to another run."""

    async def close(self) -> None:
        """Remove it; nothing of it is left."""


class Adapter(Protocol):
    """Makes environments of one kind."""

    @property
    def kind(self) -> EnvironmentKind: ...

    async def create(self, settings: ShellSettings, folders: Sequence[str]) -> Environment:
        """An environment over the workspace folders. SettingError or ToolFailed when there can be none here."""
