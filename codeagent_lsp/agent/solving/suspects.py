"""Ranks the lines of code that may contain a small fault, by the syntax tree and the hints of the task. Pure functions.

A small model that does not find a fault by itself often corrects the line that it is shown: it is asked about each line
alone, and the tests decide. Statements of several lines, comments and lines that only give structure are left out. Not
here: asking (`solver.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from codeagent_lsp.agent.solving.pieces import Hints, pointed_at
from codeagent_lsp.tools.code.source import Definition, SourceFile

MOST = 12
_SHORTEST, _LONGEST = 4, 200
_STRUCTURE = re.compile(
    r"(?:else|try|finally|do|begin|then|end|pass|break|continue|return|fi|done|default|[\W_]*)[:;{]?"
    r"|(?:(?:async )?def|class|(?:pub )?fn|func|function)\b[^=]*|(?:global|nonlocal|import|from|use|package)\b.*|@\w.*"
)
_OPERATORS = re.compile(r"[<>]=?|[!=]=|[-+*/%&|^]|\bnot\b|\band\b|\bor\b|\bis\b|\bin\b|!|\d")


def suspects(source: SourceFile, hints: Hints) -> tuple[str, ...]:
    """Return at most 12 lines without their indentation, the most likely first; each occurs in the text only once."""
    often = Counter(line.strip() for line in source.text.splitlines())
    traced = set(hints.lines.get(source.path, ()))
    scores: dict[str, float] = {}
    for rank, definition in enumerate(pointed_at(source, hints)):
        for number, line in _lines(source, definition):
            if often[line] == 1 and _may_be_wrong(line):
                scores.setdefault(line, _score(line, traced=number in traced) - rank)
    return tuple(sorted(scores, key=lambda line: -scores[line])[:MOST])


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


def _may_be_wrong(line: str) -> bool:
    return _SHORTEST <= len(line) <= _LONGEST and not _STRUCTURE.fullmatch(line)


def _score(line: str, *, traced: bool) -> float:
    """Return how likely a line is wrong: operators, constants and several arguments are typical of small faults."""
    score = 3.0 * traced + min(2.0, 0.5 * len(_OPERATORS.findall(line)))
    return score + 0.5 * (line.count(",") > 0) + 0.3 * line.startswith(("return", "if", "elif", "while"))
