"""What the index knows of a file, as values: definitions, references, imports, and the words of its text.

Not here: how they are found (`parse.py`), kept (`store.py`) and used (`repomap.py`, `lexical.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SymbolKind = Literal[
    "class", "function", "method", "interface", "struct", "enum", "type", "module", "constant", "variable", "macro"
]


@dataclass(frozen=True, slots=True)
class SymbolInfo:
    """A definition. Lines are 1-based and included; `signature` is one line, `docstring` its first paragraph.

    `name` stands alone, `parent` is the dotted name of what it is in, '' at the top of a file.
    """

    name: str
    kind: SymbolKind
    path: str
    line_start: int
    line_end: int
    signature: str = ""
    docstring: str = ""
    parent: str = ""

    @property
    def qualified(self) -> str:
        """`Parent.name`."""
        return f"{self.parent}.{self.name}" if self.parent else self.name


@dataclass(frozen=True, slots=True)
class Reference:
    """A use of a name; `call` when it is called."""

    name: str
    line: int
    call: bool = False
    within: str = ""


@dataclass(frozen=True, slots=True)
class Import:
    """An import as it is written: the module or path it names, and the names taken from it."""

    module: str
    names: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class FileTags:
    """All that parsing gives of one text. `language` is '' for a text without a grammar; `broken`: it has errors."""

    language: str
    symbols: tuple[SymbolInfo, ...] = ()
    references: tuple[Reference, ...] = ()
    imports: tuple[Import, ...] = ()
    broken: bool = False
