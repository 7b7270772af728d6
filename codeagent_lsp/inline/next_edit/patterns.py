"""Patterns of syntax nodes with holes, and whether a node is of one. Pure.

Not here: how patterns are learned (`rewrites.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeagent_lsp.inline.next_edit.parsed_text import ParsedText

if TYPE_CHECKING:
    from tree_sitter import Node

KEYED = ("keyword_argument", "keyword_parameter", "default_parameter", "pair", "keyed_element")
"""Kinds of children of lists that have a name."""


@dataclass(frozen=True)
class Literal:
    """A node that is the same in all examples."""

    kind: str
    text: str


@dataclass(frozen=True)
class Inner:
    """A node whose children differ in part."""

    kind: str
    children: tuple[Pattern, ...]


@dataclass(frozen=True)
class Hole:
    """A node that differs, of the kinds that it has had."""

    number: int
    kinds: frozenset[str]


@dataclass(frozen=True)
class Rest:
    """Some children of a list; `counts` are how many children such a list has had in all, none for any."""

    number: int
    counts: frozenset[int]


Pattern = Literal | Inner | Hole | Rest


def fits(pattern: Pattern, node: Node, text: ParsedText, bound: dict[int, str], guard: frozenset[str]) -> bool:
    """Return whether a node is of a pattern; what the holes are there is put into `bound`."""
    match pattern:
        case Literal(kind, wanted):
            return node.type == kind and text.of(node) == wanted
        case Hole(number, kinds):
            return node.type in kinds and bound.setdefault(number, text.of(node)) == text.of(node)
        case Inner(kind, children):
            return node.type == kind and _children_fit(children, node, text, bound, guard)
        case Rest():
            return False


def _children_fit(
    wanted: tuple[Pattern, ...], node: Node, text: ParsedText, bound: dict[int, str], guard: frozenset[str]
) -> bool:
    there = node.children
    rest = next((at for at, each in enumerate(wanted) if isinstance(each, Rest)), None)
    if guard and any(key(child) in guard for child in there):
        return False
    if rest is None:
        return len(wanted) == len(there) and all(
            fits(each, child, text, bound, guard) for each, child in zip(wanted, there, strict=True)
        )
    hole = wanted[rest]
    assert isinstance(hole, Rest)
    tail = len(wanted) - rest - 1
    if len(there) < rest + tail or (hole.counts and len(there) not in hole.counts):
        return False
    ends = [*zip(wanted[:rest], there[:rest], strict=True)]
    ends += zip(wanted[rest + 1 :], there[len(there) - tail :], strict=True)
    inner = middle(text, node, rest, tail)
    if not inner and hole.counts == frozenset():
        return False  # what is put between commas needs something before it
    return all(fits(each, child, text, bound, guard) for each, child in ends) and (
        bound.setdefault(hole.number, inner) == inner
    )


def middle_range(node: Node, head: int, tail: int) -> tuple[int, int]:
    """Return the bytes of a list's children but for so many at its ends."""
    children = node.children
    inner = children[head : len(children) - tail]
    if inner:
        return inner[0].start_byte, inner[-1].end_byte
    at = children[head - 1].end_byte if head else node.start_byte
    return at, at


def middle(text: ParsedText, node: Node, head: int, tail: int) -> str:
    """Return the text of these children."""
    return text.between(*middle_range(node, head, tail))


def key(node: Node) -> str:
    """Return what names a child of a list: the name of a keyword, else its text."""
    first = node.children[0] if node.type in KEYED and node.children else node
    return (first.text or b"").decode("utf-8", "replace")
