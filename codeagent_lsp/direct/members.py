"""Members given without their type: methods, fields, constants, initialisers, which no place outside of a type allows.

A field or an initialiser takes the place of the only one in the file that it can mean: an example of use looks like a
field as well. Pure functions. Not here: which method is meant (`pairing.py`), putting all of it in place
(`definitions.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from codeagent_lsp.direct.pairing import TYPES, VALUES, Given
from codeagent_lsp.errors import EditRefused, ToolFailed
from codeagent_lsp.index.symbols import CALLABLE
from codeagent_lsp.tools.code.extent import indentation, statement_of
from codeagent_lsp.tools.code.shift import dedented, shifted, with_line_ends
from codeagent_lsp.tools.code.source import Definition, SourceFile, required, walked
from codeagent_lsp.tools.code.splices import Splice, applied

if TYPE_CHECKING:
    from tree_sitter import Node

# Methods of these have no keyword, so that one alone is a syntax error outside of a class.
INSIDE_CLASSES = frozenset(("javascript", "typescript", "tsx", "java", "csharp", "php"))
WITH_MEMBERS = INSIDE_CLASSES | {"cpp"}
_WITH_OBJECTS = frozenset(("javascript", "typescript", "tsx"))
_AROUND = "_Around"
_TAG = re.compile(r"\s*<\?(?:php\b|=)?\s*")
_INITIALISERS = {"class_static_block": "class_body", "static_initializer": "class_body", "block": "class_body"}
"""What runs when a class or an object is made and has no name, with what it stands in."""
_MOST_NODES = 100_000


def methods_alone(path: str, reply: SourceFile, source: SourceFile) -> list[Given]:
    """Return the methods of code that is valid only inside a class or an object, such as methods of JavaScript given
    without it; [] for other code. EditRefused if a block without a name, such as a static initialiser, is among them.
    """
    inside = _inside(path, reply) if source.language in INSIDE_CLASSES else None
    members = _members(inside) if inside is not None else []
    if inside is None or not members:
        return _entries_alone(path, reply, source)
    known = {_words(source, node) for node in islice(walked(source.root), _MOST_NODES) if _is_initialiser(node)}
    # It has no name by which its place is found, and to leave it out would be to lose it.
    if any(_is_initialiser(node) and _words(inside, node) not in known for node in _statements(inside)):
        raise EditRefused(
            "ambiguous",
            "A block without a name is given beside other members. Give the whole class with the block inside it.",
        )
    return [_member_given(inside, each, each.symbol.name, "") for each in members]


def _entries_alone(path: str, reply: SourceFile, source: SourceFile) -> list[Given]:
    """Return the functions of code that is valid only inside an object of JavaScript, where it has nothing else."""
    if source.language not in _WITH_OBJECTS:
        return []
    inside = parsed(path, f"const {_AROUND} = {{\n{reply.text.strip().rstrip(',')}\n}}")
    found = [] if inside.faults else _members(inside)
    around = found[0].outer.parent if found else None
    entries = [each for each in around.named_children if "comment" not in each.type] if around is not None else []
    if len(entries) != len(found) or any(each.symbol.kind not in CALLABLE for each in found):
        return []
    return [_member_given(inside, each, each.symbol.name, "") for each in found]


def values_alone(path: str, reply: SourceFile, source: SourceFile) -> list[Given]:
    """Return the fields and constants of code that has nothing else, if the file has each name exactly once, inside a
    type; [] for other code.
    """
    inside = _inside(path, reply) if source.language in WITH_MEMBERS | {"python"} else None
    if inside is None:
        return []
    kinds = {each.qualified: each.symbol.kind for each in source.definitions}
    found = []
    for each in (members := _members(inside)):
        own = [known for known in source.definitions if known.symbol.name == each.symbol.name]
        if each.symbol.kind not in VALUES or len(own) != 1 or own[0].symbol.kind not in VALUES:
            return []
        if kinds.get(own[0].symbol.parent, "") not in TYPES or _declares_several(own[0].outer):
            return []
        found.append(_member_given(inside, each, own[0].qualified, own[0].symbol.parent))
    outers = {statement_of(each.outer).id for each in members}
    return found if len(outers) == sum(1 for _ in _statements(inside)) else []


def with_initialiser(path: str, reply: SourceFile, source: SourceFile) -> str:
    """Return the file's text with its only initialiser block replaced by the one in the reply; '' if the reply is no
    single initialiser. EditRefused if the file has several.
    """
    inside = _inside(path, reply) if source.language in INSIDE_CLASSES else None
    given = list(_statements(inside)) if inside is not None else []
    if inside is None or len(given) != 1 or given[0].type not in _INITIALISERS:
        return ""
    known = [
        node
        for node in islice(walked(source.root), _MOST_NODES)
        if _is_initialiser(node) and node.type == given[0].type
    ]
    if len(known) != 1:
        raise EditRefused(
            "ambiguous",
            f"{path} has {len(known)} such blocks without a name. Give the whole class with the block inside it.",
        )
    [place] = known
    code = dedented(_from_line(inside, given[0]), inside.parsed.grammar)
    indent = indentation(source, place.start_byte)
    fitted = with_line_ends(source, shifted(source, code, indent).lstrip(" \t"), place.start_byte)
    return applied(source, [Splice(place.start_byte, place.end_byte, fitted)])


def parsed(path: str, text: str) -> SourceFile:
    """Parse a text in the language of its path's suffix. EditRefused, in English for the model, if the language is not
    known.
    """
    try:
        return required(path, text)
    except ToolFailed as error:
        raise EditRefused("not_found", f"{path} is no code that can be changed by function: {error}") from error


def code_of(reply: SourceFile, definition: Definition) -> str:
    """Return the code of a definition with its whole statement, without the indentation it has in the reply."""
    # The `;` of `exports.f = function () {};` belongs to the statement, and so does the first word of `readonly A=1`.
    outer = statement_of(definition.outer)
    start = reply.line_start(outer.start_byte)
    # A form feed is no indentation: it stands before the definition in the file, too.
    start = start if not reply.slice(start, outer.start_byte).strip(" \t") else outer.start_byte
    return dedented(reply.slice(start, reply.trimmed(outer.end_byte)), reply.parsed.grammar)


def _member_given(inside: SourceFile, member: Definition, name: str, parent: str) -> Given:
    code = code_of(inside, member)
    # The sign behind a field ends it, and is no part of it in some grammars.
    if member.symbol.kind in VALUES and inside.data[member.outer.end_byte : member.outer.end_byte + 1] == b";":
        code = f"{code.rstrip(';')};"
    return Given(name, code, parent, inside, member, indented=True)


def _inside(path: str, reply: SourceFile) -> SourceFile | None:
    """Return the code as the inside of a class; None where it is not valid there."""
    tag = _TAG.match(reply.text)
    head, body = (tag[0], reply.text[tag.end() :]) if tag else ("", reply.text)
    if reply.language == "python":
        inside = parsed(path, f"class {_AROUND}:\n{shifted(reply, reply.text, '    ')}")
    else:
        ending = "};" if reply.language == "cpp" else "}"
        inside = parsed(path, f"{head}class {_AROUND} {{\n{body}\n{ending}")
    return None if inside.faults else inside


def _members(inside: SourceFile) -> list[Definition]:
    return [each for each in inside.definitions if each.symbol.parent == _AROUND]


def _statements(inside: SourceFile) -> Iterator[Node]:
    """Yield what is in the class around the code, without comments."""
    around = next(each for each in inside.definitions if each.qualified == _AROUND)
    body = around.body or around.node.child_by_field_name("body")
    yield from (node for node in (body.named_children if body is not None else ()) if "comment" not in node.type)


def _declares_several(node: Node) -> bool:
    """Return whether a declaration has several names, as `int a, b;`."""
    return sum("declarator" in child.type for child in node.named_children) > 1


def _from_line(source: SourceFile, node: Node) -> str:
    return source.slice(source.line_start(node.start_byte), node.end_byte)


def _is_initialiser(node: Node) -> bool:
    return node.parent is not None and _INITIALISERS.get(node.type) == node.parent.type


def _words(source: SourceFile, node: Node) -> str:
    """Return the code of a node without blanks."""
    return "".join(source.slice(node.start_byte, node.end_byte).split())
