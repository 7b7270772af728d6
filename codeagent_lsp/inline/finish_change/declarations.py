"""The declarations of a text that others use: functions, methods, classes and members, with the parameters of each.

By the syntax tree, for Python, TypeScript, JavaScript and Go. Not here: what changed between two texts (`changes.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from codeagent_lsp.inline.finish_change.calls import FAMILIES, Family, Parameter, ParameterKind, Signature
from codeagent_lsp.inline.next_edit.parsed_text import ParsedText

if TYPE_CHECKING:
    from tree_sitter import Node

DeclarationKind = Literal["function", "class", "member"]

CONSTRUCTORS = ("__init__", "constructor")
_FUNCTIONS = (
    "function_definition", "function_declaration", "generator_function_declaration", "method_definition",
    "method_signature", "abstract_method_signature", "function_signature", "method_declaration", "method_elem",
    "method_spec",
)  # fmt: skip
_CLASSES = (
    "class_definition", "class_declaration", "abstract_class_declaration", "interface_declaration",
    "type_alias_declaration", "enum_declaration", "type_spec",
)  # fmt: skip
_MEMBERS = ("public_field_definition", "property_signature", "field_definition", "field_declaration")
_WRAPPED = (
    "decorated_definition", "export_statement", "block", "class_body", "interface_body", "object_type", "struct_type",
    "field_declaration_list", "interface_type", "type_declaration", "expression_statement", "lexical_declaration",
    "variable_declaration", "if_statement", "enum_body",
)  # fmt: skip
_FIELDS = re.compile(r"@(?:\w+\.)*(?:dataclass|define|frozen|attrs)\b|\((?:[^()]*[\s,.(])?(?:NamedTuple|BaseModel)\b")
_NO_SELF = re.compile(r"@staticmethod\b")
MOST_DEPTH = 12


@dataclass(frozen=True)
class Declaration:
    """One declaration in a text. `kind` is `function`, `class` or `member`; `owner` is the dotted name of the class
    around it ('' for none), `signature` is None for what is not called; `name_range` and `node_range` are half-open
    offsets in bytes of UTF-8, `body` is the text after the signature, `bases` are the classes that a class is derived
    from.
    """

    name: str
    kind: DeclarationKind
    owner: str
    text: str
    signature: Signature | None = None
    body: str = ""
    name_range: tuple[int, int] = (0, 0)
    node_range: tuple[int, int] = (0, 0)
    is_property: bool = False
    bases: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        """The name by which it is called; for a constructor the last part of its class's name."""
        return self.owner.rpartition(".")[2] if self.is_constructor else self.name

    @property
    def is_constructor(self) -> bool:
        """Whether it makes an object of its class: a method named `__init__` or `constructor`."""
        return self.name in CONSTRUCTORS and bool(self.owner)


def declarations(text: ParsedText) -> list[Declaration]:
    """Return the declarations in their order, [] for none; [] also for a language other than Python, TypeScript,
    JavaScript and Go.
    """
    family = FAMILIES.get(text.language)
    return [] if family is None else list(_inside(text, text.root, "", family, 0))


def _inside(text: ParsedText, node: Node, owner: str, family: Family, depth: int) -> Iterator[Declaration]:
    if depth > MOST_DEPTH:
        return
    for child in node.named_children:
        if child.type in _FUNCTIONS:
            yield from _function(text, child, owner, family)
        elif child.type in _CLASSES:
            yield from _class(text, child, owner, family, depth)
        elif child.type in _MEMBERS and owner:
            yield from _member(text, child, owner)
        elif child.type == "variable_declarator":
            yield from _variable(text, child, owner, family)
        elif child.type == "assignment" and family == "python":
            left = child.child_by_field_name("left")
            if left is not None and left.type == "identifier":
                yield _declaration_of(text, left, child, "member", owner)
        elif child.type in _WRAPPED:
            yield from _inside(text, child, owner, family, depth + 1)


def _declaration_of(text: ParsedText, name: Node, node: Node, kind: DeclarationKind, owner: str) -> Declaration:
    # What names are of it is written in front: decorators tell what a function is.
    around = node.parent
    whole = around if around is not None and around.type in ("decorated_definition", "export_statement") else node
    return Declaration(
        text.of(name),
        kind,
        owner,
        text.of(whole),
        name_range=(name.start_byte, name.end_byte),
        node_range=(whole.start_byte, whole.end_byte),
    )


def _function(text: ParsedText, node: Node, owner: str, family: Family) -> Iterator[Declaration]:
    name, parameters = node.child_by_field_name("name"), node.child_by_field_name("parameters")
    # Being typed: half a list of parameters would look like one from which some were removed.
    if name is None or parameters is None or (node.has_error and parameters.has_error):
        return
    if family == "go" and (receiver := node.child_by_field_name("receiver")) is not None:
        owner = re.sub(r"\[.*", "", text.of(receiver).strip("()").split()[-1].lstrip("*")) if text.of(receiver) else ""
    found = _declaration_of(text, name, node, "function", owner)
    head = text.between(found.node_range[0], name.start_byte)
    signature = signature_of(text, parameters, family)
    # Callers do not pass `self` or `cls`.
    if signature is not None and owner and family == "python" and not _NO_SELF.search(head):
        signature = Signature(signature.parameters[1:])
    body = node.child_by_field_name("body")
    yield replace(
        found,
        signature=signature,
        body=text.of(body) if body is not None else "",
        is_property=bool(re.search(r"@(?:\w+\.)*(?:cached_)?property\b|\.setter\b|\b[gs]et\s+$", head)),
    )
    if family == "python" and owner and body is not None and found.name == "__init__":
        yield from _own_attributes(text, body, owner)


def _own_attributes(text: ParsedText, body: Node, owner: str) -> Iterator[Declaration]:
    """Yield the attributes that a constructor in Python sets, each once."""
    known: set[str] = set()
    for statement in body.named_children:
        assigned = statement.named_children[0] if statement.type == "expression_statement" else None
        left = assigned.child_by_field_name("left") if assigned is not None and assigned.type == "assignment" else None
        if left is None or assigned is None or left.type != "attribute":
            continue
        whose, name = left.child_by_field_name("object"), left.child_by_field_name("attribute")
        # By its usual name: one that is called otherwise costs an attribute, nothing else.
        if whose is not None and name is not None and text.of(whose) == "self" and text.of(name) not in known:
            known.add(text.of(name))
            yield _declaration_of(text, name, assigned, "member", owner)


def _class(text: ParsedText, node: Node, owner: str, family: Family, depth: int) -> Iterator[Declaration]:
    name = node.child_by_field_name("name")
    if name is None:
        return
    found = _declaration_of(text, name, node, "class", owner)
    inner = f"{owner}.{found.name}" if owner else found.name
    bases = node.child_by_field_name("superclasses")
    if bases is not None:
        found = replace(found, bases=tuple(re.findall(r"[\w.]+", text.of(bases))))
    body = node.child_by_field_name("body") or node.child_by_field_name("value") or node.child_by_field_name("type")
    head = text.between(found.node_range[0], body.start_byte) if body is not None else ""
    if family == "python" and body is not None and _FIELDS.search(head):
        found = replace(found, signature=_fields(text, body, "kw_only=True" in head.replace(" ", "")))
    yield found
    if body is not None:
        yield from _inside(text, body, inner, family, depth + 1)


def _fields(text: ParsedText, body: Node, by_name: bool) -> Signature:
    """Return the parameters of a class in Python whose fields are those of its constructor."""
    found: list[Parameter] = []
    for statement in body.named_children:
        assigned = statement.named_children[0] if statement.type == "expression_statement" else None
        if assigned is None or assigned.type != "assignment":
            continue
        left, kind = assigned.child_by_field_name("left"), assigned.child_by_field_name("type")
        if left is None or kind is None or left.type != "identifier" or "ClassVar" in text.of(kind):
            continue
        right = assigned.child_by_field_name("right")
        value = text.of(right) if right is not None else ""
        # A `field()` without a default is there for other reasons, and the field still has to be given.
        made = re.match(r"(?:\w+\.)?(?:[fF]ield|ib|attrib)\((?![^)]*\b(?:default|default_factory|factory)\s*=)", value)
        if "init=False" in value.replace(" ", ""):
            continue
        optional = bool(value) and not made
        name_only = by_name or "kw_only=True" in value.replace(" ", "")
        found.append(Parameter(text.of(left), "keyword" if name_only else "either", optional, text.of(kind), value))
    return Signature(tuple(found))


def _member(text: ParsedText, node: Node, owner: str) -> Iterator[Declaration]:
    # A field of a structure in Go may declare several at once.
    for name in node.children_by_field_name("name") or node.children_by_field_name("property"):
        yield _declaration_of(text, name, node, "member", owner)


def _variable(text: ParsedText, node: Node, owner: str, family: Family) -> Iterator[Declaration]:
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    if name is None or name.type != "identifier":
        return
    found = _declaration_of(text, name, node, "member", owner)
    if value is not None and value.type in ("arrow_function", "function_expression"):
        parameters = value.child_by_field_name("parameters") or value.child_by_field_name("parameter")
        body = value.child_by_field_name("body")
        if parameters is not None:
            signature = signature_of(text, parameters, family)
            found = replace(found, kind="function", signature=signature, body=text.of(body) if body is not None else "")
    yield found


# The parameters of a signature.


def signature_of(text: ParsedText, node: Node, family: Family) -> Signature | None:
    """Return the parameters in the parameter list `node`, in their order; None if it has a syntax error or one of them
    has no plain name.
    """
    if node.has_error:
        return None
    # A lone name in front of an arrow.
    children = [node] if node.type == "identifier" else node.named_children
    read = {"python": _python, "script": _script, "go": _go}[family]
    found: list[Parameter] = []
    kind: ParameterKind = "positional" if family != "python" else "either"
    for child in children:
        if child.type in ("comment", "this_type"):
            continue
        if child.type == "positional_separator":
            found = [replace(each, kind="positional") for each in found]
            continue
        if child.type == "keyword_separator":
            kind = "keyword"
            continue
        made = read(text, child, kind)
        if made is None:
            return None
        found += made
        # What stands behind `*args` can only be given by name.
        if any(each.kind == "rest" for each in made) and family == "python":
            kind = "keyword"
    return Signature(tuple(found))


def _python(text: ParsedText, node: Node, kind: ParameterKind) -> list[Parameter] | None:
    annotation, default = node.child_by_field_name("type"), node.child_by_field_name("value")
    name = node.child_by_field_name("name")
    if node.type in ("identifier", "list_splat_pattern", "dictionary_splat_pattern"):
        name = node
    elif node.type == "typed_parameter":
        name = node.named_children[0]
    if name is None:
        return None
    if name.type == "list_splat_pattern":
        kind = "rest"
    elif name.type == "dictionary_splat_pattern":
        kind = "rest_keywords"
    elif name.type != "identifier":
        return None
    return [
        Parameter(
            text.of(name).lstrip("*"),
            kind,
            default is not None,
            text.of(annotation) if annotation is not None else "",
            text.of(default) if default is not None else "",
        )
    ]


def _script(text: ParsedText, node: Node, kind: ParameterKind) -> list[Parameter] | None:
    name: Node | None = node.child_by_field_name("pattern") or node.child_by_field_name("left") or node
    annotation = node.child_by_field_name("type")
    default = node.child_by_field_name("value") or node.child_by_field_name("right")
    optional = node.type == "optional_parameter" or default is not None
    if name is not None and name.type == "rest_pattern":
        kind, name = "rest", name.named_children[0] if name.named_children else None
    if name is None or name.type != "identifier":
        return None
    return [
        Parameter(
            text.of(name),
            kind,
            optional,
            text.of(annotation).lstrip(": ") if annotation is not None else "",
            text.of(default) if default is not None else "",
        )
    ]


def _go(text: ParsedText, node: Node, kind: ParameterKind) -> list[Parameter] | None:
    annotation = node.child_by_field_name("type")
    names = node.children_by_field_name("name")
    if node.type == "variadic_parameter_declaration":
        kind = "rest"
    elif node.type != "parameter_declaration":
        return None
    written = text.of(annotation) if annotation is not None else ""
    return [Parameter(text.of(name), kind, False, written) for name in names] or None
