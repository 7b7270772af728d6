"""Uses of names in one text, with their syntactic role and the scope that binds them.

Not here: what binds a name (`scopes.py`), other files (`meaning.py`), changing names (`rename.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from codeagent_lsp.index.grammars import text_of
from codeagent_lsp.tools.code import places
from codeagent_lsp.tools.code.places import MEMBER_NAMES, field_of
from codeagent_lsp.tools.code.scopes import Scopes
from codeagent_lsp.tools.code.source import Definition, SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

Access = Literal["plain", "member", "key"]

_MEMBERS: dict[tuple[str, str], str] = {
    ("attribute", "attribute"): "object",
    ("member_expression", "property"): "object",
    ("selector_expression", "field"): "operand",
    ("qualified_type", "name"): "package",
    ("nested_identifier", "property"): "object",
    ("nested_type_identifier", "name"): "module",
    ("alias_qualified_name", "name"): "alias",
    ("field_expression", "field"): "value argument",
    ("scoped_identifier", "name"): "path scope",
    ("scoped_type_identifier", "name"): "path scope",
    ("qualified_identifier", "name"): "scope",
    ("field_access", "field"): "object",
    ("method_invocation", "name"): "object",
    ("member_access_expression", "name"): "expression object",
    ("qualified_name", "name"): "qualifier",
    ("call", "method"): "receiver",
    ("scope_resolution", "name"): "scope",
    ("member_call_expression", "name"): "object",
    ("nullsafe_member_call_expression", "name"): "object",
    ("scoped_call_expression", "name"): "scope",
    ("scoped_property_access_expression", "name"): "scope",
}
"""Maps the type of a name's parent and the name's field in it to the fields that may hold the object before the dot."""

_KEYS = frozenset(
    (("keyword_argument", "name"), ("pair", "key"), ("field_initializer", "field"), ("name_colon", "name"),
     ("jsx_attribute", ""), ("keyword_pattern", ""),
     ("argument", "name"), ("field_initializer", "name"), ("element_value_pair", "key"),
     ("keyed_element", "key"))
)  # fmt: skip
# Nodes around a name with type arguments, such as `Box<T>`: the role of the name is theirs.
_LATER = frozenset(("generic_type", "generic_name", "template_function", "template_method", "template_type"))
_TYPES_APART = frozenset(("java", "csharp", "rust", "typescript", "tsx"))
_PREPROCESSED = frozenset(("c", "cpp"))
NAMES_APART = frozenset(("java", "php", "bash"))
"""Languages in which callables and variables have separate namespaces."""
_TYPES = frozenset(("class", "struct", "interface", "enum", "type", "module"))
_TAGS = frozenset(("struct_specifier", "union_specifier", "enum_specifier"))
_TYPE, _VALUE, _CALL, _MACRO, _LIFETIME = (
    frozenset((space,)) for space in ("type", "value", "call", "macro", "lifetime")
)


class Use(NamedTuple):
    """One use of a name: its node, whether it is called or imported, how it is accessed, and the text before the dot
    (`receiver`, '' if there is none).
    """

    node: Node
    call: bool
    imported: bool
    access: Access
    receiver: str


@dataclass(frozen=True)
class Uses:
    """Finds the uses of names in one text. The scopes are computed once, when they are first needed."""

    source: SourceFile

    @cached_property
    def scopes(self) -> Scopes:
        """The scopes of the text, computed once."""
        return Scopes(self.source)

    def named(self, name: str) -> Iterator[Use]:
        """Yield the uses of `name` in order, without definitions and parameter names."""
        wanted = name.encode("utf-8", "replace")
        return self._uses(lambda node: node.text == wanted)

    def all(self) -> Iterator[Use]:
        """Yield every use of any name, in the order of the text."""
        return self._uses(lambda node: True)

    def binder(self, use: Use) -> Node | None:
        """Return the scope that binds the name of a use; None if no scope of this text does, and for members, keys and
        imports.
        """
        if use.access != "plain" or use.imported or (use.call and self.source.language in NAMES_APART):
            return None
        if self.source.language == "ruby" and use.node.parent is not None and use.node.parent.type == "call":
            return None
        # Where types have names of their own, no variable takes the name of one.
        types = self.source.language in _TYPES_APART and self.namespaces_of(use) == _TYPE
        return self.scopes.bound_at(use.node, types=types)

    def is_free(self, use: Use, owner: str = "") -> bool:
        """Return whether no scope binds the name that the expression before the dot of a member begins with, other than
        the one that has the type `owner`.
        """
        node = use.node.parent
        while node is not None and node.start_byte == use.node.start_byte:
            node = node.parent
        while node is not None and node.named_child_count and node.named_children[0].start_byte == node.start_byte:
            node = node.named_children[0]
        if node is None:
            return False
        homes = [self.home(each) for each in self.source.definitions if each.qualified == owner] if owner else []
        return self.scopes.bound_at(node) in (homes or [None])

    def may_be_key(self, use: Use, *, values: bool, types: bool) -> bool:
        """Return whether the key of an entry in Go may be one of the `values`, as the text does not say that its
        literal is no map, or the field that a struct has of one of the `types` that are embedded in it.
        """
        parent = use.node.parent
        entry = places.entry_of(parent) if parent is not None and parent.type == "literal_element" else ""
        return (values and entry == "unknown") or (types and entry != "")

    def may_be_type(self, use: Use) -> bool:
        """Return whether a use is the expression before the dot of a member, or a pattern: a type or a value."""
        parent = use.node.parent
        pattern = next((each for each, _ in places.ancestors(use.node) if each.type != "binary_expression"), None)
        if pattern is not None and pattern.type in ("is_expression", "constant_pattern"):
            return True
        return (
            parent is not None
            and field_of(parent, use.node) in ("object", "expression")
            and parent.type in ("member_access_expression", "field_access", "method_invocation")
        )

    def is_apart(self, use: Use) -> bool:
        """Return whether the name of a use is a word that no declaration gives, such as a label."""
        return places.is_apart(use.node)

    def is_shown(self, use: Use) -> bool:
        """Return whether the syntax around a use shows what its name is: not in an attribute, nor where a macro may
        make anything of it.
        """
        if (
            self.source.language == "cpp"
            and use.node.parent is not None
            and use.node.parent.type == "field_initializer"
        ):
            return self._defines_field(use.node)  # else it may be a base class
        return not places.is_opaque(use.node, self._macros)

    def declared_again(self, definitions: Sequence[Definition]) -> list[Node]:
        """Return the places at which the text declares the name of the definitions in a way that its scopes do not
        know, in the order of the text; what is meant by a use is not sure then. `definitions` must not be empty.
        """
        first, known = definitions[0], self.source.parsed.outline.names_at
        wanted, language = first.symbol.name.encode("utf-8", "replace"), self.source.language
        found = []
        for node in self.source.parsed.captures.get("use", ()):
            if node.text == wanted and language in _PREPROCESSED and places.is_of_file(node):
                found.append(node)
                continue
            if node.text != wanted or node.start_byte in known or self.scopes.is_site(node):
                continue
            use = Use(node, call=False, imported=False, access="plain", receiver="")
            if (
                places.declares(node, language)
                and not places.is_apart(node)
                and not places.is_opaque(node, self._macros)
                and not self.in_other_namespace(first, use)
            ):
                found.append(node)
        return sorted(found, key=lambda each: each.start_byte)

    @cached_property
    def _macros(self) -> dict[str, bool]:
        """The macros of C in the text, with whether their bodies make strings or words of their arguments (`#x`,
        `a##x`).
        """
        if self.source.language not in _PREPROCESSED:
            return {}
        made = (each for each in self.source.definitions if each.symbol.kind == "macro")
        return {each.symbol.name: b"#" in _macro_body(each.node) for each in made}

    def _defines_field(self, node: Node) -> bool:
        return any(
            each.symbol.name == text_of(node) and each.node.type == "field_declaration"
            for each in self.source.definitions
        )

    def in_other_namespace(self, definition: Definition, use: Use) -> bool:
        """Return whether a use cannot refer to a definition because its name is of another kind, such as a type's for a
        function.
        """
        if use.imported:
            return False
        own, used = namespaces(definition, self.source.language), self.namespaces_of(use)
        return bool(own and used) and own.isdisjoint(used)

    def is_shared(self, definitions: Sequence[Definition], use: Use) -> bool:
        """Return whether a use may refer to one of the definitions as well as to one of another kind in the same text,
        as the names in imports and exports do.
        """
        rivals = self.rivals(definitions)
        return bool(rivals) and (use.imported or any(not self.in_other_namespace(each, use) for each in rivals))

    def rivals(self, definitions: Sequence[Definition]) -> list[Definition]:
        """Return the definitions in this text with the same dotted name that are of another kind, as a type and a
        function are; [] for none. `definitions` must not be empty.
        """
        language, name = self.source.language, definitions[0].qualified
        same = [each for each in self.source.definitions if each.qualified == name and each not in definitions]
        return [each for each in same if not any(of_one_kind(each, other, language) for other in definitions)]

    def namespaces_of(self, use: Use) -> frozenset[str]:
        """Return the namespaces that a use may be of, such as those of types and of values; empty if its language has
        only one.
        """
        node = use.node
        kind = node.parent.type if node.parent is not None else ""
        is_type = node.type in ("type_identifier", "namespace_identifier")
        match self.source.language:
            case "bash":
                return _CALL if node.type != "variable_name" or _names_function(node) else _VALUE
            case "c":
                # `struct point`: tags have a namespace of their own; a typedef shares that of variables and functions.
                return _TYPE if is_type and kind in _TAGS else _VALUE
            case "cpp":
                return self._in_cpp(node, is_type=is_type, tagged=kind in _TAGS)
            case "php":
                if use.call:
                    return _TYPE if _within(node, "object_creation_expression") else _CALL
                return _VALUE if use.access == "member" and kind != "qualified_name" else _VALUE | _TYPE
            case "ruby":
                # A plain name is a variable where one was assigned before, else a call without parentheses.
                return _CALL if use.call else _TYPE if node.type == "constant" else _CALL | _VALUE
            case "rust" if kind in ("lifetime", "label"):
                return _LIFETIME
            case "java" | "typescript" | "tsx" | "rust" if is_type:
                return _TYPE
            case "csharp":
                return _TYPE if places.is_type(node) else _VALUE | _TYPE
            case "java":
                # A class, a variable and a method may share a name; only where it stands tells them apart.
                named = kind == "method_reference" and not _is_first(node)
                return _CALL if use.call or named else _VALUE | _TYPE
            case "typescript" | "tsx":
                # An export passes on whatever has the name, a value and a type.
                both = kind in ("export_specifier", "nested_identifier", "nested_type_identifier", "export_statement")
                return _VALUE | _TYPE if both else _VALUE
            case "rust":
                return _in_rust(node)
        return frozenset()

    def _in_cpp(self, node: Node, *, is_type: bool, tagged: bool) -> frozenset[str]:
        if is_type:  # also a constant between `<` and `>`
            return _TYPE if tagged or self._defines(node, types=True) else _TYPE | _VALUE
        # A type needs no tag before it: a name may be one, unless the file itself says what it is.
        return _VALUE if self._defines(node, types=False) else _TYPE | _VALUE

    def _defines(self, node: Node, *, types: bool) -> bool:
        """Return whether the text defines a type, or else a function or a variable, with the name of a node, other than
        as a constructor.
        """
        name = text_of(node)
        return any(
            each.symbol.name == name
            and (each.symbol.kind in _TYPES) == types
            and each.symbol.parent.rpartition(".")[2] != name
            for each in self.source.definitions
        )

    def home(self, definition: Definition) -> Node | None:
        """Return the scope that contains a definition; None at the top of the file, for members, and without a name."""
        return self.scopes.scope_of_name(definition.name) if definition.name is not None else None

    def _uses(self, fits: Callable[[Node], bool]) -> Iterator[Use]:
        captures = self.source.parsed.captures
        calls = {node.start_byte for node in captures.get("call", ())}
        spans = sorted((node.start_byte, node.end_byte) for node in captures.get("import", ()))
        skipped = {node.start_byte for node in captures.get("bound", ())} | self.source.parsed.outline.names_at
        for node in sorted(filter(fits, captures.get("use", ())), key=lambda each: each.start_byte):
            if node.start_byte in skipped:
                continue
            # Both are in the order of the text, so an import that lies behind is not looked at again.
            while spans and spans[0][1] <= node.start_byte:
                spans.pop(0)
            imported = bool(spans) and spans[0][0] <= node.start_byte
            access, receiver = _access(node)
            yield Use(node, node.start_byte in calls, imported, access, receiver)


def namespaces(definition: Definition, language: str) -> frozenset[str]:
    """Return the namespaces that a definition puts its name into, such as that of types or of values; empty if its
    language has only one.
    """
    kind, node = definition.symbol.kind, definition.node
    is_type, is_called = kind in _TYPES, kind in ("function", "method")
    match language:
        case "bash":
            return _CALL if is_called else _VALUE
        case "c":
            if node.type == "type_definition":
                # `typedef struct point { … } point;` puts the name into both.
                tag = node.child_by_field_name("type")
                name = tag.child_by_field_name("name") if tag is not None and tag.type in _TAGS else None
                own = name is not None and name.text == definition.symbol.name.encode("utf-8", "replace")
                return _TYPE | _VALUE if own else _VALUE
            return _TYPE if node.type in _TAGS else _VALUE
        case "cpp" | "csharp":
            return _TYPE if is_type else _VALUE
        case "java" | "php":
            return _TYPE if is_type else _CALL if is_called else _VALUE
        case "ruby":
            return _CALL if is_called else _TYPE
        case "typescript" | "tsx":
            # A class is a value, its constructor, and the type of what that makes; an interface is a type alone.
            return _TYPE | _VALUE if kind in ("class", "enum", "module") else _TYPE if is_type else _VALUE
        case "rust":
            # A struct without named fields is its own constructor, a function or a constant.
            body = node.child_by_field_name("body")
            is_called = node.type == "struct_item" and (body is None or body.type == "ordered_field_declaration_list")
            return _MACRO if kind == "macro" else _TYPE | _VALUE if is_called else _TYPE if is_type else _VALUE
    return frozenset()


def _names_function(node: Node) -> bool:
    """Return whether a name of Bash is that of a function: `declare -f x`, `unset -f x`; without the option, they name
    a variable.
    """
    parent = node.parent
    return (
        parent is not None
        and parent.type == "declaration_command"
        and any(each.text == b"-f" for each in parent.children)
    )


def _in_rust(node: Node) -> frozenset[str]:
    """Return the namespaces that a name of Rust may be of, which is no lifetime and not written as a type."""
    parent = node.parent
    if parent is not None and parent.type == "macro_invocation" and field_of(parent, node) == "macro":
        return _MACRO
    if parent is not None and parent.type == "token_tree":  # what a macro makes of its words is not known
        return _TYPE | _VALUE | _MACRO
    if parent is not None and parent.type == "scoped_identifier":
        while parent is not None and field_of(parent, node) == "name":
            node, parent = parent, parent.parent  # `b` in `a::b::c` is a module
    return _TYPE if parent is not None and field_of(parent, node) == "path" else _VALUE


def of_one_kind(one: Definition, other: Definition, language: str) -> bool:
    """Return whether two definitions of one name are the same thing for their language, as overloads are, and not a
    type and a function.
    """
    first, second = namespaces(one, language), namespaces(other, language)
    return not first.isdisjoint(second) or not (first and second)


def around(source: SourceFile, place: int) -> Definition | None:
    """Return the innermost definition around a byte offset, variables and constants not counted; None if there is
    none.
    """
    found = None
    for definition in source.definitions:
        node = definition.outer
        if node.start_byte > place:
            break
        if place < node.end_byte and definition.symbol.kind not in ("variable", "constant"):
            found = definition
    return found


def _access(node: Node) -> tuple[Access, str]:
    # `Box<T>` stands where a plain `Box` would.
    inner = node
    while inner.parent is not None and inner.parent.type in _LATER and _is_first(inner):
        inner = inner.parent
    parent = inner.parent
    if parent is None:
        return "plain", ""
    if parent.type == "method_reference" and parent.named_children[0] != inner:
        return "member", text_of(parent.named_children[0])
    if placed := _owner_by_place(parent, inner):
        return "member", placed
    name = field_of(parent, inner)
    if (parent.type, name) == ("qualified_identifier", "scope"):
        # `a::b::c` nests to the right: what is before `b` is the scope of the node around.
        around = parent.parent
        if around is not None and around.type == parent.type and (before := around.child_by_field_name("scope")):
            return "member", text_of(before)
    fields = _MEMBERS.get((parent.type, name))
    if fields is not None:
        owner = next(filter(None, map(parent.child_by_field_name, fields.split())), None)
        if owner is None and parent.type == "qualified_name":
            owner = parent.named_children[0] if parent.named_child_count > 1 else None
        if owner is not None:
            return "member", text_of(owner)
        leading = parent.type in ("scoped_identifier", "qualified_identifier", "scope_resolution")
        return ("member", "::") if leading else ("plain", "")
    if (parent.type, name) in _KEYS or places.is_key(node):
        return "key", ""
    if parent.type == "literal_element" and places.entry_of(parent) in ("field", "unknown"):
        return "key", ""
    return ("key", "") if node.type in MEMBER_NAMES else ("plain", "")


def _owner_by_place(parent: Node, node: Node) -> str:
    """Return what stands before the dot of a name where the grammar has no field for it: in the arguments of a macro,
    for a constant of a class, in a pattern; '' for nothing.
    """
    owner: Node | None = None
    if parent.type == "token_tree" and (dot := node.prev_sibling) is not None and dot.type in (".", "::"):
        owner = dot.prev_sibling
    elif parent.type == "class_constant_access_expression" and parent.named_children[0] != node:
        owner = parent.named_children[0]
    elif parent.type == "dotted_name" and parent.parent is not None and parent.parent.type == "case_pattern":
        owner = node.prev_named_sibling
    elif parent.type == "scoped_type_identifier":  # of Java
        owner = node.prev_named_sibling if field_of(parent, node) == "" else None
    elif parent.type == "member_binding_expression":  # `x?.name` in C#
        owner = parent.prev_named_sibling or parent
    elif parent.type == "qualified_name" and node.type == "name":  # of PHP; a leading `\\` is the root of all names
        before = (parent.text or b"")[: node.start_byte - parent.start_byte].decode("utf-8", "replace")
        return before.rstrip("\\") or before
    return "" if owner is None else text_of(owner)


def _macro_body(macro: Node) -> bytes:
    value = macro.child_by_field_name("value")
    return b"" if value is None else value.text or b""


def _within(node: Node, kind: str) -> bool:
    """Return whether a node is the name, perhaps with a namespace in front, in a node of a kind."""
    parent = node.parent
    while parent is not None and parent.type in ("qualified_name", "namespace_name"):
        parent = parent.parent
    return parent is not None and parent.type == kind


def _is_first(node: Node) -> bool:
    return node.parent is not None and node.parent.named_children[0] == node
