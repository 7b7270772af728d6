"""One text with its syntax tree and its definitions, as the tools of group `code` look at it.

Places in the tree are bytes of the UTF-8 form; `char` turns them into offsets of the text. Not here: what the
definitions mean (`targets.py`, `extent.py`), uses of names (`uses.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from codeagent_lsp.errors import ToolFailed
from codeagent_lsp.index import grammars, parse
from codeagent_lsp.index.outline import body_of
from codeagent_lsp.index.symbols import Import, SymbolInfo

if TYPE_CHECKING:
    from tree_sitter import Node

_SIGNATURES = frozenset(("property_signature", "method_signature"))
_MAX_FAULTS = 20_000


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition and its nodes: as captured, with its wrappers, and its name (None: none that could be renamed)."""

    symbol: SymbolInfo
    node: Node
    outer: Node
    name: Node | None

    @property
    def qualified(self) -> str:
        """`Parent.name`."""
        return self.symbol.qualified

    @property
    def body(self) -> Node | None:
        """The node of its body."""
        return body_of(self.node)


@dataclass(frozen=True)
class SourceFile:
    """A parsed text. `path` is shown and tells the language."""

    path: str
    text: str
    parsed: parse.Parsed

    @property
    def language(self) -> str:
        """The name of the grammar."""
        return self.parsed.grammar.name

    @property
    def data(self) -> bytes:
        """The text as the tree counts it."""
        return self.parsed.source

    @property
    def root(self) -> Node:
        """The whole tree."""
        return self.parsed.tree.root_node

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """All definitions, outer ones first; the members of a type that has no name of its own are none."""
        found: list[Definition] = []
        end = 0
        for place in self.parsed.outline.places:
            if place.node.type in _SIGNATURES and place.node.start_byte < end and not place.symbol.parent:
                continue
            if place.symbol.kind == "type":
                end = max(end, place.node.end_byte)
            found.append(Definition(*place))
        return tuple(found)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Imports as they are written."""
        return tuple(parse.imports_of(self.parsed))

    @cached_property
    def faults(self) -> tuple[Node, ...]:
        """Nodes that are errors or missing, in order, none inside another."""
        found, pending = [], [self.root] if self.root.has_error else []
        for _ in range(_MAX_FAULTS):
            if not pending:
                break
            node = pending.pop()
            if node.is_error or node.is_missing:
                found.append(node)
            elif node.has_error:
                pending.extend(reversed(node.children))
        return tuple(found)

    def char(self, place: int) -> int:
        """The offset in `text` of a place in `data`."""
        if len(self.data) == len(self.text):
            return place
        return len(self.data[:place].decode("utf-8", "replace"))

    def trimmed(self, end: int) -> int:
        """The end of a node without a line end: some grammars take it, or half of it, for part of a comment."""
        return end - (len(last := self.data[max(0, end - 2) : end]) - len(last.rstrip(b"\r\n")))

    def trimmed_blanks(self, end: int) -> int:
        """Where the text in front of a place ends, blanks and line ends left out."""
        start = max(0, end - 4096)
        return start + len(self.data[start:end].rstrip())

    def slice(self, start: int, end: int) -> str:
        """The text between two places."""
        return self.data[start:end].decode("utf-8", "replace")

    def line(self, place: int) -> int:
        """The 1-based line of a place."""
        return self.data.count(b"\n", 0, place) + 1

    def line_start(self, place: int) -> int:
        """Where the line of a place begins."""
        return self.data.rfind(b"\n", 0, place) + 1

    def line_end(self, place: int) -> int:
        """Where the line of a place ends, in front of its line end."""
        end = self.data.find(b"\n", place)
        end = len(self.data) if end < 0 else end
        return end - 1 if self.data[end - 1 : end] == b"\r" and end > place else end

    def line_after(self, place: int) -> int:
        """Where the line behind that of a place begins; the end of the text after the last one."""
        end = self.data.find(b"\n", place)
        return len(self.data) if end < 0 else end + 1


def source_of(path: str, text: str) -> SourceFile | None:
    """The text parsed; None for an unknown language, and for a text too long or without any sense to the parser."""
    parsed = parse.parsed(path, text)
    return SourceFile(path, text, parsed) if parsed is not None else None


def required(path: str, text: str) -> SourceFile:
    """As `source_of`. ToolFailed, with advice, where there is no tree."""
    source = source_of(path, text)
    if source is not None:
        return source
    if grammars.grammar_of(path, text[:200].encode("utf-8", "replace")) is None:
        raise ToolFailed(f"The language of {path} is not known here. Use read_file, grep and edit_file.")
    raise ToolFailed(f"{path} cannot be parsed: too long, or not code. Use read_file, grep and edit_file.")
