"""Queries on one index: views, search and repo maps, on the texts that a run sees.

Blocking; call it in a thread, any thread. Not here: updating the index (`service.py`), waiting for it, and
joining the results of lexical search with those of other searches (`rank.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from math import sqrt
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from codeagent_lsp.index import rank, relevance, repomap
from codeagent_lsp.index.rank import Task
from codeagent_lsp.index.relevance import Chunk, Outline, Read
from codeagent_lsp.index.repomap import RepoMap
from codeagent_lsp.index.scan import Folders
from codeagent_lsp.index.store import Store, saved_graph
from codeagent_lsp.index.symbols import SymbolInfo, unpack
from codeagent_lsp.index.view import Unsaved, View
from codeagent_lsp.index.words import QueryTerms, as_word, count_words
from codeagent_lsp.workspace.files.file_view import FileView

LEAST_SHARE = 0.5  # share of the query's words that an unsaved text must have to be found

MayRead = Callable[[str], bool]
"""Returns whether a file, by absolute path, may be shown."""
_KEPT = 256  # parsed unsaved texts; each version of a buffer that was asked about is one
STALE = 0.02  # the share of changed files above which the graph is rebuilt

LEAST_SCORE = 0.001  # of the best score, for the most important file that is unrelated to the task

_KEPT_MAPS = 8  # the last maps, each of which its next version follows in order


class Answers:
    """Answers queries on `store`, which indexes the files of `folders`; one per open index. Paths in results are index
    paths (see `Folders`). All methods block; they may be called from any thread.
    """

    def __init__(self, store: Store, folders: Folders) -> None:
        self._folders = folders
        self._overlay = Overlay(store, folders)
        self._latest = _Latest(View(store))
        self._mapper = Mapper(self._latest, saved_graph(store.path), read=self._latest.text)
        self._lock = Lock()

    def view(self, files: FileView) -> View:
        """Return the present state of the index, overlaid with the unsaved and staged texts of `files`; those that are
        not in the index or have changed are parsed now.
        """
        return self._overlay.view(files)

    def search(self, files: FileView, task: Task, limit: int, may_read: MayRead) -> tuple[Chunk, ...]:
        """Return at most `limit` chunks of the code of `files` that match a task best by its words, best first; () if
        nothing does. `may_read` returns whether an absolute path may be shown beyond its name.
        """
        asking = task.question()
        with self._lock:
            view = self._looking_at(files, may_read)
            # Only the ranking is under the lock, which all runs share; reading and cutting the texts takes longer.
            ranked = _with_unsaved(self._mapper.ranked(task), view, asking)
            read = self._latest.read
        return tuple(relevance.answers(ranked, read, view.symbols, asking, task.subject(), limit=limit))

    def overview(self, files: FileView, budget: int, may_read: MayRead) -> RepoMap:
        """Return the map that does not depend on a task, the most central files, in at most `budget` tokens; its text
        is '' if nothing fits. `may_read` returns whether an absolute path may be shown beyond its name.
        """
        with self._lock:
            self._looking_at(files, may_read)
            return self._mapper.overview(budget)

    def task_map(self, files: FileView, task: Task, budget: int, may_read: MayRead, *, lines: bool = False) -> RepoMap:
        """Return the map for a task, in at most `budget` tokens, with line numbers if `lines`. `may_read` returns
        whether an absolute path may be shown beyond its name.
        """
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
        share = len(asked.intersection(count_words(f"{path}\n{unsaved.text}"))) / len(asked)
        if share >= LEAST_SHARE:
            scores[path] = max(share, scores.get(path, 0.0))
    return sorted(scores.items(), key=lambda each: (-each[1], each[0]))


# Overlay of texts that are not on disk over the index: open buffers, and over them the staged texts of a run.


class Overlay:
    """Makes views over `store`, which has the files of `folders`, and keeps the last 256 parsed texts
    for the next one.
    """

    def __init__(self, store: Store, folders: Folders) -> None:
        self._store = store
        self._folders = folders
        self._known: OrderedDict[tuple[str, bytes], Unsaved] = OrderedDict()
        self._lock = Lock()

    def view(self, files: FileView) -> View:
        """Return a view of the index, overlaid with the texts of `files` that differ from the indexed ones; ignored
        files and those outside of the folders are left out. Parses new texts, so it blocks.
        """
        over = sorted(files.over_disk())
        if not over:
            return View(self._store)
        from codeagent_lsp.index.intake import digest_of  # late: it loads the parser

        unsaved: dict[str, Unsaved] = {}
        gone: set[str] = set()
        for absolute in over:
            path = self._folders.path_of(absolute)
            if path is None or files.is_ignored(absolute):
                continue
            if not files.exists(absolute):
                gone.add(path)
            elif (text := files.text(absolute)) is not None:
                digest = digest_of(path, text.encode("utf-8", "replace"))
                # A buffer that was opened and not changed is what the index has, and costs nothing.
                if digest != self._store.digest(path):
                    unsaved[path] = self._looked_into(path, digest, text)
        return View(self._store, unsaved, _version(unsaved, gone), frozenset(gone))

    def _looked_into(self, path: str, digest: bytes, text: str) -> Unsaved:
        key = (path, digest)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        from codeagent_lsp.index.intake import packed_text  # late: it loads the parser

        # Outside of the lock: to parse a text twice now and then is better than to wait for a long one.
        digest, packed = packed_text(path, text)
        found = Unsaved(digest, unpack(path, packed), text)
        with self._lock:
            self._known[key] = found
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found


def _version(unsaved: dict[str, Unsaved], gone: set[str]) -> int:
    """Return a number that is equal for equal texts, so that results computed from them stay valid."""
    if not unsaved and not gone:
        return 0
    told = [*(f"{path}\0{each.digest.hex()}" for path, each in sorted(unsaved.items())), "\n", *sorted(gone)]
    return int.from_bytes(blake2b("\n".join(told).encode("utf-8", "replace"), digest_size=8).digest(), "big")


# Repo maps of one index: caches the reference graph and the last maps, so that the next one is fast and stable.


class MapSource(Protocol):
    """Port: the part of an index that maps need; its methods answer as those of `View`."""

    def files(self) -> Mapping[str, bytes]: ...

    def symbols(self, path: str) -> tuple[SymbolInfo, ...]: ...

    def defined(self) -> Iterator[tuple[str, tuple[str, ...]]]: ...

    def used(self) -> Iterator[tuple[str, Mapping[str, int]]]: ...

    def generation(self) -> int: ...

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]: ...


class Mapper:
    """Makes maps of an index, and keeps the reference graph and the last maps for the next one. `saved` is the path of
    the graph kept between processes; None: it is not saved. `read` returns the text of a file by its index path, None
    if it cannot be had.
    """

    def __init__(
        self,
        index: MapSource,
        saved: Path | None = None,
        read: Read = lambda path: None,
    ) -> None:
        self._index = index
        self._saved = saved
        self._read = read
        self._generation = -1
        self._files: Mapping[str, bytes] = {}
        self._graph: rank.Graph | None = None
        self._important: list[tuple[str, float]] = []
        self._last: dict[object, RepoMap] = {}

    def task_map(self, task: Task, budget: int, *, lines: bool = False) -> RepoMap:
        """Return the map for a task, in at most `budget` tokens, or the overview if the task is empty. With `lines`
        each definition has the number of its line.
        """
        asking = task.question()
        if not asking.words and not task.focused and not asking.names:
            return self.overview(budget)
        ranked = self.ranked(task)
        outline = cache(self._index.symbols)
        best = relevance.definitions(ranked, self._read, outline, asking, task.subject())
        key = ("task", task.text, task.focused, task.mentioned, budget, lines)
        among = len(self._files)
        return self._make_map(key, self._fill(ranked), best, outline, budget, lines=lines, among=among)

    def overview(self, budget: int) -> RepoMap:
        """Return the map that does not depend on a task: the most central files, in at most `budget` tokens, for the
        stable part of a prompt; its text is '' if nothing fits. Blocks, for a new graph seconds.
        """
        self._refresh_graph()
        outline = cache(self._index.symbols)
        best = relevance.central(self._important, outline)
        return self._make_map(("overview", budget), self._important, best, outline, budget)

    def ranked(self, task: Task) -> list[tuple[str, float]]:
        """Return pairs of index path and score by relevance to the task, best first; irrelevant files are left out."""
        graph = self._refresh_graph()
        return rank.rank_files(self._index, graph, self._files, task)

    def _fill(self, ranked: list[tuple[str, float]]) -> list[tuple[str, float]]:
        """Append generally important files, for a map with room left."""
        known = {path for path, _ in ranked}
        rest = [(path, LEAST_SCORE * rank) for path, rank in self._important if path not in known]
        return ranked + rest[: max(0, repomap.MOST_FILES - len(ranked))]

    def _make_map(
        self,
        key: object,
        ranked: list[tuple[str, float]],
        best: list[tuple[SymbolInfo, float]],
        outline: Outline,
        budget: int,
        *,
        lines: bool = False,
        among: int = 0,
    ) -> RepoMap:
        before = self._last.pop(key, None)
        made = repomap.render(ranked, best, outline, budget, previous=before, lines=lines, among=among)
        self._last[key] = made
        # Taken out and put back above, so the first one is the one that was not asked for the longest.
        while len(self._last) > _KEPT_MAPS:
            del self._last[next(iter(self._last))]
        return made

    def _refresh_graph(self) -> rank.Graph:
        """Return the graph, rebuilt only when more than a share of `STALE` has changed."""
        generation = self._index.generation()
        if self._graph is not None and generation == self._generation:
            return self._graph
        self._files = self._index.files()
        self._generation = generation
        graph = self._graph or _read(self._saved)
        # A few changed files hardly move the ranks, and the graph of a large workspace takes seconds.
        if graph is None or graph.stale(self._files) > STALE:
            graph = rank.build_graph(self._index.defined(), self._index.used(), self._files)
            _write(self._saved, graph)
        self._graph = graph
        self._important = _relative(rank.important(graph, self._files)[: repomap.MOST_FILES])
        return graph


def _relative(ranked: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return scores relative to the best, under a square root, as PageRank falls off steeply."""
    best = max((score for _, score in ranked), default=0.0) or 1.0
    return [(path, sqrt(score / best)) for path, score in ranked]


def _read(path: Path | None) -> rank.Graph | None:
    """Return the saved graph; None if there is none that can be read."""
    try:
        return rank.load_graph(path.read_bytes()) if path else None
    except (OSError, ValueError):
        return None


def _write(path: Path | None, graph: rank.Graph) -> None:
    """Save the graph atomically; failures are ignored, as the graph can be rebuilt."""
    if path is None:
        return
    # Another server may be reading it.
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(rank.dump_graph(graph))
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
