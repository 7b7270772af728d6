"""Which file leans on which: a graph made of the names that files define and use, and ranks on it.

An edge is the stronger the more often a name is used and the fewer files define it. A graph is a value: small
arrays, quick to save and to load. Not here: what a task makes important (`rank.py`).
"""

from __future__ import annotations

import json
import sys
from array import array
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from codeagent_lsp.index.packing import Names

MOST_DEFINERS = 5  # a name that more files define tells nothing of which is meant
SHORTEST_NAME = 4
BACKWARD = 1.0  # how much of an edge's weight leads back, from what is used to who uses it

_ORDER = sys.byteorder
_SIZES = {kind: array(kind).itemsize for kind in ("I", "Q")} | {"f": array("f").itemsize}
_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class Graph:
    """Files by number; the edges of file n are those from `starts[n]` to `starts[n + 1]`, weights add up to 1."""

    paths: tuple[str, ...]
    starts: array[int]
    targets: array[int]
    weights: array[float]
    importance: array[float]
    contents: array[int]
    number: Mapping[str, int] = field(default_factory=dict)

    def stale(self, files: Mapping[str, bytes]) -> float:
        """The share of `files` (paths and digests) that the graph does not know, or knows with another content."""
        same = sum(
            path in files and _short(files[path]) == known
            for path, known in zip(self.paths, self.contents, strict=True)
        )
        return 1 - same / max(len(files), len(self.paths), 1)

    def spread(self, seeds: Mapping[str, float], *, share: float = 0.7, precision: float = 1e-3) -> dict[str, float]:
        """Personalised PageRank: how often a walk from the seeds is at each file, going on with a chance of `share`.

        Local: its cost is bounded by `precision`, not by the size of the graph. Files never reached are left out.
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
        """What has come to one file stays there in part, and goes on to its neighbours."""
        at = queue.popleft()
        mass = rest.pop(at, 0.0)
        found[at] = found.get(at, 0.0) + (1 - share) * mass
        going = share * mass
        for edge in range(self.starts[at], self.starts[at + 1]):
            target = self.targets[edge]
            before = rest.get(target, 0.0)
            rest[target] = after = before + going * self.weights[edge]
            if before <= precision < after:
                queue.append(target)


def build(names: Iterable[tuple[str, Names]], files: Mapping[str, bytes]) -> Graph:
    """The graph of all files, as `Store.names` gives them, with the digests that `Store.files` gives."""
    known = list(names)
    definers = _definers(known)
    edges: list[dict[int, float]] = [{} for _ in known]
    for user, (_, each) in enumerate(known):
        own = set(each.defined)
        for name, often in each.used.items():
            targets = definers.get(name)
            if targets and name not in own:
                _connect(edges, user, targets, sqrt(often) / len(targets))
    return _graph([path for path, _ in known], edges, files)


def dump(graph: Graph) -> bytes:
    """The graph as bytes for `load`, on the same machine."""
    head = json.dumps([_ORDER, len(graph.targets), graph.paths]).encode()
    parts = (graph.starts, graph.targets, graph.contents, graph.weights, graph.importance)
    return len(head).to_bytes(8, "little") + head + b"".join(part.tobytes() for part in parts)


def load(data: bytes) -> Graph:
    """What `dump` was given. ValueError if the bytes are something else."""
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


def _definers(known: Sequence[tuple[str, Names]]) -> dict[str, list[int]]:
    definers: dict[str, list[int]] = {}
    for number, (_, names) in enumerate(known):
        for name in names.defined:
            if len(name) >= SHORTEST_NAME:
                definers.setdefault(name, []).append(number)
    return {name: files for name, files in definers.items() if len(files) <= MOST_DEFINERS}


def _connect(edges: list[dict[int, float]], user: int, targets: Sequence[int], weight: float) -> None:
    for target in targets:
        if target != user:
            edges[user][target] = edges[user].get(target, 0.0) + weight
            edges[target][user] = edges[target].get(user, 0.0) + weight * BACKWARD


def _graph(paths: Sequence[str], edges: Sequence[Mapping[int, float]], files: Mapping[str, bytes]) -> Graph:
    starts, targets, weights = array("I", [0]), array("I"), array("f")
    for each in edges:
        total = sum(each.values())
        targets.extend(each)
        weights.extend(weight / total for weight in each.values())
        starts.append(len(targets))
    importance = _pagerank(starts, targets, weights)
    contents = array("Q", (_short(files.get(path, b"")) for path in paths))
    return Graph(tuple(paths), starts, targets, weights, importance, contents, _numbered(paths))


def _pagerank(starts: array[int], targets: array[int], weights: array[float], rounds: int = 12) -> array[float]:
    """PageRank without a task, by power iteration; a file without edges keeps nothing but its base share."""
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
