"""Repo maps of one index: caches the reference graph and the last maps, so that the next one is fast and stable.

The graph is saved beside the index and may be slightly older than it: a map does not need the newest edges, and
the words of files are always current. Not thread-safe.
Not here: ranks (`rank.py`) and text (`repomap.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any, Protocol

from codeagent_lsp.index import graph as graphs
from codeagent_lsp.index import rank, relevance, repomap
from codeagent_lsp.index.rank import Task
from codeagent_lsp.index.relevance import Outline, Read
from codeagent_lsp.index.repomap import Counter, RepoMap, estimate_tokens
from codeagent_lsp.index.symbols import SymbolInfo

STALE = 0.02  # the share of changed files above which the graph is rebuilt

LEAST_SCORE = 0.001  # of the best score, for the most important file that is unrelated to the task

_KEPT = 8


class MapSource(Protocol):
    """The part of an index that maps need."""

    def files(self) -> Mapping[str, bytes]: ...

    def symbols(self, path: str) -> tuple[SymbolInfo, ...]: ...

    def defined(self) -> Iterator[tuple[str, tuple[str, ...]]]: ...

    def used(self) -> Iterator[tuple[str, Mapping[str, int]]]: ...

    def generation(self) -> int: ...

    def query(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]: ...


class Mapper:
    """Makes maps of an index. `saved` is the path of the graph kept between processes; None: it is not saved.

    `read` returns the text of a file, None where it cannot be had.
    """

    def __init__(
        self,
        index: MapSource,
        saved: Path | None = None,
        count: Counter = estimate_tokens,
        read: Read = lambda path: None,
    ) -> None:
        self._index = index
        self._saved = saved
        self._count = count
        self._read = read
        self._generation = -1
        self._files: Mapping[str, bytes] = {}
        self._graph: graphs.Graph | None = None
        self._important: list[tuple[str, float]] = []
        self._last: dict[object, RepoMap] = {}

    def task_map(self, task: Task, budget: int, *, lines: bool = False) -> RepoMap:
        """Return the part of the map that depends on the task, or the overview if the task is empty. With `lines` each
        definition has the number of its line.
        """
        asking = task.question()
        if not asking.words and not task.focused and not asking.names:
            return self.overview(budget)
        ranked = self.ranked(task)
        outline = cache(self._index.symbols)
        best = relevance.definitions(ranked, self._read, outline, asking)
        key = ("task", task.text, task.focused, task.mentioned, budget, lines)
        among = len(self._files)
        return self._made(key, self._filled(ranked), best, outline, budget, lines=lines, among=among)

    def overview(self, budget: int) -> RepoMap:
        """Return the part that is independent of the task: the most central files, for the stable part of a prompt."""
        self._refreshed()
        outline = cache(self._index.symbols)
        best = relevance.central(self._important, outline)
        return self._made(("overview", budget), self._important, best, outline, budget)

    def ranked(self, task: Task) -> list[tuple[str, float]]:
        """Return files and scores by relevance to the task, best first."""
        graph = self._refreshed()
        return rank.ranked(self._index, graph, self._files, task)

    def _filled(self, ranked: list[tuple[str, float]]) -> list[tuple[str, float]]:
        """Append generally important files, for a map with room left."""
        known = {path for path, _ in ranked}
        rest = [(path, LEAST_SCORE * rank) for path, rank in self._important if path not in known]
        return ranked + rest[: max(0, repomap.MOST_FILES - len(ranked))]

    def _made(
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
        made = repomap.render(
            ranked, best, outline, budget, previous=before, count=self._count, lines=lines, among=among
        )
        self._last[key] = made
        while len(self._last) > _KEPT:
            del self._last[next(iter(self._last))]
        return made

    def _refreshed(self) -> graphs.Graph:
        """Return the graph, rebuilt only when more than a share of `STALE` has changed."""
        generation = self._index.generation()
        if self._graph is not None and generation == self._generation:
            return self._graph
        self._files = self._index.files()
        self._generation = generation
        graph = self._graph or _read(self._saved)
        if graph is None or graph.stale(self._files) > STALE:
            graph = graphs.build(self._index.defined(), self._index.used(), self._files)
            _write(self._saved, graph)
        self._graph = graph
        self._important = _relative(rank.important(graph, self._files)[: repomap.MOST_FILES])
        return graph


def repo_map(
    index: MapSource,
    task: str,
    focused: Collection[str] = (),
    mentioned: Collection[str] = (),
    budget_tokens: int = 1024,
) -> str:
    """Return the text of one map, computed from scratch; a `Mapper` makes the next one faster."""
    return Mapper(index).task_map(Task(task, tuple(focused), tuple(mentioned)), budget_tokens).text


def _relative(ranked: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return scores relative to the best, under a square root, as PageRank falls off steeply."""
    best = max((score for _, score in ranked), default=0.0) or 1.0
    return [(path, sqrt(score / best)) for path, score in ranked]


def _read(path: Path | None) -> graphs.Graph | None:
    """Return the saved graph; None if there is none that can be read."""
    try:
        return graphs.load(path.read_bytes()) if path else None
    except (OSError, ValueError):
        return None


def _write(path: Path | None, graph: graphs.Graph) -> None:
    """Save the graph atomically; failures are ignored, as the graph can be rebuilt."""
    if path is None:
        return
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(graphs.dump(graph))
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
