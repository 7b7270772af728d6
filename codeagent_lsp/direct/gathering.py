"""Chooses the files that a task is about, and gathers the parts of them that the model is shown, as the run sees them.

A file counts if the task names it, a traceback contains it, the failing tests import it, or the index finds it. Blocks;
use it in a thread. Not here: choosing definitions in one file (`material.py`), the map.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from codeagent_lsp.direct.checks import Brief, Verdict
from codeagent_lsp.direct.material import (
    Hints,
    Material,
    Piece,
    ShownFile,
    chosen_pieces,
    functions_of,
    identifiers,
    names_definition,
    pointed_at,
    text_of,
)
from codeagent_lsp.direct.variants import Variant, variants
from codeagent_lsp.direct.workspace_files import WorkspaceFiles
from codeagent_lsp.index.grammars import is_made, is_source, is_test
from codeagent_lsp.index.symbols import CALLABLE
from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.tools.code.source import Definition, SourceFile

LISTED_FILES = 30
CONTEXT_SHARE = 4
EXAMPLE_FILES = 40
"""Files in which an example of the project's style is looked for, those beside the best file first."""
WHOLE_TOKENS, FOCUS_TOKENS = 1500, 500
"""A file with definitions that has more tokens is shown to small models in pieces, since each token costs them time and
attention. The second number is for files in which the task names the function."""
LEAST, MOST = 30, 200
"""Tokens of an example: a shorter one shows nothing, a longer one takes the attention from the task."""
_SHORT = 5
"""Words that are added to those of each function, so that the shortest do not win by one common word."""
MOST_SUSPECTS = 12
MOST_MEANT, MOST_READ = 3, 2000
"""Of a small change: the definitions in which it is looked for, and the tokens of the failing tests that name them."""
_SHORTEST, _LONGEST = 4, 200
# A line that only frames code: `else:`, `}`, `def f(x)`, `import os`, `@property`. A small fault is not in it.
_STRUCTURE = re.compile(
    r"(?:else|try|finally|do|begin|then|end|pass|break|continue|return|fi|done|default|[\W_]*)[:;{]?"
    r"|(?:(?:async )?def|class|(?:pub )?fn|func|function)\b[^=]*|(?:global|nonlocal|import|from|use|package)\b.*|@\w.*"
)
# What small faults are mostly in: comparisons, signs, `not`, `and`, digits.
_OPERATORS = re.compile(r"[<>]=?|[!=]=|[-+*/%&|^]|\bnot\b|\band\b|\bor\b|\bis\b|\bin\b|!|\d")
# By how directly the user or a test points at it; only the order and the distance to SURE matter.
TARGET, WANTED, NAMED, TRACED, IMPORTED, USING, EARLIER, MAPPED = 100, 70, 50, 30, 25, 22, 12, 5
SURE = 20
"""Files with at least this score are shown; others only where there is none of these."""
MOST_SHOWN = 6
FEW_FILES = 8

_CODE_NAME = re.compile(r"`([A-Za-z_]\w+)`|\b([A-Za-z]+_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)\b|\b([A-Za-z_]\w+)\(\)")


class Gatherer:
    """Chooses what a model is shown for a task, from the files of one state of the workspace. Methods read files and
    block; use them in a thread.
    """

    def __init__(self, files: WorkspaceFiles) -> None:
        self._files = files

    def material(
        self, subject: Subject, verdict: Verdict | None, *, room: int, small: bool, wide: bool = False
    ) -> Material:
        """Return what to show for a task in about `room` tokens. For `small` models less of long files is shown; with
        `wide` definitions that are only related are shown, too.
        """
        names = Relevance(self._files).about(subject, verdict)
        context = self._failing(subject, verdict, room // CONTEXT_SHARE)
        # The failing tests come first: they say what is wanted more exactly than the task does.
        left = room - sum(estimate_tokens(piece.text) for piece in context)
        hints = self._hints(subject, verdict, context, wide=wide)
        shown: list[ShownFile] = []
        for number, name in enumerate(names):
            # Half of what is left for each, but no less than a quarter of all: the best file gets most.
            share = max(left // (2 if number + 1 < len(names) else 1), min(left, room // 4))
            file = self._show(name, hints, share, small=small, everywhere=subject.brief.everywhere)
            if file is not None and file.tokens <= left:
                shown.append(file)
                left -= file.tokens
        # For new code only: where something is repaired, the style is in front of the model.
        example = self._example(shown, hints) if subject.brief.adds and not subject.brief.everywhere else None
        if example is not None and estimate_tokens(example.text) > left:
            example = None
        return Material(tuple(shown), context, example, self._listing(subject, shown), self._suspects(shown, hints))

    def _example(self, shown: Sequence[ShownFile], hints: Hints) -> Piece | None:
        """Return a function in the language of the best file, of those that are not shown anyway."""
        if not shown:
            return None
        best = PurePosixPath(shown[0].name)
        seen = {(file.name, piece.name) for file in shown for piece in file.pieces}
        whole = {file.name for file in shown if file.whole}
        names = [name for name in self._files.sources() if PurePosixPath(name).suffix == best.suffix]
        # Stable: its own folder first, and within both the order of the workspace.
        names.sort(key=lambda name: PurePosixPath(name).parent != best.parent)
        found = (self._files.source(name) for name in names[:EXAMPLE_FILES] if name not in whole)
        return example_of_style(filter(None, found), hints, seen)

    def small_changes(
        self, subject: Subject, verdict: Verdict, most: int
    ) -> tuple[ShownFile, tuple[Variant, ...]] | None:
        """Return the file that a repair is probably about, and at most `most` variants of it with one small change
        each; None if no file with a known language is found.
        """
        name = next(iter(Relevance(self._files).about(subject, verdict)), "")
        file, source = (self._files.read(name), self._files.source(name)) if name else (None, None)
        if file is None or source is None:
            return None
        hints = self._hints(subject, verdict, self._failing(subject, verdict, MOST_READ), wide=False)
        meant = pointed_at(source, hints)[:MOST_MEANT]
        return ShownFile(name, file), variants(source, meant, hints.lines.get(name, ()), most)

    def _suspects(self, shown: Sequence[ShownFile], hints: Hints) -> tuple[str, ...]:
        """Return the lines of the best file that may contain a small fault, to be asked about one by one."""
        source = self._files.source(shown[0].name) if shown else None
        return suspects(source, hints) if source is not None else ()

    def _hints(self, subject: Subject, verdict: Verdict | None, context: Sequence[Piece], *, wide: bool) -> Hints:
        lines: dict[str, set[int]] = {}
        for name, line in self._files.traced(verdict.report) if verdict is not None else ():
            lines.setdefault(name, set()).add(line)
        if subject.target and subject.lines:
            lines.setdefault(subject.target, set()).update(subject.lines)
        likely: dict[str, list[range]] = {}
        for name, found in subject.pieces:
            likely.setdefault(name, []).append(found)
        used = frozenset[str]().union(*(identifiers(piece.text) for piece in context))
        return Hints(identifiers(subject.brief.words), used, lines, wide, likely)

    def _show(self, name: str, hints: Hints, budget: int, *, small: bool, everywhere: bool) -> ShownFile | None:
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
            # A framework tells the path from where it ran; a traceback may name the file under test.
            written = [name for name in self._files.ending([each.path]) if is_test(name)]
            for name in written or self._files.defining(each.test_id):
                found += self._test_code(name, each.test_id)
        if not found and not subject.brief.writes_tests:
            found = [
                Piece(name, 1, file.text, name)
                for name in self._files.test_files_in(subject.brief.words)
                if (file := self._files.read(name))
            ]
        kept: list[Piece] = []
        for piece in dict.fromkeys(found):
            # Whole or not at all: half a test asks for something else.
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
        # The name of the function: `tests/a.py::T::test_x[1]`, `test_x (mod.T)` → `test_x`. What parameters it had
        # does not matter.
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

    def _listing(self, subject: Subject, shown: Sequence[ShownFile]) -> str:
        """Return the files of a small workspace, if a new one may be wanted or none is shown; '' otherwise."""
        if len(self._files.names) > LISTED_FILES or (shown and not subject.brief.creates):
            return ""
        return f"Files of the workspace: {', '.join(self._files.names)}"


# Chooses a function as an example of how a project writes code, for a task that wants something new. Pure functions.


def example_of_style(
    sources: Iterable[SourceFile], hints: Hints, shown: Collection[tuple[str, str]] = ()
) -> Piece | None:
    """Return the function that shares most words with the task and its tests, relative to its length; None if none
    shares any. `shown` are the definitions that the model sees anyway, by path and dotted name. Of equals the first one
    wins.
    """
    wanted = hints.named | hints.used
    examples = ((_likeness(piece.text, wanted), piece) for piece in _pieces(sources, shown))
    likeness, best = max(examples, key=lambda each: each[0], default=(0.0, None))
    return best if likeness > 0 else None


def _pieces(sources: Iterable[SourceFile], shown: Collection[tuple[str, str]]) -> Iterator[Piece]:
    for source in sources:
        for each in functions_of(source):
            if each.symbol.kind in CALLABLE and (source.path, each.qualified) not in shown:
                text = text_of(source, each)
                if LEAST <= estimate_tokens(text) <= MOST:
                    yield Piece(each.qualified, each.symbol.line_start, text, source.path)


def _likeness(text: str, wanted: frozenset[str]) -> float:
    words = identifiers(text)
    return len(words & wanted) / float((_SHORT + len(words)) ** 0.5)


# Ranks the lines of code that may contain a small fault, by the syntax tree and the hints of the task. Pure functions.


def suspects(source: SourceFile, hints: Hints) -> tuple[str, ...]:
    """Return at most 12 lines that may be wrong, without their indentation, the most likely first; each occurs in the
    text only once.
    """
    often = Counter(line.strip() for line in source.text.splitlines())
    traced = set(hints.lines.get(source.path, ()))
    scores: dict[str, float] = {}
    for rank, definition in enumerate(pointed_at(source, hints)):
        for number, line in _lines(source, definition):
            # A line that occurs twice cannot be pointed at by its text.
            if often[line] == 1 and _SHORTEST <= len(line) <= _LONGEST and not _STRUCTURE.fullmatch(line):
                # One rank of the definition counts as much as two operators.
                scores.setdefault(line, _score(line, traced=number in traced) - rank)
    return tuple(sorted(scores, key=lambda line: -scores[line])[:MOST_SUSPECTS])


def _lines(source: SourceFile, definition: Definition) -> Iterator[tuple[int, str]]:
    """Yield the lines of a definition that begin with code, with their 1-based numbers."""
    first, last = definition.symbol.line_start, definition.symbol.line_end
    place = source.line_start(definition.node.start_byte)
    for number in range(first, last + 1):
        line = source.slice(place, source.line_end(place))
        begins = place + len(line) - len(line.lstrip())
        if line.strip() and not _is_prose(source, begins):
            yield number, line.strip()
        place = source.line_after(place)


def _is_prose(source: SourceFile, place: int) -> bool:
    """Return whether the line that begins at this byte offset is a comment, or begins with or inside a string
    (documentation).
    """
    node = source.root.descendant_for_byte_range(place, place + 1)
    while node is not None and not node.type.endswith(("statement", "definition", "declaration", "block")):
        if "comment" in node.type or "string" in node.type or "heredoc" in node.type:
            return True
        node = node.parent
    return False


def _score(line: str, *, traced: bool) -> float:
    """Return how likely a line is wrong: operators, constants and several arguments are typical of small faults."""
    score = 3.0 * traced + min(2.0, 0.5 * len(_OPERATORS.findall(line)))
    return score + 0.5 * (line.count(",") > 0) + 0.3 * line.startswith(("return", "if", "elif", "while"))


# Chooses the files that a task is about, by how much each has to do with it.


@dataclass(frozen=True, slots=True)
class Subject:
    """What is known of a task: its brief, the file that the user points at (`target`, '' for none) with its lines
    (1-based), files of earlier runs and of the index (`mapped`), best first, and those that the model has asked for
    (`wanted`).

    `pieces` are the files and lines that the search finds, best first. All paths are relative to the workspace.
    """

    brief: Brief
    target: str = ""
    lines: range = range(0)
    earlier: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    pieces: tuple[tuple[str, range], ...] = ()


class Relevance:
    """Ranks a workspace's files by how likely a task is about them. Methods read files and block."""

    def __init__(self, files: WorkspaceFiles) -> None:
        self._files = files

    def about(self, subject: Subject, verdict: Verdict | None) -> tuple[str, ...]:
        """Return the relative paths of the files that may have to change, best first, at most 6; () if nothing points
        at any and the workspace has more than 8 source files.
        """
        scores = self._scores(subject, verdict)
        fixed = set() if subject.brief.writes_tests else self._judging_tests(subject, verdict)
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
            add(self._files.using(self._find_meant(subject, named)), USING)
        # The files of earlier runs count only if nothing else points anywhere: "and now the other one".
        if not scores:
            add(subject.earlier, EARLIER)
        add((name for name in subject.mapped if is_source(name) and not is_test(name)), MAPPED)
        return scores

    def _judging_tests(self, subject: Subject, verdict: Verdict | None) -> set[str]:
        """Return the tests that a change is judged by, which therefore may not change."""
        judged = {name for each in (verdict.failed if verdict else ()) for name in self._files.ending([each.path])}
        named = {*self._files.test_files_in(subject.brief.words)}
        tests = {name for name in self._files.names if is_test(name)} if subject.brief.about_tests else set()
        return {name for name in judged | named | tests if is_test(name)} - {subject.target}

    def _find_meant(self, subject: Subject, named: Sequence[str]) -> frozenset[str]:
        """Return the names of code that a task mentions: defined in the files it names, or written like code."""
        words = subject.brief.words
        sources = [source for name in (subject.target, *named) if (source := self._files.source(name)) is not None]
        defined = {each.symbol.name for source in sources for each in source.definitions}
        return _code_names(words) | (identifiers(words) & defined)


def _code_names(words: str) -> frozenset[str]:
    """Return the words of a task that look like names of code."""
    return frozenset(name for groups in _CODE_NAME.findall(words) for name in groups if name)
