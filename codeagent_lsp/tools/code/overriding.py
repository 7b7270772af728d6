"""Members whose name another thing prescribes: a base class, an interface, a trait, or the language itself.

Renamed alone, such a member would no longer be what is called by its name. Judged by the syntax, so in doubt it is one.
Not here: which uses mean a definition (`meaning.py`), the rename itself (`rename.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from codeagent_lsp.tools.code.meaning import is_member
from codeagent_lsp.tools.code.source import Definition, SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node

_HERITAGE = frozenset((
    "argument_list", "class_heritage", "superclass", "super_interfaces", "extends_interfaces", "extends_type_clause",
    "base_list", "base_class_clause", "base_clause", "class_interface_clause",
))  # fmt: skip
"""The nodes below a type that name what it is derived from."""
_TYPES = frozenset(("class", "struct", "interface", "enum", "type"))
_BY_SHAPE = frozenset(("go", "typescript", "tsx"))
"""Languages in which a type has an interface by its members alone, without naming it."""
_SPECIAL = {
    "python": r"__\w+__",
    "php": r"__\w+",
    "ruby": r"initialize\w*|to_\w+|inspect|each|call|hash|eql\?|coerce|method_missing|respond_to\w*|included|inherited",
    "go": r"Error|String|GoString|Format|Len|Less|Swap|Push|Pop|Read|Write|Close|Seek|ServeHTTP|Unwrap|Is|As|Scan|Value"
    r"|(?:Unm|M)arshal\w+|init|main|Test\w*|Benchmark\w*|Example\w*|Fuzz\w*",
    "java": r"toString|equals|hashCode|compareTo|compare|close|run|call|get|accept|apply|test|iterator|clone|finalize",
    "csharp": r"ToString|Equals|GetHashCode|CompareTo|Dispose|GetEnumerator|Main",
    "javascript": r"constructor|toString|toJSON|valueOf|then|render|connectedCallback|disconnectedCallback",
}
"""The names of members that the language, or what every program uses of it, calls by itself."""


def is_prescribed(source: SourceFile, definitions: Iterable[Definition], sources: Iterable[SourceFile]) -> bool:
    """Return whether one of the definitions, members of a type in `source`, may have its name from somewhere else;
    `sources` are the texts that may hold its interface.
    """
    members = [each for each in definitions if is_member(source, each)]
    if not members:
        return False
    name, owner = members[0].symbol.name, members[0].symbol.parent
    script = source.language in ("typescript", "tsx")
    special = _SPECIAL.get("javascript" if script else source.language)
    if special and re.fullmatch(special, name):
        return True
    types = [each for each in source.definitions if each.qualified == owner and each.symbol.kind in _TYPES]
    if any(_derives(each.node) for each in types) or any(_is_of_trait(each.node) for each in members):
        return True
    return source.language in _BY_SHAPE and any(_asks_for(each, name, owner) for each in sources)


def _derives(node: Node) -> bool:
    """Return whether a type names something that it is derived from, other than the root of all types."""
    clauses = [child for child in node.children if child.type in _HERITAGE]
    bases = [base for clause in clauses for base in clause.named_children if base.type != "keyword_argument"]
    return any(base.text not in (b"object", b"Object") for base in bases)


def _is_of_trait(node: Node) -> bool:
    around = node.parent.parent if node.parent is not None else None
    return around is not None and around.type == "impl_item" and around.child_by_field_name("trait") is not None


def _asks_for(source: SourceFile, name: str, owner: str) -> bool:
    interfaces = {each.qualified for each in source.definitions if each.symbol.kind == "interface"} - {owner}
    return any(each.symbol.name == name and each.symbol.parent in interfaces for each in source.definitions)
