"""Parsing of a text into definitions, uses and imports, by the tree-sitter query of its language (`languages/*.scm`).

The capture of a definition is named after its kind. `scope` gives its name to its content without being a symbol (an
`impl`), `wrapper` surrounds a definition (decorators, `export`), `above` is a comment or an attribute. `use` is any
name, `call` one that is called, `bound` one that is only bound (a parameter); `import` a statement, `module` and
`taken` the module and the names it imports. Not here: finding files, storing results.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from codeagent_lsp.errors import FileRefused
from codeagent_lsp.index import grammars
from codeagent_lsp.index.symbols import FileTags, Import, RawTags, SymbolInfo, SymbolKind, tags_of
from codeagent_lsp.workspace.text.encoding import decode
from codeagent_lsp.workspace.text.visible import cut

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

MAX_BYTES = 1 << 20
SECONDS = 5.0
MAX_DEPTH = 400  # of the syntax tree: names nested deeper are ignored
MAX_ERROR = 8_000  # child nodes of one syntax error
MAX_LOOKED_AT = 20_000

_WATCHED = 32_768  # bytes; checking the time costs a fifth, and shorter texts are parsed quickly
_LONGEST_NAME = 120

_MAX_SIGNATURE = 240
_MAX_DOCSTRING = 400
_MAX_NAME = 200
_MAX_NESTED = 50  # definitions in definitions
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


def parse(path: str, data: bytes | str, *, seconds: float = SECONDS) -> FileTags:
    """Return the tags of a text, whose language follows from `path`. Never raises.

    Without tags: an unknown language, no text, over 1 MiB; and, with `broken` set, over the time limit (`seconds`, 5 by
    default) or no code at all.
    """
    return tags_of(find(path, data, seconds=seconds))


def find(path: str, data: bytes | str, *, seconds: float = SECONDS) -> RawTags:
    """Parse a text as `parse` does, and return the result in the form that is fast to pack. Never raises; takes at most
    about `seconds`.
    """
    known = _grammar_and_bytes(path, data)
    if known is None:
        return RawTags("")
    parsed = _parse(path, *known, seconds)
    if parsed is None:
        return RawTags(known[0].name, broken=True)
    return RawTags(
        parsed.grammar.name,
        tuple(parsed.outline.symbols),
        _uses(parsed.captures, parsed.source, parsed.outline.names_at),
        tuple(imports_of(parsed)),
        parsed.tree.root_node.has_error,
    )


@dataclass(frozen=True)
class Parsed:
    """A parsed text: its UTF-8 bytes and syntax tree. What its language's query finds is computed on first use, as that
    takes longer than parsing. `within` limits it to what overlaps a range of bytes.
    """

    path: str
    grammar: grammars.Grammar
    source: bytes
    tree: Tree
    within: tuple[int, int] | None = None

    @cached_property
    def captures(self) -> Mapping[str, Sequence[Node]]:
        """The nodes that the query of its language captures, by the names that it gives them; computed on first use."""
        return _captures(self.grammar, self.tree, self.within)

    @cached_property
    def outline(self) -> Outline:
        """The definitions of the text, at most 50 deep; computed on first use, which may take longer than parsing."""
        outline = Outline(self.source, _by_last_line(self.captures.get("above", ())))
        for definition in _order_definitions(self.captures):
            outline.add(self.path, definition)
        return outline


class DefinitionNodes(NamedTuple):
    """The syntax nodes of a definition: `node` as captured, `outer` with its wrappers such as decorators, `name` that
    of its name, None if it has none.
    """

    symbol: SymbolInfo
    node: Node
    outer: Node
    name: Node | None


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

    def add(self, path: str, definition: _Definition) -> None:
        """Add the next definition, which must not start before the last one; scopes and wrappers only give names and
        ranges to what is in them. One nested more than 50 deep is left out.
        """
        while self._open and self._open[-1].end <= definition.start:
            self._open.pop()
        if len(self._open) >= _MAX_NESTED:
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
        self, path: str, definition: _Definition, named: Node | None, names: tuple[str, str, str], around: _Open | None
    ) -> None:
        name, parent, owner = names
        if not name or len(name) > _MAX_NAME:
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
            _signature(definition.node, outer, self.source),
            self._docstring(definition.node, outer),
            parent,
        )
        self.symbols.append(symbol)
        self.places.append(DefinitionNodes(symbol, definition.node, outer, named))

    def _name(self, definition: _Definition) -> tuple[str, str, Node | None]:
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


def parsed(path: str, data: bytes | str, *, within: tuple[int, int] | None = None) -> Parsed | None:
    """Return the parsed text with its tree; None if the language is unknown, the data is binary, the text is over 1
    MiB, parsing takes more than 5 s, or the syntax errors are so long that it cannot be code. `within` (byte offsets)
    limits what the query finds.
    """
    known = _grammar_and_bytes(path, data)
    return _parse(path, *known, SECONDS, within) if known is not None else None


def faults_of(root: Node) -> Iterator[Node]:
    """Yield the error and missing nodes of a tree in order, none inside another, as far as they are among the first
    20,000 nodes that are looked at.
    """
    pending = [root]
    for _ in range(MAX_LOOKED_AT):
        if not pending:
            return
        node = pending.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error:
            pending.extend(reversed(node.children))


def imports_of(parsed: Parsed) -> list[Import]:
    """Return the imports in the order of the text, one per module named; imported names belong to the last module of
    their statement.
    """
    return _imports(parsed.captures, parsed.source)


def body_of(node: Node) -> Node | None:
    """Return the node of a definition's body, for a variable that of the function it holds; None if there is none, as
    in declarations.
    """
    body = node.child_by_field_name("body")
    if body is None:
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        body = value.child_by_field_name("body") if value is not None and value.type in _WITH_BODY else None
    return body


def _grammar_and_bytes(path: str, data: bytes | str) -> tuple[grammars.Grammar, bytes] | None:
    """Return the grammar and the UTF-8 bytes of a text.

    None for an unknown language, binary data or too long a text.
    """
    source = _utf8(data)
    grammar = grammars.grammar_of(path, source) if source is not None else None
    return None if source is None or grammar is None or len(source) > MAX_BYTES else (grammar, source)


def _parse(
    path: str, grammar: grammars.Grammar, source: bytes, seconds: float, within: tuple[int, int] | None = None
) -> Parsed | None:
    end = time.monotonic() + seconds
    stop = (lambda *_: time.monotonic() > end) if len(source) > _WATCHED else None
    tree = grammars.tree_of(grammar, source, stop)
    if tree is None or _is_hopeless(tree):
        return None
    return Parsed(path, grammar, source, tree, within)


def _utf8(data: bytes | str) -> bytes | None:
    """Return the text as UTF-8; None for binary data."""
    if isinstance(data, str):
        return data.encode("utf-8", "replace")
    if len(data) > MAX_BYTES:
        return None
    try:
        return decode(data).text.encode("utf-8", "replace")
    except FileRefused:
        return None


def _captures(grammar: grammars.Grammar, tree: Tree, within: tuple[int, int] | None) -> Mapping[str, Sequence[Node]]:
    # No time limit, as the binding crashes with one. Slow cases are excluded before: depth, and long errors.
    cursor = grammars.cursor(grammars.query(grammar))
    cursor.set_max_start_depth(MAX_DEPTH)
    if within is not None:
        cursor.set_byte_range(*within)
    return cursor.captures(tree.root_node)


def _is_hopeless(tree: Tree) -> bool:
    """Return whether the tree has errors so long that queries would take quadratic time."""
    pending = [tree.root_node] if tree.root_node.has_error else []
    while pending:
        node = pending.pop()
        if node.is_error and node.child_count > MAX_ERROR:
            return True
        pending += [child for child in node.children if child.has_error]
    return False


def _uses(captures: Mapping[str, Sequence[Node]], source: bytes, names_at: set[int]) -> dict[str, list[int]]:
    """Return the 1-based lines of the uses of each name, negative where it is called."""
    calls = {node.start_byte for node in captures.get("call", ())}
    skipped = names_at.union(node.start_byte for node in captures.get("bound", ()))
    found: dict[bytes, list[int]] = {}
    for node in captures.get("use", ()):
        start = node.start_byte
        if start not in skipped:
            line = node.start_point[0] + 1
            name = source[start : node.end_byte]
            if name in found:
                found[name].append(-line if start in calls else line)
            else:
                found[name] = [-line if start in calls else line]
    return {name.decode("utf-8", "replace"): lines for name, lines in found.items() if 0 < len(name) <= _LONGEST_NAME}


def _imports(captures: Mapping[str, Sequence[Node]], source: bytes) -> list[Import]:
    statements = sorted(captures.get("import", ()), key=lambda node: node.start_byte)
    starts = [node.start_byte for node in statements]
    modules: list[list[Node]] = [[] for _ in statements]
    taken: list[list[Node]] = [[] for _ in statements]
    for places, nodes in ((modules, captures.get("module", ())), (taken, captures.get("taken", ()))):
        for node in sorted(nodes, key=lambda node: node.start_byte):
            at = bisect_right(starts, node.start_byte) - 1
            if at >= 0 and node.end_byte <= statements[at].end_byte:
                places[at].append(node)
    found = []
    for named, names in zip(modules, taken, strict=True):
        for node in named:
            last = node is named[-1]
            text = tuple(dict.fromkeys(_plain(each, source) for each in names)) if last else ()
            module = _plain(node, source).split("::{")[0].split(" as ")[0]
            found.append(Import(module, text, node.start_point[0] + 1))
    return found


def _plain(node: Node, source: bytes) -> str:
    """Return the text of a name or a string literal, on one line."""
    text = " ".join(source[node.start_byte : node.end_byte].decode("utf-8", "replace").split())
    return text.strip("\"'`<>") if text[:1] in "\"'`<" else text


class _Definition(NamedTuple):
    """A captured node: its byte offsets and the name of the capture."""

    start: int
    end: int
    kind: str
    node: Node


@dataclass(slots=True)
class _Open:
    """A node that may enclose the next definitions. `name` is '' for a wrapper."""

    end: int
    kind: str
    name: str
    node: Node


def _order_definitions(captures: Mapping[str, Sequence[Node]]) -> Iterator[_Definition]:
    """Yield the captured definitions, outer ones first; a node captured twice gets the more specific kind."""
    found = [
        _Definition(node.start_byte, node.end_byte, kind, node) for kind in _ORDER for node in captures.get(kind, ())
    ]
    found.sort(key=lambda each: (each.start, -each.end, _ORDER[each.kind]))
    last = (-1, -1)
    for each in found:
        if each.kind != "wrapper":
            if (each.start, each.end) == last:
                continue
            last = (each.start, each.end)
        yield each


def _by_last_line(nodes: Sequence[Node]) -> dict[int, Node]:
    """Return comments and attributes by the 0-based line that they end on."""
    return {_last_line(node) - 1: node for node in nodes}


def _signature(node: Node, outer: Node, source: bytes) -> str:
    """Return the signature on one line, at most 240 characters: everything up to the body, or the first line if there
    is no body.
    """
    body = body_of(node)
    # With its `const` or `let`.
    start = outer.start_byte if outer.type in ("lexical_declaration", "variable_declaration") else node.start_byte
    if body is None:
        text = source[start : min(node.end_byte, start + 4 * _MAX_SIGNATURE)].decode("utf-8", "replace")
        text = text.split("\n", 1)[0]
    else:
        stop = next((child.start_byte for child in node.children if child.type == "comment"), body.start_byte)
        text = source[start : min(stop, body.start_byte, start + 8 * _MAX_SIGNATURE)].decode("utf-8", "replace")
    text = _one_line(text)
    text = text.rstrip(" ;{,") if body is None else text.removesuffix("=>").rstrip(" :={;")
    return cut(text, _MAX_SIGNATURE)


def _one_line(text: str) -> str:
    """Join a text to one line, without the blanks that come from line ends within brackets."""
    text = " ".join(text.split())
    if "( " in text or "[ " in text:
        text = _OPENING.sub(r"\1", text)
    return _CLOSING.sub(r"\1", text) if " )" in text or " ]" in text else text


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
    return ".".join(_simple(part) for part in text.split("::")) if len(text) <= _MAX_NAME else ""


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
    return cut(" ".join(_EMPTY_LINE.split(text, maxsplit=1)[0].split()), _MAX_DOCSTRING)
