"""The object that a use of a member is of: the class around it, `self` and `this`, and what a class may inherit.

Not here: types of other expressions, which the syntax does not show; what else a name may mean (`meaning.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from codeagent_lsp.index.grammars import text_of
from codeagent_lsp.tools.code.places import ancestors
from codeagent_lsp.tools.code.source import Definition, SourceFile
from codeagent_lsp.tools.code.uses import Use, Uses

if TYPE_CHECKING:
    from tree_sitter import Node

SELVES = frozenset(("self", "this", "cls", "Self", "$this", "static", "super", "super()", "*this", "(*this)"))
TYPES = frozenset(("class", "struct", "interface", "enum", "type"))
_WITH_OWN_THIS = frozenset(
    ("function_expression", "function_declaration", "generator_function", "generator_function_declaration")
)
_SCRIPTS = frozenset(("javascript", "typescript", "tsx"))
STATIC_APART = _SCRIPTS | {"ruby"}
"""Languages in which a class may have a member and its instances another one of the same name."""
_BODIES = {
    "java": "class_body", "javascript": "class_body", "typescript": "class_body", "tsx": "class_body",
    "php": "declaration_list", "cpp": "field_declaration_list",
}  # fmt: skip
"""The bodies of classes, also of those without a name, in which `this` is another object."""
_CLASS_BODIES = frozenset(_BODIES.values()) | {"body_statement", "enum_body", "interface_body"}
_HERITAGE = frozenset((
    "argument_list", "class_heritage", "superclass", "super_interfaces", "extends_interfaces", "extends_type_clause",
    "base_list", "base_class_clause", "base_clause", "class_interface_clause",
))  # fmt: skip
"""The nodes below a type that name what it is derived from."""
_WITH_BASES = frozenset(("java", "csharp", "cpp", "ruby"))
"""Languages in which a bare name may be that of an inherited member."""
_WORD = re.compile(r"[^\W\d]\w*")
_OTHER_SELF = re.compile(r"(?:instance|class|module)_(?:eval|exec)")
_OF_KERNEL = re.compile(
    r"loop|proc|lambda|catch|at_exit|trap|fork|format|puts|print|p|raise|binding|define_method|assert\w*"
)


def inside(source: SourceFile, owner: str, use: Use, *, unnamed: bool = False) -> bool:
    """Return whether the innermost class around a use is `owner`; a method written outside of its class counts, a class
    without a name only with `unnamed`.
    """
    # The definitions stand in the order of the text, outer before inner: the last one around the use is the innermost.
    innermost, around = "", None
    for each in source.definitions:
        if each.outer.start_byte <= use.node.start_byte < each.outer.end_byte:
            if each.symbol.kind in TYPES:
                innermost, around = each.qualified, each.node
            elif each.symbol.kind == "method":
                innermost = each.symbol.parent
    return innermost == owner and (unnamed or around is None or not _is_in_unnamed(source, around, use))


def is_self(source: SourceFile, uses: Uses, definitions: Sequence[Definition], use: Use) -> bool:
    """Return whether the expression in front of the dot is the class of these members itself, by its name, or its own
    instance (`self`, `this`, or the receiver of a Go method) within the class; for a language in which both may have
    a member of the name, only where the members are of this one.
    """
    owner = definitions[0].symbol.parent
    simple = owner.rpartition(".")[2]
    path = dotted_path(use.receiver)
    static = {is_static(each.node) for each in definitions}
    if path in (simple, owner):
        alike = {
            each.qualified for each in source.definitions if each.symbol.name == simple and each.symbol.kind in TYPES
        }
        sure = path == owner or alike <= {owner}
        apart = source.language in STATIC_APART and bool(alike)
        return sure and uses.is_free(use, owner) and (True in static or not apart)
    if "super" in use.receiver or not inside(source, owner, use):
        return False
    if use.receiver in ("this", "self") and _has_own_self(source, use):
        return False
    if source.language in STATIC_APART and is_in_static(use) not in static:
        return False
    # Go has no `self`: each method names its own.
    return use.receiver in SELVES or use.receiver == _go_receiver(source, use)


def dotted_path(path: str) -> str:
    r"""Return the path of a receiver or a module with dots between its names, instead of its language's `::` or `\`,
    and none at the ends.
    """
    return path.replace("::", ".").replace("\\", ".").strip(".")


def is_static(node: Node) -> bool:
    """Return whether a member of JavaScript or Ruby is one of the class, and not of its instances."""
    if node.type == "singleton_method" or any(each.type == "static" for each in node.children):
        return True
    return any(around.type == "singleton_class" for around, _ in ancestors(node))


def is_in_static(use: Use) -> bool:
    """Return whether the `this` or `self` at a use is the class, and not an instance of it."""
    for around, inner in ancestors(use.node):
        if around.type in ("class_static_block", "singleton_method"):
            return True
        if around.type == "method":
            return is_static(around)
        if around.type in _CLASS_BODIES and (around.parent is None or around.parent.type not in ("method", "begin")):
            ruby = around.type == "body_statement"
            return ruby or (around.type == "class_body" and is_static(inner))
    return False


def may_be_inherited(source: SourceFile, definitions: Sequence[Definition], use: Use) -> bool:
    """Return whether a bare name may be that of a member which a class around it inherits from a base that this text
    does not have, or which the receiver of a block has. False for types, which are seldom members.
    """
    first = definitions[0]
    if source.language not in _WITH_BASES or use.access != "plain" or first.symbol.kind in TYPES:
        return False
    name = first.symbol.name
    for around, inner in ancestors(use.node):
        if source.language == "ruby" and inner.type in ("block", "do_block") and _runs_elsewhere(source, around):
            return True
        if around.type == "function_definition" and source.language == "cpp":
            written_outside = _outer_class(around)
            if written_outside and _may_have(source, written_outside, name, known=False):
                return True
        if inner.type not in _CLASS_BODIES or around.type in ("method", "singleton_method"):
            continue
        if first.symbol.parent and _is_of(source, around, first.symbol.parent):
            return False
        if any(_may_have(source, base, name, known=True) for base in (*bases_of(around), *_mixed_in(around))):
            return True
    return False


def bases_of(node: Node) -> Iterator[str]:
    """Yield the names of what a type is derived from, as written, other than the root of all types."""
    if node.type == "object_creation_expression":
        made = node.child_by_field_name("type")
        yield from () if made is None else (text_of(made),)
        return
    for clause in (child for child in node.children if child.type in _HERITAGE):
        for base in clause.named_children:
            root = base.text in (b"object", b"Object")
            if base.type not in ("keyword_argument", "access_specifier") and not root:
                yield text_of(base)


def _mixed_in(node: Node) -> Iterator[str]:
    """Yield the names of the modules that a class or module of Ruby includes, as written."""
    body = node.child_by_field_name("body") if node.type in ("class", "module") else None
    for each in () if body is None else body.named_children:
        method = each.child_by_field_name("method") if each.type == "call" else None
        given = each.child_by_field_name("arguments")
        if method is not None and given is not None and text_of(method) in ("include", "extend", "prepend"):
            yield from map(text_of, given.named_children)


def _may_have(source: SourceFile, base: str, name: str, *, known: bool) -> bool:
    """Return whether a class, as its name is written, may have a member; `known` says that one which this text does not
    have may.
    """
    pending, seen = [base], set[str]()
    while pending:
        words = _WORD.findall(pending.pop().partition("<")[0])
        simple = words[-1] if words else ""
        if simple in seen:
            continue
        seen.add(simple)
        types = [
            each for each in source.definitions if each.symbol.name == simple and each.symbol.kind in TYPES | {"module"}
        ]
        if not types:
            if known or len(seen) > 1:
                return True
            continue
        if any(
            each.symbol.name == name and each.symbol.parent in {kind.qualified for kind in types}
            for each in source.definitions
        ):
            return True
        pending += [further for kind in types for further in (*bases_of(kind.node), *_mixed_in(kind.node))]
    return False


def _is_of(source: SourceFile, node: Node, owner: str) -> bool:
    return any(each.qualified == owner and each.node == node for each in source.definitions)


def _outer_class(function: Node) -> str:
    """Return the class of a method of C++ that is written outside of it, as `A::f`; '' for any other function."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "qualified_identifier":
        declarator = declarator.child_by_field_name("declarator")
    scope = declarator.child_by_field_name("scope") if declarator is not None else None
    return "" if scope is None else text_of(scope)


def _runs_elsewhere(source: SourceFile, call: Node) -> bool:
    """Return whether the block of a call in Ruby may run with another `self`: that of `instance_eval`, of a new class,
    or of a method without a receiver that this text does not have, as those of a domain-specific language.
    """
    method, receiver = call.child_by_field_name("method"), call.child_by_field_name("receiver")
    if method is None:
        return False
    name = text_of(method)
    if receiver is None:
        return not _OF_KERNEL.fullmatch(name) and all(each.symbol.name != name for each in source.definitions)
    made = name in ("new", "define") and text_of(receiver) in ("Class", "Module", "Struct", "Data")
    return made or bool(_OTHER_SELF.fullmatch(name))


def _is_in_unnamed(source: SourceFile, owner: Node, use: Use) -> bool:
    """Return whether a use within a class is in the body of a further one, which has no name."""
    kind = _BODIES.get(source.language)
    bodies = [each for each, _ in ancestors(use.node) if each.type == kind and each.start_byte >= owner.start_byte]
    return len(bodies) > 1


def _has_own_self(source: SourceFile, use: Use) -> bool:
    """Return whether a function between a use and its class has a `this` of its own, as those of JavaScript have, or a
    `self`, as a parameter of Python or in a block of Ruby.
    """
    for node, inner in ancestors(use.node):
        if node.type in ("class_body", "program", "class_definition") and inner.type != "type_parameters":
            return False
        # A method of an object literal, other than one of a class, has the object as its `this`; arrow functions have
        # none of their own.
        in_object = node.type == "method_definition" and node.parent is not None and node.parent.type == "object"
        if in_object or node.type in _WITH_OWN_THIS:
            return True
        if inner.type in ("block", "do_block") and source.language == "ruby" and _runs_elsewhere(source, node):
            return True
        if (
            source.language == "python"
            and node.type in ("function_definition", "lambda")
            and _takes(node, use.receiver)
        ):
            return not _is_method(node)
    return False


def _takes(function: Node, name: str) -> bool:
    parameters = function.child_by_field_name("parameters")
    return parameters is not None and name in {text_of(each) for each in parameters.named_children}


def _is_method(function: Node) -> bool:
    around = function.parent
    if around is not None and around.type == "decorated_definition":
        around = around.parent
    return around is not None and around.parent is not None and around.parent.type == "class_definition"


def _go_receiver(source: SourceFile, use: Use) -> str:
    method = next((each for each, _ in ancestors(use.node) if each.type == "method_declaration"), None)
    receiver = method.child_by_field_name("receiver") if method is not None else None
    declared = receiver.named_children[0] if receiver is not None and receiver.named_child_count else None
    name = declared.child_by_field_name("name") if declared is not None else None
    # No expression in front of a dot is a NUL.
    return source.slice(name.start_byte, name.end_byte) if name is not None else "\0"
