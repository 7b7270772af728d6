"""Extraction of a file's definitions from query captures: names, kinds, lines, signatures, docstrings, parents.

The capture of a definition is named after its kind. `scope` gives its name to its content without being a symbol (an
`impl`), `wrapper` surrounds a definition (decorators, `export`), `above` is a comment or an attribute. Not here:
references and imports (`parse.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from codeagent_lsp.index.symbols import SymbolInfo, SymbolKind
from codeagent_lsp.workspace.text.visible import cut

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_SIGNATURE = 240
MAX_DOCSTRING = 400
MAX_NAME = 200
MAX_DEPTH = 50  # definitions in definitions

_KINDS: dict[str, SymbolKind] = {
    "class": "class", "struct": "struct", "interface": "interface", "enum": "enum", "type": "type",
    "module_": "module", "method": "method", "function": "function", "macro": "macro", "constant": "constant",
    "variable": "variable",
}  # fmt: skip
_ORDER = {kind: number for number, kind in enumerate(("wrapper", "scope", *_KINDS))}
_HOLDERS = frozenset(("class", "struct", "interface", "enum", "scope"))
_OPAQUE = frozenset(("wrapper", "type", "constant", "macro"))  # their content is not qualified by their name
_NAME_FIELDS = ("name", "declarator", "left", "property", "key", "type")
_CONVERSIONS = ("conversion_operator_declaration", "operator_cast")
_UNFIELDED = frozenset(("reference_declarator", "parenthesized_declarator", "field_declaration", "enum_constant"))
_WITH_BODY = frozenset(("arrow_function", "function_expression", "generator_function", "class"))
# `(s *Server[T])`: the type of a receiver in Go.
_RECEIVER = re.compile(r"(\w+)\s*(?:\[[^\]]*\])?\s*\)$")
_IGNORED_OWNERS = re.compile(r"(?:^|\.)(?:exports|module|prototype|this|window|self)(?=\.|$)")
_MARKS = re.compile(r"^\s*(?:/\*+!?|\*+/|\*(?!/)|//+!?|\#+!?|--+)?[ \t]?|\s*\*+/\s*$", re.MULTILINE)
_TAGS = re.compile(r"</?[a-zA-Z][^<>\n]*>")
_QUOTE = re.compile(r"[a-zA-Z]{0,2}(\"\"\"|'''|\"|')")
_EMPTY_LINE = re.compile(r"\n[ \t]*\n")
_OPENING = re.compile(r"([(\[])\s+")
_CLOSING = re.compile(r",?\s+([)\]])")


class Definition(NamedTuple):
    """A captured node: its byte offsets and the name of the capture."""

    start: int
    end: int
    kind: str
    node: Node


class DefinitionNodes(NamedTuple):
    """The syntax nodes of a definition: captured, with its wrappers, and of its name if it has one."""

    symbol: SymbolInfo
    node: Node
    outer: Node
    name: Node | None


@dataclass(slots=True)
class _Open:
    """A node that may enclose the next definitions. `name` is '' for a wrapper."""

    end: int
    kind: str
    name: str
    node: Node


@dataclass(slots=True)
class Outline:
    """The definitions of one text found so far, as `symbols` and with their nodes as `places`, and the byte offsets of
    their names, which do not count as uses.
    """

    source: bytes
    above: Mapping[int, Node] = field(default_factory=dict)
    symbols: list[SymbolInfo] = field(default_factory=list)
    places: list[DefinitionNodes] = field(default_factory=list)
    names_at: set[int] = field(default_factory=set)
    _open: list[_Open] = field(default_factory=list)
    _described: set[int] = field(default_factory=set)

    def add(self, path: str, definition: Definition) -> None:
        """Add the next definition, which must not start before the last one. One nested more than 50 deep is left
        out.
        """
        while self._open and self._open[-1].end <= definition.start:
            self._open.pop()
        if len(self._open) >= MAX_DEPTH:
            return
        if definition.kind == "wrapper":
            self._open.append(_Open(definition.end, "wrapper", "", definition.node))
            return
        name, owner, named = self._name(definition)
        around = next((each for each in reversed(self._open) if each.kind not in _OPAQUE), None)
        parent = _join_names(around.name if around else "", owner)
        if definition.kind != "scope":
            self._keep(path, definition, named, (name, parent, owner), around)
        self._open.append(_Open(definition.end, definition.kind, _join_names(parent, name), definition.node))

    def _keep(
        self, path: str, definition: Definition, named: Node | None, names: tuple[str, str, str], around: _Open | None
    ) -> None:
        name, parent, owner = names
        if not name or len(name) > MAX_NAME:
            return
        outer = self._outermost(definition.node)
        kind = _KINDS[definition.kind]
        if kind == "function" and (owner or (around is not None and around.kind in _HOLDERS)):
            kind = "method"
        if kind == "variable" and name.isupper():
            kind = "constant"
        symbol = SymbolInfo(
            name,
            kind,
            path,
            outer.start_point[0] + 1,
            _last_line(outer),
            signature(definition.node, outer, self.source),
            self._docstring(definition.node, outer),
            parent,
        )
        self.symbols.append(symbol)
        self.places.append(DefinitionNodes(symbol, definition.node, outer, named))

    def _name(self, definition: Definition) -> tuple[str, str, Node | None]:
        """Return the name, its qualifier (`Foo` of `Foo::bar`, the type of a Go receiver), and its node."""
        node, owner = definition.node, ""
        receiver = node.child_by_field_name("receiver")
        if receiver is not None:
            found = _RECEIVER.search(_text(receiver, self.source))
            owner = found[1] if found else ""
        if definition.kind == "scope":
            target = node.child_by_field_name("type") or node.child_by_field_name("value")
            name = _simple(_text(target, self.source)) if target else ""
            return name if name != "self" else "", "", None
        named = node.child_by_field_name("name")
        if definition.kind == "module_" and named is not None:
            self.names_at.add(named.start_byte)
            return re.sub(r"::|\\", ".", _text(named, self.source)).strip("\"'"), "", named
        while not (sign := _operator(node, self.source)) and (inner := _inner_name(node)) is not None:
            scope = node.child_by_field_name("scope") or node.child_by_field_name("object")
            if scope is not None and node.type in ("qualified_identifier", "member_expression"):
                owner = _join_names(owner, _owner(_text(scope, self.source)))
            node = inner
        if sign:
            return sign, owner, None
        # No name inside: the whole definition would be taken for its own name.
        if node is definition.node and node.child_count:
            return "", "", None
        self.names_at.add(node.start_byte)
        return _text(node, self.source).strip("\"'$").replace("\n", " "), owner, node

    def _outermost(self, node: Node) -> Node:
        """Return the node with its wrappers: decorators, `export`, `template <...>`."""
        for each in reversed(self._open):
            if each.kind != "wrapper":
                break
            node = each.node
        return node

    def _docstring(self, node: Node, outer: Node) -> str:
        if node.type in ("function_definition", "class_definition"):
            body = node.child_by_field_name("body")
            # C and Bash have functions of this type, too, but no bodies of this one.
            holds = body is not None and body.type == "block" and body.named_child_count > 0
            first = body.named_child(0) if body is not None and holds else None
            if first is not None and first.type == "expression_statement" and first.child_count:
                first = first.child(0)
            if first is not None and first.type == "string":
                return _paragraph(_unquote(_text(first, self.source)))
        line = outer.start_point[0]
        if line in self._described:  # the comment is about what else begins on this line
            return ""
        self._described.add(line)
        return self._comment(line)

    def _comment(self, line: int) -> str:
        """Return the comment that ends on the line above (0-based), skipping attributes."""
        lines: list[str] = []
        while len(lines) < 50 and (node := self.above.get(line - 1)) is not None:
            text = _text(node, self.source)
            if "comment" in node.type and not text.startswith("#!"):
                lines.append(text)
            line = node.start_point[0]
        return _paragraph(_MARKS.sub("", "\n".join(reversed(lines)))) if lines else ""


def order_definitions(captures: Mapping[str, Sequence[Node]]) -> Iterator[Definition]:
    """Yield the captured definitions, outer ones first; a node captured twice gets the more specific kind."""
    found = [
        Definition(node.start_byte, node.end_byte, kind, node) for kind in _ORDER for node in captures.get(kind, ())
    ]
    found.sort(key=lambda each: (each.start, -each.end, _ORDER[each.kind]))
    last = (-1, -1)
    for each in found:
        if each.kind != "wrapper":
            if (each.start, each.end) == last:
                continue
            last = (each.start, each.end)
        yield each


def by_last_line(nodes: Sequence[Node]) -> dict[int, Node]:
    """Return comments and attributes by the 0-based line that they end on."""
    return {_last_line(node) - 1: node for node in nodes}


def signature(node: Node, outer: Node, source: bytes) -> str:
    """Return the signature on one line, at most 240 characters: everything up to the body, or the first line if there
    is no body.
    """
    body = body_of(node)
    # With its `const` or `let`.
    start = outer.start_byte if outer.type in ("lexical_declaration", "variable_declaration") else node.start_byte
    if body is None:
        text = source[start : min(node.end_byte, start + 4 * MAX_SIGNATURE)].decode("utf-8", "replace")
        text = text.split("\n", 1)[0]
    else:
        stop = next((child.start_byte for child in node.children if child.type == "comment"), body.start_byte)
        text = source[start : min(stop, body.start_byte, start + 8 * MAX_SIGNATURE)].decode("utf-8", "replace")
    text = _one_line(text)
    text = text.rstrip(" ;{,") if body is None else text.removesuffix("=>").rstrip(" :={;")
    return cut(text, MAX_SIGNATURE)


def _one_line(text: str) -> str:
    """Join a text to one line, without the blanks that come from line ends within brackets."""
    text = " ".join(text.split())
    if "( " in text or "[ " in text:
        text = _OPENING.sub(r"\1", text)
    return _CLOSING.sub(r"\1", text) if " )" in text or " ]" in text else text


def body_of(node: Node) -> Node | None:
    """Return the body of a definition, for a variable that of the function it holds; None if there is none."""
    body = node.child_by_field_name("body")
    if body is None:
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        body = value.child_by_field_name("body") if value is not None and value.type in _WITH_BODY else None
    return body


def _inner_name(node: Node) -> Node | None:
    """Go one step from a definition towards the node of its name; None at the end."""
    if node.type == "type_definition":
        return node.child_by_field_name("declarator")
    for name in _NAME_FIELDS[: 5 if node.type != "type_spec" else 1]:
        found = node.child_by_field_name(name)
        if found is not None:
            return found
    if node.type == "const_element":
        return next(iter(node.named_children), None)
    if node.type in _UNFIELDED or node.type in ("field_declaration", "variable_declaration", "property_declaration"):
        inner = [child for child in node.named_children if child.type not in ("modifiers", "modifier")]
        return inner[-1] if inner else None
    return None


def _operator(node: Node, source: bytes) -> str:
    """Return the name of what a type can do by signs alone: `operator+`, `operator bool`, `this[]`; '' for all else."""
    if node.type == "indexer_declaration":
        return "this[]"
    sign = node.child_by_field_name("operator") if node.type == "operator_declaration" else None
    if sign is not None:
        return f"operator{_text(sign, source)}"
    type_ = node.child_by_field_name("type") if node.type in _CONVERSIONS else None
    return f"operator {' '.join(_text(type_, source).split()).replace('::', '.')}" if type_ is not None else ""


def _owner(text: str) -> str:
    """Return the qualifier of a name in dotted form; '' for `exports` and the like."""
    text = _IGNORED_OWNERS.sub("", text).strip(".")
    return ".".join(_simple(part) for part in text.split("::")) if len(text) <= MAX_NAME else ""


def _join_names(outer: str, inner: str) -> str:
    return f"{outer}.{inner}" if outer and inner else outer or inner


def _simple(text: str) -> str:
    """Return a type without arguments, path and modifiers: `Foo` of `&'a crate::Foo<T>`."""
    found = re.findall(r"[\w.]+", re.sub(r"<.*", "", text, flags=re.DOTALL).split("::")[-1])
    return found[-1] if found else ""


def _text(node: Node, source: bytes) -> str:
    return source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _last_line(node: Node) -> int:
    """Return the 1-based last line of a node; a trailing line end does not count as another line."""
    row, column = node.end_point
    return row if column == 0 and row > node.start_point[0] else row + 1


def _unquote(text: str) -> str:
    found = _QUOTE.match(text)
    return text[found.end() :].removesuffix(found[1]) if found else text


def _paragraph(text: str) -> str:
    """Return the first paragraph on one line."""
    text = _TAGS.sub("", text.strip()).strip() if "<" in text else text.strip()
    return cut(" ".join(_EMPTY_LINE.split(text, maxsplit=1)[0].split()), MAX_DOCSTRING)
