"""What the tests of language servers share: the fake server, a workspace and its copy, and what must not be left."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from codeagent_lsp.language_servers.known import KnownServer
from codeagent_lsp.language_servers.server_connection import ServerConnection
from codeagent_lsp.language_servers.session_servers import FoundDiagnostics, SessionServers
from codeagent_lsp.shadow.copying import CopyLayer
from codeagent_lsp.shadow.folder import LayerFolder
from codeagent_lsp.shadow.shell import Launch, ProcessLimits
from codeagent_lsp.workspace.files.file_view import FileView, NoBuffers, StagedFile
from codeagent_lsp.workspace.files.paths import Roots
from tests.children import children, command_lines
from tests.shadow.processes import descriptors

FAKE = Path(__file__).parent / "fake_server.py"
LIMITS = ProcessLimits(seconds=float("inf"), memory_bytes=1 << 30, look_seconds=0.2)
BLOCKED_SECONDS = 0.1
MEMORY = 1 << 30


class Staged:
    """A `StagedView` of a dictionary: text by absolute path, None for a deleted file."""

    def __init__(self) -> None:
        self.texts: dict[str, str | None] = {}

    def lookup(self, path: str) -> StagedFile | None:
        return StagedFile(self.texts[path]) if path in self.texts else None

    def paths(self) -> tuple[str, ...]:
        return tuple(self.texts)


class Workspace:
    """A folder, and the view of a run on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.staged = Staged()
        self.view = FileView(Roots([str(folder)]), NoBuffers(), self.staged)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def stage(self, name: str, text: str | None) -> str:
        self.staged.texts[self.path(name)] = text
        return self.path(name)


def launch(folder: Path, *words: str) -> Launch:
    """How the fake is started without a sandbox."""
    return Launch((sys.executable, str(FAKE), *words), str(folder), {"PATH": os.environ["PATH"]}, str(folder))


def fake(*words: str, way: str = "push", name: str = "fake", suffix: str = "txt", **more: Any) -> KnownServer:
    """The fake as a known server for files of one suffix."""
    diagnostics: Any = way if way in ("pull", "tsserver") else "push"
    command = (sys.executable, str(more.pop("program", FAKE)), *words, "--way", way)
    languages = MappingProxyType({suffix: "text"})
    return KnownServer(name, command, languages, diagnostics=diagnostics, quiet=way == "quiet", **more)


def plain_copy(state: Path) -> Any:
    """Return an `OpenCopy` without a sandbox."""

    def open_copy(folders: Sequence[str]) -> CopyLayer:
        return CopyLayer(folders, LayerFolder(str(state)), None)

    return open_copy


@asynccontextmanager
async def connected(folder: Path, *words: str) -> AsyncIterator[ServerConnection]:
    """A connection to the fake; nothing is left of it, and the event loop was never blocked."""
    async with nothing_left():
        connection = ServerConnection("fake")
        try:
            async with never_blocked():
                await connection.start(launch(folder, *words), LIMITS)
                yield connection
        finally:
            await connection.close()


@asynccontextmanager
async def session(state: Path, *known: KnownServer, memory: int = MEMORY) -> AsyncIterator[SessionServers]:
    """The servers of a session in a plain copy; nothing is left of them, and the event loop was never blocked."""
    async with nothing_left():
        servers = SessionServers(plain_copy(state), lambda: known, memory)
        try:
            async with never_blocked():
                yield servers
        finally:
            await servers.close()


@asynccontextmanager
async def never_blocked() -> AsyncIterator[None]:
    """Fail if the event loop works for longer than `BLOCKED_SECONDS` at once, by processor time: what other programs do
    does not count, nor does a collection of the garbage of all tests, which can take longer than that.
    """
    longest = 0.0

    async def tick() -> None:
        nonlocal longest
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            before, longest = now, max(longest, now - before)

    gc.disable()
    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticking.cancel()
        gc.enable()
    assert longest < BLOCKED_SECONDS, f"the event loop was blocked for {longest:.2f} s"


@asynccontextmanager
async def nothing_left() -> AsyncIterator[None]:
    """Fail if a process, task or descriptor is left."""
    before = children(), asyncio.all_tasks(), descriptors()
    yield
    await asyncio.sleep(0)
    for _ in range(100):
        if children() <= before[0] and descriptors() <= before[2]:
            break
        await asyncio.sleep(0.02)
    assert children() <= before[0]
    assert asyncio.all_tasks() - {asyncio.current_task()} <= before[1]
    assert descriptors() <= before[2]


def marked(mark: str) -> list[int]:
    """Return the processes with a word in their command line."""
    return [pid for pid, words in command_lines().items() if mark in words]


def messages(found: Sequence[FoundDiagnostics] | None) -> list[str] | None:
    """Return what diagnostics say, sorted."""
    if found is None:
        return None
    return sorted(item["message"] for each in found for item in each.items)
