"""The values and ports of environments, where the commands of a session run, isolated from everything else, and of
their screens, the web terminal and the desktop: the request, the status, and the port by which tools start and stop
them.

Not here: the two kinds of environments (`local.py`, `container.py`), keeping track of them (`environments.py`), running
a screen and what is in it (`serving_screen.py`), which session has which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.errors import ErrorCode, ToolFailed
from codeagent_lsp.shadow.shell import Approve, Command, Isolation, Shell
from codeagent_lsp.workspace.changes.staging import Staging
from codeagent_lsp.workspace.files.file_view import FileView

if TYPE_CHECKING:
    from codeagent_lsp.shadow.workspace import BoundShell


EnvironmentKind = Literal["local", "container"]
EnvironmentStatus = Literal["ready", "running"]
"""`running` while a command runs in it; a stopped environment no longer exists."""


class EnvironmentProblem(ToolFailed):
    """Raised if an environment cannot be used; `code` is the kind of problem, one of the sandbox codes of `ErrorCode`
    such as `SANDBOX_NOT_FOUND`; the message is for the model.
    """

    def __init__(self, message: str, code: ErrorCode) -> None:
        super().__init__(message, code)


@dataclass(frozen=True, slots=True)
class Info:
    """The state of an environment at one moment; `name` is the id of its session, `kind` is `local` or `container`,
    `status` is `running` while a command runs in it, else `ready`; `folders` are absolute paths, `where` is the image
    of a container ('' for a local one).
    """

    name: str
    kind: EnvironmentKind
    status: EnvironmentStatus
    isolation: Isolation
    folders: tuple[str, ...]
    where: str = ""


class Environment(Protocol):
    """Port: the private view of one session's workspace, in which commands run one at a time. Opened by its first
    command, closed by the caller that created it.
    """

    @property
    def isolation(self) -> Isolation: ...

    def bind(self, view: FileView, staging: Staging, approve: Approve) -> Shell:
        """Return the shell of one run: its commands see `view`, and what they write goes to `staging` once `approve`
        allows it. They raise EnvironmentProblem if the environment fails.
        """

    async def close(self) -> None:
        """Let no further command begin, wait at most 30 s for the running one, and remove the environment. If
        cancelled, the removal continues.
        """


class PrivateView(Protocol):
    """Port: a private view of its own for one command that outlives the run that began it, such as a screen's. Closed
    by the caller that created it.
    """

    @property
    def isolation(self) -> Isolation: ...

    def bind(self, view: FileView, staging: Staging, approve: Approve) -> BoundShell:
        """Return the shell for the command, which sees `view` and whose changes go to `staging` as in
        `Environment.bind`; they can be handed over to another run.
        """

    async def close(self) -> None:
        """Wait at most 30 s for the command to end, as it is not killed on this machine, and remove the view; what it
        writes after that is lost. A container is removed with the command in it. If cancelled, the removal continues.
        """


class Adapter(Protocol):
    """Port: creates environments of one kind. One per server."""

    @property
    def kind(self) -> EnvironmentKind: ...

    async def create(self, settings: ShellSettings, folders: Sequence[str]) -> Environment:
        """Return a new environment over the workspace folders (absolute paths), which the caller closes. SettingError
        or ToolFailed if that is impossible here.
        """


ScreenKind = Literal["terminal", "desktop"]

PORTS: Mapping[ScreenKind, int] = {"terminal": 7681, "desktop": 6080}
"""The default port of each; if it is taken, the next free one is used."""
RESOLUTION = "1280x720"
DISPLAY = 1


@dataclass(frozen=True, slots=True)
class ScreenRequest:
    """The parameters of a screen. With `port` None the usual one or the next free one is taken; a given one is taken or
    refused. For a desktop, `resolution` is its size in pixels (`1280x720`) and `display` the number of its X display.
    """

    port: int | None = None
    resolution: str = RESOLUTION
    display: int = DISPLAY


@dataclass(frozen=True, slots=True)
class Recipe:
    """The recipe of a screen, `terminal` or `desktop`: the command in the private view, and the files of its page.

    `files` maps the names in the page to absolute paths; `socket` is the name, in the folder of reports, of the X
    server's socket, '' for a terminal.
    """

    kind: ScreenKind
    command: Command
    files: Mapping[str, str]
    socket: str = ""


@dataclass(frozen=True, slots=True)
class ScreenStatus:
    """The state of a screen at one moment. `url` contains the token that opens it; `pid` is the program that it shows;
    `seconds` are since the start; `why` is the reason, in English, why it no longer runs, '' if it never did or still
    does.
    """

    kind: ScreenKind
    running: bool = False
    url: str = ""
    port: int = 0
    pid: int = 0
    seconds: float = 0.0
    isolation: str = ""
    resolution: str = RESOLUTION
    display: int = DISPLAY
    why: str = ""

    @property
    def address(self) -> str:
        """The address without the token, which opens nothing, for display; '' if it is not running."""
        return f"http://127.0.0.1:{self.port}/" if self.running else ""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The result of stopping a screen: the absolute paths whose changes are staged, and pairs of path and reason for
    those left out.
    """

    was_running: bool
    staged: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


class Screens(Protocol):
    """Port: the web terminal and the desktop of a session, at most one of each, as one run sees them."""

    @property
    def shows(self) -> bool:
        """Whether there is a user whose browser can open an address."""

    def status(self, kind: ScreenKind) -> ScreenStatus:
        """Return the current state of the screen, `terminal` or `desktop`; one that was never started is
        not running.
        """

    async def start(self, kind: ScreenKind, wanted: ScreenRequest) -> ScreenStatus:
        """Start a screen and return its state; if it runs already, only that. Waits up to 90 s for it to answer.
        ToolFailed or SettingError with advice if that is impossible.
        """

    async def stop(self, kind: ScreenKind) -> Stopped:
        """Stop a screen with all its processes, wait for its end, and stage what was written in it. One that does not
        run is no error.
        """

    async def show(self, url: str) -> bool:
        """Open an address in the user's browser, or else show it to the user; return whether it was opened."""
