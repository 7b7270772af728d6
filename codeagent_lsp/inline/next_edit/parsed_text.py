"""A text with its syntax tree, as the next edit sees it, and what a name in the tree is used as.

Offsets in the tree are bytes of the text's UTF-8 form. Whether a name is bound where it stands is judged by the shape
of the tree alone. Not here: definitions and uses (`index/parse.py`), which nodes or names changed (`history.py`,
`renamings.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from codeagent_lsp.index import grammars

if TYPE_CHECKING:
    from tree_sitter import Node


LARGEST = 400_000
"""The most bytes of a text that is parsed; longer ones were not written by hand."""

Role = Literal["called", "member", "keyword", "imported", "type", "defined", "parameter", "plain"]


_DEFINED_DEPTH = 3
_DECLARES = re.compile(r"assignment|declarator|declaration|^let|_spec$|for_|range_clause")
_IMPORTS = re.compile(r"import|use_declaration|include|using")
_FUNCTION = re.compile(r"function|method|lambda|arrow|closure|constructor|func_literal")
CALLS = ("call", "call_expression", "new_expression", "macro_invocation", "method_invocation", "invocation_expression")
_MEMBERS = (
    "attribute", "member_expression", "selector_expression", "field_expression", "field_access", "method_invocation",
    "member_access_expression", "scoped_identifier", "qualified_type", "nested_identifier",
)  # fmt: skip


@dataclass(frozen=True)
class ParsedText:
    """The text of a file, its bytes in UTF-8, the name of its grammar, such as `python`, and the root of its tree,
    whose offsets are in these bytes.
    """

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
        """Return the offset in characters of an offset in bytes of UTF-8; one beyond the end counts as the end in texts
        that are not ASCII.
        """
        return byte if self._ascii else len(self.data[:byte].decode("utf-8", "replace"))

    def byte(self, char: int) -> int:
        """Return the offset in bytes of UTF-8 of an offset in characters."""
        return char if self._ascii else len(self.text[:char].encode("utf-8", "replace"))

    def of(self, node: Node) -> str:
        """Return the text of a node of this text's tree; bytes that are not valid UTF-8 are replaced."""
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def between(self, start: int, end: int) -> str:
        """Return the text between two offsets in bytes, half-open."""
        return self.data[start:end].decode("utf-8", "replace")


def parsed_text(path: str, text: str) -> ParsedText | None:
    """Return the parsed text, its language by its path or first line; None if that has no grammar or the text has over
    400,000 bytes. Blocks while parsing.
    """
    data = text.encode("utf-8", "replace")
    grammar = grammars.grammar_of(path, data)
    if grammar is None or len(data) > LARGEST:
        return None
    tree = grammars.parser(grammar).parse(data)
    return ParsedText(path, text, data, grammar.name, tree.root_node)


def nodes_of(root: Node, start: int = 0, end: int | None = None) -> Iterator[Node]:
    """Yield the nodes that overlap a range of bytes (to the end for None), each before its children."""
    pending = [root]
    while pending:
        node = pending.pop()
        if node.end_byte <= start or (end is not None and node.start_byte >= end):
            continue
        yield node
        # The last is taken first; recursion would end at deeply nested code.
        pending += reversed(node.children)


def role_of(node: Node) -> Role:
    """Return how a name is used, by the nodes around it: `called`, `member`, `keyword`, `imported`, `type`, `defined`,
    `parameter` or `plain`.
    """
    parent = node.parent
    if parent is None:
        return "plain"
    field = _field(parent, node)
    if parent.type in ("keyword_argument", "named_argument") and field in ("name", None):
        # In `f(a=a)` the first is the parameter's name, the second a use.
        return "keyword" if parent.children[0] == node else "plain"
    if has_above(node, ("import", "use_declaration", "export_clause"), 4):
        return "imported"
    if field == "name" and re.search(r"definition|declaration|_item$|_spec$|signature|declarator", parent.type):
        # A variable is treated as a local name, which only its function knows.
        return "plain" if re.search(r"variable|const|let|var_", parent.type) else "defined"
    if parent.type in CALLS and field in ("function", "constructor", "macro", "name"):
        return "called"
    if parent.type in _MEMBERS and field in ("attribute", "property", "field", "name", None):
        return "plain" if parent.children[0] == node else "member"
    if node.type in ("type_identifier", "constant"):
        return "type"
    if has_above(node, ("parameter",), 3):
        return "parameter"
    return "plain"


def binds(name: Node) -> bool:
    """Return whether a local name is bound here: a parameter, or what is assigned to or declared."""
    if role_of(name) == "parameter":
        return True
    node, parent = name, name.parent
    # `a, b = f()`: the list stands on the left side, the names in it.
    if parent is not None and parent.type in ("expression_list", "pattern_list", "tuple_pattern"):
        node, parent = parent, parent.parent
    field = _field(parent, node) if parent is not None else None
    return parent is not None and field in ("left", "name", "pattern") and bool(_DECLARES.search(parent.type))


def function_of(node: Node) -> Node | None:
    """Return the innermost function, method or the like around a node of a tree, not the node itself; None at the top
    of the file.
    """
    around = node.parent
    while around is not None and not (_FUNCTION.search(around.type) and around.child_count > 2):
        around = around.parent
    return around


def is_bound(text: ParsedText, node: Node, name: str) -> bool:
    """Return whether a name is known at a node: bound before in a function around it, or imported or defined at the
    top.
    """
    wanted = name.encode()
    around = function_of(node)
    # Lines before this one: the new use itself must not count as a binding.
    line = text.data.rfind(b"\n", 0, node.start_byte)
    if around is not None and _uses(around, wanted, around.start_byte, line):
        return True
    for top in text.root.children:
        # The statement around the node itself says nothing: there the name may be new.
        if top.start_byte <= node.start_byte < top.end_byte:
            continue
        if _IMPORTS.search(top.type):
            if re.search(rb"\b%s\b" % re.escape(wanted), top.text or b""):
                return True
        elif _binds(top, wanted):
            return True
    return False


def _binds(top: Node, name: bytes) -> bool:
    """Return whether a statement at the top of a file defines a name, or assigns to it."""
    pending = [top]
    for _ in range(_DEFINED_DEPTH):
        for node in pending:
            for field in ("name", "left"):
                named = node.child_by_field_name(field)
                if named is not None and named.text == name:
                    return True
        pending = [child for node in pending for child in node.named_children]
    return False


def _uses(root: Node, name: bytes, start: int, end: int) -> bool:
    found = (each for each in nodes_of(root, start, end) if not each.child_count and each.text == name)
    return any(role_of(each) in ("plain", "parameter", "imported", "defined") for each in found)


def has_above(node: Node, kinds: tuple[str, ...], most: int) -> bool:
    """Return whether one of the next `most` nodes around a node has a type that contains one of `kinds`."""
    around = node.parent
    for _ in range(most):
        if around is None:
            return False
        if any(kind in around.type for kind in kinds):
            return True
        around = around.parent
    return False


def _field(parent: Node, node: Node) -> str | None:
    # tree-sitter tells the field of a child by its number only.
    for number, child in enumerate(parent.children):
        if child == node:
            return parent.field_name_for_child(number)
    return None
