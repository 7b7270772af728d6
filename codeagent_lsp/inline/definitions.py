"""What the names near the cursor are: their definitions in other files, as signatures.

Pure over the index. Not here: pieces that look alike (`similar.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from codeagent_lsp.index.symbols import SymbolInfo
from codeagent_lsp.inline.place import Place
from codeagent_lsp.inline.similar import words_in
from codeagent_lsp.llm.fill.filler import Piece

LINES = 4
"""Lines before the cursor whose names are looked up."""
NAMES = 24
MOST_DEFINING = 3
"""A name that more files define says nothing."""
MEMBERS = 8

_CLASSES = ("class", "interface", "struct", "enum", "type")
_CALLED = re.compile(r"([^\W\d]\w*)\s*[(<{.\[]")


class Symbols(Protocol):
    """The part of the index that is asked; see `index/view.py`."""

    def defining(self, name: str) -> tuple[str, ...]: ...

    def symbols(self, path: str) -> tuple[SymbolInfo, ...]: ...


def names_near(place: Place) -> list[str]:
    """Return the names in reach of the cursor, the nearest first, called ones before others of the same line."""
    lines = place.text[max(0, place.offset - 4000) : place.offset].splitlines()[-LINES:]
    names: list[str] = []
    for line in reversed(lines):
        called = _CALLED.findall(line)
        names += [*reversed(called), *reversed(words_in(line))]
    return list(dict.fromkeys(names))[:NAMES]


def definitions(place: Place, index: Symbols, shown: Iterable[str] = ()) -> list[Piece]:
    """Return what names near the cursor are, nearest first, one piece a definition; none of the cursor's own file, nor
    of a name that `shown` texts already have the definition of.
    """
    pieces: list[Piece] = []
    texts = [*shown]
    for name in names_near(place):
        paths = index.defining(name)
        if not paths or len(paths) > MOST_DEFINING or place.path in paths:
            continue
        for path in paths:
            symbols = index.symbols(path)
            for symbol in symbols:
                if symbol.name == name and not symbol.parent and symbol.signature:
                    text = _described(symbol, symbols)
                    if not any(symbol.signature in each for each in texts):
                        pieces.append(Piece(path, text))
                    break
    return pieces


def _described(symbol: SymbolInfo, others: Sequence[SymbolInfo]) -> str:
    """Return the signature of a definition; of a class also those of its members."""
    lines = [symbol.signature]
    if symbol.kind in _CLASSES:
        members = [each for each in others if each.parent == symbol.qualified and each.signature]
        lines += [f"    {each.signature}" for each in members[:MEMBERS]]
    return "\n".join(lines)
