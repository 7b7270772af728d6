"""Chooses the files that a task is about, by how much each has to do with it.

A file counts if the task names it, a traceback contains it, the failing tests import it, or the index finds it.
Not here: what of them is shown (`gathering.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codeagent_lsp.direct.brief import Brief
from codeagent_lsp.direct.pieces import identifiers
from codeagent_lsp.direct.verdict import Verdict
from codeagent_lsp.index.kinds import is_made, is_source, is_test
from codeagent_lsp.direct.workspace_files import WorkspaceFiles

TARGET, WANTED, NAMED, TRACED, IMPORTED, USING, EARLIER, MAPPED = 100, 70, 50, 30, 25, 22, 12, 5
SURE = 20
"""Files with at least this score are shown; others only where there is none of these."""
MOST_SHOWN = 6
FEW_FILES = 8

_CODE_NAME = re.compile(r"`([A-Za-z_]\w+)`|\b([A-Za-z]+_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)\b|\b([A-Za-z_]\w+)\(\)")


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a task: its brief, the file that the user points at with its lines (1-based), files of earlier
    runs and of the index, best first, and files that the model has asked for. `pieces` are the files and lines that the
    search finds, best first. Paths are relative to the workspace.
    """

    brief: Brief
    target: str = ""
    lines: range = range(0)
    earlier: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    pieces: tuple[tuple[str, range], ...] = ()


class Relevance:
    """The relevance of a workspace's files to tasks."""

    def __init__(self, files: WorkspaceFiles) -> None:
        self._files = files

    def about(self, subject: Subject, verdict: Verdict | None) -> tuple[str, ...]:
        """Return the names of the files that may have to change, best first, at most 6."""
        scores = self._scores(subject, verdict)
        fixed = set() if subject.brief.writes_tests else self._fixed(subject, verdict)
        names = sorted((name for name in scores if name not in fixed), key=lambda name: -scores[name])
        sure = [name for name in names if scores[name] >= SURE]
        if not sure and not names and len(sources := self._files.sources()) <= FEW_FILES:
            names = [name for name in sources if name not in fixed]
        return tuple((sure or names)[:MOST_SHOWN])

    def _scores(self, subject: Subject, verdict: Verdict | None) -> dict[str, float]:
        scores: dict[str, float] = {}

        def add(names: Iterable[str], score: float) -> None:
            for name in names:
                if name in self._files.names and not is_made(name):
                    scores[name] = max(score, scores.get(name, 0.0))

        named = self._files.named(subject.brief.words)
        add([subject.target], TARGET)
        add(self._files.ending(subject.wanted), WANTED)
        add(named, NAMED)
        tests = {name for name in named if is_test(name)}
        if verdict is not None and verdict.failed:
            add((name for name, _ in self._files.traced(verdict.report) if not is_test(name)), TRACED)
            failing = {name for each in verdict.failed for name in self._files.ending([each.path])}
            add((name for name in failing if not is_test(name)), TRACED)
            tests.update(filter(is_test, failing))
        for test in sorted(tests):
            add(self._files.imported(test), IMPORTED)
        if subject.brief.everywhere:
            add(self._files.using(self._meant(subject, named)), USING)
        if not scores:
            add(subject.earlier, EARLIER)
        add((name for name in subject.mapped if is_source(name) and not is_test(name)), MAPPED)
        return scores

    def _fixed(self, subject: Subject, verdict: Verdict | None) -> set[str]:
        """Return the tests that a change is judged by, which therefore may not change."""
        judged = {name for each in (verdict.failed if verdict else ()) for name in self._files.ending([each.path])}
        named = {name for name in self._files.named(subject.brief.words) if is_test(name)}
        tests = {name for name in self._files.names if is_test(name)} if subject.brief.about_tests else set()
        return {name for name in judged | named | tests if is_test(name)} - {subject.target}

    def _meant(self, subject: Subject, named: Sequence[str]) -> frozenset[str]:
        """Return the names of code that a task mentions: defined in the files it names, or written like code."""
        words = subject.brief.words
        sources = [source for name in (subject.target, *named) if (source := self._files.source(name)) is not None]
        defined = {each.symbol.name for source in sources for each in source.definitions}
        return _code_names(words) | (identifiers(words) & defined)


def _code_names(words: str) -> frozenset[str]:
    """Return the words of a task that look like names of code."""
    return frozenset(name for groups in _CODE_NAME.findall(words) for name in groups if name)
