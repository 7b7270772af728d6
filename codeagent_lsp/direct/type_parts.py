"""Whether a type that a reply gives lacks what says something without being a function: fields, properties, events,
`include` and other statements in its body. Such a type is given for the members in it, and keeps the rest.

Pure functions. Not here: functions and types that are lost (`definitions.py`), objects and tables (`entries.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from codeagent_lsp.direct.pairing import TYPES, VALUES
from codeagent_lsp.index.symbols import CALLABLE
from codeagent_lsp.tools.code.extent import statement_of
from codeagent_lsp.tools.code.source import Definition, SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

_CUT = 0.5
"""A type that lost this share of them was given in part; of one that lost fewer, they were taken out on purpose."""
_IDLE = frozenset(("pass_statement", "ellipsis", "access_specifier", "empty_statement"))
_FIELDS = ("field_declaration", "public_field_definition", "field_definition", "property_declaration")


def thinned(old: SourceFile, new: SourceFile) -> str:
    """Return the dotted name of a type that lost at least half of what it has beside functions, while another member
    of it changed, and of which something lost is used nowhere in the file; '' for none. What was used there and is no
    more was taken out on purpose.
    """
    for own, other in _pairs(old, new):
        said, says = _statements(old, own), _statements(new, other)
        before, after = _values(old, own) + said, _values(new, other) + says
        lost = before - after
        if not lost or after - before or lost.total() < _CUT * before.total():
            continue
        idle = any(len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", old.text)) == 1 for name in lost - said)
        if (idle or said - says) and _is_changed(old, own, new, other):
            return own.qualified
    return ""


def lacks_statements(source: SourceFile, owner: str, reply: SourceFile, name: str) -> bool:
    """Return whether the type `name` of a reply lacks at least half of the statements that the type `owner` of the file
    has in its body beside its members, and has no new one, while a member of it changed.
    """
    own = [each for each in source.definitions if each.qualified == owner and each.symbol.kind in TYPES]
    given = [each for each in reply.definitions if each.qualified == name and each.symbol.kind in TYPES]
    if len(own) != 1 or len(given) != 1:
        return False
    before, after = _statements(source, own[0]), _statements(reply, given[0])
    lost = before - after
    return (
        bool(lost)
        and not after - before
        and lost.total() >= _CUT * before.total()
        and _is_changed(source, own[0], reply, given[0])
    )


def _pairs(old: SourceFile, new: SourceFile) -> Iterator[tuple[Definition, Definition]]:
    """Yield the types that both texts define once."""
    counts = Counter(each.qualified for source in (old, new) for each in source.definitions)
    there = {each.qualified: each for each in old.definitions if each.symbol.kind in TYPES}
    for each in new.definitions:
        if each.symbol.kind in TYPES and (own := there.get(each.qualified)) and counts[each.qualified] == 2:
            yield own, each


def _inside(source: SourceFile, around: Definition) -> list[Definition]:
    return [
        each
        for each in source.definitions
        if each.symbol.parent == around.qualified
        and around.outer.start_byte <= each.outer.start_byte < around.outer.end_byte
    ]


def _values(source: SourceFile, around: Definition) -> Counter[str]:
    return Counter({each.symbol.name for each in _inside(source, around) if each.symbol.kind in VALUES})


def _statements(source: SourceFile, around: Definition) -> Counter[str]:
    """Return the statements in the body of a type that define nothing, without their blanks."""
    body = around.body or around.node.child_by_field_name("body")
    taken = sorted((node.start_byte, node.end_byte) for node in map(_statement, _inside(source, around)))
    found: Counter[str] = Counter()
    for node in body.named_children if body is not None else ():
        words = "".join(source.slice(node.start_byte, node.end_byte).split())
        if "comment" in node.type or node.type in _IDLE or node.type in _FIELDS:
            continue
        if not words or words.startswith(('"', "'")):  # a docstring
            continue
        last = bisect_left(taken, (node.end_byte, 0))
        if not last or taken[last - 1][1] <= node.start_byte:
            found[words] += 1
    return found


def _statement(definition: Definition) -> Node:
    return statement_of(definition.outer)


def _is_changed(old: SourceFile, own: Definition, new: SourceFile, other: Definition) -> bool:
    """Return whether a member that both have, or a new one, is not as it was."""
    before = Counter(_members(old, own))
    return any(words not in before for words in _members(new, other))


def _members(source: SourceFile, around: Definition) -> Iterator[str]:
    for each in _inside(source, around):
        if each.symbol.kind in CALLABLE | VALUES:
            yield "".join(source.slice(each.outer.start_byte, each.outer.end_byte).split()).rstrip(";,")
