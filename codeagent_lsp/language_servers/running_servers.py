"""The running servers of one session: which are installed for a file, each started once for each project; and the
private copy of the workspace that they see, kept in step with what a run sees.

A server is one of the project or on PATH. Least recently used ones are stopped, and one that has ended twice by itself
is not started again. Servers run as long as they are needed while texts change under them, so a view that is made for
one command does not do: the copy is one of plain files. All its methods block; use a worker thread, one call at a time.
Not here: which servers are known (`known.py`), when they are needed and what they are asked (`session_servers.py`), the
sandbox and the copying (`shadow/copying.py`).
"""

# ruff: noqa: PTH118 - paths are plain strings, as everywhere below FileView

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.language_servers.known import BINARIES, KnownServer
from codeagent_lsp.language_servers.language_server import LanguageServer
from codeagent_lsp.language_servers.server_connection import ServerFailed
from codeagent_lsp.shadow.private_copy import FileChangeKind
from codeagent_lsp.shadow.shell import Command, Launch, ProcessLimits
from codeagent_lsp.shadow.wanted import UnsavedState, unsaved_state
from codeagent_lsp.workspace.files.file_view import FileView

MAX_SERVERS = 4
MAX_FAILURES = 2
"""So often one server may end, or not start, for one project in a session; then it is not started again."""

_DISK_BYTES = 4 << 30
_PROCESSES = 256

T = TypeVar("T")
Key = tuple[str, str]
_ENVIRONMENTS = (".venv", "venv")

LOOK_SECONDS = 10.0
"""The longest time after which the whole disk is looked at again."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A server that can be started for a file: its program and its project's folder, both as absolute paths."""

    server: KnownServer
    program: str
    folder: str


def servers_for(
    view: FileView,
    path: str,
    known: Iterable[KnownServer],
    which: Callable[[str], str | None] = shutil.which,
) -> tuple[Installed, ...]:
    """Return the installed servers for a file, by absolute path: at most one that knows types and one linter, the first
    installed of each. `which` finds programs on PATH; those of the project come first. Blocks on the disk.
    """
    above = view.roots.upwards(str(Path(path).parent))
    found: dict[str, Installed] = {}
    for server in known:
        if not above or server.role in found or server.language_of(path) is None:
            continue
        folder = _project(view, above, server)
        program = _program(view, server.command[0], above, which) if folder else None
        if folder and program:
            found[server.role] = Installed(server, program, folder)
    return tuple(found.values())


def _project(view: FileView, above: list[str], server: KnownServer) -> str | None:
    """Return the innermost folder with a marker, else the workspace folder; None if a marker is needed."""
    for folder in above:
        if any(view.exists(os.path.join(folder, marker)) for marker in server.markers):
            return folder
    return None if server.needs_marker else above[-1]


def _program(view: FileView, name: str, above: list[str], which: Callable[[str], str | None]) -> str | None:
    if os.path.isabs(name):  # noqa: PTH117 - what the user wrote
        return name if os.access(name, os.X_OK) else None
    for folder in above:
        for binaries in BINARIES:
            path = os.path.join(folder, binaries, name)
            if _is_own_program(view, path):
                return path
    return which(name)


def _is_own_program(view: FileView, path: str) -> bool:
    """Return whether a path is a program of the workspace; a link to a place outside is not, PATH decides then."""
    if view.roots.stat(path) is None:
        return False
    real = os.path.realpath(path)
    return view.roots.root_of(real) is not None and os.path.isfile(real) and os.access(real, os.X_OK)  # noqa: PTH113


class InThread(Protocol):
    """Port: runs a blocking function in the one thread of the copy, after those before it, and returns its result or
    raises its error.
    """

    def __call__(self, work: Callable[[], T]) -> Awaitable[T]: ...


@dataclass(slots=True)
class _Entry:
    starting: asyncio.Task[LanguageServer]
    changed: dict[str, FileChangeKind] = field(default_factory=dict)  # files that it was not told about yet

    @property
    def is_over(self) -> bool:
        """Return whether the server started and has ended since."""
        task = self.starting
        if not task.done() or task.cancelled() or task.exception() is not None:
            return False
        return task.result().connection.lost.is_set()


class RunningServers:
    """The servers of one session that are running or being started, at most 4 at a time. `memory` is the limit of one
    in bytes.
    """

    def __init__(self, copy: ServedCopy, in_thread: InThread, memory: int) -> None:
        self._copy = copy
        self._in_thread = in_thread
        self._memory = memory
        self._entries: dict[Key, _Entry] = {}
        self._failures: dict[Key, int] = {}
        self._closing = BackgroundTasks()
        self._one_launch = asyncio.Lock()  # of one copy only one program is started at a time

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the servers that run or are being started, one for each project of theirs."""
        return tuple(name for name, _ in self._entries)

    def gave_up(self, each: Installed) -> bool:
        """Return whether a server has ended twice in this session, or did not start, so that it is not started again.
        One that was stopped, as where there are too many, has not failed.
        """
        return self._failures.get(_key(each), 0) >= MAX_FAILURES

    def is_up(self, each: Installed) -> bool:
        """Return whether a server has started and still runs; False while it is being started."""
        entry = self._entries.get(_key(each))
        return entry is not None and entry.starting.done() and not entry.is_over

    def note_changed(self, paths: Mapping[str, FileChangeKind]) -> None:
        """Note files of the copy that changed (`created`, `changed` or `deleted`), by absolute path; each server
        receives them before its next question.
        """
        for entry in self._entries.values():
            entry.changed.update(paths)

    async def get(self, each: Installed, texts: Mapping[str, str]) -> LanguageServer:
        """Return a server that has exactly these texts open (by absolute path), started if necessary, which takes up to
        60 s; the least recently used one is stopped if there are too many. Cancelling does not stop the start.
        ServerFailed if it does not run.
        """
        key = _key(each)
        if key in self._entries and self._entries[key].is_over:
            self._fail(key)
        if self.gave_up(each):
            raise ServerFailed(f"{each.server.name} ended too often.")
        entry = self._entries.pop(key, None) or self._begin_start(each)
        self._entries[key] = entry  # the one used last stands last
        self._stop_oldest()
        try:
            server = await _wait_for_start(entry)
            # Only after the wait, as more may have been noted meanwhile.
            changed, entry.changed = entry.changed, {}
            server.open.note_files(changed)
            server.open.show({path: text for path, text in texts.items() if each.server.language_of(path)})
        except (ToolFailed, OSError) as problem:
            if self._entries.get(key) is entry:  # else it was stopped, or another one that waited has noted this
                self._fail(key)
            raise ServerFailed(str(problem)) from problem
        return server

    async def close(self) -> None:
        """Stop all servers and wait for their end; never raises."""
        for key in list(self._entries):
            self._drop(key)
        await self._closing.close(None)

    def _begin_start(self, each: Installed) -> _Entry:
        return _Entry(asyncio.create_task(self._start(each)))

    async def _start(self, each: Installed) -> LanguageServer:
        server = LanguageServer(each.server, each.folder, settings_for(each))
        limits = ProcessLimits(
            seconds=float("inf"),
            memory_bytes=self._memory,
            processes=_PROCESSES,
            disk_bytes=_DISK_BYTES,
            look_seconds=1.0,
        )
        words = (each.program, *each.server.command[1:])
        try:
            async with self._one_launch:
                launch = await self._in_thread(lambda: self._copy.launch(words, each.folder))
                await server.start(launch, limits)
        except BaseException:
            await server.close()
            raise
        return server

    def _stop_oldest(self) -> None:
        while len(self._entries) > MAX_SERVERS:
            self._drop(next(iter(self._entries)))

    def _fail(self, key: Key) -> None:
        self._failures[key] = self._failures.get(key, 0) + 1
        self._drop(key)

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._closing.start(_end(entry))


async def _wait_for_start(entry: _Entry) -> LanguageServer:
    """Wait for the start. ServerFailed also if it was stopped meanwhile, which is no cancelling of who waits."""
    # Not awaited itself, as that would cancel the start for all others with one who stops waiting.
    await asyncio.wait([entry.starting])
    if entry.starting.cancelled():
        raise ServerFailed("It was stopped while it started.")
    return entry.starting.result()


async def _end(entry: _Entry) -> None:
    entry.starting.cancel()
    try:
        server = await entry.starting
    except (asyncio.CancelledError, ToolFailed, OSError):
        return
    await server.close()


def _key(each: Installed) -> Key:
    return each.server.name, each.folder


# The settings of one server in one project: the known ones, and what is read from the project's files.


def settings_for(each: Installed) -> Mapping[str, Any]:
    """Return the settings that the server gets for its project, by section; for Python with the interpreter of the
    project's environment, if there is one. Reads the disk.
    """
    settings = dict(each.server.settings)
    if "python" in settings and (interpreter := _interpreter(each.folder)):
        settings["python"] = {**settings["python"], "pythonPath": interpreter}
    return settings


def _interpreter(folder: str) -> str | None:
    """Return the interpreter of the environment in a project's folder."""
    found = (Path(folder, name, "bin", "python") for name in _ENVIRONMENTS)
    return next((str(path) for path in found if path.exists()), None)


class CopiedFolders(Protocol):
    """Port: a private copy of the workspace folders in which servers run, such as `CopyLayer`. Methods block and are
    called in one thread.
    """

    @property
    def changed(self) -> Mapping[str, FileChangeKind]:
        """The changes (`created`, `changed` or `deleted`) that the last `prepare` or `lay` made to files, by their
        absolute path in the workspace.
        """

    def prepare(self, wanted: Mapping[str, bytes | None]) -> None:
        """Update the copy to the disk with these files over it (None: deleted), by absolute path. OSError or ToolFailed
        if that fails.
        """

    def lay(self, wanted: Mapping[str, bytes | None]) -> None:
        """Update only the files in which `wanted` (bytes by absolute path, None: deleted) differs from the last state;
        call `prepare` before. OSError or ToolFailed if that fails.
        """

    def launch(self, command: Command) -> Launch:
        """Return how to start a command in the copy. ToolFailed if that is impossible."""

    def close(self) -> None:
        """Remove the copy; no server may be running in it."""


OpenCopy = Callable[[Sequence[str]], CopiedFolders]
"""Makes the copy of these folders; blocks. ToolFailed or OSError if that is impossible."""


class ServedCopy:
    """The private copy of one session that its servers see, made by the first `update`. Methods block and are called in
    one thread.
    """

    def __init__(self, open_copy: OpenCopy) -> None:
        self._open = open_copy
        self._copy: CopiedFolders | None = None
        self._folders: tuple[str, ...] = ()
        self._looked = 0.0

    def update(self, view: FileView) -> tuple[UnsavedState, Mapping[str, FileChangeKind]]:
        """Update the copy to the state of a view, and return what differs from the disk, and what changed in the copy
        by absolute path. The disk is looked at at most every 10 s. ToolFailed or OSError if that is impossible.
        """
        seen = unsaved_state(view)
        folders = view.roots.folders
        if self._copy is None or folders != self._folders:
            self.close()
            self._copy, self._folders, self._looked = self._open(folders), folders, 0.0
        now = time.monotonic()
        if not self._looked or now - self._looked > LOOK_SECONDS:
            self._copy.prepare(seen.files)
            self._looked = time.monotonic()
        else:
            self._copy.lay(seen.files)
        return seen, self._copy.changed

    def launch(self, words: Sequence[str], folder: str) -> Launch:
        """Return how to start a program, given by its words, in the copy, in the absolute `folder` of the workspace;
        call `update` before.
        """
        assert self._copy is not None
        return self._copy.launch(Command(tuple(words), folder))

    def close(self) -> None:
        """Remove the copy, if there is one; the next `update` makes it again. No server may be running in it."""
        copy, self._copy = self._copy, None
        if copy is not None:
            copy.close()
