"""Parsing of bash scripts into a syntax tree in bounded time. Not here: what the tree means
(`plain.py`, `reading.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree

PARSE_SECONDS = 0.25
# The grammar's scanner looks through the rest of the script for each of them.
MAX_HEREDOCS = 64
MAX_NODES = 20_000
_CHUNK = 16_384


@dataclass(frozen=True, slots=True)
class NodePlace:
    """A syntax node with what is around it, which tree-sitter finds only by a search from the root. `above` is the
    place of its parent, None for the root; `later` says that it is not the first child; `before` is the type of the
    last named sibling before it and `following` that of its next sibling, '' for none.
    """

    node: Node
    above: NodePlace | None = None
    later: bool = False
    following: str = ""
    before: str = ""


def parse(source: bytes, *, seconds: float = PARSE_SECONDS) -> Tree | None:
    """Return the tree of `source`, which may contain errors. None if that takes longer than `seconds`, the tree has
    more than 20,000 nodes, or the script has more than 64 `<<`. Thread-safe.
    """
    # The grammar is not needed before the first command, so it costs nothing at start-up.
    from tree_sitter import Parser

    if source.count(b"<<") > MAX_HEREDOCS:
        return None
    end = time.monotonic() + seconds
    try:
        tree = Parser(_language()).parse(
            lambda offset, _: source[offset : offset + _CHUNK],
            progress_callback=lambda *_: time.monotonic() > end,  # true stops it
        )
    except ValueError:  # how the library says that the callback stopped it
        return None
    return tree if tree.root_node.descendant_count <= MAX_NODES else None


def walk(root: Node) -> Iterator[NodePlace]:
    """Yield the positions of `root` and all nodes below it, in the order of the text, without recursion."""
    waiting = [NodePlace(root)]
    while waiting:
        place = waiting.pop()
        yield place
        children = place.node.children
        kinds = [child.type for child in children[1:]] + [""]
        below, before = [], ""
        for at, child in enumerate(children):
            below.append(NodePlace(child, place, at > 0, kinds[at], before))
            before = child.type if child.is_named else before
        waiting.extend(reversed(below))


def text_of(node: Node) -> str:
    """Return the text of a node; bytes that are no UTF-8 are replaced."""
    return (node.text or b"").decode(errors="replace")


@lru_cache(maxsize=1)
def _language() -> Language:
    # The grammar is not needed before the first command, so it costs nothing at start-up.
    import tree_sitter_bash

    # The same.
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())
