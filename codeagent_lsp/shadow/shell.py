"""The values and ports of the shadow workspace: a command, what came of it, and what it wrote.

Not here: how a command is kept from the disk (`overlay.py`, `copy.py`, `direct.py`), how a process is run
(`process.py`), how what it wrote becomes staged changes (`workspace.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

Level = Literal["overlay", "copy", "direct", "container"]
Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, str], None]

REPORT_VARIABLE = "CODEAGENT_REPORTS"


def no_output(stream: Stream, text: str) -> None:
    """The default of everything that passes output on."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """What a level promises. `reason` says in English why it is not a better one, and what to do about it.

    `confined`: nothing outside the private view can be written; `offline`: no network unless a command is allowed
    it; `hidden`: credentials and the rest of the home folder cannot be read.
    """

    level: Level
    confined: bool
    offline: bool
    hidden: bool
    reason: str = ""

    @property
    def complete(self) -> bool:
        """Whether a command can do no harm, so that it needs no question."""
        return self.confined and self.offline and self.hidden


@dataclass(frozen=True, slots=True)
class Command:
    """A command to run: a bash script or the words of a program; `cwd` is an absolute path in the workspace.

    `seconds` and `output_bytes` None mean the settings. A program that writes reports for us finds the folder for
    them in the environment variable `REPORT_VARIABLE`; they come back in `Finished.reports`.

    With `proposes` False nothing it writes becomes a staged change: for a command that only looks. With `whole` a long
    output is kept in a file of its own, unmasked, which belongs to the caller, who has to remove it.

    Both streams come as `stdout`, in exact order; `apart` tells them apart, and then the order between them is nearly
    that of writing.
    """

    script: str | tuple[str, ...]
    cwd: str
    seconds: float | None = None
    output_bytes: int | None = None
    network: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    apart: bool = False
    proposes: bool = True
    whole: bool = False


Ending = Literal["exited", "timeout", "output", "memory", "processes", "disk"]


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended: by itself, or stopped at one of the limits.

    `exit_code` is 128 + signal for a process that a signal ended, as in a shell. `output` is both streams in the
    order they came, as text, head and tail when it is long; `size` counts all bytes, `whole` is the file that holds
    all of them when `output` does not and that was wanted. `reports` are the files the command wrote into its report
    folder.
    """

    exit_code: int
    output: str
    size: int = 0
    ending: Ending = "exited"
    seconds: float = 0.0
    whole: str | None = None
    reports: Mapping[str, bytes] = field(default_factory=dict)


WrittenKind = Literal["text", "deleted", "mode", "symlink", "binary", "large", "special", "git"]


@dataclass(frozen=True, slots=True)
class Written:
    """One file that a command left changed, by absolute path in the workspace. `data` is there for `text` only.

    Kinds other than `text` and `deleted` cannot become edits: a changed mode, a symbolic link, a binary or too large
    file, a device, socket or pipe, anything in a version control folder. They are told, not proposed.
    """

    path: str
    kind: WrittenKind
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Writings:
    """All that a command wrote and that no ignore rule hides; `more` counts files beyond the limit."""

    files: tuple[Written, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a command at some level: program and arguments, where, and its whole environment.

    `reports` is the real folder behind `REPORT_VARIABLE`.
    """

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    reports: str


class Layer(Protocol):
    """The private view of the workspace at one level, for one session; commands in it run one at a time.

    All methods block and are called from a worker thread.
    """

    @property
    def isolation(self) -> Isolation: ...

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """Bring the view in step: the disk, and over it `wanted` (None: no such file) by absolute real path.

        Text that an earlier command wrote and that is not wanted any more is taken back; ignored output and what
        could not become an edit stays.
        """

    def launch(self, command: Command) -> Launch:
        """How to start `command` in the view as it was prepared."""

    def writings(self) -> Writings:
        """What is different from what was prepared. Costs by what changed, where the level allows it."""

    def close(self) -> None:
        """Remove the view and all it holds."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A command that has run: how it ended, and what became of what it wrote, by absolute path.

    `staged` became staged changes; `left_out` says for each other file, in English, why it did not.
    """

    finished: Finished
    isolation: Isolation
    staged: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


class Shell(Protocol):
    """Runs commands for one run, on its staged changes and the user's buffers. What tools use."""

    @property
    def isolation(self) -> Isolation: ...

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        """Run to the end. Cancelling kills the whole process tree. ToolFailed when it could not be started."""


Approve = Callable[[tuple[str, ...]], Awaitable[bool]]
"""Asks the user whether files that can run code later may become proposed changes."""
