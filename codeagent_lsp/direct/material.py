"""The parts of the workspace that the model is shown for one request, as immutable values, and the choice of
definitions from a long file, so that not all of it need be shown. Pure functions.

A definition counts by its name in the task, by the lines of a traceback, by the names that the failing tests use. Not
here: which files (`gathering.py`), writing the prompt (`question.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from codeagent_lsp.messages import estimate_tokens
from codeagent_lsp.tools.code.extent import extent_of
from codeagent_lsp.tools.code.source import Definition, SourceFile
from codeagent_lsp.workspace.files.file_view import FileText

NAMED, TRACED, USED, CALLED = 10.0, 8.0, 6.0, 0.5
LIKELY, NEXT_LIKELY = 2.5, 0.8
"""For the best piece of a file that the search has found, and the share of it for each next one. With the common words,
still less than for a definition that is named: a guess does not widen what is shown then."""
DIRECT = 6.0
"""The score from which on a definition is itself meant; with less it is only called by one that is."""
MOST_OUTLINE = 40
LEAST_SCORE = 0.5
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")
_CALLABLE = frozenset(("function", "method", "macro"))


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file: its dotted name, its first line (1-based), its text, and the file's path relative to the
    workspace ('' if that does not matter).
    """

    name: str
    line: int
    text: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file that may change, as the model is shown it: all of it, or `pieces` of it with an `outline` (signatures) of
    the rest.

    `name` is its path relative to the workspace, `read` its text when it was read; `has_definitions` says that its
    language's definitions can be found.
    """

    name: str
    read: FileText
    pieces: tuple[Piece, ...] = ()
    outline: tuple[str, ...] = ()
    has_definitions: bool = False

    @property
    def whole(self) -> bool:
        """Whether the model is shown the whole file, not pieces."""
        return not self.pieces

    @property
    def tokens(self) -> int:
        """The estimated tokens of the pieces, or of the whole text if there are none."""
        return estimate_tokens("".join(piece.text for piece in self.pieces) or self.read.text)


@dataclass(frozen=True, slots=True)
class Material:
    """Everything that is shown for one request. `files` may change, best first; `context` may not, such as the tests
    that have to pass. `example` is code of the project in whose style something new is to be written.

    `listing` names the files of a small workspace, '' if that is of no use. `suspects` are lines of the first file that
    may contain a small fault, most likely first.
    """

    files: tuple[ShownFile, ...] = ()
    context: tuple[Piece, ...] = ()
    example: Piece | None = None
    listing: str = ""
    suspects: tuple[str, ...] = ()

    @property
    def preferred(self) -> tuple[str, ...]:
        """The dotted names of the definitions that are shown as pieces of files that may change, in their order."""
        return tuple(piece.name for file in self.files for piece in file.pieces)

    @property
    def fixed(self) -> tuple[str, ...]:
        """The relative paths of the files that are shown and may not change, each once."""
        return tuple(dict.fromkeys(piece.path for piece in self.context if piece.path))

    @property
    def tokens(self) -> int:
        """The estimated tokens of what is shown of the files that may change; the context and the example are not
        counted.
        """
        return sum(file.tokens for file in self.files)


# Chooses the definitions of a long file that a task is about, so that not all of it need be shown. Pure functions.


@dataclass(frozen=True, slots=True)
class Hints:
    """What points at definitions: identifiers of the task (`named`), identifiers of the failing tests (`used`), and
    1-based lines by relative path.

    `likely` are the line ranges that the search has found, by relative path, best first. With `wide` related
    definitions count too, as a second answer may need more code than the first.
    """

    named: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()
    lines: Mapping[str, Collection[int]] = field(default_factory=dict)
    wide: bool = False
    likely: Mapping[str, Sequence[range]] = field(default_factory=dict)


def identifiers(text: str) -> frozenset[str]:
    """Return the words of a text that can be names in code, each once, also between Chinese characters
    without a space.
    """
    return frozenset(_WORD.findall(text))


def names_definition(source: SourceFile, hints: Hints) -> bool:
    """Return whether the task or the failing tests name a function of the file, or one of the lines in `hints` is in
    one.
    """
    names = hints.named | hints.used
    return any(
        each.symbol.kind in _CALLABLE and (each.symbol.name in names or _has_line(source, each, hints))
        for each in source.definitions
    )


def chosen_pieces(source: SourceFile, hints: Hints, budget: int) -> tuple[tuple[Piece, ...], tuple[str, ...]]:
    """Return the definitions that matter most within `budget` tokens, in the file's order, and at most 40 signatures of
    others. No pieces if the file has no definitions or the best one alone exceeds the budget.
    """
    leaves = functions_of(source)
    ranked, direct = _rank(source, leaves, hints)
    taken: list[Definition] = []
    left = budget
    # Without any hint the first function, so that the model sees at least how the file is written.
    for each in (ranked if hints.wide else direct) or leaves[:1]:
        # About what the path, the fence and the head of the class take.
        cost = estimate_tokens(text_of(source, each)) + 20
        if cost <= left:
            taken.append(each)
            left -= cost
    taken.sort(key=lambda each: each.outer.start_byte)
    pieces = tuple(Piece(each.qualified, each.symbol.line_start, _render(source, each)) for each in taken)
    names = {piece.name for piece in pieces}
    outlined = (each for each in source.definitions if each.symbol.kind != "variable" and each.qualified not in names)
    return pieces, tuple(signature for each in outlined if (signature := each.symbol.signature))[:MOST_OUTLINE]


def pointed_at(source: SourceFile, hints: Hints) -> tuple[Definition, ...]:
    """Return the definitions that a task is itself about, best first; all functions and methods, in the file's order,
    if no hint points at any.
    """
    leaves = functions_of(source)
    return tuple(_rank(source, leaves, hints)[1] or leaves)


def functions_of(source: SourceFile) -> list[Definition]:
    """Return the functions and methods that are not inside another function, and the types without methods, in the
    file's order.
    """
    found: list[Definition] = []
    end = 0
    parents = {each.symbol.parent for each in source.definitions if each.symbol.kind in _CALLABLE}
    for each in source.definitions:
        if each.outer.start_byte < end or each.symbol.kind == "variable":
            continue
        if each.symbol.kind in _CALLABLE or each.qualified not in parents:
            found.append(each)
            end = each.outer.end_byte
    return found


def text_of(source: SourceFile, definition: Definition) -> str:
    """Return the text of a definition with its decorators and the comments above it, from the start of its line, so
    with its indentation.
    """
    extent = extent_of(source, definition)
    return source.slice(source.line_start(extent.top), extent.end)


def _rank(source: SourceFile, leaves: Sequence[Definition], hints: Hints) -> tuple[list[Definition], list[Definition]]:
    """Return the definitions that count, best first, and those of them that are themselves meant."""
    scores = _scores(source, leaves, hints)
    ranked = sorted((each for each in leaves if scores[id(each)] >= LEAST_SCORE), key=lambda each: -scores[id(each)])
    # Either meant for sure, or nearly as likely as the best one.
    return ranked, [each for each in ranked if scores[id(each)] >= min(DIRECT, 0.7 * scores[id(ranked[0])])]


def _scores(source: SourceFile, leaves: Sequence[Definition], hints: Hints) -> dict[int, float]:
    words = {id(each): identifiers(text_of(source, each)) for each in leaves}
    scores: dict[int, float] = {}
    for each in leaves:
        name = each.symbol.name
        score = NAMED * (name in hints.named) + USED * _is_used(name, hints) + TRACED * _has_line(source, each, hints)
        score += LIKELY * _likelihood(source, each, hints)
        # Common words are weak hints: however many, they weigh less than one name.
        scores[id(each)] = score + min(3.0, 0.4 * len(words[id(each)] & hints.named))
    by_name: dict[str, list[Definition]] = {}
    for each in leaves:
        by_name.setdefault(each.symbol.name, []).append(each)
    # Two steps along the calls: a helper of a helper still gets a little.
    for _ in range(2):
        for each in leaves:
            passed_on = CALLED * scores[id(each)]
            for name in words[id(each)] & by_name.keys():
                for other in by_name[name]:
                    scores[id(other)] = max(scores[id(other)], passed_on if other is not each else 0.0)
    return scores


def _is_used(name: str, hints: Hints) -> bool:
    """Return whether a name is used, also as Python uses its special methods: `round(x)` is `__round__`."""
    return name in hints.used or (name.startswith("__") and name.endswith("__") and name[2:-2] in hints.used)


def _has_line(source: SourceFile, definition: Definition, hints: Hints) -> bool:
    symbol = definition.symbol
    return any(symbol.line_start <= line <= symbol.line_end for line in hints.lines.get(source.path, ()))


def _likelihood(source: SourceFile, definition: Definition, hints: Hints) -> float:
    """Return 1 for a definition with lines of the file's best piece, less for the next ones, 0 for no piece."""
    symbol = definition.symbol
    found = (
        NEXT_LIKELY**number
        for number, lines in enumerate(hints.likely.get(source.path, ()))
        if lines.start <= symbol.line_end and symbol.line_start < lines.stop
    )
    return next(found, 0.0)


def _render(source: SourceFile, definition: Definition) -> str:
    """Return the definition's code; a method comes below the first line of its class, as an answer has to give it."""
    text = text_of(source, definition)
    parent = next((each for each in source.definitions if each.qualified == definition.symbol.parent), None)
    if parent is None or not text[:1].isspace():
        return text
    start = source.line_start(parent.node.start_byte)
    return f"{source.slice(start, source.line_end(start))}\n{text}"
