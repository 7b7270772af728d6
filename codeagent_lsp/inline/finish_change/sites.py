"""The places of a text that a change of a declaration may concern: calls, names, imports; each with its repair.

Which of them are concerned, the language server says (`finishing.py`). Pure. Not here: the arguments of a repaired call
(`calls.py`), imports of what has moved (`moves.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeagent_lsp.inline.finish_change.calls import Argument, Placed, needs_nothing, repair_arguments
from codeagent_lsp.inline.finish_change.changes import Change
from codeagent_lsp.inline.finish_change.moves import Edit, edit_at, import_edits, named_imports
from codeagent_lsp.inline.next_edit.parsed_text import CALLS, ParsedText, binds, function_of, nodes_of, role_of

if TYPE_CHECKING:
    from tree_sitter import Node

_EFFECTS = re.compile(
    r"^(?:call|call_expression|new_expression|await|await_expression|yield|yield_expression|"
    r"named_expression|assignment_expression|update_expression|unary_expression_receive)$"
)
_MAKES = re.compile(r"(?:\w+\.)*[A-Z]+[a-z]\w*|str|int|float|bool|len|list|dict|set|tuple|frozenset|repr|String|Number")
_NAMES = re.compile(r"identifier$|identifier_pattern$")
_SHORTHAND = "shorthand_property_identifier"


@dataclass(frozen=True, slots=True)
class Site:
    """A place of a text that a change may concern, in characters. `edits` repair it, in characters of the same text;
    None if no repair is clear.
    """

    path: str
    start: int
    end: int
    edits: tuple[Edit, ...] | None


def sites(text: ParsedText, change: Change) -> list[Site]:
    """Return the places that a change may concern, in their order, some of which may overlap; [] if there are none."""
    found: list[Site] = []
    if change.signature is not None:
        found += _calls(text, change)
    if change.is_renamed:
        found += _names(text, change)
    if change.is_moved:
        found += _imports(text, change)
    return sorted(found, key=lambda site: (site.start, -site.end))


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return a text after edits that do not overlap, in any order; an edit that is given twice is made once."""
    for edit in sorted(set(edits), key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


# Calls of what has another signature.


def _calls(text: ParsedText, change: Change) -> Iterator[Site]:
    callees = _callees(text, change)
    for node in nodes_of(text.root):
        if node.type not in CALLS:
            continue
        called = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        given = node.child_by_field_name("arguments")
        if called is None or given is None or not _is_callee(text, called, change, callees):
            continue
        edits = None if _is_unbound(text, called, change) else _argument_edits(text, node, given, change)
        if edits != ():
            yield Site(text.path, text.char(node.start_byte), text.char(node.end_byte), edits)


def _callees(text: ParsedText, change: Change) -> frozenset[str]:
    names = {change.before.called, change.after.called}
    if not change.before.is_constructor or change.family != "python":
        return frozenset(names)
    for node in nodes_of(text.root):
        if node.type == "class_definition" and _inherits(text, node, names):
            body, name = node.child_by_field_name("body"), node.child_by_field_name("name")
            own = body is not None and "def __init__" in text.of(body)
            if name is not None and not own:
                names.add(text.of(name))
    return frozenset(names)


def _inherits(text: ParsedText, node: Node, names: Iterable[str]) -> bool:
    bases = node.child_by_field_name("superclasses")
    return bases is not None and bool(set(re.findall(r"\w+", text.of(bases))) & set(names))


def _is_callee(text: ParsedText, called: Node, change: Change, callees: frozenset[str]) -> bool:
    name = called.child_by_field_name("attribute") or called.child_by_field_name("property")
    name = name or called.child_by_field_name("field") or called
    written = text.of(name)
    if change.before.is_constructor and change.family == "python" and written == "__init__":
        around: Node | None = called
        while around is not None and around.type != "class_definition":
            around = around.parent
        return text.of(called).startswith("super()") and around is not None and _inherits(text, around, callees)
    if change.before.is_constructor and change.family == "script" and called.type == "super":
        return True
    # A method is called on something, but for a call in the class itself in some languages.
    if change.before.owner and not change.before.is_constructor and name is called:
        return False
    return written in callees


def _is_unbound(text: ParsedText, called: Node, change: Change) -> bool:
    """Return whether a method is called by its class, with the object as one more argument."""
    owner = change.after.owner.rpartition(".")[2]
    whose = called.child_by_field_name("object")
    if change.family != "python" or not owner or change.before.is_constructor or whose is None:
        return False
    head = change.after.text.partition("def ")[0]
    return text.of(whose) == owner and "classmethod" not in head and "staticmethod" not in head


def _argument_edits(text: ParsedText, call: Node, given: Node, change: Change) -> tuple[Edit, ...] | None:
    nodes = [child for child in given.named_children if child.type != "comment"]
    if given.type not in ("argument_list", "arguments") or given.has_error:
        return None
    arguments = [_argument(text, node) for node in nodes]
    assert change.signature is not None
    placed = repair_arguments(arguments, change.signature, change.family, lambda name: in_scope(text, call, name))
    if placed is None:
        return None
    if needs_nothing(arguments, placed):
        return ()
    return _written(text, given, nodes, arguments, placed)


def _argument(text: ParsedText, node: Node) -> Argument:
    effects = any(_EFFECTS.match(each.type) and not _only_makes(text, each) for each in nodes_of(node))
    if node.type == "keyword_argument":
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        assert name is not None and value is not None
        return Argument(text.of(value), text.of(name), "", effects)
    if node.type in ("list_splat", "spread_element", "variadic_argument"):
        return Argument(text.of(node), "", "places", effects)
    if node.type == "dictionary_splat":
        return Argument(text.of(node), "", "names", effects)
    return Argument(text.of(node), "", "", effects)


def _only_makes(text: ParsedText, call: Node) -> bool:
    """Return whether a call makes a value and does nothing else, so far as its name tells: a class, or a conversion."""
    called = call.child_by_field_name("function") or call.child_by_field_name("constructor")
    # In Go every exported function begins with a capital.
    return text.language != "go" and called is not None and bool(_MAKES.fullmatch(text.of(called)))


def _written(
    text: ParsedText, given: Node, nodes: Sequence[Node], arguments: Sequence[Argument], placed: Sequence[Placed]
) -> tuple[Edit, ...] | None:
    """Return the edits that make the new arguments of the old ones, as few as there may be."""
    kept = [each.number for each in placed if each.number is not None]
    gone = [number for number in range(len(nodes)) if number not in kept]
    come = [at for at, each in enumerate(placed) if each.number is None]
    names = [edit for each in placed if (edit := _name_edit(text, nodes, arguments, each)) is not None]
    plain = kept == sorted(kept) and len(gone) + len(come) <= 1 and (kept or not nodes)
    if not plain:
        return _rewritten(text, given, nodes, arguments, placed)
    if gone:
        start, end = nodes[gone[0]].start_byte, nodes[gone[0]].end_byte
        if gone[0] + 1 < len(nodes):
            end = nodes[gone[0] + 1].start_byte
        else:
            start = nodes[gone[0] - 1].end_byte
        names.append(edit_at(text, start, end, ""))
    if come:
        names.append(_insert_at(text, given, nodes, placed, come[0]))
    return tuple(names)


def _name_edit(text: ParsedText, nodes: Sequence[Node], arguments: Sequence[Argument], placed: Placed) -> Edit | None:
    if placed.number is None or arguments[placed.number].name == placed.name:
        return None
    node, had = nodes[placed.number], arguments[placed.number].name
    if not had:
        return edit_at(text, node.start_byte, node.start_byte, f"{placed.name}=")
    name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
    assert name is not None and value is not None
    if not placed.name:
        return edit_at(text, name.start_byte, value.start_byte, "")
    return edit_at(text, name.start_byte, name.end_byte, placed.name)


def _insert_at(text: ParsedText, given: Node, nodes: Sequence[Node], placed: Sequence[Placed], at: int) -> Edit:
    new = f"{placed[at].name}={placed[at].value}" if placed[at].name else placed[at].value
    if not nodes:
        return edit_at(text, given.start_byte + 1, given.end_byte - 1, new)
    if at:
        number = placed[at - 1].number or 0
        node = nodes[number]
        return edit_at(text, node.end_byte, node.end_byte, f",{_gap(text, given, node)}{new}")
    node = nodes[placed[1].number or 0]
    return edit_at(text, node.start_byte, node.start_byte, f"{new},{_gap(text, given, node)}")


def _gap(text: ParsedText, given: Node, node: Node) -> str:
    """Return what stands between the comma and the next argument: a new line where each has one of its own."""
    line = text.data.rfind(b"\n", 0, node.start_byte) + 1
    before = text.data[line : node.start_byte]
    own_line = line > given.start_byte and not before.strip()
    return f"\n{before.decode('utf-8', 'replace')}" if own_line else " "


def _rewritten(
    text: ParsedText, given: Node, nodes: Sequence[Node], arguments: Sequence[Argument], placed: Sequence[Placed]
) -> tuple[Edit, ...] | None:
    if any(child.type == "comment" for child in given.named_children) or not nodes:
        return None
    parts = []
    for each in placed:
        value = each.value if each.number is None else arguments[each.number].value
        parts.append(f"{each.name}={value}" if each.name else value)
    between = text.between(nodes[0].end_byte, nodes[1].start_byte) if len(nodes) > 1 else ", "
    first, last = nodes[0].start_byte, nodes[-1].end_byte
    if not parts:
        return (edit_at(text, given.start_byte + 1, given.end_byte - 1, ""),)
    return (edit_at(text, first, last, between.join(parts)),)


def in_scope(text: ParsedText, node: Node, name: str) -> bool:
    """Return whether a name is that of a variable at a node: a parameter of a function around it, or assigned before
    it.
    """
    wanted = name.encode()
    around = function_of(node)
    if around is None:
        return any(each.end_byte <= node.start_byte and _assigns(each, wanted) for each in text.root.named_children)
    # Outwards: what a function around binds, the inner ones see.
    while around is not None:
        inner = around
        for leaf in nodes_of(around, around.start_byte, node.start_byte):
            if leaf.child_count or leaf.text != wanted or not _NAMES.search(leaf.type):
                continue
            if _binds(leaf) and role_of(leaf) != "keyword" and _is_around(function_of(leaf), inner):
                return True
        around = function_of(around)
    return False


def _assigns(statement: Node, name: bytes) -> bool:
    inner = statement.named_children[:1] if statement.type == "expression_statement" else []
    left = inner[0].child_by_field_name("left") if inner else None
    return left is not None and left.text == name


def _is_around(function: Node | None, inner: Node) -> bool:
    # A parameter's own function is the one that it is a parameter of.
    return function is not None and (function.start_byte, function.end_byte) == (inner.start_byte, inner.end_byte)


# Uses of a name that is gone.


def _names(text: ParsedText, change: Change) -> Iterator[Site]:
    old, new = change.before.name, change.after.name
    collides = _has_name(text, new) and not change.before.owner
    shadowing = [] if change.before.owner else _shadowing(text, old)
    imports = [] if change.before.owner else [node for node in _leaves(text, old) if role_of(node) == "imported"]
    # What is used by its import is renamed there, too, whichever of both the server calls wrong.
    together = _together(text, imports[0], old, new) if len(imports) == 1 and not _is_aliased(imports[0]) else None
    for node in _leaves(text, old):
        role = role_of(node)
        if role == "keyword" or _is_parameter(node) or (role == "defined" and not change.before.owner):
            continue
        if role != "member" and any(_covers(each, node) for each in shadowing):
            continue
        place = (text.char(node.start_byte), text.char(node.end_byte))
        if role == "imported" and not change.before.owner:
            taken = collides and not _is_aliased(node)
            yield Site(text.path, *place, None if taken else _together(text, node, old, new))
            continue
        if together is not None and role != "member":
            yield Site(text.path, *place, None if collides else together)
            continue
        # `{ total }` is a member and a variable of one name, of which only one is renamed: both are written out.
        written = new
        if node.type == _SHORTHAND:
            written = f"{new}: {old}" if change.before.owner else f"{old}: {new}"
        elif node.type.startswith(_SHORTHAND):
            written = f"{new}: {old}"
        yield Site(text.path, *place, (Edit(*place, written),))


def _leaves(text: ParsedText, name: str) -> Iterator[Node]:
    wanted = name.encode()
    for node in nodes_of(text.root):
        if not node.child_count and node.text == wanted and _NAMES.search(node.type):
            yield node


def _has_name(text: ParsedText, name: str) -> bool:
    """Return whether a plain name is there already: to use it for another thing would mix them up."""
    return any(role_of(node) not in ("member", "keyword") for node in _leaves(text, name))


def _is_aliased(node: Node) -> bool:
    parent = node.parent
    return parent is not None and (parent.type == "aliased_import" or parent.child_by_field_name("alias") is not None)


def _together(text: ParsedText, imported: Node, old: str, new: str) -> tuple[Edit, ...]:
    """Return the edits of an import and of all uses of what it imports."""
    return (edit_at(text, imported.start_byte, imported.end_byte, new), *_uses(text, imported, old, new))


def _uses(text: ParsedText, imported: Node, old: str, new: str) -> Iterator[Edit]:
    """Yield the edits of a text's uses of an imported name."""
    if _is_aliased(imported):
        return
    shadowing = _shadowing(text, old)
    for node in _leaves(text, old):
        role = role_of(node)
        is_use = role in ("plain", "called", "type") or (role == "parameter" and not _is_parameter(node))
        if not is_use or any(_covers(each, node) for each in shadowing):
            continue
        written = f"{old}: {new}" if node.type == _SHORTHAND else new
        yield edit_at(text, node.start_byte, node.end_byte, written)


def _shadowing(text: ParsedText, name: str) -> list[Node | None]:
    """Return the functions in which a name is that of a variable."""
    return [function_of(node) for node in _leaves(text, name) if role_of(node) != "imported" and _binds(node)]


def _binds(node: Node) -> bool:
    return _is_parameter(node) if role_of(node) == "parameter" else binds(node)


def _is_parameter(node: Node) -> bool:
    """Return whether a name is that of a parameter, not of its type or default."""
    if role_of(node) != "parameter":
        return False
    inner, around = node, node.parent
    while around is not None and not around.type.endswith(("parameters", "parameter_list")):
        if any(around.child_by_field_name(field) == inner for field in ("type", "value", "right")):
            return False
        inner, around = around, around.parent
    return True


def _covers(function: Node | None, node: Node) -> bool:
    return function is not None and function.start_byte <= node.start_byte < function.end_byte


# Imports of what is in another file now.


def _imports(text: ParsedText, change: Change) -> Iterator[Site]:
    for named in named_imports(text, change.before.name):
        edits = import_edits(text, named, change.was_in, change.path)
        place = (text.char(named.name.start_byte), text.char(named.name.end_byte))
        yield Site(text.path, *place, edits)
