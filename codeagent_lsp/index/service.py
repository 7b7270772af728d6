"""The index of a workspace kept up to date: what a server talks to. Nothing here blocks the event loop.

`refresh` compares the whole workspace with the index; `changed` looks at single files; `edited` lays unsaved texts
over it. Few files are looked into in a thread, many in worker processes. Calls may overlap: one works at a time.
Not here: the answers (`view.py` and what is built on it).
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from codeagent_lsp.config import IndexSettings
from codeagent_lsp.index.intake import packed_text
from codeagent_lsp.index.opening import open_index
from codeagent_lsp.index.packing import unpack
from codeagent_lsp.index.scan import Folders, Scan, Work, scan
from codeagent_lsp.index.store import Store
from codeagent_lsp.index.view import Unsaved, View
from codeagent_lsp.index.worker import do, jobs, work_off

State = Literal["off", "new", "scanning", "building", "ready", "failed"]

FEW_FILES = 16
FEW_BYTES = 400_000
POLL_SECONDS = 30.0
_MOST_PROCESSES = 4
_RULES = frozenset((".gitignore", ".codeagentignore"))

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Status:
    """Where the index stands. `done` of `total` files of this pass; `files` in all, 0 before the first pass."""

    state: State
    done: int = 0
    total: int = 0
    files: int = 0
    problem: str = ""


class IndexService:
    """The index of `folders` in the file `store_path`. `tell` hears of every change of the status."""

    def __init__(
        self,
        folders: Sequence[str],
        store_path: Path,
        settings: IndexSettings,
        *,
        processes: int | None = None,
        tell: Callable[[Status], None] = lambda status: None,
    ) -> None:
        self.folders = Folders(folders)
        self.store: Store = open_index(store_path)
        self.status = Status("new" if settings.enabled else "off")
        self._processes = processes or max(1, min(_MOST_PROCESSES, os.cpu_count() or 1))
        self._tell = tell
        self._lock = asyncio.Lock()
        self._stop = threading.Event()
        self._unsaved: dict[str, Unsaved] = {}
        self._awaited: dict[str, object] = {}
        self._version = 0
        self._polling: asyncio.Task[None] | None = None

    def start(self, *, seconds: float = POLL_SECONDS) -> None:
        """Refresh now and then again and again until `close`: not every client tells of changed files."""
        if self.status.state != "off" and self._polling is None:
            self._polling = asyncio.create_task(self._poll(seconds))

    async def refresh(self) -> Status:
        """Bring the index up to the disk. Cancelled: what is written stays, the rest is done the next time."""
        return await self._pass(lambda: scan(self.folders, self.store.known(), self._stop))

    async def rebuild(self) -> Status:
        """Begin anew."""

        def cleared() -> Scan:
            self.store.clear()
            return scan(self.folders, {}, self._stop)

        return await self._pass(cleared)

    async def changed(self, paths: Iterable[str]) -> Status:
        """Look at files that were saved, created or deleted, by absolute path; a folder means everything."""
        paths = list(paths)
        if await asyncio.to_thread(_concern_all, paths):
            return await self.refresh()
        return await self._pass(lambda: self._look(paths))

    async def edited(self, path: str, text: str) -> None:
        """Lay an unsaved text over the file at an absolute path, until `closed`."""
        name = self.folders.path_of(path)
        if name is None or self.status.state == "off":
            return
        mark = self._awaited[name] = object()
        unsaved = await asyncio.to_thread(_looked_into, name, text)
        if self._awaited.get(name) is mark:  # else a later text was there first
            self._unsaved = {**self._unsaved, name: unsaved}
            self._version += 1

    def closed(self, path: str) -> None:
        """The unsaved text of the file is saved or given up: the disk counts again."""
        name = self.folders.path_of(path)
        if name is not None and self._awaited.pop(name, None) is not None:
            self._unsaved = {other: each for other, each in self._unsaved.items() if other != name}
            self._version += 1

    def view(self) -> View:
        """What is known now, unsaved texts included. Its methods read from disk: use it in a thread."""
        return View(self.store, self._unsaved, self._version)

    async def close(self) -> None:
        """Stop everything and leave nothing behind."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.wait([self._polling])
            self._polling = None
        async with self._lock:
            self.store.close()

    async def _poll(self, seconds: float) -> None:
        while True:
            await self.refresh()
            await asyncio.sleep(seconds)

    async def _pass(self, find: Callable[[], Scan]) -> Status:
        """Find out what there is to do, and do it; one pass at a time.

        A disk that is full or not ours is told as status only, as nothing else depends on the index.
        """
        async with self._lock:
            if self.status.state == "off":
                return self.status
            try:
                self._set(Status("scanning", files=self.status.files))
                found = await self._in_thread(find)
                self._set(Status("building", 0, len(found.changed), found.files))
                await self._build(found)
                self._set(replace(self.status, state="ready"))
            except (sqlite3.Error, OSError) as error:
                self._set(Status("failed", files=self.status.files, problem=str(error)))
            except BaseException:
                self._set(Status("new", files=self.status.files))
                raise
            return self.status

    async def _build(self, found: Scan) -> None:
        few = len(found.changed) <= FEW_FILES and sum(work.size for work in found.changed) <= FEW_BYTES
        if found.removed:
            await self._in_thread(lambda: self.store.write((), found.removed))
        if few:
            await self._in_thread(lambda: do(self.store, found.changed))
            self._done(len(found.changed))
        else:
            await work_off(self.store, tuple(jobs(found.changed)), self._processes, self._done)
            await self._in_thread(self.store.tidy)

    def _look(self, paths: Iterable[str]) -> Scan:
        """What has become of single files."""
        changed: list[Work] = []
        removed: list[str] = []
        for absolute in paths:
            path = self.folders.path_of(absolute)
            stamp = self.folders.look(absolute) if path is not None else None
            if path is not None and stamp is None:
                removed.append(path)
            elif path is not None and stamp is not None:
                changed.append(Work(path, absolute, self.store.digest(path), stamp.size))
        known = [path for path in removed if self.store.digest(path)]
        return Scan(tuple(changed), tuple(known), self.status.files)

    async def _in_thread(self, action: Callable[[], _T]) -> _T:
        """In a thread that is waited for even when cancelled: nothing goes on behind our back."""
        self._stop.clear()
        running = asyncio.ensure_future(asyncio.to_thread(action))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._stop.set()
            await asyncio.wait([running])
            raise

    def _done(self, files: int) -> None:
        self._set(replace(self.status, done=self.status.done + files))

    def _set(self, status: Status) -> None:
        if status != self.status:
            self.status = status
            self._tell(status)


def _concern_all(paths: Iterable[str]) -> bool:
    """Whether a change of these paths may concern files that are not among them."""
    return any(Path(path).name in _RULES or Path(path).is_dir() for path in paths)


def _looked_into(path: str, text: str) -> Unsaved:
    digest, packed = packed_text(path, text)
    return Unsaved(digest, unpack(path, packed), text)
