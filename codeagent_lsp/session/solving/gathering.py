"""Gathers the parts of files that the model is shown for a task, as the run sees them.

Blocks; use it in a thread. Not here: which files a task is about (`relevance.py`), choosing definitions in one file
(`agent/solving/pieces.py`), the map.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from codeagent_lsp.agent.context.tokens import estimate_tokens
from codeagent_lsp.agent.solving.material import Material, Piece, ShownFile
from codeagent_lsp.agent.solving.pieces import Hints, chosen_pieces, identifiers, names_definition
from codeagent_lsp.agent.solving.style import example_of_style
from codeagent_lsp.agent.solving.suspects import suspects
from codeagent_lsp.agent.solving.verdict import Verdict
from codeagent_lsp.index.kinds import is_test
from codeagent_lsp.session.solving.relevance import Relevance, Subject
from codeagent_lsp.session.solving.workspace_files import WorkspaceFiles

LISTED_FILES = 30
CONTEXT_SHARE = 4
EXAMPLE_FILES = 40
"""Files in which an example of the project's style is looked for, those beside the best file first."""
WHOLE_TOKENS, FOCUS_TOKENS = 1500, 500
"""A file with definitions that has more tokens is shown to small models in pieces, since each token costs them time and
attention. The second number is for files in which the task names the function."""


class Gatherer:
    """Gathers what a model is shown for a task, from the files of one state of the workspace."""

    def __init__(self, files: WorkspaceFiles) -> None:
        self._files = files

    def material(
        self, subject: Subject, verdict: Verdict | None, *, room: int, small: bool, wide: bool = False
    ) -> Material:
        """Return what to show for a task in about `room` tokens. `small` models are shown less of long files; with
        `wide` definitions that are only related are shown, too.
        """
        names = Relevance(self._files).about(subject, verdict)
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
        names.sort(key=lambda name: PurePosixPath(name).parent != best.parent)
        found = (self._files.source(name) for name in names[:EXAMPLE_FILES] if name not in whole)
        return example_of_style(filter(None, found), hints, seen)

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
                for name in self._files.named_tests(subject.brief.words)
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

    def _listing(self, subject: Subject, shown: Sequence[ShownFile]) -> str:
        """Return the files of a small workspace, if a new one may be wanted or none is shown; '' otherwise."""
        if len(self._files.names) > LISTED_FILES or (shown and not subject.brief.creates):
            return ""
        return f"Files of the workspace: {', '.join(self._files.names)}"
