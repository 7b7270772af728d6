"""Queries on one index: views, search and repo maps, on the texts that a run sees.

Blocking; call it in a thread, any thread. Not here: updating the index (`service.py`), waiting for it, and
joining the results of lexical search with those of other searches (`fusion.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any

from codeagent_lsp.index import chunks
from codeagent_lsp.index.chunks import Chunk
from codeagent_lsp.index.mapper import Mapper
from codeagent_lsp.index.opening import saved_graph
from codeagent_lsp.index.overlay import Overlay
from codeagent_lsp.index.rank import Task
from codeagent_lsp.index.relevance import Read
from codeagent_lsp.index.repomap import RepoMap
from codeagent_lsp.index.scan import Folders
from codeagent_lsp.index.store import Store
from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.index.view import View
from codeagent_lsp.index.words import QueryTerms, as_word, counted, question
from codeagent_lsp.workspace.files.file_view import FileView

LEAST_SHARE = 0.5  # share of the query's words that an unsaved text must have to be found

MayRead = Callable[[str], bool]
"""Returns whether a file, by absolute path, may be shown."""


class Answers:
    """Answers queries on `store`, which indexes the files of `folders`; one per open index."""

    def __init__(self, store: Store, folders: Folders) -> None:
        self._folders = folders
        self._overlay = Overlay(store, folders)
        self._latest = _Latest(View(store))
        self._mapper = Mapper(self._latest, saved_graph(store.path), read=self._latest.text)
        self._lock = Lock()

    def view(self, files: FileView) -> View:
        """Return the present state of the index, overlaid with the unsaved and staged texts of `files`."""
        return self._overlay.view(files)

    def search(self, files: FileView, query: str, limit: int, may_read: MayRead) -> tuple[Chunk, ...]:
        """Return the chunks of code that match the query best lexically, best first."""
        asking = question(query)
        with self._lock:
            view = self._looking_at(files, may_read)
            ranked = _with_unsaved(self._mapper.ranked(Task(query)), view, asking)
            read = self._latest.read
        return tuple(chunks.answers(ranked, read, view.symbols, asking, limit))

    def overview(self, files: FileView, budget: int, may_read: MayRead) -> RepoMap:
        """Return the map that is independent of a task, in at most `budget` tokens."""
        with self._lock:
            self._looking_at(files, may_read)
            return self._mapper.overview(budget)

    def task_map(self, files: FileView, task: Task, budget: int, may_read: MayRead, *, lines: bool = False) -> RepoMap:
        """Return the map for a task, in at most `budget` tokens; with `lines`, with line numbers."""
        with self._lock:
            self._looking_at(files, may_read)
            return self._mapper.task_map(task, budget, lines=lines)

    def _looking_at(self, files: FileView, may_read: MayRead) -> View:
        @cache  # a query asks several times for the same files
        def shown(path: str) -> bool:
            absolute = self._folders.absolute(path)
            return absolute is not None and may_read(absolute)

        def read(path: str) -> str | None:
            absolute = self._folders.absolute(path)
            return files.text(absolute) if absolute is not None and shown(path) else None

        view = self._overlay.view(files)
        self._latest.view, self._latest.shown, self._latest.read = view, shown, read
        return view


class _Latest:
    """The latest view as the one source of a mapper, so that its graph and its last maps are reused by later views.

    Of files that may not be read it gives no more than their names.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.shown: MayRead = lambda path: True
        self.read: Read = lambda path: None

    def files(self) -> Mapping[str, bytes]:
        return self.view.files()

    def symbols(self, path: str) -> tuple[SymbolInfo, ...]:
        return self.view.symbols(path) if self.shown(path) else ()

    def text(self, path: str) -> str | None:
        return self.read(path)

    def defined(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        return self.view.defined()

    def used(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        return self.view.used()

    def generation(self) -> int:
        return self.view.generation()

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self.view.query(sql, values)


def _with_unsaved(ranked: list[tuple[str, float]], view: View, asking: QueryTerms) -> list[tuple[str, float]]:
    """Add the unsaved texts that contain most of the words: the full-text tables only have saved texts."""
    asked = {word for word, _ in asking.words} | {as_word(name) for name in asking.names} - {""}
    scores = dict(ranked)
    for path, unsaved in view.unsaved.items() if asked else ():
        share = len(asked.intersection(counted(f"{path}\n{unsaved.text}"))) / len(asked)
        if share >= LEAST_SHARE:
            scores[path] = max(share, scores.get(path, 0.0))
    return sorted(scores.items(), key=lambda each: (-each[1], each[0]))
