"""Ranking of files by relevance to a task: words, names, the reference graph, focus and recent edits combined.

Pure apart from its database queries. Not here: showing the files (`repomap.py`) or parts of them (`chunks.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt

from codeagent_lsp.index.graph import Graph
from codeagent_lsp.index.kinds import is_made, is_source, is_test
from codeagent_lsp.index.lexical import Tables, asked, folder_and_stem, matching, rarity
from codeagent_lsp.index.words import QueryTerms, question

SEEDS = 20
GRAPH_SHARE = 0.2
RECENT_SHARE = 0.2
RECENT_ALONE = 0.02  # of the best score, for a file without any other score
STEM_BONUS, FOLDER_BONUS = 0.5, 0.3
NAMED_BONUS = 1.0  # of the best score: a file that the task names counts as much as the best match
FEW = 20
TEST_WORTH, PROSE_WORTH = 0.3, 0.3

_ASKS_FOR_TESTS = frozenset(("test", "pytest", "unittest", "spec", "fixtur"))
_ASKS_FOR_PROSE = frozenset(("readm", "doc", "document", "documentation", "changelog", "guid", "tutorial"))


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


def ranked(
    tables: Tables, graph: Graph, paths: Collection[str], task: Task, words: QueryTerms | None = None
) -> list[tuple[str, float]]:
    """Return files and scores by relevance, best first; scores from 0 to about 3, irrelevant files left out."""
    asking = words or task.question()
    scores = {path: score * worth(path, asking) for path, score in matching(tables, asking) if path in paths}
    _add_path_words(tables, scores, asking, len(paths))
    best = max(scores.values(), default=0.0) or 1.0
    scores = {path: score / best for path, score in scores.items()}
    for path in _named(paths, asking.paths):
        scores[path] = scores.get(path, 0.0) + NAMED_BONUS
    for path in task.focused:
        if path in paths:
            scores[path] = scores.get(path, 0.0) + NAMED_BONUS
    _add_neighbours(graph, scores, paths, asking)
    _add_recent(scores, paths, task.recent)
    return sorted(scores.items(), key=lambda each: (-each[1], each[0]))


def important(graph: Graph, paths: Collection[str]) -> list[tuple[str, float]]:
    """Return files by PageRank alone, independent of a task, sources before all else."""
    nothing = QueryTerms()
    known = ((path, rank * worth(path, nothing)) for path, rank in zip(graph.paths, graph.importance, strict=True))
    return sorted(((path, rank) for path, rank in known if path in paths), key=lambda each: (-each[1], each[0]))


def worth(path: str, asking: QueryTerms) -> float:
    """Return the prior of a file by its kind: lower for generated files, tests and prose, unless asked for."""
    value = 0.1 if is_made(path) else 1.0
    if is_test(path) and not _asks(asking, _ASKS_FOR_TESTS):
        value *= TEST_WORTH
    if not is_source(path) and not _asks(asking, _ASKS_FOR_PROSE):
        value *= PROSE_WORTH
    return value


def _add_path_words(tables: Tables, scores: dict[str, float], asking: QueryTerms, files: int) -> None:
    """Add a bonus for words in a file's path, as BM25 saturates quickly there."""
    counts = rarity(tables, asked(asking)[:500])
    weight = {word: log(1 + files / (count + 0.5)) for word, count in counts.items()}
    for path in scores:
        folders, stem = folder_and_stem(path)
        bonus = STEM_BONUS * sum(weight.get(word, 0.0) for word in stem) / sqrt(len(stem) or 1)
        bonus += FOLDER_BONUS * sum(weight.get(word, 0.0) for word in folders)
        scores[path] += bonus * worth(path, asking)


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


def _add_neighbours(graph: Graph, scores: dict[str, float], paths: Collection[str], asking: QueryTerms) -> None:
    """Add a share for the graph neighbours of the best files, in both directions."""
    best = sorted(scores.items(), key=lambda each: (-each[1], each[0]))[:SEEDS]
    reached = graph.spread({path: score * score for path, score in best})
    top = max(reached.values(), default=0.0) or 1.0
    for path, rank in reached.items():
        if path in paths:
            scores[path] = scores.get(path, 0.0) + GRAPH_SHARE * worth(path, asking) * sqrt(rank / top)


def _add_recent(scores: dict[str, float], paths: Collection[str], recent: Mapping[str, float]) -> None:
    """Raise the scores of recently edited files; a recent edit alone gives a small score."""
    for path, often in recent.items():
        if path in paths and often > 0:
            scores[path] = scores.get(path, RECENT_ALONE) * (1 + RECENT_SHARE * log(1 + often))


def _asks(asking: QueryTerms, words: frozenset[str]) -> bool:
    return any(word in words for word, _ in asking.words)
