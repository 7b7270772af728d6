"""Ranking of files by relevance to a task: words, names, the reference graph, focus and recent edits combined; and
several rankings fused into one.

Pure apart from its database queries. Not here: showing the files (`repomap.py`) or parts of them (`relevance.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt

from codeagent_lsp.index.graph import Graph
from codeagent_lsp.index.kinds import is_made, is_prose, is_source, is_test
from codeagent_lsp.index.lexical import Tables, asked, folder_and_stem, matching, rarity
from codeagent_lsp.index.relevance import Chunk
from codeagent_lsp.index.words import QueryTerms, question

SEEDS = 20
GRAPH_SHARE = 0.2
PRECISION = 4e-3  # of the spreading in the graph; finer found no more, in four times the time
RECENT_SHARE = 0.2
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


@dataclass(frozen=True, slots=True)
class Task:
    """The purpose of a map or a search: the request, the files in focus, and names mentioned elsewhere.

    `recent` says how much each file was edited lately, in any unit; '' and empty mean nothing known.
    """

    text: str = ""
    focused: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    recent: Mapping[str, float] = field(default_factory=dict)

    def question(self) -> QueryTerms:
        """Return the terms of the request and of the mentioned names."""
        return question("\n".join((self.text, *self.mentioned)))

    def subject(self) -> QueryTerms:
        """Return the terms of the request's first line; of a stack trace, its head is none."""
        lines = (line for line in self.text.splitlines() if line.strip() and not line.startswith("Traceback (most"))
        return question(next(lines, ""))


def ranked(tables: Tables, graph: Graph, paths: Collection[str], task: Task) -> list[tuple[str, float]]:
    """Return files and scores by relevance, best first; scores from 0 to about 3, irrelevant files left out."""
    asking, subject = task.question(), task.subject()
    if not subject.words:
        subject = asking
    scores = {path: score * worth(path, subject) for path, score in matching(tables, asking) if path in paths}
    if subject.words != asking.words:
        _add_subject(tables, scores, paths, subject)
    _add_path_words(tables, scores, asking, subject, len(paths))
    best = max(scores.values(), default=0.0) or 1.0
    scores = {path: score / best for path, score in scores.items()}
    for path in _named(paths, asking.paths):
        scores[path] = scores.get(path, 0.0) + NAMED_BONUS
    for path in task.focused:
        if path in paths:
            scores[path] = scores.get(path, 0.0) + NAMED_BONUS
    _add_neighbours(graph, scores, paths, subject)
    _add_recent(scores, paths, task.recent)
    return sorted(scores.items(), key=lambda each: (-each[1], each[0]))


def important(graph: Graph, paths: Collection[str]) -> list[tuple[str, float]]:
    """Return files by PageRank alone, independent of a task, sources before all else."""
    nothing = QueryTerms()
    known = ((path, rank * worth(path, nothing)) for path, rank in zip(graph.paths, graph.importance, strict=True))
    return sorted(((path, rank) for path, rank in known if path in paths), key=lambda each: (-each[1], each[0]))


def worth(path: str, asking: QueryTerms) -> float:
    """Return the prior of a file by its kind: lower for generated files, tests, prose and data.

    Tests and prose count in full where `asking`, the subject of a task, asks for them.
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
    counts = rarity(tables, asked(asking)[:500])
    first = frozenset(asked(subject)) if subject.words != asking.words else frozenset()
    weight = {
        word: log(1 + files / (count + 0.5)) * (1 + SUBJECT_SHARE * (word in first)) for word, count in counts.items()
    }
    for path in scores:
        folders, stem = folder_and_stem(path)
        # In a long name some words fit by chance.
        bonus = STEM_BONUS * sum(weight.get(word, 0.0) for word in stem) / sqrt(len(stem) or 1)
        bonus += FOLDER_BONUS * sum(weight.get(word, 0.0) for word in folders)
        scores[path] += bonus * worth(path, subject)


def _named(paths: Collection[str], wanted: Sequence[str]) -> Iterable[str]:
    """Yield the files that the task names by path, by the end of a path, or by folder; none if more than 20 match."""
    for name in wanted:
        if name in paths:
            yield name
            continue
        found = [path for path in paths if _fits(path, name)]
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


def _asks(asking: QueryTerms, words: frozenset[str]) -> bool:
    return any(word in words for word, _ in asking.words)


# Fusion of the results of several searches into one list. Pure. Not here: searching.


def fused(found: Sequence[Sequence[Chunk]], limit: int) -> tuple[Chunk, ...]:
    """Merge ranked lists by reciprocal rank fusion, as scores of different searches are not comparable.

    The first list has the greatest weight. A chunk that a list lacks gets the rank after its file's first chunk in that
    list, so that files found by several searches come first. A single list keeps its order and scores.
    """
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
            points[key] += 0.0 if place is None else weight / (_RANK + place)
    return tuple(known[key] for key in sorted(points, key=lambda key: (-points[key], key))[:limit])


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
