"""Chooses the files that a task is about, and the parts of them that the model is shown, as the run sees them.

A file counts if the task names it, a traceback contains it, the failing tests import it, or the repo map has it.
Blocks; use it in a thread. Not here: choosing definitions in one file (`agent/solving/pieces.py`), the map.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from codeagent_lsp.agent.context.gather import MOST_FILES, named_files
from codeagent_lsp.agent.context.tokens import estimate_tokens
from codeagent_lsp.agent.solving.brief import Brief
from codeagent_lsp.agent.solving.material import Material, Piece, ShownFile
from codeagent_lsp.agent.solving.pieces import Hints, chosen_pieces, identifiers, names_definition
from codeagent_lsp.agent.solving.renaming import Rename, home_of, rename_in, renamed, still_used
from codeagent_lsp.agent.solving.suspects import suspects
from codeagent_lsp.agent.solving.verdict import Verdict
from codeagent_lsp.errors import AgentError
from codeagent_lsp.index.kinds import is_made, is_source, is_test
from codeagent_lsp.tools.code.imports import ImportTargets, resolved
from codeagent_lsp.tools.code.source import SourceFile, source_of
from codeagent_lsp.workspace.changes.changeset import Changeset
from codeagent_lsp.workspace.files.file_view import FileText, FileView

TARGET, WANTED, NAMED, TRACED, IMPORTED, USING, EARLIER, MAPPED = 100, 70, 50, 30, 25, 22, 12, 5
SURE = 20
"""Files with at least this score are shown; others only where there is none of these."""
MOST_SHOWN = 6
FEW_FILES = 8
LISTED_FILES = 30
CONTEXT_SHARE = 4
WHOLE_TOKENS, FOCUS_TOKENS = 1500, 500
"""A file with definitions that has more tokens is shown to small models in pieces, since each token costs them time and
attention. The second number is for files in which the task names the function."""
MOST_SEARCHED = 400

_CODE_NAME = re.compile(r"`([A-Za-z_]\w+)`|\b([A-Za-z]+_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)\b|\b([A-Za-z_]\w+)\(\)")
_TRACE = re.compile(r"([\w./-]+\.\w{1,6})(?:\", line |:)(\d+)")


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a task: its brief, the file that the user points at with its lines (1-based), files of earlier
    runs and of the repo map, best first, and files that the model has asked for. Paths are relative to the workspace.
    """

    brief: Brief
    target: str = ""
    lines: range = range(0)
    earlier: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()


class WorkspaceFiles:
    """The files of a workspace by their relative paths (names), each read and parsed once. `may_read` returns whether
    an absolute path may be read without asking. `complete` is False if it is so large that only a part is listed.
    """

    def __init__(self, view: FileView, may_read: Callable[[str], bool]) -> None:
        self._view = view
        self._may_read = may_read
        walked = [list(islice(view.walk(folder), MOST_FILES)) for folder in view.roots.folders]
        self.complete = all(len(paths) < MOST_FILES for paths in walked)
        self._paths = [path for paths in walked for path in paths]
        self.names = {view.roots.relative(path): path for path in self._paths}
        self._texts: dict[str, FileText | None] = {}
        self._parsed: dict[str, SourceFile | None] = {}

    def relative(self, path: str) -> str:
        """Return the name of a file with this absolute path."""
        return self._view.roots.relative(path)

    def read(self, name: str) -> FileText | None:
        """Return a file's text; None if it does not exist, cannot be read, or may not be read."""
        if name not in self._texts:
            path = self.names.get(name, "")
            try:
                self._texts[name] = self._view.read(path) if path and self._may_read(path) else None
            except AgentError:
                self._texts[name] = None
        return self._texts[name]

    def source(self, name: str) -> SourceFile | None:
        """Return a file parsed; None if it has no text or no known language."""
        if name not in self._parsed:
            file = self.read(name)
            self._parsed[name] = source_of(name, file.text) if file is not None else None
        return self._parsed[name]

    def named(self, words: str) -> list[str]:
        """Return the files whose path or name occurs in a text, in that order."""
        return [self._view.roots.relative(path) for path in named_files(words, self._paths)]

    def ending(self, paths: Iterable[str]) -> list[str]:
        """Return the names meant by paths, which may be absolute or begin inside the workspace; no ambiguous ones."""
        found = []
        for path in filter(None, paths):
            plain = path.replace("\\", "/").removeprefix("./")
            exact = [plain] if plain in self.names else []
            fitting = exact or [name for name in self.names if plain.endswith(f"/{name}") or name.endswith(f"/{plain}")]
            found += fitting[:1] if len(fitting) == 1 else []
        return found

    def sources(self) -> list[str]:
        """Return the code files that are neither tests nor generated."""
        return [name for name in self.names if is_source(name) and not is_test(name) and not is_made(name)]

    def using(self, words: Collection[str], most: int = MOST_SEARCHED) -> list[str]:
        """Return the code files that contain one of these names, among the first `most`."""
        if not words:
            return []
        pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})\b")
        sources = [name for name in self.names if is_source(name)][:most]
        return [name for name in sources if (file := self.read(name)) and pattern.search(file.text)]

    def imported(self, test: str) -> list[str]:
        """Return the workspace's files that a test imports, and those that it is named after; no tests."""
        source = self.source(test)
        files = ImportTargets(frozenset(self.names))
        found = (
            [name for each in source.imports for name in resolved(source.language, test, each, files)] if source else []
        )
        return [name for name in dict.fromkeys((*found, *self._tested_by_name(test))) if not is_test(name)]

    def _tested_by_name(self, test: str) -> list[str]:
        stem = re.sub(r"^test_|[._-](?:test|tests|spec)$|Tests?$", "", PurePosixPath(test).name.rpartition(".")[0])
        ending = PurePosixPath(test).suffix
        return [name for name in self.names if PurePosixPath(name).name == f"{stem}{ending}" and name != test]

    def defining(self, test_id: str) -> list[str]:
        """Return the test files that may define the test with this id."""
        return [
            name for name in self.names if is_test(name) and PurePosixPath(name).stem in re.split(r"[.:/]", test_id)
        ]


class Gatherer:
    """Chooses files in one state of the workspace. `may_read` returns whether an absolute path may be read unasked."""

    def __init__(self, view: FileView, may_read: Callable[[str], bool]) -> None:
        self._files = WorkspaceFiles(view, may_read)

    def named_tests(self, words: str) -> tuple[str, ...]:
        """Return the test files that a task names."""
        return tuple(name for name in self._files.named(words) if is_test(name))

    def tests_beside(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the test files that belong to sources by name, as `test_a.py`, `a_test.go` or `a.spec.ts` do."""
        stems = {PurePosixPath(name).name.split(".")[0] for name in names if not is_test(name)}
        wanted = {f"{before}{stem}{after}" for stem in stems for before, after in _TEST_NAMES}
        return tuple(
            name
            for name in self._files.names
            if is_test(name) and PurePosixPath(name).name.rpartition(".")[0] in wanted
        )

    def renamed(self, words: str) -> tuple[Mapping[str, str], Material]:
        """Return the new texts, by name, for a rename that is all that the words ask for, and the files as they were;
        empty for other tasks.
        """
        asked = rename_in(words)
        if asked is None or not asked.alone or not self._files.complete:
            return {}, Material()
        sources = self._sources_with(asked)
        home = home_of(asked, sources, self._files.named(words))
        texts = renamed(asked, home, sources) if home is not None else {}
        read = [ShownFile(name, file) for name in texts if (file := self._files.read(name)) is not None]
        return texts, Material(tuple(read))

    def left_behind(self, words: str, staged: Changeset) -> tuple[str, ...]:
        """Return the uses of names that the words mention and the staged changes have removed, as `name: file`.

        For a rename, these are the uses of the old name, removed or not.
        """
        asked = rename_in(words)
        if asked is not None:
            now = self._sources_with(asked)
            home = home_of(asked, {**now, **self._before(staged)}, self._files.named(words))
            if home is not None:
                return tuple(f"{asked.word}: {name}" for name in still_used(asked, home, now))
        gone = frozenset[str]()
        for change in staged:
            name = self._files.relative(change.path)
            before, after = (defined_names(name, text) for text in (change.base, change.text))
            gone |= (before - after) & identifiers(words)
        return tuple(f"{word}: {name}" for word in sorted(gone) for name in self._files.using([word]))

    def _sources_with(self, asked: Rename) -> dict[str, SourceFile]:
        """Return the code files that contain the old name; of the tests only those without the new name."""
        new = re.compile(rf"\b{re.escape(asked.new)}\b")
        return {
            name: source
            for name in self._files.using([asked.word], MOST_FILES)
            if (source := self._files.source(name)) and not is_made(name)
            if not (is_test(name) and new.search(source.text))
        }

    def _before(self, staged: Changeset) -> dict[str, SourceFile]:
        """Return the changed files, parsed, as they were before the change."""
        texts = {self._files.relative(change.path): change.base for change in staged}
        return {name: source for name, text in texts.items() if text and (source := source_of(name, text))}

    def about(self, subject: Subject, verdict: Verdict | None) -> tuple[str, ...]:
        """Return the names of the files that may have to change, best first, at most 6."""
        scores = self._scores(subject, verdict)
        fixed = set() if subject.brief.writes_tests else self._fixed(subject, verdict)
        names = sorted((name for name in scores if name not in fixed), key=lambda name: -scores[name])
        sure = [name for name in names if scores[name] >= SURE]
        if not sure and not names and len(sources := self._files.sources()) <= FEW_FILES:
            names = [name for name in sources if name not in fixed]
        return tuple((sure or names)[:MOST_SHOWN])

    def material(
        self, subject: Subject, verdict: Verdict | None, *, room: int, small: bool, wide: bool = False
    ) -> Material:
        """Return what to show for a task in about `room` tokens. `small` models are shown less of long files; with
        `wide` definitions that are only related are shown, too.
        """
        names = self.about(subject, verdict)
        context = self._failing(subject, verdict, room // CONTEXT_SHARE)
        left = room - sum(estimate_tokens(piece.text) for piece in context)
        hints = self._hints(subject, verdict, context, wide=wide)
        shown: list[ShownFile] = []
        for number, name in enumerate(names):
            share = max(left // (2 if number + 1 < len(names) else 1), min(left, room // 4))
            file = self._shown(name, hints, share, small=small, everywhere=subject.brief.everywhere)
            if file is not None and file.tokens <= left:
                shown.append(file)
                left -= file.tokens
        return Material(tuple(shown), context, self._listing(subject, shown), self._suspects(shown, hints))

    def _suspects(self, shown: Sequence[ShownFile], hints: Hints) -> tuple[str, ...]:
        """Return the lines of the best file that may contain a small fault, to be asked about one by one."""
        source = self._files.source(shown[0].name) if shown else None
        return suspects(source, hints) if source is not None else ()

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
            add((name for name, _ in self._traced(verdict.report) if not is_test(name)), TRACED)
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

    def _hints(self, subject: Subject, verdict: Verdict | None, context: Sequence[Piece], *, wide: bool) -> Hints:
        lines: dict[str, set[int]] = {}
        for name, line in self._traced(verdict.report) if verdict is not None else ():
            lines.setdefault(name, set()).add(line)
        if subject.target and subject.lines:
            lines.setdefault(subject.target, set()).update(subject.lines)
        used = frozenset[str]().union(*(identifiers(piece.text) for piece in context))
        return Hints(identifiers(subject.brief.words), used, lines, wide)

    def _shown(self, name: str, hints: Hints, budget: int, *, small: bool, everywhere: bool) -> ShownFile | None:
        file = self._files.read(name)
        if file is None:
            return None
        source = self._files.source(name)
        defines = source is not None and bool(source.definitions)
        most = budget
        if small and source is not None and defines and not everywhere:
            most = min(budget, FOCUS_TOKENS if names_definition(source, hints) else WHOLE_TOKENS)
        if estimate_tokens(file.text) <= most:
            return ShownFile(name, file, has_definitions=defines and not everywhere)
        if source is None or not defines:
            return None
        pieces, outline = chosen_pieces(source, hints, min(budget, WHOLE_TOKENS) if small else budget)
        return ShownFile(name, file, pieces, outline, has_definitions=True) if pieces else None

    def _failing(self, subject: Subject, verdict: Verdict | None, budget: int) -> tuple[Piece, ...]:
        """Return the code of the failed tests, else the named test files, as far as they fit into `budget` tokens."""
        found: list[Piece] = []
        for each in verdict.failed if verdict is not None else ():
            written = [name for name in self._files.ending([each.path]) if is_test(name)]
            for name in written or self._files.defining(each.test_id):
                found += self._test_code(name, each.test_id)
        if not found and not subject.brief.writes_tests:
            found = [
                Piece(name, 1, file.text, name)
                for name in self.named_tests(subject.brief.words)
                if (file := self._files.read(name))
            ]
        kept: list[Piece] = []
        for piece in dict.fromkeys(found):
            if estimate_tokens(piece.text) <= budget:
                kept.append(piece)
                budget -= estimate_tokens(piece.text)
        return tuple(kept)

    def _test_code(self, name: str, test_id: str) -> list[Piece]:
        """Return the function of a test, or the whole file if it is short."""
        file, source = self._files.read(name), self._files.source(name)
        if file is None:
            return []
        if estimate_tokens(file.text) <= 400 or source is None:
            return [Piece(name, 1, file.text, name)]
        last = re.split(r"::|\.|\s|/|\[", test_id.partition("[")[0].strip())[-1]
        fitting = [each for each in source.definitions if each.symbol.name == last]
        return [
            Piece(
                f"{name}, line {each.symbol.line_start}",
                each.symbol.line_start,
                source.slice(source.line_start(each.outer.start_byte), each.outer.end_byte),
                name,
            )
            for each in fitting[:1]
        ]

    def _traced(self, report: str) -> list[tuple[str, int]]:
        """Return the workspace's files with lines (1-based) in a test's report, the last first."""
        found = [(name, int(line)) for path, line in _TRACE.findall(report) for name in self._files.ending([path])]
        return list(dict.fromkeys(reversed(found)))

    def _meant(self, subject: Subject, named: Sequence[str]) -> frozenset[str]:
        """Return the names of code that a task mentions: defined in the files it names, or written like code."""
        words = subject.brief.words
        sources = [source for name in (subject.target, *named) if (source := self._files.source(name)) is not None]
        defined = {each.symbol.name for source in sources for each in source.definitions}
        return _code_names(words) | (identifiers(words) & defined)

    def _listing(self, subject: Subject, shown: Sequence[ShownFile]) -> str:
        """Return the files of a small workspace, if a new one may be wanted or none is shown; '' otherwise."""
        if len(self._files.names) > LISTED_FILES or (shown and not subject.brief.creates):
            return ""
        return f"Files of the workspace: {', '.join(self._files.names)}"


_TEST_NAMES = (("test_", ""), ("", "_test"), ("", ".test"), ("", ".spec"), ("", "_spec"), ("", "Test"), ("", "Tests"))


def defined_names(name: str, text: str | None) -> frozenset[str]:
    """Return the names that a text defines, in the language of its file name."""
    source = source_of(name, text) if text is not None else None
    return frozenset(each.symbol.name for each in source.definitions) if source is not None else frozenset()


def _code_names(words: str) -> frozenset[str]:
    """Return the words of a task that look like names of code."""
    return frozenset(name for groups in _CODE_NAME.findall(words) for name in groups if name)
