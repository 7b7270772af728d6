"""The parsed content of a file as values (definitions, references, imports), and its short form as text.

The form is three JSON texts, for other processes and the store. Paths are left out, as one text may have several; so is
a reference's `within`, which follows from its line. Not here: parsing (`parse.py`), storing (`store.py`) and using them
(`repomap.py`, `store.py`).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

SymbolKind = Literal[
    "class", "function", "method", "interface", "struct", "enum", "type", "module", "constant", "variable", "macro"
]

CALLABLE: frozenset[SymbolKind] = frozenset(("function", "method"))
_KINDS: tuple[SymbolKind, ...] = get_args(SymbolKind)
_NUMBER = {kind: number for number, kind in enumerate(_KINDS)}


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
        """The dotted name, `Parent.name`; the bare one at the top of a file."""
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


class Packed(NamedTuple):
    """The tags of a text as three JSON texts: `outline` has all but the references, `defined` the defined names, `used`
    the references.
    """

    outline: str
    defined: str
    used: str


class RawTags(NamedTuple):
    """The result of parsing, before the references are made. `language` is '' for a text without a grammar, `broken`
    says that it has syntax errors. `used` has by name the 1-based lines of its uses, negative if it is called there.
    """

    language: str
    symbols: tuple[SymbolInfo, ...] = ()
    used: Mapping[str, list[int]] = {}
    imports: tuple[Import, ...] = ()
    broken: bool = False


def tags_of(found: RawTags) -> FileTags:
    """Convert the result of parsing to `FileTags`: each use becomes a `Reference` with the definition around it."""
    references = tuple(_references(found.used, found.symbols))
    return FileTags(found.language, found.symbols, references, found.imports, found.broken)


def pack(tags: FileTags) -> Packed:
    """Return the tags as JSON texts, from which `unpack` makes the same tags; paths are left out."""
    used: dict[str, list[int]] = {}
    for reference in tags.references:
        used.setdefault(reference.name, []).append(-reference.line if reference.call else reference.line)
    return pack_found(RawTags(tags.language, tags.symbols, used, tags.imports, tags.broken))


def pack_found(found: RawTags) -> Packed:
    """Pack a parsing result as `pack` does its tags, without making an object of every reference first."""
    symbols = [
        (s.name, _NUMBER[s.kind], s.line_start, s.line_end, s.signature, s.docstring, s.parent) for s in found.symbols
    ]
    outline = (found.language, int(found.broken), symbols, [(i.module, i.names, i.line) for i in found.imports])
    return Packed(_dump(outline), _dump(list(dict.fromkeys(s.name for s in found.symbols))), _dump(found.used))


def unpack(path: str, packed: Packed) -> FileTags:
    """Return the tags of the text at the index path `path`. Raises ValueError, with it in its message, if the texts are
    damaged.
    """
    try:
        language, broken, symbols, imports = json.loads(packed.outline)
        known = tuple(_symbol(path, each) for each in symbols)
        return FileTags(
            language,
            known,
            tuple(_references(json.loads(packed.used), known)),
            tuple(Import(module, tuple(names), line) for module, names, line in imports),
            bool(broken),
        )
    except (TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


def unpack_symbols(path: str, outline: str) -> tuple[SymbolInfo, ...]:
    """Return only the definitions of `unpack`, in a fraction of the time. Raises ValueError if the text is damaged."""
    try:
        return tuple(_symbol(path, each) for each in json.loads(outline)[2])
    except (TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


def unpack_defined(path: str, defined: str) -> tuple[str, ...]:
    """Return the names of the definitions in `Packed.defined`, each once. Raises ValueError, with `path` in its
    message, if the text is damaged.
    """
    try:
        return tuple(json.loads(defined))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


def unpack_used(path: str, used: str) -> dict[str, int]:
    """Return how often each name is used, from `Packed.used`. Raises ValueError, with `path` in its message, if the
    text is damaged.
    """
    try:
        return {name: len(lines) for name, lines in json.loads(used).items()}
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


class Scopes:
    """Finds the definition of one text that contains a line; variables and constants contain none."""

    def __init__(self, symbols: Iterable[SymbolInfo]) -> None:
        """Sweep over the lines: at each start or end of a definition, note the innermost open one."""
        around = (symbol for symbol in symbols if symbol.kind not in ("variable", "constant"))
        ordered = sorted(around, key=lambda symbol: (symbol.line_start, -symbol.line_end))
        self._starts: list[int] = [0]
        self._names: list[str] = [""]
        open_now: list[tuple[int, str]] = []
        for symbol in ordered:
            self._close(open_now, symbol.line_start)
            open_now.append((symbol.line_end, symbol.qualified))
            self._mark(symbol.line_start, symbol.qualified)
        # Beyond every line, so that all are closed.
        self._close(open_now, 1 << 60)

    def at(self, line: int) -> str:
        """Return the dotted name of the innermost definition around a 1-based line; '' outside of all definitions."""
        return self._names[bisect_right(self._starts, line) - 1]

    def _close(self, open_now: list[tuple[int, str]], line: int) -> None:
        """Close the definitions that end before `line`."""
        while open_now and open_now[-1][0] < line:
            end, _ = open_now.pop()
            # Outer definitions that end on the same line.
            while open_now and open_now[-1][0] <= end:
                open_now.pop()
            self._mark(end + 1, open_now[-1][1] if open_now else "")

    def _mark(self, line: int, name: str) -> None:
        # Of several that begin on one line the innermost counts.
        if self._starts[-1] == line:
            self._names[-1] = name
        else:
            self._starts.append(line)
            self._names.append(name)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _symbol(path: str, packed: Sequence[Any]) -> SymbolInfo:
    name, kind, start, end, signature, docstring, parent = packed
    return SymbolInfo(name, _KINDS[kind], path, start, end, signature, docstring, parent)


def _references(used: Mapping[str, list[int]], symbols: tuple[SymbolInfo, ...]) -> Iterator[Reference]:
    """Yield references sorted by line, then name, independent of the order in which they were found."""
    scopes = Scopes(symbols)
    places = [(abs(line), name, line < 0) for name, lines in used.items() for line in lines]
    for line, name, call in sorted(places):
        yield Reference(name, line, call, scopes.at(line))
