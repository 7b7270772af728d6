"""The places of a text where a name is no plain reference, by the syntax alone: where it names a member or a label, is
declared, or is given to what may make anything of it, such as a macro.

Not here: which object a member is of (`owners.py`), what scopes bind (`uses.py`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from codeagent_lsp.index.grammars import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tree_sitter import Node

MEMBER_NAMES = frozenset(("property_identifier", "field_identifier", "private_property_identifier"))
_REFERRING = frozenset((
    "alias_qualified_name", "annotation", "argument", "attribute", "attribute_argument", "export_specifier",
    "generic_type", "import_specifier", "jsx_closing_element", "jsx_opening_element", "jsx_self_closing_element",
    "keyword_argument", "marker_annotation", "member_access_expression", "member_binding_expression",
    "member_call_expression", "method_invocation", "nested_type_identifier", "nullsafe_member_access_expression",
    "nullsafe_member_call_expression", "qualified_identifier", "qualified_name", "qualified_type", "scope_resolution",
    "scoped_call_expression", "scoped_identifier", "scoped_type_identifier", "struct_expression", "template_function",
    "template_method", "template_type", "tuple_element", "type_binding", "type_predicate", "variable_reference_pattern",
    "aliased_import", "index_signature", "preproc_ifdef", "preproc_elifdef", "using_directive", "namespace_definition",
))  # fmt: skip
"""The nodes whose field `name` refers to something; any other node declares what it has there."""
_BINDERS = frozenset((
    "type_parameter", "type_parameter_declaration", "variadic_type_parameter_declaration", "infer_type",
    "inferred_parameters", "structured_binding_declarator", "reference_declarator", "variadic_declarator",
    "parenthesized_declarator", "attributed_declarator", "closure_parameters", "captured_pattern", "mut_pattern",
    "or_pattern", "ref_pattern", "reference_pattern", "slice_pattern", "tuple_pattern", "array_pattern",
    "object_pattern", "rest_pattern", "namespace_import", "block_parameters", "lambda_parameters", "method_parameters",
    "destructured_parameter", "destructured_left_assignment", "left_assignment_list", "rest_assignment",
    "exception_variable", "find_pattern", "let_clause", "join_clause", "join_into_clause", "use_as_clause",
    "tuple_struct_pattern", "parameters", "lambda_capture_initializer",
    "lambda_capture_specifier",
))  # fmt: skip
"""The nodes that declare the names directly in them, other than in these fields:"""
_NOT_BINDING = frozenset(("type", "right", "value", "default_type", "class", "path", "bounds"))
_TAGS = frozenset(("struct_specifier", "union_specifier", "enum_specifier", "class_specifier"))
_LABELED = frozenset((
    "labeled_statement", "goto_statement", "break_statement", "continue_statement", "named_label_statement", "label",
    "lifetime", "gnu_asm_goto_list", "gnu_asm_input_operand", "gnu_asm_output_operand", "jsx_namespace_name",
))  # fmt: skip
"""The nodes with a label or another word of which the program's declarations know nothing."""
_OPAQUE = frozenset((
    "ERROR", "attribute_item", "inner_attribute_item", "attribute_declaration", "attribute_specifier",
    "ms_declspec_modifier", "macro_definition", "preproc_defined", "macro_type_specifier",
))  # fmt: skip
"""The nodes in which a name may mean anything: attributes, definitions of macros, what cannot be parsed."""
_ELEMENTS = frozenset(("jsx_opening_element", "jsx_closing_element", "jsx_self_closing_element"))
_INDEXED = frozenset(("map_type", "array_type", "slice_type", "implicit_length_array_type"))
_SHOUTED = re.compile(r"[A-Z][A-Z0-9_]*|(?:\w+_)?(?:container_of|offsetof|entry|foreach|for_each)\w*|va_arg")
_EXPRESSIONS = re.compile(
    r"(?:debug_)?assert(?:_eq|_ne)?|e?print(?:ln)?|write(?:ln)?|format(?:_args)?|vec|matches|dbg|panic|todo"
    r"|unreachable|unimplemented"
)
"""The macros of Rust that take their arguments for expressions."""
_TYPE_FIELDS = frozenset(("type", "returns"))
_TYPE_LISTS = frozenset(("type_argument_list", "base_list", "type_parameter_constraint", "nullable_type", "array_type"))


def field_of(parent: Node, node: Node) -> str:
    """Return the field in which a parent has a child; '' for none."""
    return _fields_of(parent).get(node.id, "")


@lru_cache(maxsize=8)  # a list of a thousand uses is asked for each of them
def _fields_of(parent: Node) -> dict[int, str]:
    return {child.id: parent.field_name_for_child(number) or "" for number, child in enumerate(parent.children)}


def entry_of(element: Node) -> Literal["", "field", "index", "unknown"]:
    """Return what the key of an entry in a composite literal of Go is, given its `literal_element`: a field of a
    struct, the index or key of an array, a slice or a map, or one of both; '' for what is no key.
    """
    keyed = element.parent
    if keyed is None or keyed.type != "keyed_element" or not _is_first(keyed, element) or keyed.parent is None:
        return ""
    kind = _literal_type(keyed.parent)
    return "unknown" if kind is None else "index" if kind.type in _INDEXED else "field"


def ancestors(node: Node) -> Iterator[tuple[Node, Node]]:
    """Yield each node around a node with the child of it in which the node is, the innermost first."""
    parent = node.parent
    while parent is not None:
        yield parent, node
        node, parent = parent, parent.parent


def is_key(node: Node) -> bool:
    """Return whether a name is that of a member in an initialiser, a pattern or a type: `new X { Size = 1 }`,
    `x is { Size: 1 }`, `Iterator<Item = u8>`.
    """
    parent = node.parent
    if parent is None:
        return False
    sign = _next(node)
    match parent.type:
        case "assignment_expression":
            around = parent.parent
            listed = around is not None and around.type == "initializer_expression"
            return listed and field_of(parent, node) == "left"
        case "with_initializer" | "anonymous_object_creation_expression":
            return sign == "="
        case "subpattern" | "token_tree":
            return sign == ":"
        case "attribute_argument":
            return sign in ("=", ":")
        case "type_binding" | "tuple_element" | "index_signature":
            return field_of(parent, node) == "name"
    return False


def is_apart(node: Node) -> bool:
    """Return whether a name is a word of its own that no declaration of a program gives: a label, an element of HTML,
    the name of an operand.
    """
    parent = node.parent
    if parent is None:
        return False
    if parent.type in _ELEMENTS:
        return field_of(parent, node) == "name" and (node.text or b"")[:1].islower()
    # `return` of a label, not of a value: these statements have nothing else directly in them.
    return parent.type in _LABELED and field_of(parent, node) in ("", "label", "symbol")


def is_opaque(node: Node, macros: Mapping[str, bool]) -> bool:
    """Return whether a name is in code that may make anything of it; `macros` are those of the text, with
    whether their bodies make words or strings of their arguments.
    """
    parent = node.parent
    if parent is None:
        return True
    if parent.type == "anonymous_object_creation_expression" and _next(node) != "=":
        before = node.prev_sibling
        return before is None or before.type != "="  # `new { Size }` names its member so
    if parent.type == "switch_label":
        return True  # of Java: a constant of this class, or one of the enumeration that the value is of
    if parent.type == "token_tree" and _is_taken_apart(node):
        return True
    for around, inner in ancestors(node):
        if around.type == "with_statement" and around.child_by_field_name("object") not in (None, inner):
            return True  # of JavaScript: any name may be a member of the object
        if around.type in _OPAQUE or (around.type == "subpattern" and inner.type == "member_access_expression"):
            return True
        if around.type == "call_expression" and inner.type == "argument_list" and _in_macro(around, node, macros):
            return True
        if around.type == "function_declarator" and inner.type == "parameter_list" and _is_macro(around):
            return True
    return False


def declares(node: Node, language: str) -> bool:
    """Return whether a name is declared at this place, as a variable, a parameter or a type."""
    parent = node.parent
    if parent is None or (node.type in MEMBER_NAMES and language != "cpp"):
        return False
    field = field_of(parent, node)
    if language == "python":  # all other names that it declares are known by its scopes
        return _is_type_parameter(node)
    if language in ("bash", "php"):  # variables have a sign, and nothing else is declared within a function
        return False
    if language == "rust" and (node.text or b"")[:1].isupper() and "pattern" in parent.type:
        return False  # a constant or a variant
    if language == "cpp" and node.type == "field_identifier":
        around = next((each for each, _ in ancestors(node) if not each.type.endswith("declarator")), None)
        return around is not None and around.type == "field_declaration" and parent != around
    if language == "ruby" and field == "left" and parent.type in ("assignment", "operator_assignment"):
        return node.type == "identifier"
    if language == "ruby" and parent.type in ("in_clause", "array_pattern", "as_pattern", "alternative_pattern", "for"):
        return node.type == "identifier" and field != "value"
    if parent.type in ("record_pattern_component", "type_pattern") and language == "java":
        return node.type == "identifier"
    if language == "go" and node.type == "type_identifier" and field != "name":
        return _is_of_receiver(node)
    if parent.type == "mapped_type_clause" or parent.type in _BINDERS:
        first = parent.type not in ("join_clause", "let_clause") or _is_first(parent, node)
        return first and field not in _NOT_BINDING
    if field in ("name", "pattern"):
        named = parent.type in _TAGS and parent.child_by_field_name("body") is None
        return not named and parent.type not in _REFERRING and parent.type != "parameter_pack_expansion"
    return field in ("declarator", "alias", "parameter", "locals")


def is_of_file(node: Node) -> bool:
    """Return whether a name of C is declared within a function as that of a function or variable of the whole program:
    `extern int x;`, `int f(void);`.
    """
    function = False
    for around, inner in ancestors(node):
        if around.type == "declaration":
            outer = any(each.type == "storage_class_specifier" and each.text == b"extern" for each in around.children)
            within = around.parent is not None and around.parent.type == "compound_statement"
            return within and (function or outer) and field_of(around, inner) == "declarator"
        if not around.type.endswith("declarator") or field_of(around, inner) not in ("", "declarator"):
            return False
        # `int (*f)(void);` is a variable of its own.
        function = function or (around.type == "function_declarator" and inner.type == "identifier")
    return False


def is_type(node: Node) -> bool:
    """Return whether a name of C# stands where only a type can be."""
    inner = node
    while (parent := inner.parent) is not None and parent.type == "generic_name" and _is_first(parent, inner):
        inner = parent
    if parent is None:
        return False
    field = field_of(parent, inner)
    return parent.type in _TYPE_LISTS or field in _TYPE_FIELDS or (field == "right" and parent.type == "as_expression")


def _is_first(parent: Node, node: Node) -> bool:
    return bool(parent.named_children) and parent.named_children[0] == node


def _next(node: Node) -> str:
    sibling = node.next_sibling
    return "" if sibling is None else sibling.type if not sibling.is_named else text_of(sibling)


def _literal_type(literal: Node) -> Node | None:
    """Return the type of a composite literal of Go, given its body; of one within another, what the type of the one
    around says of its elements; None where that is not in this text.
    """
    around = literal.parent
    if around is None or around.type == "composite_literal":
        return _resolved(around.child_by_field_name("type")) if around is not None else None
    entry = around.parent  # `{{…}}`, or `{k: {…}}`
    body = entry.parent if entry is not None and entry.type == "keyed_element" else entry
    outer = _literal_type(body) if body is not None and body.type == "literal_value" else None
    if outer is None or outer.type not in _INDEXED:
        return None
    is_key = entry is not None and entry.type == "keyed_element" and _is_first(entry, around)
    return _resolved(outer.child_by_field_name("key" if is_key else "value" if outer.type == "map_type" else "element"))


def _resolved(kind: Node | None) -> Node | None:
    """Return what a type of Go is declared as in its text; None for one that the text does not declare."""
    for _ in range(9):
        if kind is None or kind.type in _INDEXED or kind.type == "struct_type":
            return kind
        if kind.type == "pointer_type":
            kind = kind.named_children[0]
        elif kind.type == "generic_type":
            kind = kind.child_by_field_name("type")
        elif kind.type == "type_identifier":
            kind = _declared_type(kind)
        else:
            return None
    return None


def _declared_type(name: Node) -> Node | None:
    root = name
    while root.parent is not None:
        root = root.parent
    specs = (spec for each in root.named_children if each.type == "type_declaration" for spec in each.named_children)
    for spec in specs:
        declared = spec.child_by_field_name("name")
        if declared is not None and declared.text == name.text:
            return spec.child_by_field_name("type")
    return None


def _in_macro(call: Node, node: Node, macros: Mapping[str, bool]) -> bool:
    called = call.child_by_field_name("function")
    if called is None or called.type != "identifier":
        return False
    name, parent = text_of(called), node.parent
    # An argument that is a name alone may become a part of a word, or the name of a field.
    alone = parent is not None and parent.type == "argument_list" and parent.parent == call
    return macros.get(name, False) or (alone and (name in macros or bool(_SHOUTED.fullmatch(name))))


def _is_macro(declarator: Node) -> bool:
    """Return whether what looks like the head of a function without a type is the call of a macro: `TEST(a, b) {…}`."""
    named, around = declarator.child_by_field_name("declarator"), declarator.parent
    shouted = named is not None and named.type == "identifier" and bool(_SHOUTED.fullmatch(text_of(named)))
    return shouted and around is not None and around.child_by_field_name("type") is None


def _is_taken_apart(node: Node) -> bool:
    """Return whether the macro of Rust around a name may make something else of it than an expression has there."""
    tree = node.parent
    while tree is not None and tree.type == "token_tree":
        before, around = tree.prev_sibling, tree.parent
        name = None
        if around is not None and around.type == "macro_invocation":
            name = around.child_by_field_name("macro")
        elif before is not None and before.type == "!":
            name = before.prev_sibling
        if name is not None and not _EXPRESSIONS.fullmatch(text_of(name).rpartition("::")[2]):
            return True
        tree = around
    if tree is None or tree.type != "macro_invocation":
        return True
    sign, before = node.next_sibling, node.prev_sibling
    if sign is not None and sign.type in ("=", "@"):
        return True
    # A pattern or a closure in it may bind a name that begins with a small letter; it does not call it.
    called = sign is not None and (sign.type == "::" or (sign.type == "token_tree" and text_of(sign)[:1] == "("))
    owned = before is not None and before.type in (".", "::")
    return (node.text or b"")[:1].islower() and not called and not owned


def _is_type_parameter(node: Node) -> bool:
    """Return whether a name is that of a type parameter of Python: `class A[T]`, `type A[T] = …`."""
    within = False
    for around, inner in ancestors(node):
        if around.type == "type_parameter":
            within = True
        elif around.type in ("class_definition", "function_definition"):
            return within and field_of(around, inner) == "type_parameters"
        elif around.type == "type_alias_statement":
            return within and field_of(around, inner) == "left"
        elif around.type not in ("type", "generic_type", "constrained_type"):
            return False
    return False


def _is_of_receiver(node: Node) -> bool:
    """Return whether a name is that of a type parameter in the receiver of a method of Go: `func (l *List[T]) …`."""
    within = False
    for around, inner in ancestors(node):
        within = within or around.type == "type_arguments"
        if around.type == "method_declaration":
            return within and field_of(around, inner) == "receiver"
        if around.type == "block":
            return False
    return False
