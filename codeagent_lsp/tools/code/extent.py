"""The extent of a definition beyond its core: doc comments, decorators, attributes, `export`, the head of a template,
the comma after it.

Not here: changing any of it (`ast_edit.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from codeagent_lsp.index.grammars import text_of
from codeagent_lsp.tools.code.source import Definition, SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

PartKind = Literal["comment", "attribute", "word"]

_ATTRIBUTES = frozenset(
    ("decorator", "attribute_item", "attribute_list", "annotation", "marker_annotation", "attribute_declaration")
)
_COMMENTS = frozenset(("comment", "line_comment", "block_comment"))
_WORDS = frozenset(("export", "default", "declare", "template", "template_parameter_list", "requires_clause"))
_WRAPPERS = frozenset(("decorated_definition", "export_statement", "ambient_declaration", "template_declaration"))
_SINGLE = {"const_element": "const_declaration", "variable_assignment": "declaration_command"}
OF_THE_FILE = re.compile(
    r"#!|//!|/\*!|//go:build|// \+build"
    r"|(?:#|//|/\*+)[ \t]*(?:-\*-|(?:en)?coding[:=]|vim?:|frozen_string_literal:|typed:|@ts-(?:no)?check|@flow|@jsx"
    r"|eslint-(?:disable|enable|env)\b(?!-)|pylint: *(?:disable|skip-file)"
    r"|(?:flake8|mypy|ruff|pyright|type): *(?:noqa|ignore|strict|basic)"
    r"|SPDX-|Copyright\b|\(c\)|Licen[sc]ed under)",
    re.IGNORECASE,
)
"""Comments about the file, which do not belong to the definition below them."""
_HASH = re.compile(r"[ \t]*(?:#.*)?")
_SLASHES = re.compile(r"[ \t]*(?://.*|/\*(?:[^*]|\*(?!/))*\*/[ \t]*)?")
_WITH_HASH = frozenset(("python", "ruby", "bash", "php"))


class Part(NamedTuple):
    """A comment, attribute or keyword in front of the core of a definition; `start` is its byte offset."""

    start: int
    kind: PartKind


@dataclass(frozen=True, slots=True)
class Extent:
    """Byte offsets of a definition: `parts` in order, its core from `core` to `end`; `tail` is after a following `;` or
    `,`.
    """

    parts: tuple[Part, ...]
    core: int
    end: int
    tail: int

    @property
    def top(self) -> int:
        """The byte offset of the first thing that belongs to the definition, such as its doc comment."""
        return self.parts[0].start if self.parts else self.core

    def has(self, kind: PartKind) -> bool:
        """Return whether there is a part of this kind (a `PartKind`) in front of the core."""
        return any(part.kind == kind for part in self.parts)


def extent_of(source: SourceFile, definition: Definition) -> Extent:
    """Return the extent of a definition with everything that belongs to it: comments, attributes and keywords in front
    of it, and a `;` or `,` after it. Offsets are in bytes. Pure.
    """
    outer = statement_of(definition.outer)
    inner, core = _leading(outer)
    parts = (*_above(source, outer), *inner)
    end = source.trimmed(outer.end_byte)
    return Extent(parts, core, end, _tail(source, outer, end))


def statement_of(node: Node) -> Node:
    """Return the statement or declaration that consists of this node alone, as `const` does around a single name; the
    node itself if there is none.
    """
    parent = node.parent
    if parent is not None and parent.type == _SINGLE.get(node.type):
        return parent if sum(child.type == node.type for child in parent.children) == 1 else node
    while (
        parent is not None
        and parent.type in ("expression_statement", "enum_member_declaration")
        and parent.start_byte == node.start_byte
        and parent.named_child_count == 1
    ):
        node, parent = parent, parent.parent
    return node


def first_alone(source: SourceFile, place: int) -> bool:
    """Return whether only blanks, or nothing, precede a byte offset on its line."""
    return not source.data[source.line_start(place) : place].strip()


def last_alone(source: SourceFile, place: int) -> bool:
    """Return whether only blanks and a comment follow a byte offset on its line, in the source's language."""
    rest = source.slice(place, source.line_end(place))
    if source.language in _WITH_HASH and _HASH.fullmatch(rest):
        return True
    return source.language not in ("python", "ruby", "bash") and bool(_SLASHES.fullmatch(rest))


def indentation(source: SourceFile, place: int) -> str:
    """Return the leading blanks and tabs of the line with a byte offset; '' for none."""
    line = source.slice(source.line_start(place), source.line_end(place))
    return line[: len(line) - len(line.lstrip(" \t"))]


def _leading(node: Node) -> tuple[list[Part], int]:
    """Return the decorators and keywords in front of the core, from the outside inwards, and the offset of the core."""
    parts: list[Part] = []
    for child in node.children:
        if child.type in _ATTRIBUTES:
            parts.append(Part(child.start_byte, "attribute"))
        elif child.type == "modifiers":
            for modifier in child.children:
                if modifier.type not in _ATTRIBUTES:
                    return parts, modifier.start_byte
                parts.append(Part(modifier.start_byte, "attribute"))
        elif child.type in _WORDS and node.type in _WRAPPERS:
            parts.append(Part(child.start_byte, "word"))
        elif child.type in _COMMENTS and parts:
            parts.append(Part(child.start_byte, parts[-1].kind))
        elif node.type in _WRAPPERS and child.is_named:
            inner, core = _leading(child)
            return parts + inner, core
        else:
            return parts, child.start_byte
    return parts, node.start_byte


def _above(source: SourceFile, outer: Node) -> list[Part]:
    """Return the comments and attributes directly above, or in front on the same line."""
    parts: list[Part] = []
    node = outer
    while True:
        before = _before(node)
        if before is None or (before.type not in _COMMENTS and before.type not in _ATTRIBUTES):
            break
        # Some grammars count the line end as a part of the comment.
        ends_line = (before.text or b"").endswith(b"\n")
        gap = source.data[before.end_byte : node.start_byte]
        if gap.strip() or gap.count(b"\n") + ends_line > 1:
            break
        if before.type in _COMMENTS and not _is_doc(source, before, outer):
            break
        parts.append(Part(before.start_byte, "comment" if before.type in _COMMENTS else "attribute"))
        node = before
    return parts[::-1]


def _before(node: Node) -> Node | None:
    """Return the node in front of a node, also if it is the first of its block."""
    while node.prev_sibling is None and node.parent is not None and node.parent.start_byte == node.start_byte:
        node = node.parent
    return node.prev_sibling


def _is_doc(source: SourceFile, comment: Node, outer: Node) -> bool:
    """Return whether a comment is alone on its lines and indented like the definition it precedes."""
    text = text_of(comment)
    if OF_THE_FILE.match(text) or not first_alone(source, comment.start_byte):
        return False
    return indentation(source, comment.start_byte) == indentation(source, outer.start_byte)


def _tail(source: SourceFile, outer: Node, end: int) -> int:
    """Return the offset after the `;` or `,` that follows on the same line; `end` if there is none."""
    after = outer.next_sibling
    if after is not None and after.type in (";", ",") and not source.data[end : after.start_byte].strip(b" \t"):
        return after.end_byte
    return end
