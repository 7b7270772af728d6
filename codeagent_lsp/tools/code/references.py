"""Definition and use sites of a name, text by text, as far as the syntax shows them.

Not here: which files are searched (`codebase.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codeagent_lsp.tools.code.meaning import Elsewhere, cannot_mean, is_member
from codeagent_lsp.tools.code.source import Definition, SourceFile
from codeagent_lsp.tools.code.targets import matching, normal
from codeagent_lsp.tools.code.uses import Use, Uses, around

_MOST_TEXT = 160


@dataclass(frozen=True, slots=True)
class Site:
    """An occurrence of a name. `line` and `column` are 1-based; `kind`: definition, call, use, import or member.

    `within` is the dotted name of the enclosing definition, '' at the top of the file.
    """

    path: str
    line: int
    column: int
    kind: str
    text: str
    within: str = ""


@dataclass(frozen=True, slots=True)
class FoundReferences:
    """The references in one text; `left_out` counts uses of the name that refer to something else."""

    sites: tuple[Site, ...]
    left_out: int


def defined(source: SourceFile, symbol: str) -> tuple[Definition, ...]:
    """Return the definitions in a text that a dotted name refers to."""
    return matching(source.definitions, symbol)


def elsewhere(targets: Sequence[tuple[SourceFile, Definition]]) -> Elsewhere:
    """Return a summary of the targets in other texts, for `references`."""
    members = [definition for source, definition in targets if is_member(source, definition)]
    top = any(
        not is_member(source, definition) and Uses(source).home(definition) is None for source, definition in targets
    )
    return Elsewhere(frozenset(each.symbol.parent for each in members), bool(members), top)


def references(source: SourceFile, symbol: str, others: Elsewhere) -> FoundReferences:
    """Return the uses in one text that can refer to `symbol`; `others` summarises the targets in other texts."""
    uses = Uses(source)
    targets = defined(source, symbol)
    name = symbol_name(symbol)
    sites, left_out = [], 0
    for use in uses.named(name):
        if cannot_mean(source, uses, targets, others, use):
            left_out += 1
        else:
            sites.append(_site(source, use))
    return FoundReferences(tuple(sites), left_out)


def definition_site(source: SourceFile, definition: Definition) -> Site:
    """Return the site of a definition's name."""
    node = definition.name or definition.node
    return Site(
        source.path,
        source.line(node.start_byte),
        _column(source, node.start_byte),
        "definition",
        definition.symbol.signature,
        definition.symbol.parent,
    )


def symbol_name(symbol: str) -> str:
    """Return the last part of a dotted name."""
    return normal(symbol).rpartition(".")[2]


def _site(source: SourceFile, use: Use) -> Site:
    place = use.node.start_byte
    line = source.slice(source.line_start(place), source.line_end(place)).strip()
    inside = around(source, place)
    kind = "import" if use.imported else "call" if use.call else "member" if use.access == "member" else "use"
    return Site(
        source.path,
        source.line(place),
        _column(source, place),
        kind,
        line[:_MOST_TEXT],
        inside.qualified if inside is not None else "",
    )


def _column(source: SourceFile, place: int) -> int:
    return len(source.slice(source.line_start(place), place)) + 1
