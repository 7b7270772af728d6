"""The parsed content of a file as values: definitions, references, imports.

Not here: parsing (`parse.py`), storing (`store.py`) and using them (`repomap.py`, `lexical.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SymbolKind = Literal[
    "class", "function", "method", "interface", "struct", "enum", "type", "module", "constant", "variable", "macro"
]


@dataclass(frozen=True, slots=True)
class SymbolInfo:
    """A definition. Lines are 1-based and inclusive; `signature` is one line, `docstring` its first paragraph.

    `name` is unqualified, `parent` is the dotted name of the enclosing definition, '' at the top of a file.
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
        """The dotted name, `Parent.name`."""
        return f"{self.parent}.{self.name}" if self.parent else self.name


@dataclass(frozen=True, slots=True)
class Reference:
    """A use of a name on a 1-based line; `call` if it is called, `within` the enclosing definition's dotted name."""

    name: str
    line: int
    call: bool = False
    within: str = ""


@dataclass(frozen=True, slots=True)
class Import:
    """An import as written: the module or path it names, the names taken from it, and the 1-based line."""

    module: str
    names: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class FileTags:
    """The tags of one text. `language` is '' for a text without a grammar; `broken` says that it has syntax errors."""

    language: str
    symbols: tuple[SymbolInfo, ...] = ()
    references: tuple[Reference, ...] = ()
    imports: tuple[Import, ...] = ()
    broken: bool = False
