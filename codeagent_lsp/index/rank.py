"""How much each file matters to a task: words, names, the reference graph, focus and what was edited lately, in one.

Pure but for the queries it makes. Not here: showing the files (`repomap.py`) or parts of them (`chunks.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt

from codeagent_lsp.index.graph import Graph
from codeagent_lsp.index.kinds import is_made, is_source, is_test
from codeagent_lsp.index.lexical import Tables, asked, folder_and_stem, matching, rarity
from codeagent_lsp.index.words import Question, question

SEEDS = 20
GRAPH_SHARE = 0.2
RECENT_SHARE = 0.2
RECENT_ALONE = 0.02  # of the best score, for a file that nothing else speaks for
STEM_BONUS, FOLDER_BONUS = 0.5, 0.3
NAMED_BONUS = 1.0  # of the best score: a file that the task names is worth as much as the best match
FEW = 20
TEST_WORTH, PROSE_WORTH = 0.3, 0.3

_ASKS_FOR_TESTS = frozenset(("test", "pytest", "unittest", "spec", "fixtur"))
_ASKS_FOR_PROSE = frozenset(("readm", "doc", "document", "documentation", "changelog", "guid", "tutorial"))


@dataclass(frozen=True, slots=True)
class Task:
    """What the map or the search is for: the request, the files in focus, names mentioned elsewhere.

    `recent` says of files how much they were edited lately, in any unit; '' and empty mean nothing known.
    """

    text: str = ""
    focused: tuple[str, ...] = ()
    mentioned: tuple[str, ...] = ()
    recent: Mapping[str, float] = field(default_factory=dict)

    def question(self) -> Question:
        """Return the request's words, with the mentioned names added."""
        return question("\n".join((self.text, *self.mentioned)))


def ranked(
    tables: Tables, graph: Graph, paths: Collection[str], task: Task, words: Question | None = None
) -> list[tuple[str, float]]:
    """Files by how much they matter, best first; scores between 0 and about 3, files that do not matter left out."""
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
    """Files by PageRank alone: what holds the repository together, whatever the task. Sources before all else."""
    nothing = Question()
    known = ((path, rank * worth(path, nothing)) for path, rank in zip(graph.paths, graph.importance, strict=True))
    return sorted(((path, rank) for path, rank in known if path in paths), key=lambda each: (-each[1], each[0]))


def worth(path: str, asking: Question) -> float:
    """How likely a file of this kind is to be the one to change: less for tests and prose, unless asked for."""
    value = 0.1 if is_made(path) else 1.0
    if is_test(path) and not _asks(asking, _ASKS_FOR_TESTS):
        value *= TEST_WORTH
    if not is_source(path) and not _asks(asking, _ASKS_FOR_PROSE):
        value *= PROSE_WORTH
    return value


def _add_path_words(tables: Tables, scores: dict[str, float], asking: Question, files: int) -> None:
    """A word in a file's name counts beside the text, for there BM25 is soon satisfied."""
    counts = rarity(tables, asked(asking)[:500])
    weight = {word: log(1 + files / (count + 0.5)) for word, count in counts.items()}
    for path in scores:
        folders, stem = folder_and_stem(path)
        bonus = STEM_BONUS * sum(weight.get(word, 0.0) for word in stem) / sqrt(len(stem) or 1)
        bonus += FOLDER_BONUS * sum(weight.get(word, 0.0) for word in folders)
        scores[path] += bonus * worth(path, asking)


def _named(paths: Collection[str], wanted: Sequence[str]) -> Iterable[str]:
    """The files that the task names by path, by the end of a path, or by their folder; none where too many would be."""
    for name in wanted:
        if name in paths:
            yield name
            continue
        found = [path for path in paths if _fits(path, name)]
        if len(found) <= FEW:
            yield from sorted(found)


def _fits(path: str, name: str) -> bool:
    """Absolute paths from stack traces end with ours."""
    return path.endswith(f"/{name}") or name.endswith(f"/{path}") or path.startswith(f"{name}/")


def _add_neighbours(graph: Graph, scores: dict[str, float], paths: Collection[str], asking: Question) -> None:
    """What the best files lean on, and who leans on them."""
    best = sorted(scores.items(), key=lambda each: (-each[1], each[0]))[:SEEDS]
    reached = graph.spread({path: score * score for path, score in best})
    top = max(reached.values(), default=0.0) or 1.0
    for path, rank in reached.items():
        if path in paths:
            scores[path] = scores.get(path, 0.0) + GRAPH_SHARE * worth(path, asking) * sqrt(rank / top)


def _add_recent(scores: dict[str, float], paths: Collection[str], recent: Mapping[str, float]) -> None:
    """What is edited often is edited again; alone it makes a file matter a little."""
    for path, often in recent.items():
        if path in paths and often > 0:
            scores[path] = scores.get(path, RECENT_ALONE) * (1 + RECENT_SHARE * log(1 + often))


def _asks(asking: Question, words: frozenset[str]) -> bool:
    return any(word in words for word, _ in asking.words)
