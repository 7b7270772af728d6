"""The meaning of the uses of a name among the definitions of one text, as far as the syntax shows, and where they are.

`surely_means` is for renaming: it is False in doubt. `cannot_mean` is for searching: it is True only without doubt. A
member is prescribed if a base class, an interface or the language itself names it: renamed alone, it would no longer be
called. Not here: types, so a member of an object of unknown type is never certain; which files are searched
(`codebase.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from codeagent_lsp.index.grammars import text_of
from codeagent_lsp.tools.code.owners import (
    SELVES,
    TYPES,
    bases_of,
    dotted_path,
    inside,
    is_in_static,
    is_self,
    is_static,
    may_be_inherited,
)
from codeagent_lsp.tools.code.places import MEMBER_NAMES, ancestors
from codeagent_lsp.tools.code.source import Definition, SourceFile, matching, normal
from codeagent_lsp.tools.code.uses import Use, Uses, around

if TYPE_CHECKING:
    from tree_sitter import Node

WITHOUT_SELF = frozenset(("java", "c", "cpp", "csharp", "ruby"))
"""Languages in which a method refers to another member of its class by the bare name."""
_BINDING_IMPORTS = frozenset(("python", "javascript", "typescript", "tsx"))
_IMPORTS = frozenset(("import_statement", "import_from_statement", "export_statement"))
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
_NAMESPACE = re.compile(r"^\s*namespace\s+([\w\\]+)", re.MULTILINE)
_VALUES = frozenset(("constant", "variable"))
_MOST_TEXT = 160


class Elsewhere(NamedTuple):
    """What other texts define under the same name: the dotted names of the types that have it as a member (`owners`),
    and whether there are members and other definitions at all, and constants and variables, or types, among these.
    """

    owners: frozenset[str] = frozenset()
    members: bool = False
    others: bool = False
    values: bool = False
    types: bool = False

    @property
    def known(self) -> bool:
        """Whether there are any targets in other texts."""
        return self.members or self.others


def surely_means(source: SourceFile, uses: Uses, definitions: Sequence[Definition], use: Use) -> bool:
    """Return whether a use certainly refers to one of the definitions, which share one dotted name; False if it may
    mean something else. `definitions` must not be empty; only the text of `source` is looked at.
    """
    first = definitions[0]
    if uses.in_other_namespace(first, use) or uses.is_apart(use) or not uses.is_shown(use):
        return False
    if may_be_inherited(source, definitions, use):
        return False
    # A name that no object is needed for: the scopes decide, and they are fully in this text.
    if not is_member(source, first):
        if use.access == "member" and first.symbol.parent:
            # `module.name`: only the full path of its module is sure, as the last part may be that of another.
            return dotted_path(use.receiver) == first.symbol.parent
        if use.access == "member" and source.language == "php":
            return is_fully_qualified(source, use)
        if use.access != "plain" or uses.binder(use) != uses.home(first) or _is_from_elsewhere(source, use):
            return False
        # No home: it stands at the top of the text, where a module or class around the use can have one of the same
        # name.
        return uses.home(first) is not None or not hidden(source, uses, definitions, use)
    owner = first.symbol.parent
    if use.access == "member":
        return is_self(source, uses, definitions, use)
    # The bare name of a member can mean it only within its class, and a key (`{name: 1}`) belongs to an object that
    # nothing is known of.
    if use.access == "key" or not inside(source, owner, use, unnamed=first.symbol.kind in TYPES):
        return False
    home = uses.home(first)
    if source.language not in WITHOUT_SELF:
        return home is not None and uses.binder(use) == home
    if source.language == "ruby" and is_in_static(use) not in {is_static(each.node) for each in definitions}:
        return False
    # In these languages the bare name is the member unless a local variable or an import takes it first.
    return uses.binder(use) is None and not use.imported


def cannot_mean(source: SourceFile, uses: Uses, targets: Sequence[Definition], elsewhere: Elsewhere, use: Use) -> bool:
    """Return whether the syntax shows that a use refers neither to `targets`, all in this text, nor to those
    elsewhere.
    """
    name = text_of(use.node)
    # From here on each step leaves out only what it can exclude; what falls through every one of them is shown.
    if uses.is_apart(use):
        return True
    if not uses.is_shown(use):
        return False
    if targets and not elsewhere.known and all(uses.in_other_namespace(each, use) for each in targets):
        return True
    binder = uses.binder(use)
    if binder is not None:
        # A local binding settles it, whatever other texts have.
        return binder not in [uses.home(each) for each in targets]
    owners = {each.symbol.parent for each in targets} | elsewhere.owners
    members = elsewhere.members or any(is_member(source, each) for each in targets)
    others = elsewhere.others or any(not is_member(source, each) and uses.home(each) is None for each in targets)
    # Nothing defines the name, so there is nothing that a use could be told from: all of them are shown.
    if not targets and not elsewhere.known:
        return False
    if use.access == "member":
        # An object of unknown type, or the base class, whose members this text may not have: either may be meant.
        if use.receiver not in SELVES or "super" in use.receiver:
            return False
        return not members or _belongs_to_another(uses, name, owners, use)
    if use.access == "key":
        values = elsewhere.values or any(each.symbol.kind in _VALUES for each in targets)
        types = elsewhere.types or any(each.symbol.kind in TYPES for each in targets)
        return not members and not uses.may_be_key(use, values=values, types=types)
    if use.imported:
        return False
    if source.language in WITHOUT_SELF:
        return (members or others) and _belongs_to_another(uses, name, owners, use)
    return not others


def is_fully_qualified(home: SourceFile, use: Use) -> bool:
    """Return whether a name of PHP is written with the whole namespace of `home`, and so means what that has there."""
    space = _NAMESPACE.search(home.text)
    return use.receiver.startswith("\\") and use.receiver.strip("\\") == (space[1] if space is not None else "")


def is_member(source: SourceFile, definition: Definition) -> bool:
    """Return whether a definition is accessed through an object or a type: a method, a field, or a constant of an
    enumeration. False at the top of a file. Only this text is looked at.
    """
    if not definition.symbol.parent or _is_plain_constant(definition):
        return False
    if definition.name is not None and definition.name.type in MEMBER_NAMES:
        return True
    # Without a holder in this text (a method written outside of its class) a parent can only be a type.
    holders = [each for each in source.definitions if each.qualified == definition.symbol.parent]
    return definition.symbol.kind == "method" or not holders or any(each.symbol.kind in TYPES for each in holders)


def with_constructors(source: SourceFile, definitions: Sequence[Definition]) -> Iterator[Definition]:
    """Yield the definitions, then the constructors and destructors of those that are types: methods in them of the same
    name.
    """
    yield from definitions
    for each in source.definitions:
        for definition in definitions:
            same = each.symbol.name.removeprefix("~") == definition.symbol.name
            if (
                same
                and each.symbol.parent == definition.qualified
                and definition.symbol.kind in TYPES
                and each.symbol.kind in ("method", "function")
            ):
                yield each


def hidden(source: SourceFile, uses: Uses, definitions: Sequence[Definition], use: Use) -> bool:
    """Return whether a use of a plain name cannot mean these definitions, which must not be empty and have one dotted
    name: it stands outside of their module, or inside a module or class that defines the name itself.
    """
    first = definitions[0]
    if not _is_spanned(source, first.symbol.parent, use):
        return True
    if source.language == "rust" and _is_out_of_sight(source, first.symbol.parent, use):
        return True
    own = {each.name for each in with_constructors(source, definitions)}
    for each in source.definitions:
        if each.symbol.name != first.symbol.name or each.name in own or each.symbol.parent == first.symbol.parent:
            continue
        if uses.in_other_namespace(each, use):
            continue
        holder, member = each.symbol.parent, is_member(source, each)
        if not member and each.node.type == "enumerator":
            # The names in a plain enumeration, which may have no name itself, are those of what is around it.
            holder = holder.rpartition(".")[0] if _is_enum(source, holder) else holder
            member = any(kind.qualified == holder and kind.symbol.kind in TYPES for kind in source.definitions)
        if member and source.language not in WITHOUT_SELF and not _is_enum(source, holder):
            continue
        if inside(source, holder, use) if member else _in_module(source, holder, use):
            return True
    return False


def is_prescribed(source: SourceFile, definitions: Iterable[Definition], sources: Iterable[SourceFile]) -> bool:
    """Return whether one of the definitions, members of a type in `source`, may have to keep its name because a base
    class or an interface has it; `sources` are the texts that may hold that.
    """
    members = [each for each in definitions if is_member(source, each)]
    if not members:
        return False
    name, owner = members[0].symbol.name, members[0].symbol.parent
    # TypeScript's objects are called by the same engines.
    script = source.language in ("typescript", "tsx")
    special = _SPECIAL.get("javascript" if script else source.language)
    if special and re.fullmatch(special, name):
        return True
    types = [each for each in source.definitions if each.qualified == owner and each.symbol.kind in TYPES]
    # Whether the base has this member is not looked up: it may be in another file, or in a library.
    if any(next(bases_of(each.node), None) is not None for each in types) or any(
        _is_of_trait(each.node) for each in members
    ):
        return True
    # Nothing tells which types are meant by such an interface, so any interface that asks for the name counts.
    return source.language in _BY_SHAPE and any(_asks_for(each, name, owner) for each in sources)


@dataclass(frozen=True, slots=True)
class Site:
    """An occurrence of a name; `text` is its line, for a definition the signature. `line` and `column` are 1-based;
    `kind`: definition, call, use, import or member. `within` is the dotted name of the enclosing definition, '' at the
    top of the file.
    """

    path: str
    line: int
    column: int
    kind: str
    text: str
    within: str = ""


@dataclass(frozen=True, slots=True)
class FoundReferences:
    """The references in one text; `left_out` counts uses of the name that refer to something else."""

    sites: tuple[Site, ...]
    left_out: int


def defined(source: SourceFile, symbol: str) -> tuple[Definition, ...]:
    """Return the definitions in a text that a dotted name refers to, in its order; () for none."""
    return matching(source.definitions, symbol)


def elsewhere(targets: Sequence[tuple[SourceFile, Definition]]) -> Elsewhere:
    """Return what `references` and `cannot_mean` have to know of targets that are in other texts, pairs of text and
    definition.
    """
    members = [definition for source, definition in targets if is_member(source, definition)]
    top = any(
        not is_member(source, definition) and Uses(source).home(definition) is None for source, definition in targets
    )
    kinds = {definition.symbol.kind for _, definition in targets}
    owners = frozenset(each.symbol.parent for each in members)
    return Elsewhere(owners, bool(members), top, not kinds.isdisjoint(_VALUES), not kinds.isdisjoint(TYPES))


def references(source: SourceFile, symbol: str, others: Elsewhere) -> FoundReferences:
    """Return the uses in one text that can refer to `symbol`; in the order of the text; `others` summarises the targets
    in other texts (see `elsewhere`).
    """
    uses = Uses(source)
    targets = defined(source, symbol)
    name = symbol_name(symbol)
    sites, left_out = [], 0
    for use in uses.named(name):
        if cannot_mean(source, uses, targets, others, use):
            left_out += 1
        else:
            sites.append(_site(source, use))
    return FoundReferences(tuple(sites), left_out)


def definition_site(source: SourceFile, definition: Definition) -> Site:
    """Return the site of a definition's name, or of the whole definition if it has none to rename."""
    node = definition.name or definition.node
    return Site(
        source.path,
        source.line(node.start_byte),
        _column(source, node.start_byte),
        "definition",
        definition.symbol.signature,
        definition.symbol.parent,
    )


def symbol_name(symbol: str) -> str:
    """Return the last part of a dotted name, whatever separators its language uses; a plain name as it is."""
    return normal(symbol).rpartition(".")[2]


def _is_from_elsewhere(source: SourceFile, use: Use) -> bool:
    """Return whether a use is a name that an import of this text takes from another file, in a language whose imports
    bind the names that they take.
    """
    if not use.imported or source.language not in _BINDING_IMPORTS:
        return False
    node = use.node.parent
    while node is not None and node.type not in _IMPORTS:
        node = node.parent
    # `export {name}` without a source exports the name of this very text.
    return node is not None and (node.type != "export_statement" or node.child_by_field_name("source") is not None)


def _belongs_to_another(uses: Uses, name: str, owners: Collection[str], use: Use) -> bool:
    """Return whether a use is inside a class that has a member of this name and is none of the owners.

    Constructors do not count as such members: their name refers to the class.
    """
    source = uses.source
    # `Box Box;`: before a dot and in a pattern, the class is meant as well as the member.
    if source.language in ("java", "csharp") and uses.may_be_type(use):
        return False
    return any(
        each.symbol.name == name
        and not uses.in_other_namespace(each, use)
        and each.symbol.parent not in owners
        and each.symbol.parent.rpartition(".")[2] != name  # a constructor
        and is_member(source, each)
        and inside(source, each.symbol.parent, use)
        for each in source.definitions
    )


def _is_enum(source: SourceFile, name: str) -> bool:
    return any(each.qualified == name and each.symbol.kind == "enum" for each in source.definitions)


def _is_plain_constant(definition: Definition) -> bool:
    """Return whether a definition is a constant of an unscoped enum, whose names belong to the scope around it, as in
    C.
    """
    enum = definition.node.parent.parent if definition.node.parent is not None else None
    if definition.node.type != "enumerator" or enum is None:
        return False
    return all(child.type not in ("class", "struct") for child in enum.children)


def _is_spanned(source: SourceFile, parent: str, use: Use) -> bool:
    """Return whether a use is inside `parent`; True if that is no module."""
    is_module = any(each.qualified == parent and each.symbol.kind == "module" for each in source.definitions)
    return not is_module or _in_module(source, parent, use)


def _is_out_of_sight(source: SourceFile, parent: str, use: Use) -> bool:
    """Return whether a module of Rust around a use does not see the names of the modules around it, as it has no `use`
    of them.
    """
    for node, _ in ancestors(use.node):
        if node.type == "mod_item" and (body := node.child_by_field_name("body")) is not None:
            if any(each.node == node and each.qualified == parent for each in source.definitions):
                return False
            brought = [text_of(each) for each in body.named_children if each.type == "use_declaration"]
            if not any(re.search(r"\b(?:super|crate)\b", each) for each in brought):
                return True
    return False


def _in_module(source: SourceFile, module: str, use: Use) -> bool:
    return any(
        each.qualified == module
        and each.symbol.kind == "module"
        and each.outer.start_byte <= use.node.start_byte < each.outer.end_byte
        for each in source.definitions
    )


def _is_of_trait(node: Node) -> bool:
    around = node.parent.parent if node.parent is not None else None
    return around is not None and around.type == "impl_item" and around.child_by_field_name("trait") is not None


def _asks_for(source: SourceFile, name: str, owner: str) -> bool:
    interfaces = {each.qualified for each in source.definitions if each.symbol.kind == "interface"} - {owner}
    return any(each.symbol.name == name and each.symbol.parent in interfaces for each in source.definitions)


def _site(source: SourceFile, use: Use) -> Site:
    place = use.node.start_byte
    line = source.slice(source.line_start(place), source.line_end(place)).strip()
    inside = around(source, place)
    kind = "import" if use.imported else "call" if use.call else "member" if use.access == "member" else "use"
    return Site(
        source.path,
        source.line(place),
        _column(source, place),
        kind,
        line[:_MOST_TEXT],
        inside.qualified if inside is not None else "",
    )


def _column(source: SourceFile, place: int) -> int:
    return len(source.slice(source.line_start(place), place)) + 1
