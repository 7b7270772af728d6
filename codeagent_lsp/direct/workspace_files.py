"""The files of a workspace, each read and parsed once, and which of them a text, a path or a test means.

Blocks; use it in a thread. Not here: which of them a task is about (`gathering.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath

from codeagent_lsp.agent.context.gather import MOST_FILES, named_files
from codeagent_lsp.errors import AgentError
from codeagent_lsp.index.grammars import is_made, is_source, is_test
from codeagent_lsp.tools.code.imports import ImportTargets, resolved
from codeagent_lsp.tools.code.source import SourceFile, source_of
from codeagent_lsp.workspace.files.file_view import FileText, FileView
from codeagent_lsp.workspace.text.numbers import whole_number

MOST_SEARCHED = 400

_ONE_TEST = re.compile(r"test_\w+|\w+_test|Test\w+|\w+Tests?")
_TEST_NAMES = (("test_", ""), ("", "_test"), ("", ".test"), ("", ".spec"), ("", "_spec"), ("", "Test"), ("", "Tests"))
# `File "src/a.py", line 12`, `src/a.ts:12:5`.
_TRACE = re.compile(r"([\w./-]+\.\w{1,6})(?:\", line |:)(\d+)")


class WorkspaceFiles:
    """The files of one state of a workspace by their relative paths (names), each read and parsed at most once.
    `may_read` returns whether an absolute path may be read without asking. `complete` is False if the workspace is so
    large that only a part is listed.
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

    @cached_property
    def targets(self) -> ImportTargets:
        """The relative paths of all files and the modules of `go.mod` files, for resolving imports; computed once,
        which reads the `go.mod` files.
        """
        modules: dict[str, str] = {}
        for name in self.names:
            if PurePosixPath(name).name == "go.mod" and (file := self.read(name)) is not None:
                # Go imports by the module's path, which only go.mod tells.
                found = re.search(r'^module\s+"?([^\s"]+)', file.text, re.MULTILINE)
                modules |= {name.rpartition("/")[0]: found[1]} if found is not None else {}
        return ImportTargets(frozenset(self.names), modules)

    def relative(self, path: str) -> str:
        """Return the path relative to the workspace for this absolute path, as `Roots.relative` does."""
        return self._view.roots.relative(path)

    def read(self, name: str) -> FileText | None:
        """Return a file's text by its relative path; None if it does not exist, cannot be read, or may not be read. The
        first answer is kept.
        """
        if name not in self._texts:
            path = self.names.get(name, "")
            try:
                self._texts[name] = self._view.read(path) if path and self._may_read(path) else None
            except AgentError:
                self._texts[name] = None
        return self._texts[name]

    def source(self, name: str) -> SourceFile | None:
        """Return a file parsed, by its relative path; None if it has no text or no known language. Each
        is parsed once.
        """
        if name not in self._parsed:
            file = self.read(name)
            self._parsed[name] = source_of(name, file.text) if file is not None else None
        return self._parsed[name]

    def named(self, words: str) -> list[str]:
        """Return the relative paths of the files whose path or name occurs in a text, in that order: at most 4, no
        ambiguous ones.
        """
        return [self._view.roots.relative(path) for path in named_files(words, self._paths)]

    def ending(self, paths: Iterable[str]) -> list[str]:
        """Return the relative paths of the files that these paths mean, in their order. A path need not be whole: one
        of both has to end with the other, so that absolute and shortened paths are found; an exact one goes first. A
        path that fits several files or none is left out.
        """
        found = []
        for path in filter(None, paths):
            plain = path.replace("\\", "/").removeprefix("./")
            exact = [plain] if plain in self.names else []
            # A test's report has paths from its own folder, or absolute ones of the private view.
            fitting = exact or [name for name in self.names if plain.endswith(f"/{name}") or name.endswith(f"/{plain}")]
            found += fitting[:1] if len(fitting) == 1 else []
        return found

    def sources(self) -> list[str]:
        """Return the relative paths of the code files that are neither tests nor generated, by their names alone."""
        return [name for name in self.names if is_source(name) and not is_test(name) and not is_made(name)]

    def using(self, words: Collection[str], most: int = MOST_SEARCHED) -> list[str]:
        """Return the relative paths of the code files, among the first `most`, that contain one of these words as a
        whole word; [] without words.
        """
        if not words:
            return []
        pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(words)))})\b")
        sources = [name for name in self.names if is_source(name)][:most]
        return [name for name in sources if (file := self.read(name)) and pattern.search(file.text)]

    def imported(self, test: str) -> list[str]:
        """Return the relative paths of the workspace's files that a test file (a relative path) imports or is named
        after, each once; no test files.
        """
        source = self.source(test)
        found = []
        if source is not None:
            found = [name for each in source.imports for name in resolved(source.language, test, each, self.targets)]
        return [name for name in dict.fromkeys((*found, *self._tested_by_name(test))) if not is_test(name)]

    def _tested_by_name(self, test: str) -> list[str]:
        stem = re.sub(r"^test_|[._-](?:test|tests|spec)$|Tests?$", "", PurePosixPath(test).name.rpartition(".")[0])
        ending = PurePosixPath(test).suffix
        return [name for name in self.names if PurePosixPath(name).name == f"{stem}{ending}" and name != test]

    def defining(self, test_id: str) -> list[str]:
        """Return the relative paths of the test files that may define the test with this id: their stem is a part of
        the id, between `.`, `:` or `/`.
        """
        return [
            name for name in self.names if is_test(name) and PurePosixPath(name).stem in re.split(r"[.:/]", test_id)
        ]

    def test_files_in(self, words: str) -> tuple[str, ...]:
        """Return the relative paths of the test files that a task names, at most 4, however many others it names before
        them.
        """
        others = [path for name, path in self.names.items() if not is_test(name)]
        return tuple(map(self.relative, named_files(words, self._paths, others)))

    def tests_beside(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the relative paths of the test files that are named after these source files (relative paths), such as
        `test_a.py`, `a_test.go` or `a.spec.ts`, in any folder.
        """
        stems = {PurePosixPath(name).name.split(".")[0] for name in names if not is_test(name)}
        wanted = {f"{before}{stem}{after}" for stem in stems for before, after in _TEST_NAMES}
        return tuple(
            name for name in self.names if is_test(name) and PurePosixPath(name).name.rpartition(".")[0] in wanted
        )

    def traced(self, report: str) -> list[tuple[str, int]]:
        """Return the workspace's files and lines (name, 1-based line) that a test's report mentions, each once, the
        last first.
        """
        traces = [(path, line) for path, digits in _TRACE.findall(report) if (line := whole_number(digits))]
        found = [(name, line) for path, line in traces for name in self.ending([path])]
        # The last first: in Python's tracebacks the innermost frame comes last.
        return list(dict.fromkeys(reversed(found)))


def test_names_in(words: str) -> frozenset[str]:
    """Return the names of single tests and test classes in a text, such as `test_sum`, without their files and classes;
    names of files are left out.
    """
    last = (re.split(r"::|[./]", token.strip(".:/"))[-1] for token in re.findall(r"[\w./:]+", words, re.ASCII))
    return frozenset(name for name in last if _ONE_TEST.fullmatch(name))
