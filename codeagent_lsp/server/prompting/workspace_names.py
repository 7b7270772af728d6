"""The names of the workspace's files and definitions, for completion: as they were a few seconds ago.

They are read in a thread, from the code index and else from the folders, so that a keystroke never waits for more than
the first reading. Not here: which of them fit (`completion.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from codeagent_lsp.background_tasks import BackgroundTasks
from codeagent_lsp.errors import AgentError

if TYPE_CHECKING:
    from codeagent_lsp.index.port import Indexing
    from codeagent_lsp.index.view import View
    from codeagent_lsp.workspace.files.file_view import FileView

FRESH_SECONDS = 5.0
FIRST_SECONDS = 0.03
INDEX_SECONDS = 2.0
MOST_FILES = 50_000
MOST_SYMBOLS = 200_000


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition: its dotted name, its kind, and its file as the user reads it."""

    name: str
    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Names:
    """What is there. Paths are as the user reads them."""

    files: tuple[str, ...] = ()
    symbols: tuple[Symbol, ...] = field(default=(), repr=False)


class KnownNames:
    """The names of one workspace."""

    def __init__(self, index: Indexing, view: Callable[[], FileView]) -> None:
        self._index = index
        self._view = view
        self._names = Names()
        self._read_at = 0.0
        self._first = asyncio.Event()
        self._tasks = BackgroundTasks()

    def warm(self) -> None:
        """Begin to read the names again, if that was some seconds ago."""
        if time.monotonic() - self._read_at > FRESH_SECONDS and not len(self._tasks):
            self._read_at = time.monotonic()
            self._tasks.start(self._refresh())

    async def now(self) -> Names:
        """Return the names as they are known; before the first reading has ended, wait for it a moment."""
        self.warm()
        if not self._first.is_set():
            try:
                async with asyncio.timeout(FIRST_SECONDS):
                    await self._first.wait()
            except TimeoutError:
                pass
        return self._names

    def close(self) -> None:
        """Stop reading."""
        self._tasks.cancel()

    async def _refresh(self) -> None:
        view = self._view()
        if not self._first.is_set():
            self._names = Names(await asyncio.to_thread(_walked, view))
            self._first.set()
        try:
            answers = await self._index.ready(INDEX_SECONDS)
        except AgentError:  # not built yet, or there is none
            self._names = Names(await asyncio.to_thread(_walked, view), self._names.symbols)
            return
        self._names = await asyncio.to_thread(lambda: _indexed(answers.view(view)))
        self._read_at = time.monotonic()


def _walked(view: FileView) -> tuple[str, ...]:
    paths = (path for folder in view.roots.folders for path in view.walk(folder))
    return tuple(sorted(map(view.roots.relative, islice(paths, MOST_FILES))))


def _indexed(view: View) -> Names:
    symbols = (Symbol(symbol.qualified, symbol.kind, path) for path, found in view.definitions() for symbol in found)
    return Names(tuple(sorted(view.files()))[:MOST_FILES], tuple(islice(symbols, MOST_SYMBOLS)))
