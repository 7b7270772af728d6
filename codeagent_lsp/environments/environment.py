"""The values and ports of environments: where the commands of a session run, isolated from everything else.

Not here: the two kinds (`local.py`, `container.py`), keeping track of them (`environments.py`).
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
"""`running` while a command runs in it; a stopped environment no longer exists."""


class EnvironmentProblem(ToolFailed):
    """Raised for an environment that cannot be used, with a code for the kind of problem."""

    def __init__(self, message: str, code: ErrorCode) -> None:
        super().__init__(message, code)


@dataclass(frozen=True, slots=True)
class Info:
    """The state of an environment. `where` is the image of a container, '' for a local one."""

    name: str
    kind: EnvironmentKind
    status: Status
    isolation: Isolation
    folders: tuple[str, ...]
    where: str = ""


class Environment(Protocol):
    """Port: a private view of the workspace in which commands run one at a time, opened by its first command."""

    @property
    def isolation(self) -> Isolation: ...

    def bind(self, view: FileView, staging: Staging, approve: Approve) -> Shell:
        """Return the shell of one run. Its commands raise EnvironmentProblem if the environment fails."""

    async def close(self) -> None:
        """Stop it with everything that runs in it and remove it; also if this is cancelled."""


class PrivateView(Protocol):
    """Port: a private view of its own, for one command that outlives the run that began it."""

    @property
    def isolation(self) -> Isolation: ...

    def bind(self, view: FileView, staging: Staging, approve: Approve) -> BoundShell:
        """Return the shell of the command, whose changes can be handed over to another run."""

    async def close(self) -> None:
        """Remove the view."""


class Adapter(Protocol):
    """Port: creates environments of one kind."""

    @property
    def kind(self) -> EnvironmentKind: ...

    async def create(self, settings: ShellSettings, folders: Sequence[str]) -> Environment:
        """Return a new environment over the workspace folders. SettingError or ToolFailed if that
        is impossible here.
        """
