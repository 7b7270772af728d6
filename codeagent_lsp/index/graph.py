"""The reference graph of files, made of the names that they define and use, and PageRank on it.

An edge is the stronger the more often a name is used and the fewer files define it. A graph is a value of small
arrays, fast to save and load. Not here: the relevance of files to a task (`rank.py`).
"""

from __future__ import annotations

import json
import sys
from array import array
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

MOST_DEFINERS = 5  # a name that more files define is ambiguous
SHORTEST_NAME = 4
MOST_EDGES = 32

_ORDER = sys.byteorder
_SIZES = {kind: array(kind).itemsize for kind in ("I", "Q")} | {"f": array("f").itemsize}
_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class Graph:
    """A weighted graph of files, in compressed sparse rows.

    The edges of file n are those from `starts[n]` to `starts[n + 1]`; their weights add up to 1.
    """

    paths: tuple[str, ...]
    starts: array[int]
    targets: array[int]
    weights: array[float]
    importance: array[float]
    contents: array[int]
    number: Mapping[str, int] = field(default_factory=dict)

    def stale(self, files: Mapping[str, bytes]) -> float:
        """Return the share of `files` (paths and digests) that the graph does not have, or has with another content."""
        same = sum(
            path in files and _short(files[path]) == known
            for path, known in zip(self.paths, self.contents, strict=True)
        )
        return 1 - same / max(len(files), len(self.paths), 1)

    def spread(self, seeds: Mapping[str, float], *, share: float = 0.7, precision: float = 1e-3) -> dict[str, float]:
        """Return the personalised PageRank of files for weighted seeds, with damping factor `share`.

        Computed locally by forward push: the cost depends on `precision`, not on the size of the graph. Files not
        reached are left out.
        """
        total = sum(weight for path, weight in seeds.items() if path in self.number) or 1.0
        rest = {self.number[path]: weight / total for path, weight in seeds.items() if path in self.number}
        found: dict[int, float] = {}
        queue = deque(sorted(rest))
        for _ in range(_STEPS):
            if not queue:
                break
            self._push(queue, rest, found, share, precision)
        return {self.paths[at]: score for at, score in found.items()}

    def _push(
        self, queue: deque[int], rest: dict[int, float], found: dict[int, float], share: float, precision: float
    ) -> None:
        """Push the mass of one file: a part stays, the rest goes to its neighbours."""
        at = queue.popleft()
        mass = rest.pop(at, 0.0)
        found[at] = found.get(at, 0.0) + (1 - share) * mass
        going = share * mass
        edges = slice(self.starts[at], self.starts[at + 1])
        for target, weight in zip(self.targets[edges], self.weights[edges], strict=True):
            before = rest.get(target, 0.0)
            rest[target] = after = before + going * weight
            # Only when it rises above the threshold, so that no file stands in the queue twice.
            if before <= precision < after:
                queue.append(target)


def build(
    defined: Iterable[tuple[str, Sequence[str]]],
    used: Iterable[tuple[str, Mapping[str, int]]],
    files: Mapping[str, bytes],
) -> Graph:
    """Build the graph of all files from `Store.defined` and `used` (both streamed) and `files` (digests by path).

    Of each file only the strongest 32 edges to others are kept.
    """
    paths, definers = _definers(defined)
    number = _numbered(paths)
    ends, weights = array("I"), array("f")
    for path, names in used:
        user = number.get(path)
        if user is not None:
            for target, weight in _strongest(user, names, definers):
                ends.extend((user, target))
                weights.append(weight)
    contents = array("Q", (_short(files.get(path, b"")) for path in paths))
    starts, targets, shares = _both_ways(len(paths), ends, weights)
    importance = _pagerank(starts, targets, shares)
    return Graph(tuple(paths), starts, targets, shares, importance, contents, number)


def dump(graph: Graph) -> bytes:
    """Return the graph as bytes for `load` on the same machine."""
    head = json.dumps([_ORDER, len(graph.targets), graph.paths]).encode()
    parts = (graph.starts, graph.targets, graph.contents, graph.weights, graph.importance)
    return len(head).to_bytes(8, "little") + head + b"".join(part.tobytes() for part in parts)


def load(data: bytes) -> Graph:
    """Return the graph from the bytes of `dump`. Raises ValueError for any other bytes."""
    size = 8 + int.from_bytes(data[:8], "little")
    order, edges, paths = _head(data[8:size])
    if order != _ORDER:
        raise ValueError("a graph from another kind of machine")
    files = len(paths)
    whole: list[array[int]] = []
    shares: list[array[float]] = []
    for kind, count in (("I", files + 1), ("I", edges), ("Q", files), ("f", edges), ("f", files)):
        part = data[size : size + count * _SIZES[kind]]
        size += count * _SIZES[kind]
        if kind == "f":
            shares.append(array("f", part))
        else:
            whole.append(array("I" if kind == "I" else "Q", part))
    if size != len(data):
        raise ValueError("not the length of a graph")
    starts, targets, contents = whole
    weights, importance = shares
    if list(starts) != sorted(starts) or starts[0] != 0 or starts[-1] != edges or max(targets, default=-1) >= files:
        raise ValueError("edges that lead nowhere")
    return Graph(tuple(paths), starts, targets, weights, importance, contents, _numbered(paths))


def _head(data: bytes) -> tuple[str, int, list[str]]:
    read = json.loads(data.decode("utf-8"))
    if not isinstance(read, list) or len(read) != 3 or not isinstance(read[1], int) or not isinstance(read[2], list):
        raise ValueError("not a graph")
    return read[0], read[1], read[2]


def _definers(known: Iterable[tuple[str, Sequence[str]]]) -> tuple[list[str], dict[str, list[int]]]:
    """Return all paths, and for each name that is specific enough the numbers of the files that define it."""
    paths: list[str] = []
    definers: dict[str, list[int]] = {}
    for path, names in known:
        for name in names:
            if len(name) >= SHORTEST_NAME:
                definers.setdefault(name, []).append(len(paths))
        paths.append(path)
    return paths, {name: files for name, files in definers.items() if len(files) <= MOST_DEFINERS}


def _strongest(user: int, used: Mapping[str, int], definers: Mapping[str, Sequence[int]]) -> list[tuple[int, float]]:
    """Return the files that one references most, with weights; names that it defines itself are left out."""
    found: dict[int, float] = {}
    for name, often in used.items():
        targets = definers.get(name)
        if targets and user not in targets:
            for target in targets:
                # Dampened: a name that is used a hundred times is no hundred reasons.
                found[target] = found.get(target, 0.0) + sqrt(often) / len(targets)
    return sorted(found.items(), key=lambda each: (-each[1], each[0]))[:MOST_EDGES]


def _both_ways(files: int, ends: array[int], weights: array[float]) -> tuple[array[int], array[int], array[float]]:
    """Return the edges in both directions as compressed sparse rows; the weights that leave a file add up to 1."""
    starts, totals = array("I", bytes(4 * (files + 1))), [0.0] * files
    # Edge n has its ends at 2n and 2n + 1, so `at ^ 1` is the other end and `at // 2` the edge.
    for at, end in enumerate(ends):
        starts[end + 1] += 1
        totals[end] += weights[at // 2]
    for file in range(files):
        starts[file + 1] += starts[file]
    # A counting sort: the place of each file's next edge.
    free = array("I", starts)
    targets, shares = array("I", bytes(4 * len(ends))), array("f", bytes(4 * len(ends)))
    for at, end in enumerate(ends):
        targets[free[end]] = ends[at ^ 1]
        shares[free[end]] = weights[at // 2] / totals[end]
        free[end] += 1
    return starts, targets, shares


def _pagerank(starts: array[int], targets: array[int], weights: array[float], rounds: int = 8) -> array[float]:
    """Return the PageRank of all files by power iteration, damping 0.85.

    A file without edges keeps its base share only.
    """
    count = len(starts) - 1
    base = 1 / max(count, 1)
    rank = [base] * count
    for _ in range(rounds):
        after = [0.15 * base] * count
        for at, mass in enumerate(rank):
            going = 0.85 * mass
            for edge in range(starts[at], starts[at + 1]):
                after[targets[edge]] += going * weights[edge]
        rank = after
    return array("f", rank)


def _numbered(paths: Iterable[str]) -> dict[str, int]:
    return {path: number for number, path in enumerate(paths)}


def _short(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "little")
