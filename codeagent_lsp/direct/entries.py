"""Objects, tables, lists of records, structs and other containers that are no class, of which a reply gives only some
entries: the others stay.

As with the members of a class, what a reply leaves out of an object is not meant to go, unless nothing else of it
changes. Pure functions. Not here: members of classes (`members.py`), putting definitions in place (`definitions.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from codeagent_lsp.errors import EditRefused
from codeagent_lsp.index.parse import parsed as parse
from codeagent_lsp.tools.code.extent import first_alone, indentation
from codeagent_lsp.tools.code.shift import shifted
from codeagent_lsp.tools.code.source import SourceFile, walked
from codeagent_lsp.tools.code.splices import Splice, applied
from codeagent_lsp.workspace.edits.line_matching import likeness
from codeagent_lsp.workspace.text.position import with_newlines

if TYPE_CHECKING:
    from tree_sitter import Node

_KEPT = 0.5
"""A container that has this share of its entries, all as they were, lost the others on purpose; a whole file that has
less of one was cut."""
_ALIKE = 0.7
"""How alike an entry with a new key is to the one that it was."""
_MOST_PAIRS = 400
"""Lost and new entries that are compared by likeness; of more, only the same are found."""
_MOST_NODES = 100_000
_LONGEST = 200
"""Bytes of what tells a record from others."""
_LISTS = frozenset(("array", "list", "tuple", "array_expression", "array_initializer"))
_STRUCTS = frozenset(("field_declaration_list", "object_type"))
_CONTAINERS = (
    frozenset(("object", "dictionary", "hash", "array_creation_expression", "literal_value", "initializer_list"))
    | {"field_initializer_list"}
    | _LISTS
    | _STRUCTS
)
_WHOLE_KEY = frozenset(
    ("shorthand_property_identifier", "spread_element", "dictionary_splat", "hash_splat_argument")
) | {"base_field_initializer", "shorthand_field_initializer"}
_SPREADS = ("spread_element", "dictionary_splat", "hash_splat_argument", "base_field_initializer")
_KEY_FIELDS = ("key", "name", "field", "designator")
_OWN_SCOPE = ("function", "method", "lambda", "closure", "func_literal", "constructor", "accessor")
_FUNCTIONS = ("arrow_function", "function_expression")
_NAMES = ("name", "left", "key", "declarator")


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry with its code without blanks, and the container that is its value, if it is one."""

    words: str
    node: Node
    inner: Node | None


def lost_entries(old: SourceFile, new: SourceFile) -> tuple[str, ...]:
    """Return the keys that a container of `old` has and the same one of `new` lacks, where it lacks at least half of
    them and something else of it changed.
    """
    known = _named(old)
    for name, node in _named(new).items():
        if (there := known.get(name)) is None or not _is_part(old, there, new, node):
            continue
        lost = _lost(old, there, new, node)
        if lost and len(lost) >= _KEPT * len(_entries(old, there) or ()):
            return lost
    return ()


def lost_cases(old: SourceFile, new: SourceFile) -> tuple[str, ...]:
    """Return the heads of calls with a block, such as `it 'adds'`, that `old` has and `new` lacks, where it lacks at
    least half of the innermost ones and more than it adds.
    """
    before, after = _cases(old), _cases(new)
    lost, added = before - after, after - before
    cut = lost.total() - added.total() >= max(1, _KEPT * before.total())
    return tuple(lost) if cut else ()


def completed(source: SourceFile, reply: SourceFile) -> SourceFile:
    """Return a reply with the entries that the containers of the file have and those of the reply lack: all that it
    gives is changed or new, and the rest is as in the file. EditRefused where this cannot be told.
    """
    if reply.faults or source.faults:
        return reply
    known = _named(source)
    splices = []
    for name, node in _named(reply).items():
        there = known.get(name)
        if there is None or not _is_part(source, there, reply, node):
            continue
        text = with_newlines(_merged(source, there, reply, node), "\n")
        was, now = indentation(source, there.start_byte), indentation(reply, node.start_byte)
        moved = text if was == now else shifted(reply, was + text, now).removeprefix(now)
        splices.append(Splice(node.start_byte, node.end_byte, moved))
    if not splices:
        return reply
    text = applied(reply, splices)
    done = parse(reply.path, text)
    return SourceFile(reply.path, text, done) if done is not None else reply


def _named(source: SourceFile) -> Mapping[tuple[str, ...], Node]:
    """Return the outermost containers outside of functions, by the names of what they stand in; a name that several
    have is left out.
    """
    found: dict[tuple[str, ...], Node] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    for node in islice(walked(source.root, _goes_into), _MOST_NODES):
        if node.type in _CONTAINERS and (name := _name_of(source, node)):
            # A list that stands beside an object has another name than that.
            name = (*name, node.type) if node.type in _LISTS else name
            counts[name] += 1
            found[name] = node
    return {name: node for name, node in found.items() if counts[name] == 1}


def _cases(source: SourceFile) -> Counter[str]:
    """Return the heads of the innermost calls with a block outside of named functions."""
    found: Counter[str] = Counter()
    around: set[int] = set()
    # From the last one on, so that those inside a block come before it.
    for node in reversed(list(islice(walked(source.root, _is_outside), _MOST_NODES))):
        block = _block(node)
        if block is None:
            continue
        if node.id not in around:
            found["".join(source.slice(node.start_byte, block.start_byte).split())] += 1
        parent = node.parent
        while parent is not None:
            around.add(parent.id)
            parent = parent.parent
    return found


def _is_outside(node: Node) -> bool:
    return node.type not in ("function_declaration", "method", "method_definition", "class_declaration")


def _block(node: Node) -> Node | None:
    """Return the block that a call of a statement is given; None for other nodes."""
    if node.type == "call":
        return node.child_by_field_name("block")
    if node.type != "call_expression" or node.parent is None or node.parent.type != "expression_statement":
        return None
    arguments = node.child_by_field_name("arguments")
    last = arguments.named_children[-1] if arguments is not None and arguments.named_children else None
    return last.child_by_field_name("body") if last is not None and last.type in _FUNCTIONS else None


def _goes_into(node: Node) -> bool:
    return node.type not in _CONTAINERS and not any(word in node.type for word in _OWN_SCOPE)


def _name_of(source: SourceFile, node: Node) -> tuple[str, ...]:
    """Return the names around a container, from the inside outwards; () for one that has none."""
    names: list[str] = []
    inner, around = node, node.parent
    while around is not None:
        # An item of a list has no name by which it is found again.
        if around.type in _LISTS:
            return ()
        found = next((each for each in map(around.child_by_field_name, _NAMES) if each is not None), None)
        if found is not None and found != inner and around.type != "call_expression":
            names.append(_text(source, found))
        elif around.type == "export_statement" and any(child.type == "default" for child in around.children):
            names.append("default")
        elif around.type in ("return_statement", "export_statement") and not names:
            names.append(around.type)
        inner, around = around, around.parent
    return tuple(names)


def _entries(source: SourceFile, container: Node) -> Mapping[str, _Entry] | None:
    """Return the entries of a container by their keys, or by what they begin with where all are records; None where
    some have neither, or several the same one.
    """
    nodes = [node for node in container.named_children if "comment" not in node.type]
    keyed = None if container.type in _LISTS else _by(_key, source, nodes)
    return keyed or _by(_identity, source, nodes)


def _by(
    key_of: Callable[[SourceFile, Node], str], source: SourceFile, nodes: list[Node]
) -> Mapping[str, _Entry] | None:
    found: dict[str, _Entry] = {}
    for node in nodes:
        key = key_of(source, node)
        if not key or key in found:
            return None
        found[key] = _Entry(_words(source, node), node, _value(node))
    return found


def _identity(source: SourceFile, node: Node) -> str:
    """Return what tells a record of a list from the others, the first thing in it: `path("a"` of `path("a", view)`,
    `name:"a"` of `{name: "a", size: 1}`; '' for what is no record.
    """
    inner = _unwrapped(node)
    inside = inner.child_by_field_name("arguments") or inner.child_by_field_name("body") or inner
    if inside == inner and inner.type not in _CONTAINERS:
        return ""
    parts = [child for child in inside.named_children if "comment" not in child.type]
    if len(parts) < 2 or parts[0].end_byte - parts[0].start_byte > _LONGEST:
        return ""
    return _words(source, parts[0], inner.start_byte)


def _unwrapped(node: Node) -> Node:
    wraps = node.type in ("literal_element", "array_element_initializer", "keyed_element")
    return node.named_children[0] if wraps and node.named_child_count == 1 else node


def _key(source: SourceFile, node: Node) -> str:
    if node.type in _WHOLE_KEY:
        return _words(source, node)
    if node.type == "field_declaration":
        return ",".join(_text(source, each) for each in _declared(node)) or _words(source, node)
    if node.type == "array_element_initializer":
        first = node.named_children[0] if node.named_child_count == 2 else None
    else:
        first = next((each for each in map(node.child_by_field_name, _KEY_FIELDS) if each is not None), None)
    if first is None:
        return ""
    # A getter and a setter have one name.
    role = next((child.type for child in node.children if child.type in ("get", "set")), "")
    return f"{role} {_text(source, first).strip(chr(34) + chr(39))}".strip()


def _declared(field: Node) -> Iterator[Node]:
    """Yield the names that a field of a struct declares."""
    for name in ("name", "declarator"):
        for each in field.children_by_field_name(name):
            inner = each
            while (below := inner.child_by_field_name("declarator")) is not None:
                inner = below
            yield inner


def _value(entry: Node) -> Node | None:
    """Return the container that is the value of an entry; None where it is none, or stands inside something else."""
    if entry.type in _CONTAINERS and entry.type not in _LISTS:
        return entry
    value = entry.child_by_field_name("value") or (entry.named_children[-1] if entry.named_children else None)
    value = _unwrapped(value) if value is not None else None
    return value if value is not None and value.type in _CONTAINERS else None


def _is_part(old: SourceFile, there: Node, new: SourceFile, node: Node) -> bool:
    """Return whether a container of the reply lacks entries that it is not meant to lose."""
    if not any(_losses(old, there, new, node)) or _is_rest(old, there, new, node):
        return False
    before, after = _entries(old, there) or {}, _entries(new, node) or {}
    if there.type not in _STRUCTS and all(_key(old, entry.node) == key for key, entry in before.items()):
        return True
    # Records and fields are put together in other ways more often than the keys of an object.
    common = [key for key in after if key in before]
    # What only has old ones was made shorter, and what has none of them is another.
    if not common or all(key in before and each.words == before[key].words for key, each in after.items()):
        return False
    lost, added = len(before.keys() - after.keys()), len(after.keys() - before.keys())
    return lost == 0 or (lost > added and lost >= _KEPT * len(before))


def _losses(old: SourceFile, there: Node, new: SourceFile, node: Node) -> Iterator[str]:
    """Yield the keys that are lost, at every depth."""
    yield from _lost(old, there, new, node)
    before, after = _entries(old, there) or {}, _entries(new, node) or {}
    for key, entry in after.items():
        if entry.inner is not None and (own := before.get(key)) is not None and own.inner is not None:
            yield from _losses(old, own.inner, new, entry.inner)


def _lost(old: SourceFile, there: Node, new: SourceFile, node: Node) -> tuple[str, ...]:
    """Return the keys that a container has no more, but for those that were renamed."""
    before, after = _entries(old, there), _entries(new, node)
    # One that is emptied, or of which not every entry can be told, is what the reply makes of it.
    if not before or not after:
        return ()
    added = [entry.words.removeprefix(key) for key, entry in after.items() if key not in before]
    lost = [key for key in before if key not in after]
    few = len(lost) * len(added) <= _MOST_PAIRS
    found = []
    for key in lost:
        value = before[key].words.removeprefix(key)
        renamed = next((each for each in added if each == value or (few and likeness(value, each) >= _ALIKE)), None)
        if renamed is None:
            found.append(key)
        else:
            added.remove(renamed)  # one new key is the new name of one old key
    return tuple(found)


def _is_rest(old: SourceFile, there: Node, new: SourceFile, node: Node) -> bool:
    """Return whether all that a container still has is as it was, and it has at least half of its entries."""
    before, after = _entries(old, there) or {}, _entries(new, node) or {}
    return len(after) >= _KEPT * len(before) and all(
        key in before
        and (
            entry.words == before[key].words
            or (
                entry.inner is not None
                and (own := before[key].inner) is not None
                and _is_rest(old, own, new, entry.inner)
            )
        )
        for key, entry in after.items()
    )


def _merged(source: SourceFile, there: Node, reply: SourceFile, node: Node) -> str:
    """Return the text of a container of the file with what a part of it in the reply changes and adds."""
    splices = list(_changes(source, there, reply, node))
    data, place, parts = source.data, there.start_byte, []
    for each in sorted(splices, key=lambda splice: splice.start):
        parts += [source.slice(place, each.start), each.text]
        place = each.end
    return "".join((*parts, data[place : there.end_byte].decode("utf-8", "replace")))


def _changes(source: SourceFile, there: Node, reply: SourceFile, node: Node) -> Iterator[Splice]:
    before, after = _entries(source, there), _entries(reply, node)
    if before is None or after is None or _is_moved_at_a_spread(before, after):
        raise EditRefused(
            "ambiguous",
            f"Only a part of the entries in line {source.line(there.start_byte)} of {source.path} is given, and it is "
            "not clear which. Give what has them whole, with all its entries.",
        )
    added: dict[int, str] = {}
    separator = _separator(there)
    # New ones stand behind the one that the reply gives before them, else at the end.
    place = list(before.values())[-1].node.end_byte
    for key, entry in after.items():
        own = before.get(key)
        if own is None:
            lines = _fitted(source, reply, entry.node, indentation(source, there.named_children[-1].start_byte))
            ends = source.line(there.start_byte) != source.line(there.end_byte)
            gap = f"\n{indentation(source, there.named_children[-1].start_byte)}" if ends else " "
            added[place] = f"{added.get(place, '')}{separator}{gap}{lines}"
            continue
        place = own.node.end_byte
        if own.inner is not None and entry.inner is not None and any(_losses(source, own.inner, reply, entry.inner)):
            yield from _changes(source, own.inner, reply, entry.inner)
        elif own.words != entry.words:
            top = _top(reply, entry.node)
            start = _top(source, own.node) if top < entry.node.start_byte else own.node.start_byte
            lines = _fitted(source, reply, entry.node, indentation(source, own.node.start_byte))
            yield Splice(start, own.node.end_byte, lines)
    for end, lines in added.items():
        yield Splice(end, end, lines)


def _separator(container: Node) -> str:
    """Return what stands between the entries of a container, without blanks."""
    signs = next((child.type for child in container.children[1:] if child.type in (",", ";")), "")
    return signs or ("" if container.type in _STRUCTS else ",")


def _is_moved_at_a_spread(before: Mapping[str, _Entry], after: Mapping[str, _Entry]) -> bool:
    """Return whether entries have changed places where that says which of two holds: what stands behind a spread."""
    spreads = any(entry.node.type in _SPREADS for entry in after.values())
    return spreads and [key for key in before if key in after] != [key for key in after if key in before]


def _fitted(source: SourceFile, reply: SourceFile, node: Node, indent: str) -> str:
    """Return the code of an entry of the reply with the comments above it, indented as the file has it."""
    top = _top(reply, node)
    own, code = indentation(reply, top), reply.slice(top, node.end_byte)
    return code if own == indent else shifted(source, own + code, indent).removeprefix(indent)


def _top(source: SourceFile, node: Node) -> int:
    """Return the offset of the comments directly above an entry, on lines of their own; else that of the entry."""
    top, before = node, node.prev_sibling
    if not first_alone(source, node.start_byte):
        return node.start_byte
    while (
        before is not None
        and "comment" in before.type
        and first_alone(source, before.start_byte)
        and source.data[before.end_byte : top.start_byte].count(b"\n") == 1
    ):
        top, before = before, before.prev_sibling
    return top.start_byte


def _text(source: SourceFile, node: Node) -> str:
    return source.slice(node.start_byte, node.end_byte)


def _words(source: SourceFile, node: Node, start: int | None = None) -> str:
    return "".join(source.slice(node.start_byte if start is None else start, node.end_byte).split())
