"""Name binding in one text: the parameter, local variable or nested definition that binds a plain name, if any.

Not here: what else a name may be, such as a member (`uses.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from codeagent_lsp.index import grammars
from codeagent_lsp.tools.code.source import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

_KINDS = ("class", "scope", "function")
_NAMES = frozenset(
    ("identifier", "shorthand_property_identifier_pattern", "shorthand_field_identifier", "type_identifier")
)
_NO_PATTERNS = frozenset(
    ("attribute", "subscript", "member_expression", "subscript_expression", "field_expression", "call", "type",
     "element_reference", "scoped_identifier", "scope_resolution", "qualified_identifier", "type_annotation")
)  # fmt: skip
_PARAMETERS = frozenset(("default_parameter", "typed_default_parameter", "typed_parameter"))
_NO_PATTERN_FIELDS = frozenset(("right", "value", "type", "default", "default_value", "key", "size", "parameters"))


class Binding(NamedTuple):
    """A name bound in a scope, from the byte offset `since` on; `kind` is that of the scope: `class`, `function` or
    `scope`.
    """

    scope: Node
    kind: str
    since: int
    is_type: bool = False


@dataclass
class Scopes:
    """The scopes of one text and the names bound in them, collected once when it is made."""

    source: SourceFile
    _kinds: dict[int, str] = field(default_factory=dict)
    _bindings: dict[bytes, list[Binding]] = field(default_factory=dict)
    _free: set[tuple[int, bytes]] = field(default_factory=set)
    _sites: dict[int, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        query = grammars.scope_query(self.source.parsed.grammar)
        if query is None:
            return
        # Three passes: where a name is bound depends on what is free there, and both on all the scopes.
        matches = [captured for _, captured in grammars.cursor(query).matches(self.source.root)]
        for captured in matches:
            for kind in _KINDS:
                self._kinds |= {node.id: kind for node in captured.get(kind, ())}
        for captured in matches:
            for node in captured.get("free", ()):
                self._free.add((self._scope(node, hoisted=True)[0].id, node.text or b""))
        for captured in matches:
            after = captured.get("after")
            self._bind(captured, after[0].end_byte if after else 0)

    @property
    def bound_names(self) -> frozenset[bytes]:
        """All names that some scope binds, as UTF-8."""
        return frozenset(self._bindings)

    def is_site(self, node: Node) -> bool:
        """Return whether a scope binds a name right at `node`."""
        return node.start_byte in self._sites

    def bound_at(self, node: Node, *, types: bool = False) -> Node | None:
        """Return the scope that binds the name at `node`; None if it is defined at file level or elsewhere. Of nested
        ones, the innermost that binds it; with `types`, only as the name of a type.
        """
        found = self._sites.get(node.start_byte)
        if found is not None:
            return found
        for binding in self._bindings.get(node.text or b"", ()):
            scope = binding.scope
            if types and not binding.is_type:
                continue
            inside = scope.start_byte <= node.start_byte < scope.end_byte and binding.since <= node.start_byte
            # Names of a class body are not seen from within its methods.
            if not inside or (binding.kind == "class" and not self._directly_in(node, scope)):
                continue
            # Defaults and annotations are evaluated where the function stands.
            if binding.kind == "function" and self._is_in_head(node, scope):
                continue
            if found is None or scope.start_byte >= found.start_byte:
                found = scope
        return found

    def scope_of_name(self, name: Node) -> Node | None:
        """Return the scope of the definition whose name is at `name`; None at the top of the file."""
        bindings = self._bindings.get(name.text or b"", ())
        around = name.parent
        while around is not None and around.parent is not None:
            if around.id in self._kinds and around.child_by_field_name("name") != name:
                return around if any(binding.scope == around for binding in bindings) else None
            around = around.parent
        return None

    def _bind(self, captured: dict[str, list[Node]], since: int) -> None:
        for capture in ("local", "hoisted", "named"):
            for node in captured.get(capture, ()):
                start = node.parent if capture == "named" and node.parent is not None else node
                scope, kind = self._scope(start, hoisted=capture == "hoisted")
                # In a pattern of Rust, a name with a capital is a constant or a variant, and binds nothing.
                for name in _names(node, constants=self.source.language != "rust"):
                    text = name.text or b""
                    if scope.parent is not None and (scope.id, text) not in self._free:
                        # Until it is assigned in a class of Python, the name is that of the text around.
                        first = _statement_end(name, scope) if kind == "class" and capture != "local" else since
                        is_type = name.type == "type_identifier"
                        self._bindings.setdefault(text, []).append(Binding(scope, kind, first, is_type))
                        self._sites[name.start_byte] = scope

    def _scope(self, node: Node, *, hoisted: bool) -> tuple[Node, str]:
        """Return the innermost scope around a node that can hold it, with its kind; the root if there is none."""
        around = node.parent
        while around is not None:
            kind = self._kinds.get(around.id)
            # A hoisted name (`var x`) belongs to the function, not to the block.
            if kind is not None and (kind != "scope" or not hoisted):
                return around, kind
            node, around = around, around.parent
        return node, "root"

    def _is_in_head(self, node: Node, function: Node) -> bool:
        """Return whether a name stands in a default value or an annotation of a function of Python."""
        around = node
        while self.source.language == "python" and around != function and (parent := around.parent) is not None:
            if parent == function:
                return function.child_by_field_name("return_type") == around
            if parent.type in _PARAMETERS and parent.parent is not None and parent.parent.parent == function:
                return around in (parent.child_by_field_name("value"), parent.child_by_field_name("type"))
            around = parent
        return False

    def _directly_in(self, node: Node, scope: Node) -> bool:
        around = node.parent
        while around is not None and around != scope:
            named = around.child_by_field_name("name") == node
            if self._kinds.get(around.id) == "function" and not named and not self._is_in_head(node, around):
                return False
            around = around.parent
        return True


def _statement_end(node: Node, scope: Node) -> int:
    """Return where the statement ends that a name stands in, below the body of a class."""
    while node.parent is not None and node.parent.parent is not None and node.parent.parent != scope:
        node = node.parent
    return node.end_byte


def _names(pattern: Node, *, constants: bool) -> Iterator[Node]:
    """Yield the names that a pattern binds; without `constants`, names with a capital initial are skipped."""
    if pattern.type in _NAMES or (pattern.type == "implicit_parameter" and not pattern.named_child_count):
        if constants or not (pattern.text or b"")[:1].isupper():
            yield pattern
        return
    if pattern.type in _NO_PATTERNS:
        return
    for number, child in enumerate(pattern.children):
        name = pattern.field_name_for_child(number)
        if child.is_named and (name not in _NO_PATTERN_FIELDS or (name == "value" and pattern.type == "pair_pattern")):
            yield from _names(child, constants=constants)
