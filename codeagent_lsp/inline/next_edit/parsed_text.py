"""A text with its syntax tree, as the next edit sees it. Offsets in the tree are bytes of its UTF-8 form.

Not here: definitions and uses (`index/parse.py`), which of its nodes changed (`examples.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from codeagent_lsp.index import grammars

if TYPE_CHECKING:
    from tree_sitter import Node

LARGEST = 400_000
"""Bytes; longer texts are left out: they were not written by hand."""


@dataclass(frozen=True)
class ParsedText:
    """The text of a file, its bytes, the name of its grammar and the root of its tree."""

    path: str
    text: str
    data: bytes
    language: str
    root: Node

    @cached_property
    def _ascii(self) -> bool:
        # Then bytes and characters have the same offsets, which saves decoding on every call.
        return len(self.data) == len(self.text)

    def char(self, byte: int) -> int:
        """Return the offset in characters of an offset in bytes."""
        return byte if self._ascii else len(self.data[:byte].decode("utf-8", "replace"))

    def byte(self, char: int) -> int:
        """Return the offset in bytes of an offset in characters."""
        return char if self._ascii else len(self.text[:char].encode("utf-8", "replace"))

    def of(self, node: Node) -> str:
        """Return the text of a node."""
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def between(self, start: int, end: int) -> str:
        """Return the text between two offsets in bytes."""
        return self.data[start:end].decode("utf-8", "replace")


def parsed_text(path: str, text: str) -> ParsedText | None:
    """Return the parsed text; None for one without a grammar, and for one that is too long."""
    data = text.encode("utf-8", "replace")
    grammar = grammars.grammar_of(path, data)
    if grammar is None or len(data) > LARGEST:
        return None
    tree = grammars.parser(grammar).parse(data)
    return ParsedText(path, text, data, grammar.name, tree.root_node)


def nodes_of(root: Node, start: int = 0, end: int | None = None) -> Iterator[Node]:
    """Yield the nodes that lie in a range of bytes, each before its children."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node.end_byte <= start or (end is not None and node.start_byte >= end):
            continue
        yield node
        # The last is taken first; recursion would end at deeply nested code.
        pending += reversed(node.children)
