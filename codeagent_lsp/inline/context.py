"""Pieces of other places for one completion, within a budget: definitions of near names, and what looks alike.

Not here: reading texts and the index (`workspace_source.py`), the text around the cursor (`windows.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from codeagent_lsp.inline.definitions import Symbols, definitions
from codeagent_lsp.inline.place import Place
from codeagent_lsp.inline.similar import Similar, similar
from codeagent_lsp.inline.windows import Budget
from codeagent_lsp.llm.fill.filler import Piece

DEFINITION_SHARE = 0.35
"""Most of the pieces' budget that goes to definitions."""
MOST_SIMILAR = 4


@dataclass(frozen=True)
class Material:
    """What pieces can be taken from: texts by path as shown, the cursor's own among them, and the index, if any."""

    texts: tuple[tuple[str, str], ...] = ()
    symbols: Symbols | None = field(default=None, compare=False)


def pieces_for(place: Place, material: Material, budget: Budget) -> tuple[Piece, ...]:
    """Return the pieces, the most telling last, next to the text itself."""
    alike = similar(place, material.texts, MOST_SIMILAR)
    known = [] if material.symbols is None else definitions(place, material.symbols, [each.text for each in alike])
    first = within(known, int(budget.pieces * DEFINITION_SHARE))
    left = budget.pieces - sum(_size(piece) for piece in first)
    second = within((Piece(each.path, _trimmed(each)) for each in alike), left)
    return (*reversed(first), *reversed(second))


def within(pieces: Iterable[Piece], limit: int) -> list[Piece]:
    """Return the pieces that fit; of the first that does not, the lines that do, if they are more than one."""
    taken: list[Piece] = []
    for piece in pieces:
        size = _size(piece)
        if size <= limit:
            taken.append(piece)
            limit -= size
            continue
        lines: list[str] = []
        left = limit - len(piece.path)
        for line in piece.text.splitlines():
            left -= len(line) + 1
            if left < 0:
                break
            lines.append(line)
        if len(lines) > 1:
            taken.append(Piece(piece.path, "\n".join(lines)))
        break
    return taken


def _trimmed(piece: Similar) -> str:
    lines = piece.text.splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines)


def _size(piece: Piece) -> int:
    return len(piece.path) + len(piece.text) + 2
