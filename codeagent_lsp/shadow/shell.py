"""The values and ports of the shadow workspace: a command, what ends it if it does not end by itself, its result, and
what it wrote.

Not here: how a command is kept from the disk (`overlay.py`, `copying.py`), how a process is run and its limits are
enforced (`process.py`, `guarded.py`, `job.py`), how what it wrote becomes staged changes (`workspace.py`).
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from codeagent_lsp.shadow.control_group import parent_group
from codeagent_lsp.shadow.guard_messages import INTERVAL_SECONDS
from codeagent_lsp.system import memory_bytes

Level = Literal["overlay", "copy", "direct", "container"]
Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, str], None]
Stdin = bytes | AsyncIterable[bytes]

REPORT_VARIABLE = "CODEAGENT_REPORTS"


def no_output(stream: Stream, text: str) -> None:
    """Ignore output: the default of all output callbacks."""


async def in_pieces(stdin: Stdin) -> AsyncIterator[bytes]:
    """Yield the bytes for a command's standard input, as they come: given ones as one piece."""
    if isinstance(stdin, bytes):
        yield stdin
    else:
        async for piece in stdin:
            yield piece


@dataclass(frozen=True, slots=True)
class Isolation:
    """The guarantees of a level (`overlay`, `copy`, `direct` or `container`). `confined`: nothing outside the private
    view can be written; `offline`: no network unless a command is allowed it; `hidden`: credentials and the rest of the
    home folder cannot be read.

    `reason` is, in English, why it is not a better level, and what to do about it; '' if it is the best.
    """

    level: Level
    confined: bool
    offline: bool
    hidden: bool
    reason: str = ""

    @property
    def complete(self) -> bool:
        """Whether a command can do no harm, so that it need not be approved: it is `confined`, `offline`
        and `hidden`.
        """
        return self.confined and self.offline and self.hidden


@dataclass(frozen=True, slots=True)
class Command:
    """A command to run: a bash script or the words of a program; `cwd` is an absolute path in the workspace. `seconds`
    and `output_bytes` default to the settings. A program can write reports into the folder in the environment variable
    `REPORT_VARIABLE`; they are returned in `Finished.reports`.

    With `proposes` False nothing that it writes becomes a staged change. With `whole` a long output is kept, unmasked,
    in a file that the caller has to remove. All output is `stdout`, in exact order; with `apart` the streams are
    separate, and their relative order is approximate. Of a long output the lines with one of `keywords`, in small
    letters, are kept.

    `stdin` is what the command can read from its standard input: bytes, or pieces that come later.
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
    stdin: Stdin = b""
    keywords: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The command as one line of bash, for people and records: a script as it is, words quoted."""
        return self.script if isinstance(self.script, str) else shlex.join(self.script)


Ending = Literal["exited", "timeout", "output", "memory", "processes", "disk"]


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a command: `ending` is `exited`, or the limit at which it was stopped: `timeout`, `output`, `memory`,
    `processes` or `disk`. `exit_code` is 128 + signal number for a process ended by a signal, as in bash; `seconds` is
    how long it ran. `output` is the text of both streams in order, of a long one head, tail and lines of interest;
    `size` counts all bytes, `whole` is the file with the complete output if that was requested and `output` is not
    complete. `reports` are the files that the command wrote into its report folder, `streams` the text of each stream
    by itself, with `Command.apart`.
    """

    exit_code: int
    output: str
    size: int = 0
    ending: Ending = "exited"
    seconds: float = 0.0
    whole: str | None = None
    reports: Mapping[str, bytes] = field(default_factory=dict)
    streams: Mapping[Stream, str] = field(default_factory=dict)


WrittenKind = Literal["text", "deleted", "mode", "symlink", "binary", "large", "special", "deep", "git"]


@dataclass(frozen=True, slots=True)
class Written:
    """One file that a command changed, by absolute path in the workspace. `data` is set for `text` only; `runs` says
    that it can be executed now and could not before.

    Only the kinds `text` and `deleted`, and a `mode` that makes a text executable, can become edits. The others are
    only reported: symbolic links, binary or too large files, devices, sockets and pipes, folders nested too deeply,
    anything in a version control folder.
    """

    path: str
    kind: WrittenKind
    data: bytes = b""
    runs: bool = False


@dataclass(frozen=True, slots=True)
class Writings:
    """All files that a command changed and that are not ignored; `more` counts files beyond the limit."""

    files: tuple[Written, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """The process that runs a command at some level: arguments, working folder, and complete environment.

    `reports` is the real folder behind `REPORT_VARIABLE`. `status` is the file in which bubblewrap says what became of
    the command, "" without bubblewrap.
    """

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    reports: str
    status: str = ""


def half_of_memory() -> int:
    """Return half of the machine's memory, in bytes: the usual limit of one command."""
    return memory_bytes() // 2


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """The limits of one command; the first that is exceeded ends it.

    `memory_bytes` is for all processes together. `disk_bytes` is how much the free space of `disk_folder`'s file system
    (default: that of the reports) may shrink while the command runs, whatever the cause. `look_seconds` is the interval
    of the checks. `control_group` is the folder of the group in which each command gets its own; "" for none.
    """

    seconds: float = 300.0
    output_bytes: int = 16 << 20
    memory_bytes: int = field(default_factory=half_of_memory)
    processes: int = 512
    disk_bytes: int = 2 << 30
    disk_folder: str = ""
    look_seconds: float = INTERVAL_SECONDS
    control_group: str = field(default_factory=parent_group)


class Layer(Protocol):
    """Port: the private view of the workspace at one level, for one session; its commands run one at a time.

    All methods block and are called from a worker thread.
    """

    @property
    def isolation(self) -> Isolation: ...

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """Update the view to the disk and, over it, `wanted` (None: no such file) by absolute real path. Text that an
        earlier command wrote and that is not wanted any more is reverted; ignored output and files that could not
        become an edit stay. OSError or ToolFailed if that fails.
        """

    def launch(self, command: Command) -> Launch:
        """Return how to start `command` in the view, which `prepare` must have updated. ToolFailed if that is
        impossible, such as for one that is too long.
        """

    def writings(self) -> Writings:
        """Return the files that differ from the prepared view. Takes time by the number of changes, at level `copy` by
        that of all files.
        """

    def close(self) -> None:
        """Remove the view with its contents; no command may be running in it."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A command that has run: how it ended, and what became of what it wrote, by absolute path. `staged` became staged
    changes; `left_out` has pairs of each other path and the reason, in English.
    """

    finished: Finished
    isolation: Isolation
    staged: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


class Shell(Protocol):
    """Port: runs commands for one run, on its staged changes and the user's buffers."""

    @property
    def isolation(self) -> Isolation: ...

    async def run(self, command: Command, on_output: OnOutput = no_output) -> CommandResult:
        """Run a command to its end, after other commands of the session. Cancelling kills its whole process tree.
        ToolFailed if it cannot be started.
        """


RecordCommand = Callable[[str, str, str, int | None], None]
"""Receives the command, its folder, the isolation level, and the exit code (None before the command has ended)."""

Approve = Callable[[tuple[str, ...]], Awaitable[bool]]
"""Asks the user whether files that can run code later may become proposed changes."""


async def approve_none(paths: tuple[str, ...]) -> bool:
    """Return False: an `Approve` that refuses every change of files that can run code later, for when there is no user
    to ask.
    """
    return False
