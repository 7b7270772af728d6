"""Ranking of files by relevance to a task: words, names, the reference graph, focus, recent edits and past commits
combined; several rankings fused into one; and the reference graph, made of the names that files define and use, with
PageRank on it.

An edge is the stronger the more often a name is used and the fewer files define it. A graph is a value of small arrays,
fast to save and load. Pure apart from its database queries. Not here: showing the files (`repomap.py`) or parts of them
(`relevance.py`).
"""

from __future__ import annotations

import json
import sys
from array import array
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt

from codeagent_lsp.index.commits import NO_COMMITS, PastCommits
from codeagent_lsp.index.grammars import is_made, is_prose, is_source, is_test
from codeagent_lsp.index.relevance import Chunk
from codeagent_lsp.index.store import Tables, folder_and_stem, matching, rarity, search_words
from codeagent_lsp.index.words import QueryTerms, question

SEEDS = 20
GRAPH_SHARE = 0.2
PRECISION = 4e-3  # of the spreading in the graph; finer found no more, in four times the time
RECENT_SHARE = 0.2
PAST_SHARE = 0.3  # of the best score, for the file that past commits speak for most
RECENT_ALONE = 0.02  # of the best score, for a file without any other score
STEM_BONUS, FOLDER_BONUS = 0.75, 0.3
SUBJECT_SHARE = 1.0  # of the whole text, for the first line alone, which says what the rest is about
NAMED_BONUS = 1.0  # of the best score: a file that the task names counts as much as the best match
FEW = 20
TEST_WORTH, PROSE_WORTH = 0.3, 0.3

_ASKS_FOR_TESTS = frozenset(("test", "pytest", "unittest", "spec", "fixtur"))
_ASKS_FOR_PROSE = frozenset(("readm", "doc", "document", "documentation", "changelog", "guid", "tutorial"))
_RANK = 60  # the constant k of reciprocal rank fusion: how little the first ranks differ from the next
_OTHERS = 0.3  # weight of all lists but the first; other values are measured in docs/index-measurements.md

_Key = tuple[str, int, int]
MOST_DEFINERS = 5  # a name that more files define is ambiguous
SHORTEST_NAME = 4  # shorter names (`get`, `id`, `run`) are defined by chance
MOST_EDGES = 32  # of one file, so that a file which uses everything does not connect everything

_ORDER = sys.byteorder
_SIZES = {kind: array(kind).itemsize for kind in ("I", "Q")} | {"f": array("f").itemsize}
_STEPS = 20_000  # files that one spreading looks at, at most
# Of a file's weight so much goes on to its neighbours when a task spreads from the files that it names.
_DAMPING = 0.7
# After so many rounds the order of files changes no more.
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Task:
    """The purpose of a map or a search: the request, the files in focus (index paths), and names mentioned elsewhere.
    `recent` says how much each file was edited lately, in any unit; `past` are the commits of the repository. '' and
    empty mean that nothing is known.
    """

    text: str = ""
    focused: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    recent: Mapping[str, float] = field(default_factory=dict)
    past: PastCommits = NO_COMMITS

    def question(self) -> QueryTerms:
        """Return the terms of the request and of the mentioned names; empty ones if both are."""
        return question("\n".join((self.text, *self.mentioned)))

    def subject(self) -> QueryTerms:
        """Return the terms of the request's first line that is not blank, which says what the rest is about; those of
        the whole if that line has no word, as `Do this:`. The head of a stack trace does not count.
        """
        lines = (line for line in self.text.splitlines() if line.strip() and not line.startswith("Traceback (most"))
        first = question(next(lines, ""))
        return first if first.words else self.question()


def rank_files(tables: Tables, graph: Graph, paths: Collection[str], task: Task) -> list[tuple[str, float]]:
    """Return pairs of index path and score by relevance to the task, best first; scores from 0 to about 3, irrelevant
    files left out. Only files in `paths` are ranked. Blocks on the database.
    """
    asking, subject = task.question(), task.subject()
    scores = {path: score * worth(path, subject) for path, score in matching(tables, asking) if path in paths}
    if subject.words != asking.words:
        _add_subject(tables, scores, paths, subject)
    _add_path_words(tables, scores, asking, subject, len(paths))
    # Scaled before the bonuses: a file that is named counts as much as the best match, however well that matches.
    best = max(scores.values(), default=0.0) or 1.0
    scores = {path: score / best for path, score in scores.items()}
    for path in _named_files(paths, asking.paths):
        scores[path] = scores.get(path, 0.0) + NAMED_BONUS
    for path in task.focused:
        if path in paths:
            scores[path] = scores.get(path, 0.0) + NAMED_BONUS
    # After the names: what the user has named is also where the neighbourhood is looked for.
    _add_neighbours(graph, scores, paths, subject)
    _add_recent(scores, paths, task.recent)
    _add_past(scores, paths, task.past.files(asking), subject)
    return sorted(scores.items(), key=lambda each: (-each[1], each[0]))


def important(graph: Graph, paths: Collection[str]) -> list[tuple[str, float]]:
    """Return pairs of index path and score by PageRank alone, independent of a task, best first, for the files of the
    graph that are in `paths`; source code is preferred to tests, prose and generated files.
    """
    nothing = QueryTerms()
    known = ((path, rank * worth(path, nothing)) for path, rank in zip(graph.paths, graph.importance, strict=True))
    return sorted(((path, rank) for path, rank in known if path in paths), key=lambda each: (-each[1], each[0]))


def worth(path: str, asking: QueryTerms) -> float:
    """Return the factor, above 0 and at most 1, for the score of a file by its kind: lower for generated files, tests,
    prose and data. Tests and prose count in full if `asking`, the subject of a task, asks for them.
    """
    value = 0.1 if is_made(path) else 1.0
    if is_test(path) and not _asks(asking, _ASKS_FOR_TESTS):
        value *= TEST_WORTH
    if not is_source(path) and not (is_prose(path) and _asks(asking, _ASKS_FOR_PROSE)):
        value *= PROSE_WORTH
    return value


def _add_subject(tables: Tables, scores: dict[str, float], paths: Collection[str], subject: QueryTerms) -> None:
    """Add what matches the first line alone, so that it counts as much as the whole text."""
    found = {path: score * worth(path, subject) for path, score in matching(tables, subject) if path in paths}
    whole, best = max(scores.values(), default=0.0) or 1.0, max(found.values(), default=0.0) or 1.0
    for path, score in found.items():
        scores[path] = scores.get(path, 0.0) + SUBJECT_SHARE * whole * score / best


def _add_path_words(
    tables: Tables, scores: dict[str, float], asking: QueryTerms, subject: QueryTerms, files: int
) -> None:
    """Add a bonus for words in a file's path, as BM25 saturates quickly there; those of the first line count twice."""
    counts = rarity(tables, search_words(asking)[:500])
    first = frozenset(search_words(subject)) if subject.words != asking.words else frozenset()
    weight = {
        word: log(1 + files / (count + 0.5)) * (1 + SUBJECT_SHARE * (word in first)) for word, count in counts.items()
    }
    for path in scores:
        folders, stem = folder_and_stem(path)
        # In a long name some words fit by chance.
        bonus = STEM_BONUS * sum(weight.get(word, 0.0) for word in stem) / sqrt(len(stem) or 1)
        bonus += FOLDER_BONUS * sum(weight.get(word, 0.0) for word in folders)
        scores[path] += bonus * worth(path, subject)


def _named_files(paths: Collection[str], wanted: Sequence[str]) -> Iterable[str]:
    """Yield the files that the task names by path, by the end of a path, or by folder; none if more than 20 match."""
    for name in wanted:
        if name in paths:
            yield name
            continue
        found = [path for path in paths if _fits(path, name)]
        # A name that fits many files, such as `src`, chooses none.
        if len(found) <= FEW:
            yield from sorted(found)


def _fits(path: str, name: str) -> bool:
    """Return whether `name` is the end of `path` or a folder of it, or an absolute path that ends with `path`."""
    return path.endswith(f"/{name}") or name.endswith(f"/{path}") or path.startswith(f"{name}/")


def _add_neighbours(graph: Graph, scores: dict[str, float], paths: Collection[str], subject: QueryTerms) -> None:
    """Add a share for the graph neighbours of the best files, in both directions."""
    best = sorted(scores.items(), key=lambda each: (-each[1], each[0]))[:SEEDS]
    # Squared, so that the neighbours of the very best files count most.
    reached = graph.spread({path: score * score for path, score in best}, precision=PRECISION)
    top = max(reached.values(), default=0.0) or 1.0
    for path, rank in reached.items():
        if path in paths:
            scores[path] = scores.get(path, 0.0) + GRAPH_SHARE * worth(path, subject) * sqrt(rank / top)


def _add_recent(scores: dict[str, float], paths: Collection[str], recent: Mapping[str, float]) -> None:
    """Raise the scores of recently edited files; a recent edit alone gives a small score."""
    for path, often in recent.items():
        if path in paths and often > 0:
            scores[path] = scores.get(path, RECENT_ALONE) * (1 + RECENT_SHARE * log(1 + often))


def _add_past(scores: dict[str, float], paths: Collection[str], past: Mapping[str, float], subject: QueryTerms) -> None:
    """Add a share for the files that past commits with such words changed, some of which have none of the words."""
    best = max(scores.values(), default=0.0) or 1.0
    for path, score in past.items():
        if path in paths:
            scores[path] = scores.get(path, 0.0) + PAST_SHARE * best * score * worth(path, subject)


def _asks(asking: QueryTerms, words: frozenset[str]) -> bool:
    return any(word in words for word, _ in asking.words)


# Fusion of the results of several searches into one list. Pure. Not here: searching.


def fuse_lists(found: Sequence[Sequence[Chunk]], limit: int) -> tuple[Chunk, ...]:
    """Merge ranked lists by reciprocal rank fusion (Cormack, Clarke and Büttcher 2009), as scores of different searches
    are not comparable, and return at most `limit` chunks, best first.

    The first list has the greatest weight. A chunk that a list lacks gets the rank after its file's first chunk in that
    list, so that files found by several searches come first. A single list keeps its order and scores.
    """
    # Before the empty ones are left out: the first list is the lexical one, also where it has found nothing.
    several = [(_OTHERS if number else 1.0, way) for number, way in enumerate(found) if way]
    if len(several) < 2:
        return tuple(several[0][1][:limit]) if several else ()
    known: dict[_Key, Chunk] = {}
    for _, way in several:
        for chunk in way:
            known.setdefault(_key(chunk), chunk)
    points = dict.fromkeys(known, 0.0)
    for weight, way in several:
        pieces, files = _places(way)
        for key in known:
            place = pieces.get(key, files.get(key[0]))
            # Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009), with weights.
            points[key] += 0.0 if place is None else weight / (_RANK + place)
    return tuple(known[key] for key in sorted(points, key=lambda key: (-points[key], key))[:limit])


@dataclass(frozen=True, slots=True)
class Graph:
    """A weighted graph of files by index path, in compressed sparse rows; file n is `paths[n]`, and `number` is the
    reverse. Its edges are those from `starts[n]` to `starts[n + 1]` in `targets` and `weights`, which add up to 1.
    `importance` is each file's PageRank, `contents` a short digest of its text.
    """

    paths: tuple[str, ...]
    starts: array[int]
    targets: array[int]
    weights: array[float]
    importance: array[float]
    contents: array[int]
    number: Mapping[str, int] = field(default_factory=dict)

    def stale(self, files: Mapping[str, bytes]) -> float:
        """Return how far the graph differs from `files` (digests by index path), from 0 to 1: 1 less the files with the
        same content in both, as a share of the larger number of files.
        """
        same = sum(
            path in files and _short(files[path]) == known
            for path, known in zip(self.paths, self.contents, strict=True)
        )
        return 1 - same / max(len(files), len(self.paths), 1)

    def spread(self, seeds: Mapping[str, float], *, precision: float = 1e-3) -> dict[str, float]:
        """Return the personalised PageRank by index path for seeds, which map paths to weights of any sum; unknown
        seeds are ignored. The damping factor is 0.7.

        Computed locally by forward push (Andersen, Chung and Lang 2006): the cost depends on `precision`, not on the
        size of the graph. Files not reached are left out.
        """
        # Forward push (Andersen, Chung and Lang 2006).
        total = sum(weight for path, weight in seeds.items() if path in self.number) or 1.0
        rest = {self.number[path]: weight / total for path, weight in seeds.items() if path in self.number}
        found: dict[int, float] = {}
        queue = deque(sorted(rest))
        for _ in range(_STEPS):
            if not queue:
                break
            self._push(queue, rest, found, precision)
        return {self.paths[at]: score for at, score in found.items()}

    def _push(self, queue: deque[int], rest: dict[int, float], found: dict[int, float], precision: float) -> None:
        """Push the mass of one file: a part stays, the rest goes to its neighbours."""
        at = queue.popleft()
        mass = rest.pop(at, 0.0)
        found[at] = found.get(at, 0.0) + (1 - _DAMPING) * mass
        going = _DAMPING * mass
        edges = slice(self.starts[at], self.starts[at + 1])
        for target, weight in zip(self.targets[edges], self.weights[edges], strict=True):
            before = rest.get(target, 0.0)
            rest[target] = after = before + going * weight
            # Only when it rises above the threshold, so that no file stands in the queue twice.
            if before <= precision < after:
                queue.append(target)


def build_graph(
    defined: Iterable[tuple[str, Sequence[str]]],
    used: Iterable[tuple[str, Mapping[str, int]]],
    files: Mapping[str, bytes],
) -> Graph:
    """Build the graph of all files from `Store.defined` and `used` and from `files` (digests by index path); takes
    seconds for large workspaces. Of each file only the strongest 32 edges to others are kept.
    """
    paths, definers = _definers(defined)
    number = _positions(paths)
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


def dump_graph(graph: Graph) -> bytes:
    """Return the graph as bytes for `load_graph`, in this machine's byte order and sizes of numbers, so that only the
    same kind of machine can load it.
    """
    head = json.dumps([_ORDER, len(graph.targets), graph.paths]).encode()
    parts = (graph.starts, graph.targets, graph.contents, graph.weights, graph.importance)
    return len(head).to_bytes(8, "little") + head + b"".join(part.tobytes() for part in parts)


def load_graph(data: bytes) -> Graph:
    """Return the graph from the bytes of `dump_graph`. ValueError for any other bytes, and for those of another kind of
    machine.
    """
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
    # The file may be damaged, and an index out of range would fail much later, amid a query.
    if list(starts) != sorted(starts) or starts[0] != 0 or starts[-1] != edges or max(targets, default=-1) >= files:
        raise ValueError("edges that lead nowhere")
    return Graph(tuple(paths), starts, targets, weights, importance, contents, _positions(paths))


def _places(way: Sequence[Chunk]) -> tuple[Mapping[_Key, int], Mapping[str, int]]:
    """Return the rank of every chunk, and the rank after the first chunk of every file."""
    pieces: dict[_Key, int] = {}
    files: dict[str, int] = {}
    for place, chunk in enumerate(way):
        pieces.setdefault(_key(chunk), place)
        files.setdefault(chunk.path, place + 1)
    return pieces, files


def _key(chunk: Chunk) -> _Key:
    return chunk.path, chunk.line_start, chunk.line_end


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
        # A name that a file defines itself is its own, whatever others define under it.
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


def _pagerank(starts: array[int], targets: array[int], weights: array[float]) -> array[float]:
    """Return the PageRank of all files by power iteration, damping 0.85.

    A file without edges keeps its base share only.
    """
    count = len(starts) - 1
    base = 1 / max(count, 1)
    rank = [base] * count
    for _ in range(_ROUNDS):
        after = [0.15 * base] * count
        for at, mass in enumerate(rank):
            going = 0.85 * mass
            for edge in range(starts[at], starts[at + 1]):
                after[targets[edge]] += going * weights[edge]
        rank = after
    return array("f", rank)


def _positions(paths: Iterable[str]) -> dict[str, int]:
    return {path: number for number, path in enumerate(paths)}


def _short(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "little")
