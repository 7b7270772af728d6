"""Renamings learned from a name that was changed to another in two places: the roles of these places tell where else it
should be changed.

A parameter or a local name is one inside its function only; of a called, imported or used name the places of the same
role are. Not here: other changes (`rewrites.py`), places in files (`proposals.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codeagent_lsp.index.grammars import text_of
from codeagent_lsp.inline.next_edit.history import Example
from codeagent_lsp.inline.next_edit.parsed_text import (
    CALLS,
    ParsedText,
    Role,
    binds,
    function_of,
    has_above,
    nodes_of,
    role_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_SELF = ("self", "this", "cls")
SHORTEST = 3
"""The least letters of a name that is looked for in other files."""

_NAME = re.compile(r"identifier$|^name$|^constant$|^word$")


@dataclass(frozen=True)
class Renaming:
    """A renaming learned from edits: from `old` to `new` in places of these roles. With `function`, only inside that
    function of the file `path`, given by its range in bytes. `of` is the function whose parameter it is, for keywords.

    A member is renamed only on these `objects`; `only` is the one file in which it applies ('' for any); with
    `needs_gone` it applies only if nothing has the old name any more.
    """

    language: str
    old: str
    new: str
    roles: frozenset[Role]
    path: str = ""
    function: tuple[int, int] | None = None
    of: str = ""
    only: str = ""
    objects: frozenset[str] = frozenset()
    needs_gone: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The names that a text must all contain for the renaming to apply."""
        return (self.old, self.of) if self.of else (self.old,)

    @property
    def title(self) -> str:
        """The renaming on one line for the user, such as `old → new`."""
        return f"{self.old} → {self.new}"

    def places(self, text: ParsedText) -> Iterator[tuple[Node, str]]:
        """Yield pairs of a node of a text to which it applies and the new name, in order; none in another language or
        file.
        """
        if text.language != self.language:
            return
        if self.only and text.path != self.only:
            return
        start, end = 0, len(text.data)
        if self.function is not None:
            if text.path != self.path:
                return
            start, end = self.function
        old = self.old.encode()
        for node in nodes_of(text.root, start, end):
            if not node.child_count and node.text == old and _NAME.search(node.type) and self._fits(text, node):
                yield node, self.new

    def _fits(self, text: ParsedText, node: Node) -> bool:
        role = role_of(node)
        if role not in self.roles:
            return False
        if self.of:
            return role == "keyword" and _callee(text, node) == self.of
        return role != "member" or _object(text, node) in self.objects


def renamings(one: Example, other: Example) -> list[Renaming]:
    """Return the renamings that two examples show: [] for none, that of the name, or for a parameter also that of the
    keyword by which calls give it.
    """
    mine, theirs = _renamed_at(one), _renamed_at(other)
    if mine is None or theirs is None or mine[1:] != theirs[1:] or one.after.language != other.after.language:
        return []
    (node, old, new), second = mine, theirs[0]
    roles: set[Role] = {role_of(node), role_of(second)}
    language = one.after.language
    if roles <= {"plain", "parameter"}:
        return _local(one, other, (node, second), old, new)
    if len(old) < SHORTEST or "keyword" in roles:
        return []
    # Another import under this name: it is a matter of this file alone.
    if roles == {"imported", "called"} and one.after.path == other.after.path:
        return [Renaming(language, old, new, frozenset(("called", "type", "imported")), only=one.after.path)]
    if "defined" in roles:
        spread: frozenset[Role] = frozenset(("called", "imported", "type"))
        is_member = "member" in roles or _in_class(node if role_of(node) == "defined" else second)
        if not is_member:
            return [Renaming(language, old, new, spread, needs_gone=True)]
        # Other objects may have a member of the same name that is another one.
        objects = frozenset((*_SELF, _object(one.after, node), _object(other.after, second)))
        return [Renaming(language, old, new, frozenset(("member",)), objects=objects, needs_gone=True)]
    return []


def _local(one: Example, other: Example, nodes: tuple[Node, Node], old: str, new: str) -> list[Renaming]:
    """Return the renaming inside the one function that both examples are in; and at calls, where it is a parameter."""
    functions = [function_of(node) for node in nodes]
    first = functions[0]
    if one.after.path != other.after.path or first is None or functions[1] is None:
        return []
    if (first.start_byte, first.end_byte) != (functions[1].start_byte, functions[1].end_byte):
        return []
    if not any(binds(node) for node in nodes) or _still_bound(first, old):
        return []  # only some of its uses were given another name
    language, place = one.after.language, (first.start_byte, first.end_byte)
    inside = Renaming(language, old, new, frozenset(("plain", "parameter")), one.after.path, place)
    name = first.child_by_field_name("name")
    called = text_of(name) if name is not None else ""
    if called and any(role_of(node) == "parameter" for node in nodes):
        return [inside, Renaming(language, old, new, frozenset(("keyword",)), of=called)]
    return [inside]


def _still_bound(function: Node, name: str) -> bool:
    wanted = name.encode()
    leaves = (each for each in nodes_of(function) if not each.child_count and each.text == wanted)
    return any(binds(each) for each in leaves)


def _renamed_at(example: Example) -> tuple[Node, str, str] | None:
    """Return the name's node after the change, and both names; None where more than a name has changed."""
    if not example.pairs:
        return None
    old, new = example.pairs[0]
    if old.child_count or new.child_count or not _NAME.search(old.type) or not _NAME.search(new.type):
        return None
    return new, example.before.of(old), example.after.of(new)


def _in_class(node: Node) -> bool:
    return has_above(node, ("class", "impl_item", "trait", "interface", "method_declaration"), 8)


def _object(text: ParsedText, member: Node) -> str:
    """Return the text of what a member is of; '' for a name that is no member."""
    parent = member.parent
    return text.of(parent.children[0]) if parent is not None and role_of(member) == "member" else ""


def _callee(text: ParsedText, keyword: Node) -> str:
    """Return the last name of what is called with a keyword."""
    around = keyword.parent
    while around is not None and around.type not in CALLS:
        around = around.parent
    called = around.child_by_field_name("function") if around is not None else None
    return re.split(r"\W+", text.of(called))[-1] if called is not None else ""
