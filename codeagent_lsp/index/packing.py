"""`FileTags` as three short JSON texts, and back: the form they have between processes and in the store.

Paths are left out, as one text may stand at several; a reference's `within` too, as its line tells it.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from codeagent_lsp.index.symbols import FileTags, Import, Reference, SymbolInfo, SymbolKind

_KINDS: tuple[SymbolKind, ...] = get_args(SymbolKind)
_NUMBER = {kind: number for number, kind in enumerate(_KINDS)}


class Packed(NamedTuple):
    """`outline` has all but the references, `defined` the names of the definitions, `used` the references."""

    outline: str
    defined: str
    used: str


class Found(NamedTuple):
    """What parsing finds. `used`: by name the 1-based lines of its uses, negative where it is called."""

    language: str
    symbols: tuple[SymbolInfo, ...] = ()
    used: Mapping[str, list[int]] = {}
    imports: tuple[Import, ...] = ()
    broken: bool = False


def tags_of(found: Found) -> FileTags:
    """Return the same as values."""
    references = tuple(_references(found.used, found.symbols))
    return FileTags(found.language, found.symbols, references, found.imports, found.broken)


def pack(tags: FileTags) -> Packed:
    """Return the texts that `unpack` makes the same tags of."""
    used: dict[str, list[int]] = {}
    for reference in tags.references:
        used.setdefault(reference.name, []).append(-reference.line if reference.call else reference.line)
    return pack_found(Found(tags.language, tags.symbols, used, tags.imports, tags.broken))


def pack_found(found: Found) -> Packed:
    """As `pack`, without making a value of every reference first."""
    symbols = [
        (s.name, _NUMBER[s.kind], s.line_start, s.line_end, s.signature, s.docstring, s.parent) for s in found.symbols
    ]
    outline = (found.language, int(found.broken), symbols, [(i.module, i.names, i.line) for i in found.imports])
    return Packed(_dump(outline), _dump(list(dict.fromkeys(s.name for s in found.symbols))), _dump(found.used))


def unpack(path: str, packed: Packed) -> FileTags:
    """Return the tags of the text at `path`. ValueError if the texts are damaged."""
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
    """Only the definitions of `unpack`, in a fraction of the time."""
    try:
        return tuple(_symbol(path, each) for each in json.loads(outline)[2])
    except (TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


def unpack_defined(path: str, defined: str) -> tuple[str, ...]:
    """Return the names of the definitions, each once. ValueError if the text is damaged."""
    try:
        return tuple(json.loads(defined))
    except (TypeError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


def unpack_used(path: str, used: str) -> dict[str, int]:
    """How often which name is used. ValueError if the text is damaged."""
    try:
        return {name: len(lines) for name, lines in json.loads(used).items()}
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


class Scopes:
    """Which definition a line is in; variables and constants have no inside."""

    def __init__(self, symbols: Iterable[SymbolInfo]) -> None:
        """A sweep over the lines: at each place where something begins or ends, the innermost that is open."""
        around = (symbol for symbol in symbols if symbol.kind not in ("variable", "constant"))
        ordered = sorted(around, key=lambda symbol: (symbol.line_start, -symbol.line_end))
        self._starts: list[int] = [0]
        self._names: list[str] = [""]
        open_now: list[tuple[int, str]] = []
        for symbol in ordered:
            self._close(open_now, symbol.line_start)
            open_now.append((symbol.line_end, symbol.qualified))
            self._mark(symbol.line_start, symbol.qualified)
        self._close(open_now, 1 << 60)

    def at(self, line: int) -> str:
        """Return the dotted name of the innermost definition around a 1-based line; '' at the top of the file."""
        return self._names[bisect_right(self._starts, line) - 1]

    def _close(self, open_now: list[tuple[int, str]], line: int) -> None:
        """End what ends before `line`."""
        while open_now and open_now[-1][0] < line:
            end, _ = open_now.pop()
            while open_now and open_now[-1][0] <= end:
                open_now.pop()
            self._mark(end + 1, open_now[-1][1] if open_now else "")

    def _mark(self, line: int, name: str) -> None:
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
    """By line, on one line by name: an order that does not depend on how they were found."""
    scopes = Scopes(symbols)
    places = [(abs(line), name, line < 0) for name, lines in used.items() for line in lines]
    for line, name, call in sorted(places):
        yield Reference(name, line, call, scopes.at(line))
